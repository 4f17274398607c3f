// The page: runs a drawing or an example through the network, and shows all results.
import {imageOf} from './image.js';
import {Network} from './network.js';
import {Pad} from './pad.js';
import {colors, description, drawCodes, drawImage, title} from './pictures.js';

const element = (id) => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
const percent = (fraction) => `${(100 * fraction).toFixed(1)} %`;
const empty = new Array(10).fill(0);

class Page {
  constructor(network) {
    this.network = network;
    const {data} = network;
    this.pad = new Pad(element('pad'), element('pen'), data.drawing.pen, (ended) => this.drawn(ended));
    this.example = null;
    this.pixels = null;
    this.result = null;
    this.bars = data.classes.map((name) => this.bar(name));
    this.pictures = data.steps.map((step) => this.picture(step));
    data.examples.forEach((example) => this.addExample(example));
    element('clear').addEventListener('click', () => this.clear());
    element('pad').addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.clear();
    });
    new ResizeObserver(() => this.showPictures()).observe(element('layers'));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.showExamples();
      this.showPictures();
    });
    this.describe(data);
    this.showExamples();
  }

  describe(data) {
    const one = data.subject.replace(/s$/, '');
    element('title').textContent = document.title = `Draw a ${one}`;
    element('accuracy').textContent = `${percent(data.accuracy)} of ${data.images.toLocaleString('en')}`;
    element('tables').textContent = kib(data.table_bytes);
    element('work').textContent = data.multiply_adds.toLocaleString('en');
  }

  bar(name) {
    const fill = make('span', {class: 'fill'});
    const share = make('td', {class: 'number'}), integer = make('td', {class: 'number integer'});
    const row = make('tr', {},
                     make('th', {scope: 'row'}, name),
                     make('td', {class: 'bar', 'aria-hidden': true}, fill),
                     share,
                     integer);
    element('outputs').append(row);
    return {row, fill, share, integer};
  }

  picture(step) {
    const canvas = make('canvas', {role: 'img', 'aria-label': `${title(step)}, ${description(step)}`});
    const caption = make('figcaption', {},
                         make('strong', {}, title(step)),
                         ` ${description(step)} `,
                         make('code', {}, `layer ${step.layer}`));
    element('layers').append(make('figure', {}, caption, canvas));
    return {step, canvas};
  }

  addExample(example) {
    example.bytes = Uint8Array.from(atob(example.pixels), (letter) => letter.charCodeAt(0));
    const canvas = make('canvas');
    const name = this.network.data.classes[example.label];
    const button = make('button', {type: 'button', title: name, 'aria-label': `Example: ${name}`}, canvas);
    button.addEventListener('click', () => this.choose(example));
    element('examples').append(button);
    example.canvas = canvas;
    example.button = button;
  }

  choose(example) {
    this.mark(example);
    this.pad.show(example.bytes);
    this.show(example.bytes, true);
  }
  clear() {
    this.mark(null);
    this.pad.clear();
    this.show(null, true);
  }
  // Called after a movement of the pen. All movements within a frame of the display are shown
  // together.
  drawn(ended) {
    this.mark(null);
    this.ended ||= ended;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      const {width, height} = this.pad.canvas;
      this.waiting = false;
      this.show(imageOf(this.pad.ink(), width, height, this.network.data.drawing), this.ended);
      this.ended = false;
    });
  }
  mark(example) {
    this.example = example;
    for (const other of this.network.data.examples)
      other.button.setAttribute('aria-pressed', other === example);
  }

  // Shows an image, or nothing for null. If the drawing is finished (`ended`), also measures the
  // time and gives the result to screen readers.
  show(pixels, ended) {
    this.pixels = pixels;
    this.result = pixels && this.network.run(pixels);
    const outputs = this.result?.outputs ?? empty;
    const shares = this.result ? this.network.probabilities(outputs) : empty;
    const best = shares.indexOf(Math.max(...shares)); // each integer has its own scale
    this.bars.forEach((bar, i) => {
      bar.row.classList.toggle('best', pixels !== null && i === best);
      bar.fill.style.width = `${100 * shares[i]}%`;
      bar.share.textContent = pixels ? percent(shares[i]) : '–';
      bar.integer.textContent = pixels ? outputs[i] : '–';
    });
    const name = this.network.data.classes[best];
    element('answer').textContent = pixels ? name : '–';
    element('remark').textContent = this.remark(outputs);
    this.showPictures();
    if (!ended) return;
    element('spoken').textContent = pixels ? `${name}, ${percent(shares[best])}` : 'Cleared';
    element('time').textContent = pixels ? `${this.network.time(pixels).toFixed(0)} µs` : '–';
  }

  remark(outputs) {
    if (this.pixels === null) {
      return 'Draw with mouse, finger or pen, or choose an example.' +
          (this.network.data.drawing.fill > 0 ? ' Outlines will do.' : '');
    }
    if (this.example === null) return 'Drawn here.';
    const {image, label, outputs: expected} = this.example;
    const equal = outputs.every((integer, i) => integer === expected[i]);
    return `Test image ${image}: ${this.network.data.classes[label]}. ` +
        (equal ? 'All ten integers equal those of the C++ engine.' :
                 'The integers differ from those of the C++ engine.');
  }

  showExamples() {
    const theme = colors('--surface', '--text');
    for (const {canvas, bytes} of this.network.data.examples) drawImage(canvas, bytes, theme);
  }
  showPictures() {
    const theme = colors('--code-zero', '--code-high', '--code-low');
    const available = element('layers').clientWidth;
    drawImage(element('seen'), this.pixels, colors('--surface', '--text'));
    for (const {step, canvas} of this.pictures)
      drawCodes(canvas, step, this.result?.codes.get(step.step) ?? null, available, theme);
  }
}

try {
  const page = new Page(await Network.load());
  element('main').hidden = false;
  element('loading').remove();
  page.choose(page.network.data.examples.at(-1));
} catch (error) {
  element('loading').textContent = `The network does not run here. ${error.message}`;
  throw error;
}
