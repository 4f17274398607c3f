// The drawing area: mouse, touch, pen and keyboard put ink on a canvas. Ink is the canvas's alpha.
import {side} from './image.js';

export class Pad {
  // changed(ended) is called after the pen is set down, draws or is lifted; `ended` says whether it
  // was lifted, which ends the stroke.
  constructor(canvas, pen, width, changed) {
    this.canvas = canvas;
    this.pen = pen;
    this.width = width;
    this.changed = changed;
    this.context = canvas.getContext('2d', {willReadFrequently: true});
    this.at = {x: canvas.width / 2, y: canvas.height / 2};
    this.pressed = null;
    this.down = false;
    pen.style.width = `${100 * width / canvas.width}%`;
    canvas.addEventListener('pointerdown', (event) => this.press(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    for (const end of ['pointerup', 'pointercancel'])
      canvas.addEventListener(end, (event) => this.lift(event));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => {
      if (!this.down) return;
      this.setDown(false);
      this.changed(true);
    });
  }

  clear() {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  // Shows 28x28 bytes as ink, each as a square.
  show(image) {
    const small = new OffscreenCanvas(side, side);
    const pixels = new ImageData(side, side);
    image.forEach((byte, i) => pixels.data[4 * i + 3] = byte);
    small.getContext('2d').putImageData(pixels, 0, 0);
    this.clear();
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(small, 0, 0, this.canvas.width, this.canvas.height);
  }

  ink() {
    const {width, height} = this.canvas;
    const {data} = this.context.getImageData(0, 0, width, height);
    return Uint8Array.from({length: width * height}, (_, i) => data[4 * i + 3]);
  }

  stroke(from, to) {
    const {context} = this;
    context.lineWidth = this.width;
    context.lineCap = context.lineJoin = 'round';
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return {
      x: (event.clientX - box.left) / box.width * this.canvas.width,
      y: (event.clientY - box.top) / box.height * this.canvas.height,
    };
  }

  press(event) {
    if (this.pressed !== null || event.button !== 0) return;
    this.pressed = event.pointerId;
    this.canvas.setPointerCapture(event.pointerId);
    this.goTo(this.place(event), true);
    this.changed(false);
  }
  move(event) {
    if (event.pointerId !== this.pressed) return;
    const points = event.getCoalescedEvents?.() ?? [];
    for (const point of points.length > 0 ? points : [event]) this.goTo(this.place(point), false);
    this.changed(false);
  }
  lift(event) {
    if (event.pointerId !== this.pressed) return;
    this.pressed = null;
    this.changed(true);
  }
  goTo(place, begin) {
    this.stroke(begin ? place : this.at, place);
    this.setAt(place);
  }

  key(event) {
    const step = this.canvas.width / (event.shiftKey ? 56 : side);
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    if (event.key === ' ') {
      this.setDown(!this.down);
      if (this.down) this.goTo(this.at, true);
    } else if (event.key in steps) {
      const [x, y] = steps[event.key];
      const inside = (value, size) => Math.min(Math.max(value, 0), size);
      const place = {
        x: inside(this.at.x + x * step, this.canvas.width),
        y: inside(this.at.y + y * step, this.canvas.height),
      };
      if (this.down) this.goTo(place, false);
      else this.setAt(place);
    } else {
      return;
    }
    event.preventDefault();
    if (this.down || event.key === ' ') this.changed(!this.down);
  }
  setDown(down) {
    this.down = down;
    this.pen.classList.toggle('down', down);
  }
  setAt(place) {
    this.at = place;
    this.pen.style.left = `${100 * place.x / this.canvas.width}%`;
    this.pen.style.top = `${100 * place.y / this.canvas.height}%`;
  }
}
