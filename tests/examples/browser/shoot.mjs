// node shoot.mjs FOLDER PICTURE.png [WIDTH [HEIGHT [dark]]]: saves a picture of the page, for docs/browser.png.
import {writeFileSync} from 'node:fs';
import {Chromium, serve} from './chromium.mjs';

const [folder, picture, width = '1040', height = '1000', theme] = process.argv.slice(2);
const server = await serve(folder);
const chromium = new Chromium(process.env.CHROMIUM ?? 'chromium');
try {
  await chromium.open(server.origin, Number(width), Number(height), theme === 'dark');
  await chromium.until(`document.querySelector('#main')?.hidden === false`);
  writeFileSync(picture, await chromium.screenshot(Number(height)));
} finally {
  await chromium.close();
  server.close();
}
