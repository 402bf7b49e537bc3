// Cells on canvases: maps of attention, and attention over a picture; where a cell is, and how it is named.

import { placeTip, zoomOf } from "./dom.js";

const VEIL = "230, 159, 0"; // over pictures, as on every page
const MOST = 0.8; // of its ink
const LETTERS = 12;

// The values of one of many that lie one behind the other.
export const part = (values, at, size) => values.subarray(at * size, (at + 1) * size);

// Rows of cells, a pixel each.
export function paintCells(canvas, values, columns, inkOf) {
  const rows = values.length / columns;
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let i = 0; i < pixels.length; i += 1) pixels[i] = inkOf(values[i]);
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// The ink of a share, 0 to 1, of a scale of 256; of what is masked, NaN, its own.
export const inkAt = (table, share) => table[Math.max(0, Math.min(255, Math.round(share * 255)))];
export const weightInk = (table, masked, top) => (weight) => (Number.isNaN(weight) ? masked : inkAt(table, weight / top));

// The patches of a square picture: the more they get, the more ink lies over them.
export function paintVeil(canvas, picture, weights, top, gap = 0) {
  const { width, height } = canvas;
  const pen = canvas.getContext("2d");
  const side = Math.sqrt(weights.length);
  const [wide, high] = [width / side, height / side];
  pen.imageSmoothingEnabled = false;
  pen.clearRect(0, 0, width, height);
  if (picture) pen.drawImage(picture, 0, 0, width, height);
  weights.forEach((weight, i) => {
    pen.fillStyle = `rgba(${VEIL}, ${(MOST * Math.min(1, weight / top)).toFixed(3)})`;
    pen.fillRect((i % side) * wide, Math.floor(i / side) * high, wide - gap, high - gap);
  });
}

// The largest value of rows of cells, and where it is; what is masked, NaN, is left out.
export function strongest(values, columns) {
  let best = 0;
  for (let i = 1; i < values.length; i += 1) if (values[i] > values[best] || Number.isNaN(values[best])) best = i;
  return { value: values[best] || 0, row: Math.floor(best / columns), column: best % columns };
}

// The row and the column under the pointer; null beside the area that the cells take of a canvas, in its own pixels.
export function cellUnder(event, canvas, [rows, columns], area = null) {
  const [box, zoom] = [canvas.getBoundingClientRect(), zoomOf(canvas)];
  const { x, y, width, height } = area ?? { x: 0, y: 0, width: box.width / zoom, height: box.height / zoom };
  const row = Math.floor((((event.clientY - box.top) / zoom - y) / height) * rows);
  const column = Math.floor((((event.clientX - box.left) / zoom - x) / width) * columns);
  return row < 0 || column < 0 || row >= rows || column >= columns ? null : [row, column];
}

// What is said of what the pointer is at; a finger covers it.
export function showTip(tip, event, text) {
  tip.hidden = !text || event.pointerType === "touch";
  if (tip.hidden) return;
  tip.textContent = text;
  placeTip(tip, event.clientX, event.clientY);
}

// The name of a row or a column; of tokens that were taken together the first and the last.
export function nameAt(names, at, block) {
  const many = names.slice(at * block, (at + 1) * block);
  return many.length > 1 ? `${many[0]} … ${many.at(-1)}` : many[0] ?? "";
}

// A token as an axis can carry it: cut where it is long, and seen where it is blank.
export function shortened(token) {
  const seen = token.trim() ? token.replace(/^ /, "␣") : "␣";
  return seen.length > LETTERS ? `${seen.slice(0, LETTERS - 1)}…` : seen;
}

export const weightOf = (words, weight) => (Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4));
