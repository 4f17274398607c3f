// A server for a folder, and a headless Chromium that is controlled by the DevTools protocol over a pipe.
import {spawn} from 'node:child_process';
import {createServer} from 'node:http';
import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {basename, extname, join} from 'node:path';

const types = {
  '.html': 'text/html',
  '.css': 'text/css',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

export async function serve(folder) {
  const server = createServer((request, response) => {
    const name = basename(new URL(request.url, 'http://page').pathname) || 'index.html';
    try {
      const text = readFileSync(join(folder, name));
      response.writeHead(200, {'Content-Type': types[extname(name)] ?? 'application/octet-stream'});
      response.end(text);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close()};
}

export class Chromium {
  constructor(program) {
    this.folder = mkdtempSync(join(tmpdir(), 'quantrain_browser_'));
    // The sandbox does not start as root, nor in most containers. It is not needed, because the page is ours.
    const flags = [
      '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-extensions', '--hide-scrollbars',
      '--disable-background-networking', '--disable-dev-shm-usage', '--remote-debugging-pipe',
      `--user-data-dir=${this.folder}`, 'about:blank',
    ];
    this.process = spawn(program, flags, {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.ended = new Promise((done) => this.process.on('close', done));
    this.calls = new Map();
    this.events = [];
    this.number = 0;
    let text = '';
    this.process.stdio[4].setEncoding('utf8').on('data', (part) => {
      const messages = (text + part).split('\0');
      text = messages.pop();
      for (const message of messages) this.receive(JSON.parse(message));
    });
    this.ended.then(() => {
      for (const call of this.calls.values()) call.fail(new Error('chromium ended'));
    });
  }

  receive(message) {
    const call = this.calls.get(message.id);
    if (call === undefined) {
      this.events.push(message);
      return;
    }
    this.calls.delete(message.id);
    if (message.error) call.fail(new Error(`${call.method}: ${message.error.message}`));
    else call.done(message.result);
  }

  send(method, params = {}) {
    const id = ++this.number;
    this.process.stdio[3].write(JSON.stringify({id, method, params, sessionId: this.session}) + '\0');
    return new Promise((done, fail) => this.calls.set(id, {method, done, fail}));
  }

  // Opens a page of this size. Its requests, console output and exceptions become events.
  async open(url, width, height, dark = false) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    this.session = (await this.send('Target.attachToTarget', {targetId, flatten: true})).sessionId;
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await this.send(`${domain}.enable`);
    await this.resize(width, height);
    await this.send('Emulation.setEmulatedMedia',
                    {features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
    await this.send('Page.navigate', {url});
  }
  resize(width, height, deviceScaleFactor = 1) {
    return this.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor, mobile: false});
  }

  // The value of an expression; a promise is awaited.
  async evaluate(expression) {
    const {result, exceptionDetails} = await this.send(
        'Runtime.evaluate', {expression: `(async () => (${expression}))()`, awaitPromise: true, returnByValue: true});
    if (exceptionDetails)
      throw new Error(`${exceptionDetails.exception?.description ?? exceptionDetails.text}\nin ${expression}`);
    return result.value;
  }
  async until(expression) {
    const end = Date.now() + 10000;
    while (!await this.evaluate(expression)) {
      if (Date.now() > end) throw new Error(`not within 10 s: ${expression}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  mouse(type, {x, y}) {
    return this.send('Input.dispatchMouseEvent', {
      type: `mouse${type}`, x, y, button: 'left', buttons: type === 'Released' ? 0 : 1, clickCount: 1,
    });
  }
  // Scrolls to an element, then presses and releases the mouse in its middle.
  async click(selector) {
    const at = await this.evaluate(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      element.scrollIntoView({block: 'center'});
      const box = element.getBoundingClientRect();
      return {x: box.x + box.width / 2, y: box.y + box.height / 2};
    })()`);
    await this.mouse('Pressed', at);
    await this.mouse('Released', at);
  }
  // Drags the mouse along points, in fractions of an element's size.
  async drag(selector, points) {
    const box = await this.evaluate(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      element.scrollIntoView({block: 'center'});
      const {x, y, width, height} = element.getBoundingClientRect();
      return {x, y, width, height};
    })()`);
    const places = points.map(([x, y]) => ({x: box.x + x * box.width, y: box.y + y * box.height}));
    await this.mouse('Pressed', places[0]);
    for (const place of places.slice(1)) await this.mouse('Moved', place);
    await this.mouse('Released', places.at(-1));
  }
  async key(key) {
    for (const type of ['keyDown', 'keyUp']) await this.send('Input.dispatchKeyEvent', {type, key});
  }

  async screenshot(height) {
    const {width} = await this.evaluate('({width: innerWidth})');
    const {data} = await this.send('Page.captureScreenshot', {
      format: 'png', captureBeyondViewport: true, clip: {x: 0, y: 0, width, height, scale: 1},
    });
    return Buffer.from(data, 'base64');
  }

  async close() {
    this.session = undefined;
    this.send('Browser.close').catch(() => {});
    const timer = setTimeout(() => this.process.kill('SIGKILL'), 5000);
    await this.ended;
    clearTimeout(timer);
    rmSync(this.folder, {recursive: true, force: true, maxRetries: 10});
  }
}
