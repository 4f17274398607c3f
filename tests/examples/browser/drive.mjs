// node drive.mjs FOLDER MODEL DEPLOY: visits the page of examples/browser in a headless Chromium. FOLDER is the page
// that examples/browser/build made from MODEL; DEPLOY is the program of examples/deploy.cpp, which runs the engine.
// Prints one line for each property; the exit status is 1 if one does not hold.
import {execFileSync} from 'node:child_process';
import {mkdtempSync, readFileSync, rmSync, statSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {Chromium, serve} from './chromium.mjs';

const [folder, model, deploy] = process.argv.slice(2);
const data = JSON.parse(readFileSync(join(folder, 'data.json'), 'utf8'));
const server = await serve(folder);
const chromium = new Chromium(process.env.CHROMIUM ?? 'chromium');
const limit = setTimeout(() => chromium.process.kill('SIGKILL'), 60000);
let failed = 0;

function check(property, actual, expected) {
  const [a, e] = [actual, expected].map((value) => JSON.stringify(value));
  console.log(a === e ? `ok: ${property}` : `failed: ${property}: expected ${e}, got ${a}`);
  if (a !== e) ++failed;
}

// Contents of the page.
const outputs = () =>
    chromium.evaluate(`[...document.querySelectorAll('.integer')].map((cell) => cell.textContent)`);
const remark = () => chromium.evaluate(`document.querySelector('#remark').textContent`);
const remarks = (text) => chromium.until(`document.querySelector('#remark').textContent.startsWith('${text}')`);
// The page shows a drawing in the frame after the pen's last movement.
const frame = 'new Promise((done) => requestAnimationFrame(done))';
const shown = async () => {
  for (let i = 0; i < 2; ++i) await chromium.evaluate(frame);
};
const paper = `(() => {
  const canvas = document.querySelector('#pad'), {width, height} = canvas;
  const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
  return {ink: data.filter((_, i) => i % 4 === 3), width, height};
})()`;
// The image that the page computes from a drawing.
const image = (drawing, options) => chromium.evaluate(`(async () => {
  const {imageOf} = await import('./image.js'), {ink, width, height} = ${drawing};
  return Array.from(imageOf(ink, width, height, ${JSON.stringify(options)}));
})()`);

function engine(pixels) {
  const scratch = mkdtempSync(join(tmpdir(), 'quantrain_image_'));
  try {
    writeFileSync(join(scratch, 'image'), Uint8Array.from(pixels));
    const text = execFileSync(deploy, [model, join(scratch, 'image')], {encoding: 'utf8'});
    return text.trim().split('logits ')[1].split(' ');
  } finally {
    rmSync(scratch, {recursive: true});
  }
}

async function examples() {
  let equal = 0;
  for (let i = 0; i < data.examples.length; ++i) {
    const {image: number, outputs: expected} = data.examples[i];
    await chromium.click(`#examples button:nth-child(${i + 1})`);
    await remarks(`Test image ${number}:`);
    if (JSON.stringify(await outputs()) === JSON.stringify(expected.map(String))) ++equal;
  }
  check('the examples give the engine\'s integers', `${equal} of ${data.examples.length}`, '10 of 10');
  check('the page says that they are equal',
        (await remark()).endsWith('All ten integers equal those of the C++ engine.'), true);
  const checksums = await chromium.evaluate(`(async () => {
    const network = await (await import('./network.js')).Network.load();
    return network.data.examples.map(({pixels}) => {
      const {codes} = network.run(Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0)));
      return network.data.steps.map(({step}) => codes.get(step).reduce(
          (hash, code) => Math.imul(hash ^ code, 16777619) >>> 0, 2166136261));
    });
  })()`);
  check('every step gives the engine\'s codes', checksums, data.examples.map(({checksums}) => checksums));
}

async function pictures() {
  const {colors, sizes} = await chromium.evaluate(`(() => {
    const canvases = [...document.querySelectorAll('#layers canvas')];
    const count = (canvas) => new Set(new Uint32Array(
        canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
    return {colors: canvases.map((canvas) => count(canvas) > 8), sizes: canvases.map((canvas) => canvas.offsetWidth)};
  })()`);
  check('every step has a picture of many shades', colors, data.steps.map(() => true));
  check('no picture is wider than its place',
        Math.max(...sizes) <= await chromium.evaluate(`document.querySelector('#layers').clientWidth`), true);
}

async function drawing() {
  await chromium.click('#clear');
  check('without a drawing there is no answer', await outputs(), new Array(10).fill('–'));
  await chromium.drag('#pad', [[0.3, 0.25], [0.5, 0.2], [0.7, 0.25], [0.6, 0.5], [0.45, 0.85]]);
  await shown();
  const pixels = await image(paper, data.drawing);
  check('a drawing gives the engine\'s integers', await outputs(), engine(pixels));
  check('the drawing has ink', pixels.some((byte) => byte > 100), true);
  check('the page does not take the drawing for an example', await remark(), 'Drawn here.');

  await chromium.click('#clear');
  await chromium.evaluate(`document.querySelector('#pad').focus()`);
  for (const key of [' ', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowDown', 'ArrowDown', ' '])
    await chromium.key(key);
  await shown();
  check('keys draw, too', await outputs(), engine(await image(paper, data.drawing)));
  await chromium.key('Escape');
  await remarks('Draw with');
  check('Escape clears', await outputs(), new Array(10).fill('–'));
}

// Rectangles of ink on paper of 280 x 280.
const rectangles = (...list) => `(() => {
  const width = 280, height = 280, ink = new Uint8Array(width * height);
  for (const [left, top, right, bottom] of ${JSON.stringify(list)})
    for (let y = top; y < bottom; ++y) ink.fill(255, y * width + left, y * width + right);
  return {ink, width, height};
})()`;
const grid = (byte) => Array.from({length: 28 * 28}, (_, i) => byte(i % 28, Math.floor(i / 28)));

async function images() {
  const mnist = {box: 20, center: 'mass', fill: 0};
  check('the longer side becomes 20 pixels, centered at 14', await image(rectangles([7, 30, 27, 230]), mnist),
        grid((x, y) => x >= 13 && x < 15 && y >= 4 && y < 24 ? 255 : 0));
  check('a pixel that is covered by half has half the ink', await image(rectangles([40, 30, 70, 230]), mnist),
        grid((x, y) => y < 4 || y >= 24 ? 0 : x === 13 || x === 14 ? 255 : x === 12 || x === 15 ? 128 : 0));
  // The centers of the rectangles are (70, 50) and (170, 87.5), and their areas are as 4 to 1, so the center of mass is
  // (90, 57.5). So x becomes x / 10 + 5, and y becomes y / 10 + 8.25.
  const high = (y) => y === 8 ? 191 : y > 8 && y < 18 ? 255 : y === 18 ? 64 : 0;
  const low = (y) => y === 15 || y === 18 ? 64 : y === 16 || y === 17 ? 255 : 0;
  check('the center of mass lies in the middle', await image(rectangles([20, 0, 120, 100], [120, 75, 220, 100]), mnist),
        grid((x, y) => x >= 7 && x < 17 ? high(y) : x >= 17 && x < 27 ? low(y) : 0));
  // Placed by its center of mass alone, this drawing would begin at -0.6. Rounding changes each of 40 pixels by at most
  // 0.5.
  const corner = await image(rectangles([0, 0, 200, 10], [190, 10, 200, 200]), mnist);
  check('nothing is cut off', Math.abs(corner.reduce((a, b) => a + b) - 3900 * 255 / 100) <= 20, true);
  const outline = [[40, 40, 240, 60], [40, 60, 60, 220], [220, 60, 240, 220], [40, 220, 240, 240]];
  check('closed outlines are filled', await image(rectangles(...outline), {box: 20, center: 'box', fill: 150}),
        grid((x, y) => Math.min(x, y, 27 - x, 27 - y) < 4 ? 0 : Math.min(x, y, 27 - x, 27 - y) < 6 ? 255 : 150));
}

async function names() {
  const {nodes} = await chromium.send('Accessibility.getFullAXTree');
  const roles = ['button', 'image', 'img', 'application'];
  const nameless = nodes.filter(({ignored, role, name}) => !ignored && roles.includes(role?.value) && !name?.value);
  check('every button and picture has a name', nameless.map(({role}) => role.value), []);
  check('number of buttons', nodes.filter(({role}) => role?.value === 'button').length, 11);
}

async function widths() {
  for (const width of [320, 768, 1440]) {
    await chromium.resize(width, 800);
    check(`the page fits into a width of ${width} pixels`,
          await chromium.evaluate(`document.documentElement.scrollWidth <= innerWidth`), true);
  }
}

try {
  check('the module has at most 64 KiB', statSync(join(folder, 'network.wasm')).size <= 65536, true);
  await chromium.open(server.origin, 1040, 900);
  await chromium.until(`document.querySelector('#main')?.hidden === false`);
  for (const visit of [examples, pictures, drawing, images, names, widths]) await visit();
  const events = (...methods) =>
      chromium.events.filter(({method}) => methods.includes(method)).map(({params}) => params);
  const urls = events('Network.requestWillBeSent').map(({request}) => request.url);
  check('everything comes from the folder', urls.filter((url) => !url.startsWith(server.origin)), []);
  const complaints = events('Runtime.exceptionThrown', 'Log.entryAdded', 'Runtime.consoleAPICalled');
  check('nothing goes wrong', complaints, []);
} catch (error) {
  ++failed;
  console.log(`failed: ${error.stack}`);
} finally {
  clearTimeout(limit);
  await chromium.close();
  server.close();
}
process.exit(failed > 0 ? 1 : 0);
