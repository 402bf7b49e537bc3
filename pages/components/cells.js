// Cells on canvases: maps of attention, and attention over a picture; where a cell is, and how it is named.

import { element, placeTip, zoomOf } from "./dom.js";

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

// A square picture, values (channels, size, size) from 0 to 255, as a canvas at its native resolution.
export function pictured(values, channels = 1) {
  const area = values.length / channels;
  const size = Math.sqrt(area);
  const canvas = element("canvas");
  const inkOf = (i) => abgr([0, 1, 2].map((c) => Math.round(values[(channels === 3 ? c : 0) * area + i])));
  paintCells(canvas, Uint32Array.from({ length: area }, (_none, i) => i), size, inkOf);
  return canvas;
}

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

// What is said of what the pointer is at, while it is over one of the roots. textAt: gets the event.
export function tipOver(roots, textAt) {
  const tip = element("div", "tip", { hidden: true });
  roots.forEach((root) => {
    root.addEventListener("pointermove", (event) => showTip(tip, event, textAt(event)));
    root.addEventListener("pointerleave", () => { tip.hidden = true; });
  });
  return tip;
}

// A finger covers what is said beside it.
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

// A token, seen where it is blank.
export const visible = (token) => (token.trim() ? token.replace(/^ /, "␣") : "␣");

// A token as an axis can carry it: cut where it is long.
export function shortened(token) {
  const seen = visible(token);
  return seen.length > LETTERS ? `${seen.slice(0, LETTERS - 1)}…` : seen;
}

export const weightOf = (words, weight) => (Number.isNaN(weight) ? `0 (${words.masked})` : weight.toFixed(4));

// ---- colours: hexadecimal to numbers, and between the stops of a scale

export const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// A colour as canvases take it, in one number.
export const abgr = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

// A scale of 256 colours, as canvases take them.
export const colours = (scale) => Uint32Array.from({ length: 256 }, (_none, i) => abgr(mix(scale, i / 255)));

export function mix(scale, share) {
  const stops = scale.map(rgb);
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const from = Math.min(Math.floor(at), stops.length - 2);
  return stops[from].map((v, c) => Math.round(v + (stops[from + 1][c] - v) * (at - from)));
}

// Black or white, whichever can be read on a colour: at least 4.5 to 1 (WCAG 2.2, 1.4.3).
export function inkOn(colour) {
  const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

// How weights arrive: header length (uint32), JSON header, then float16 or float32, little-endian.

const HALF = new Float32Array(65536); // float16 bits -> value, so that hover reads the exact weight
for (let bits = 0; bits < 65536; bits += 1) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) HALF[bits] = fraction ? NaN : sign * Infinity;
  else if (exponent === 0) HALF[bits] = sign * fraction * 2 ** -24;
  else HALF[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function unpack(bytes) {
  const copy = bytes.slice(); // its own buffer: offsets are then multiples of four
  const length = new DataView(copy.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length)));
  const body = copy.buffer.slice(4 + length);
  const values = header.kind === "float16"
    ? Float32Array.from(new Uint16Array(body), (bits) => HALF[bits])
    : new Float32Array(body);
  return { ...header, values };
}
