// Bytes as pictures: an image, or a step's channels side by side.
import {side} from './image.js';

const operations = {
  quantized_add: 'Sum',
  quantized_mul: 'Product',
  quantized_avg_pool2d: 'Average pool',
  gather: 'Move',
  quantized_concat: 'Concat',
  quantized_conv2d: 'Convolution',
  quantized_linear: 'Linear',
  quantized_lookup: 'Function',
  quantized_max_pool2d: 'Max pool',
  quantized_softmax: 'Softmax',
};

export function title({operation}) {
  return operations[operation] ?? operation;
}

// The layout of a step's codes: [height, width, channels]. A vector is one picture with lines of 32.
function form({shape}) {
  if (shape.length === 3 && shape[0] * shape[1] > 1)
    return {height: shape[0], width: shape[1], channels: shape[2]};
  const size = shape.reduce((a, b) => a * b, 1), width = Math.min(size, 32);
  return {height: Math.ceil(size / width), width, channels: 1};
}

export function description(step) {
  const {height, width, channels} = form(step);
  const size = step.shape.reduce((a, b) => a * b, 1);
  return channels * height * width === size && step.shape.length === 3 && channels > 1 ?
      `${channels} channels of ${height} × ${width}` :
      `${size} codes`;
}

// CSS pixels for each code: small pictures are enlarged more.
function zoom(size, available) {
  if (size >= 20) return available >= 600 ? 3 : 2;
  return size >= 10 ? 3 : size >= 5 ? 4 : 6;
}

// Colors of the theme as bytes.
export function colors(...names) {
  const style = getComputedStyle(document.documentElement);
  const bytes = (name) => {
    const digits = style.getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
  };
  return names.map(bytes);
}

// The color at `share` of the way from one color to the other.
function mixed(from, to, share) {
  return from.map((byte, i) => byte + (to[i] - byte) * Math.min(1, share));
}

// Draws an image in ink, a pixel for each byte; CSS sets the size.
export function drawImage(canvas, pixels, [paper, ink]) {
  canvas.width = canvas.height = side;
  const image = new ImageData(side, side);
  for (let i = 0; i < side * side; ++i)
    image.data.set([...mixed(paper, ink, (pixels?.[i] ?? 0) / 255), 255], 4 * i);
  canvas.getContext('2d').putImageData(image, 0, 0);
}

// A color for each of the 256 codes. Square roots make small differences visible near the zero point,
// where most codes are.
function palette({low, zero, high}, [middle, above, below]) {
  return Array.from({length: 256}, (_, code) => {
    return code >= zero ? mixed(middle, above, Math.sqrt((code - zero) / Math.max(1, high - zero))) :
                          mixed(middle, below, Math.sqrt((zero - code) / Math.max(1, zero - low)));
  });
}

// Draws the codes into a canvas at most `available` CSS pixels wide, or as wide as one channel if
// that is wider. If `codes` is null, all pixels have the color of the zero point.
export function drawCodes(canvas, step, codes, available, theme) {
  const {height, width, channels} = form(step);
  const times = channels === 1 ? 8 : zoom(Math.max(height, width), available);
  const fitting = Math.max(1, Math.floor((available / times + 1) / (width + 1)));
  const lines = Math.ceil(channels / fitting), columns = Math.ceil(channels / lines);
  canvas.width = columns * (width + 1) - 1;
  canvas.height = lines * (height + 1) - 1;
  canvas.style.width = `${canvas.width * times}px`;
  const image = new ImageData(canvas.width, canvas.height);
  const shades = palette(step, theme);
  for (let channel = 0; channel < channels; ++channel) {
    const left = channel % columns * (width + 1), top = Math.floor(channel / columns) * (height + 1);
    for (let pixel = 0; pixel < height * width; ++pixel) {
      const code = codes === null ? step.zero : codes[pixel * channels + channel];
      if (code === undefined) break;
      const x = left + pixel % width, y = top + Math.floor(pixel / width);
      image.data.set([...shades[code], 255], 4 * (y * canvas.width + x));
    }
  }
  canvas.getContext('2d').putImageData(image, 0, 0);
}
