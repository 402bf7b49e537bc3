// All heads of an attention, as Attention's grid and the live stage draw them: each a map or a veil over a
// picture, and what is said of it.
//
// Both give an attention: { shape: (L, H, Q, K), weights, block, rows, keys, words, over }. rows, keys: names of
// queries and keys, of which a cell takes `block`. over: null for maps, else { row, first, picture }: the query
// that is drawn, null for the mean of all, and how many keys stand before the patches of the picture.

import { nameAt, paintCells, paintVeil, part, weightInk, weightOf } from "./cells.js";
import { element, filled } from "./dom.js";

// What a head is called; its number counts all heads, layer by layer.
export function nameOf({ shape: [, heads], words }, number) {
  return filled(words.named, { layer: Math.floor(number / heads) + 1, head: (number % heads) + 1 });
}

// What each patch gets: from one row of a map, or from all of them on average.
export function received(weights, rows, columns, { first, row }) {
  const patches = new Float32Array(columns - first);
  for (let i = 0; i < patches.length; i += 1) {
    if (row !== null) patches[i] = weights[row * columns + first + i];
    else for (let r = 0; r < rows; r += 1) patches[i] += weights[r * columns + first + i] / rows;
  }
  return patches;
}

// The cells of a head: those of its map, or its patches.
export function cellsOf({ shape: [, , rows, columns], weights, over }, number) {
  const map = part(weights, number, rows * columns);
  if (!over) return { values: map, sizes: [rows, columns] };
  const values = received(map, rows, columns, over);
  const side = Math.round(Math.sqrt(values.length));
  return { values, sizes: [side, side] };
}

// top: the weight with the most ink; over a picture the largest where there is none.
export function paintHead(canvas, { values, sizes: [, columns] }, { over, table, maskedInk, top }) {
  if (over) paintVeil(canvas, over.picture, values, (top ?? Math.max(...values)) || 1, over.gap);
  else paintCells(canvas, values, columns, weightInk(table, maskedInk, top));
}

export const canvasOf = (button) => button.querySelector("canvas");

export const headButton = (...title) => element("button", "head", ...title, element("canvas"), " ", element("span", "what"));

// Say on a button what its head does, and to a screen reader what is named.
export function labelHead(button, label, heard) {
  const said = button.lastChild;
  if (said.textContent !== label) said.textContent = button.title = label;
  if (button.getAttribute("aria-label") !== heard) button.setAttribute("aria-label", heard);
}

export const labelled = (attention, number, label = "") => `${nameOf(attention, number)}${label ? `: ${label}` : ""}`;

export const weightName = ({ block, words }) => (block > 1 ? words.largest : words.weight);

// The place of a cell: its tokens, or its patch. more: beside the query.
export function placeOf({ rows, keys, block, words, over }, row, column, more = []) {
  if (over) return [...(over.who ? [over.who] : []), `${words.patch} ${row + 1},${column + 1}`];
  return [nameAt(rows, row, block), ...more, `${words.key} ${nameAt(keys, column, block)}`];
}

// The name, the place and the exact weight of a cell, a line each.
export function describe(attention, number, row, column, { more = [], name = weightName(attention) } = {}) {
  const { values, sizes: [, columns] } = cellsOf(attention, number);
  const weight = weightOf(attention.words, values[row * columns + column]);
  return [nameOf(attention, number), ...placeOf(attention, row, column, more), `${name} ${weight}`].join("\n");
}
