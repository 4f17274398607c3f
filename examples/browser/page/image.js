// Turns a drawing into an image of 28x28 bytes, in the way the data set's images were made.

export const side = 28;

// Fills closed outlines: gives at least `fill` ink to all pixels that cannot be reached from the
// border.
function filled(ink, width, height, fill) {
  const outside = new Uint8Array(width * height);
  const stack = [];
  const reach = (x, y) => {
    const at = y * width + x;
    if (outside[at] || ink[at] >= 128) return;
    outside[at] = 1;
    stack.push(at);
  };
  for (let x = 0; x < width; ++x) reach(x, 0), reach(x, height - 1);
  for (let y = 0; y < height; ++y) reach(0, y), reach(width - 1, y);
  while (stack.length > 0) {
    const at = stack.pop(), x = at % width, y = (at - x) / width;
    if (x > 0) reach(x - 1, y);
    if (x + 1 < width) reach(x + 1, y);
    if (y > 0) reach(x, y - 1);
    if (y + 1 < height) reach(x, y + 1);
  }
  return ink.map((value, at) => outside[at] ? value : Math.max(value, fill));
}

// Where the ink lies: the box around it and its center of mass.
function extent(ink, width, height) {
  let left = width, right = 0, top = height, bottom = 0, mass = 0, x_sum = 0, y_sum = 0;
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const value = ink[y * width + x];
      if (value === 0) continue;
      left = Math.min(left, x);
      right = Math.max(right, x + 1);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y + 1);
      mass += value;
      x_sum += value * (x + 0.5);
      y_sum += value * (y + 0.5);
    }
  }
  if (mass === 0) return null;
  return {left, right, top, bottom, x: x_sum / mass, y: y_sum / mass};
}

// For each of the 28 cells along an axis: the pixels of the drawing that overlap the cell, each with
// the share of the cell that it covers. Pixel x covers [x, x + 1) * scale + offset.
function cells(size, scale, offset) {
  return Array.from({length: side}, (_, cell) => {
    const begin = (cell - offset) / scale, end = (cell + 1 - offset) / scale;
    const shares = [];
    for (let x = Math.max(0, Math.floor(begin)); x < Math.min(size, Math.ceil(end)); ++x)
      shares.push([x, (Math.min(end, x + 1) - Math.max(begin, x)) * scale]);
    return shares;
  });
}

// ink: width * height bytes; 0 is no ink. The longer side of the box around the ink becomes `box`
// pixels. Each pixel is the mean of the area that it covers. The drawing's center is the center of
// mass if `center` is 'mass', else the center of the box. It moves as close to the middle of the
// image as it can without cutting off ink. `fill` is the ink inside closed outlines. An empty
// drawing gives null.
export function imageOf(ink, width, height, {box, center, fill}) {
  if (fill > 0) ink = filled(ink, width, height, fill);
  const drawn = extent(ink, width, height);
  if (drawn === null) return null;
  const scale = box / Math.max(drawn.right - drawn.left, drawn.bottom - drawn.top);
  const offset = (low, high, mass) => {
    const middle = center === 'mass' ? mass : (low + high) / 2;
    return Math.min(Math.max(side / 2 - middle * scale, -low * scale), side - high * scale);
  };
  const columns = cells(width, scale, offset(drawn.left, drawn.right, drawn.x));
  const rows = cells(height, scale, offset(drawn.top, drawn.bottom, drawn.y));

  const narrow = new Float32Array(height * side);
  for (let y = 0; y < height; ++y) {
    for (let column = 0; column < side; ++column) {
      let sum = 0;
      for (const [x, share] of columns[column]) sum += share * ink[y * width + x];
      narrow[y * side + column] = sum;
    }
  }
  const image = new Uint8Array(side * side);
  for (let row = 0; row < side; ++row) {
    for (let column = 0; column < side; ++column) {
      let sum = 0;
      for (const [y, share] of rows[row]) sum += share * narrow[y * side + column];
      image[row * side + column] = Math.min(255, Math.round(sum));
    }
  }
  return image;
}
