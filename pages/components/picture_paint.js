// Painting the picture: each stage as a small image of its numbers, curves where tokens are read.

import { abgr, colours, inkAt, paintCells, pictured, rgb, weightInk } from "./cells.js";
import { mapAt, rowMiddle } from "./picture_layout.js";

const MAX_CURVES = 60; // of one attention while no token is followed
const SMALLEST = 11; // pixels of the smallest text
const LINE_HEIGHT = 1.35; // times its size that a text takes, so that it touches no other
// Of a text in a row so high: whole pixels, for each new size of a font costs time.
const sizeIn = (pixels, most) => Math.max(SMALLEST, Math.min(most, Math.floor(pixels / LINE_HEIGHT)));
const LEGIBLE = SMALLEST + 0.5; // pixels of a row or a bar from which its text can be read
// Of rows so high only every so many-th has room for its text.
export const everyRow = (pixels, most) => Math.max(1, Math.ceil((LINE_HEIGHT * sizeIn(pixels, most)) / pixels - 0.01));
const NUMBERS = 34; // pixels of a cell from which its number is written
const DASHED = 4; // pixels of a cell from which it is marked as negative

function imageOf(values, columns, inkOf) {
  const canvas = document.createElement("canvas");
  paintCells(canvas, values, columns, inkOf);
  return canvas;
}

// A token with its translation, where it has one.
export const glossed = (view, token) => (token in view.glosses ? `${token} (${view.glosses[token]})` : token);

// Give each stage its numbers and its images, once for each new data.
export function prepare(view) {
  const weightColours = colours(view.scale);
  const signColours = colours(view.diverging);
  const masked = abgr(rgb(view.masked));
  view.lanes.forEach((lane) => lane.stages.forEach((stage) => {
    if (stage.offset < 0) return;
    const size = stage.shape.reduce((product, n) => product * n, 1);
    stage.values = view.values.subarray(stage.offset, stage.offset + size);
    stage.earlier = stage.before < 0 ? null : view.values.subarray(stage.before, stage.before + size);
    if (stage.kind === "heads") {
      const [heads, rows, keys] = stage.shape;
      stage.logits = stage.scores < 0 ? null : view.values.subarray(stage.scores, stage.scores + size);
      stage.images = Array.from({ length: heads }, (_, head) => {
        const own = stage.values.subarray(head * rows * keys, (head + 1) * rows * keys);
        const top = own.reduce((most, value) => (value > most ? value : most), 0) || 1;
        return imageOf(own, keys, weightInk(weightColours, masked, top));
      });
      stage.mean = new Float32Array(rows * keys);
      stage.values.forEach((value, i) => { stage.mean[i % (rows * keys)] += (Number.isNaN(value) ? 0 : value) / heads; });
      stage.strongest = [...stage.mean.keys()].sort((a, b) => stage.mean[b] - stage.mean[a]).slice(0, MAX_CURVES);
    } else if (stage.kind === "vectors") {
      const sorted = Float32Array.from(stage.values, Math.abs).filter((value) => !Number.isNaN(value)).sort();
      stage.top = sorted[Math.floor(sorted.length * 0.99)] || 1;
      stage.images = [imageOf(stage.values, stage.columns, (value) => inkAt(signColours, 0.5 + value / (2 * stage.top)))];
    } else if (stage.kind === "image") {
      stage.images = [pictured(stage.values, stage.shape[0])];
    }
  }));
}

export const weightAt = (stage, head, row, key) => {
  const [, rows, keys] = stage.shape;
  return head === null ? stage.mean[row * keys + key] : stage.values[(head * rows + row) * keys + key];
};

// Of many rows every so many-th is named, and the one at which somebody is, whose neighbours make room.
export const isNamed = (row, every, at) => row === at || (row % every === 0 && (at === null || Math.abs(at - row) >= every));

function curve(context, x0, y0, x1, y1) {
  const middle = (x0 + x1) / 2;
  context.beginPath();
  context.moveTo(x0, y0);
  context.bezierCurveTo(middle, y0, middle, y1, x1, y1);
  context.stroke();
}

// The vectors before a map in its lane, and behind it.
function around(laid, spot) {
  const own = laid.places.filter((one) => one.lane === spot.lane && one.w > 0);
  const at = own.indexOf(spot);
  return [own[at - 1], own[at + 1]];
}

function flows(context, state, spot, colour) {
  const { stage } = spot;
  if (!stage.mean) return;
  const [before, after] = around(state.laid, spot);
  if (!before || !after) return;
  const lane = state.laid.lanes[spot.lane];
  const isOwn = stage.keys === spot.lane;
  const [, , keys] = stage.shape;
  const row = state.follow?.lane === spot.lane ? state.follow.row : null;
  const head = state.focus?.spot === spot ? state.focus.head : null;
  const from = before.x + before.w;
  const to = after.x;
  if (row === null && (spot.x - from) * state.camera.k < 10) return; // too short to be told apart
  context.strokeStyle = colour;
  const draw = (query, key, weight, width) => {
    context.globalAlpha = Math.min(1, weight) * (row === null ? 0.5 : 0.95);
    context.lineWidth = width;
    const into = spot.y + ((query + 0.5) / stage.shape[1]) * spot.h;
    if (isOwn) curve(context, from, rowMiddle(lane, key), spot.x - 1, into);
    if (row !== null || isOwn) curve(context, spot.x + spot.w + 1, into, to, rowMiddle(lane, query));
  };
  if (row !== null) {
    for (let key = 0; key < keys; key += 1) {
      const weight = weightAt(stage, head, row, key);
      if (weight > 0.02) draw(row, key, weight, 1 + 3 * weight);
    }
  } else {
    stage.strongest.forEach((i) => {
      if (stage.mean[i] > 0.08) draw(Math.floor(i / keys), i % keys, stage.mean[i], 0.5 + 1.5 * stage.mean[i]);
    });
  }
  context.globalAlpha = 1;
}

function skips(context, state, colour) {
  const { laid } = state;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.globalAlpha = 0.55;
  laid.places.forEach((spot) => {
    if (spot.stage.skips < 0 || spot.w === 0) return;
    const from = laid.places.find((one) => one.lane === spot.lane && one.place === spot.stage.skips);
    if (!from) return;
    const y = laid.lanes[spot.lane].y + laid.lanes[spot.lane].h;
    const deep = 9;
    context.beginPath();
    context.moveTo(from.x + from.w / 2, y);
    context.bezierCurveTo(from.x + from.w / 2, y + deep, from.x + from.w, y + deep, from.x + from.w + 8, y + deep);
    context.lineTo(spot.x - 8, y + deep);
    context.bezierCurveTo(spot.x, y + deep, spot.x + spot.w / 2, y + deep, spot.x + spot.w / 2, y);
    context.stroke();
  });
  context.globalAlpha = 1;
}

// What a later lane reads of an earlier one: down from its end, along between the lanes, into each map.
function memory(context, state, colour) {
  const { laid } = state;
  const readers = laid.places.filter((spot) => spot.stage.kind === "heads" && spot.stage.keys !== spot.lane);
  if (!readers.length) return;
  const source = laid.places.filter((spot) => spot.lane === readers[0].stage.keys && spot.stage.kind === "vectors" && spot.w > 0).at(-1);
  const first = laid.lanes[source.lane];
  const bus = first.y + first.h + laid.bus;
  context.strokeStyle = colour;
  context.lineWidth = 2.5;
  context.globalAlpha = 0.6;
  context.beginPath();
  context.moveTo(source.x + source.w / 2, first.y + first.h + 2);
  context.lineTo(source.x + source.w / 2, bus);
  const ends = readers.map((spot) => spot.x + spot.w / 2);
  context.moveTo(Math.min(source.x + source.w / 2, ...ends), bus);
  context.lineTo(Math.max(source.x + source.w / 2, ...ends), bus);
  readers.forEach((spot) => {
    const x = spot.x + spot.w / 2;
    context.moveTo(x, bus);
    context.lineTo(x, spot.y - 4);
    context.moveTo(x - 4, spot.y - 10);
    context.lineTo(x, spot.y - 4);
    context.lineTo(x + 4, spot.y - 10);
  });
  context.stroke();
  context.globalAlpha = 1;
}

// A text that keeps its size on screen, whatever the zoom; cut where it does not fit.
function say(context, state, text, x, y, { size = 11, wide = Infinity, align = "left", bold = false, tilt = 0 } = {}) {
  const { k } = state.camera;
  const ratio = state.ratio;
  context.save();
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.translate((x - state.camera.x) * k, (y - state.camera.y) * k);
  if (tilt) context.rotate(tilt);
  context.font = `${bold ? "600 " : ""}${size}px ${state.font}`;
  context.textAlign = align;
  context.textBaseline = "middle";
  context.fillText(wide === Infinity ? text : cut(context, text, wide * k), 0, 0);
  context.restore();
}

const cuts = new Map(); // measuring a text takes longer than drawing it

function cut(context, text, wide) {
  if (widthOf(context, text) <= wide) return text;
  const key = `${context.font} ${Math.round(wide)} ${text}`;
  let shown = cuts.get(key);
  if (shown !== undefined) return shown;
  shown = text;
  while (shown.length > 1 && context.measureText(shown).width > wide) shown = `${shown.slice(0, -2)}…`;
  if (cuts.size > 5000) cuts.clear();
  cuts.set(key, shown);
  return shown;
}

const widths = new Map();

function widthOf(context, text) {
  const key = `${context.font} ${text}`;
  if (widths.size > 5000) widths.clear();
  if (!widths.has(key)) widths.set(key, context.measureText(text).width);
  return widths.get(key);
}

// How much of each token is read by what the pointer follows, as a tint behind it.
function tint(context, state, lane, row, x, y, w, h) {
  const strength = state.attended?.lane === lane ? state.attended.weights[row] : 0;
  if (!(strength > 0.02)) return;
  context.fillStyle = state.view.ink.cross;
  context.globalAlpha = 0.15 + 0.65 * Math.min(1, strength / state.attended.top);
  context.fillRect(x, y, w, h);
  context.globalAlpha = 1;
}

const followed = ({ follow }, lane) => (follow?.lane === lane ? follow.row : null);

function tokens(context, state, spot) {
  const lane = state.view.lanes[spot.lane];
  const pixels = spot.row * state.camera.k;
  const every = everyRow(pixels, 13);
  lane.tokens.forEach((name, row) => {
    tint(context, state, spot.lane, row, spot.x, spot.y + row * spot.row, spot.w, spot.row);
    if (!isNamed(row, every, followed(state, spot.lane))) return;
    const isFollowed = followed(state, spot.lane) === row;
    context.fillStyle = state.ink;
    say(context, state, glossed(state.view, name), spot.x + spot.w - 4 / state.camera.k, spot.y + (row + 0.5) * spot.row, {
      align: "right", wide: spot.w, bold: isFollowed, size: sizeIn(pixels, 13),
    });
  });
}

// The picture that is read, with the patch that is followed and those that are looked at.
function image(context, state, spot) {
  const { stage } = spot;
  const side = Math.sqrt(stage.rows.length);
  stage.rows.forEach((row, i) => {
    const [x, y] = [spot.x + ((i % side) * spot.w) / side, spot.y + (Math.floor(i / side) * spot.h) / side];
    tint(context, state, spot.lane, row, x, y, spot.w / side, spot.h / side);
    if (state.follow?.lane !== spot.lane || state.follow.row !== row) return;
    context.strokeStyle = state.view.ink.query;
    context.lineWidth = 2 / state.camera.k;
    context.strokeRect(x, y, spot.w / side, spot.h / side);
  });
}

// One bar a word; where something is knocked out, a line marks what the whole model gave it.
function answers(context, state, spot) {
  const { stage } = spot;
  const { view, camera } = state;
  const rows = stage.rows.length;
  const high = spot.h / rows;
  const isLone = rows === 1 && stage.rows[0] < 0;
  const every = everyRow((isLone ? spot.h / stage.answers[0].length : high) * camera.k, 12);
  const bar = (x, y, wide, tall, share, word, before, isOther, isWritten = true) => {
    context.fillStyle = isOther ? view.ink.wrong : view.ink.query;
    context.globalAlpha = 0.25 + 0.5 * share;
    context.fillRect(x, y + tall * 0.1, Math.max(1, wide * share), tall * 0.8);
    context.globalAlpha = 1;
    if (before !== null) {
      context.fillStyle = state.ink;
      context.fillRect(x + wide * before - 1 / camera.k, y + tall * 0.1, 2 / camera.k, tall * 0.8);
    }
    if (!isWritten || tall * camera.k < LEGIBLE) return;
    context.fillStyle = state.ink;
    const size = sizeIn(tall * camera.k, 12);
    const was = before !== null && Math.abs(before - share) > 0.005 ? `  (${view.words.was} ${percent(before)})` : "";
    say(context, state, `${glossed(view, word)}  ${percent(share)}${was}`, x + 4 / camera.k, y + tall / 2, { size, wide: wide * (isLone ? 1.3 : 1) });
  };
  for (let row = 0; row < rows; row += 1) {
    const words = stage.answers[row];
    const of = (values, i) => (values ? values[row * words.length + i] : null);
    const right = stage.truths.length ? stage.truths[row] : stage.were[row] ?? words[0];
    const isOther = right !== words[0];
    const each = (i, y, tall, isWritten) => bar(spot.x, y, spot.w, tall, of(stage.values, i), words[i], of(stage.earlier, i), isOther && i === 0, isWritten);
    if (isLone) words.forEach((_word, i) => each(i, spot.y + (i * spot.h) / words.length, spot.h / words.length, i % every === 0));
    else if (high * camera.k > 16 * words.length) words.forEach((_word, i) => each(i, spot.y + row * high + (i * high) / words.length, high / words.length));
    else each(0, spot.y + row * high, high, isNamed(stage.rows[row], every, followed(state, spot.lane)));
  }
}

export const percent = (share) => (share > 0 && share < 0.01 ? "< 1%" : `${Math.round(share * 100)}%`);

function numbers(context, state, x, y, w, h, rows, columns, valueAt) {
  const [wide, tall] = [(w / columns) * state.camera.k, (h / rows) * state.camera.k];
  if (wide < NUMBERS || tall < 13) return;
  const { camera, size } = state;
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const cx = x + ((column + 0.5) * w) / columns;
      const cy = y + ((row + 0.5) * h) / rows;
      const [sx, sy] = [(cx - camera.x) * camera.k, (cy - camera.y) * camera.k];
      if (sx < 0 || sy < 0 || sx > size.w || sy > size.h) continue;
      const { text, isDarkCell } = valueAt(row, column);
      context.fillStyle = isDarkCell ? "#fff" : "#1f2630";
      say(context, state, text, cx, cy, { size: 11, align: "center" });
    }
  }
}

// A dash on each number below zero: in grey both ends of the colours are alike.
function negatives(context, { camera, size }, { stage, x, y, w, h }) {
  const [wide, tall] = [w / stage.columns, h / stage.shape[0]];
  if (Math.min(wide, tall) * camera.k < DASHED) return;
  context.lineWidth = 1.5 / camera.k;
  stage.values.forEach((value, i) => {
    const [cx, cy] = [x + ((i % stage.columns) + 0.5) * wide, y + (Math.floor(i / stage.columns) + 0.5) * tall];
    const [sx, sy] = [(cx - camera.x) * camera.k, (cy - camera.y) * camera.k];
    if (!(value < 0) || sx < 0 || sy < 0 || sx > size.w || sy > size.h) return;
    context.strokeStyle = value < -0.5 * stage.top ? "#fff" : "#1f2630";
    context.beginPath();
    context.moveTo(cx - 0.3 * wide, cy);
    context.lineTo(cx + 0.3 * wide, cy);
    context.stroke();
  });
}

// A text on a plate, to be read over whatever is behind it.
function plate(context, state, text, x, y) {
  const { k } = state.camera;
  context.font = `${SMALLEST}px ${state.font}`;
  const wide = widthOf(context, text) + 6;
  context.fillStyle = state.paper;
  context.globalAlpha = 0.8;
  context.fillRect(x, y - 7 / k, wide / k, 14 / k);
  context.globalAlpha = 1;
  context.fillStyle = state.ink;
  say(context, state, text, x + 3 / k, y, { size: SMALLEST });
}

function heads(context, state, spot) {
  const { stage } = spot;
  const { camera, view } = state;
  const [n, rows, keys] = stage.shape;
  const keyTokens = view.lanes[stage.keys].tokens;
  const queryTokens = view.lanes[spot.lane].tokens;
  for (let head = 0; head < n; head += 1) {
    const map = mapAt(spot, head);
    if (stage.images) context.drawImage(stage.images[head], map.x, map.y, map.w, map.h);
    else if (stage.fill) { context.fillStyle = stage.fill; context.fillRect(map.x, map.y, map.w, map.h); }
    context.strokeStyle = state.focus?.spot === spot && state.focus.head === head ? view.ink.query : state.line;
    context.lineWidth = 1 / camera.k;
    context.strokeRect(map.x, map.y, map.w, map.h);
    if (state.follow?.lane === spot.lane && state.follow.row < rows) {
      const row = [map.x, map.y + (state.follow.row * map.h) / rows, map.w, map.h / rows];
      context.strokeStyle = view.ink.query;
      context.fillStyle = view.ink.query;
      context.lineWidth = 1.5 / camera.k;
      context.globalAlpha = row[3] * camera.k < 5 ? 0.35 : 1; // too low for an outline
      if (context.globalAlpha === 1) context.strokeRect(...row); else context.fillRect(...row);
      context.globalAlpha = 1;
    }
    const tall = (map.h / rows) * camera.k;
    const wide = (map.w / keys) * camera.k;
    if (n > 1 && map.h * camera.k > 40 && map.w * camera.k > 34) {
      const name = map.h * camera.k > 90 ? view.words.head.replace("{n}", head + 1) : String(head + 1);
      plate(context, state, name, map.x + 3 / camera.k, map.y + map.h - 9 / camera.k);
    }
    if (state.focus?.spot !== spot || tall < LEGIBLE) continue;
    context.fillStyle = state.ink;
    if (state.focus.head === head || n === 1) {
      context.font = `${sizeIn(tall, 12)}px ${state.font}`;
      const strip = (Math.max(...queryTokens.slice(0, rows).map((name) => widthOf(context, glossed(view, name)))) + 8) / camera.k;
      context.fillStyle = state.card; // the names stand over whatever is beside the map
      context.fillRect(map.x - strip, map.y, strip, map.h);
      context.fillStyle = state.ink;
      const { row: focusRow, column: focusColumn } = state.focus;
      queryTokens.slice(0, rows).forEach((name, row) => {
        if (!isNamed(row, everyRow(tall, 12), focusRow)) return;
        say(context, state, glossed(view, name), map.x - 4 / camera.k, map.y + ((row + 0.5) * map.h) / rows, { align: "right", size: sizeIn(tall, 12) });
      });
      const between = wide * Math.SQRT1_2; // pixels between two names that are tilted
      keyTokens.slice(0, keys).forEach((name, key) => {
        if (wide <= LEGIBLE || !isNamed(key, everyRow(between, 12), focusColumn)) return;
        say(context, state, glossed(view, name), map.x + ((key + 0.5) * map.w) / keys, map.y - 5 / camera.k, { tilt: -Math.PI / 4, size: sizeIn(between, 12) });
      });
      numbers(context, state, map.x, map.y, map.w, map.h, rows, keys, (row, key) => {
        const value = weightAt(stage, head, row, key);
        return { text: Number.isNaN(value) ? "" : value.toFixed(2), isDarkCell: value > 0.5 };
      });
      if (focusColumn === null) continue;
      context.strokeStyle = view.ink.wrong;
      context.lineWidth = 2.5 / camera.k;
      context.strokeRect(map.x + (focusColumn * map.w) / keys, map.y + (focusRow * map.h) / rows, map.w / keys, map.h / rows);
    }
  }
}

// A cross over what is knocked out.
function cross(context, state, { x, y, w, h }) {
  context.fillStyle = state.paper;
  context.globalAlpha = 0.55;
  context.fillRect(x, y, w, h);
  context.globalAlpha = 1;
  context.strokeStyle = state.view.ink.wrong;
  context.lineWidth = 2 / state.camera.k;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + w, y + h);
  context.moveTo(x + w, y);
  context.lineTo(x, y + h);
  context.stroke();
}

function crosses(context, state) {
  const { view, laid } = state;
  const isOut = (path, head) => view.codes[`${path} ${head}`] in view.out;
  laid.blocks.forEach((block) => { if (isOut(`${view.lanes[block.lane].name}.layers.${block.block - 1}`, -1)) cross(context, state, block); });
  laid.places.forEach((spot) => {
    const { path, kind, shape, isNorm } = spot.stage;
    if (spot.w === 0 || isNorm || spot.stage.skips >= 0 || !path) return;
    if (["heads", "vectors"].includes(kind) && isOut(path, -1)) cross(context, state, spot);
    else if (kind === "heads") {
      for (let head = 0; head < shape[0]; head += 1) if (isOut(path, head)) cross(context, state, mapAt(spot, head));
    }
  });
}

// Draw everything that is in sight.
export function paint(state) {
  const { context, camera, laid, view, ratio, size } = state;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.w, size.h);
  const k = camera.k * ratio;
  context.setTransform(k, 0, 0, k, -camera.x * k, -camera.y * k);
  context.imageSmoothingEnabled = false;
  laid.blocks.forEach((block) => {
    context.fillStyle = state.card;
    context.strokeStyle = state.line;
    context.lineWidth = 1 / camera.k;
    context.beginPath();
    context.roundRect(block.x, block.y, block.w, block.h, 8);
    context.fill();
    context.stroke();
  });
  if (state.follow) {
    const lane = laid.lanes[state.follow.lane];
    context.fillStyle = view.ink.query;
    context.globalAlpha = 0.13;
    context.fillRect(0, lane.y + state.follow.row * lane.row, lane.w, lane.row);
    context.globalAlpha = 1;
  }
  skips(context, state, state.soft);
  memory(context, state, view.ink.encoder);
  const [left, right] = [camera.x, camera.x + size.w / camera.k];
  const [top, bottom] = [camera.y, camera.y + size.h / camera.k];
  const room = 60 * laid.unit; // of what is written and drawn around a part
  const seen = laid.places.filter(({ x, y, w, h }) => w > 0 && x - room < right && x + w + room > left && y - room < bottom && y + h + room > top);
  seen.forEach((spot) => {
    if (spot.stage.kind === "heads") flows(context, state, spot, spot.stage.keys === spot.lane ? view.ink[view.lanes[spot.lane].name] : view.ink.cross);
  });
  seen.forEach((spot) => {
    const { stage } = spot;
    if (stage.kind === "tokens") tokens(context, state, spot);
    else if (stage.kind === "answers") answers(context, state, spot);
    else if (stage.kind === "heads") heads(context, state, spot);
    else {
      if (stage.images) context.drawImage(stage.images[0], spot.x, spot.y, spot.w, spot.h);
      else { context.fillStyle = stage.fill ?? state.card; context.fillRect(spot.x, spot.y, spot.w, spot.h); }
      context.strokeStyle = state.focus?.spot === spot ? view.ink.query : state.line;
      context.lineWidth = (state.focus?.spot === spot ? 2 : 1) / camera.k;
      context.strokeRect(spot.x, spot.y, spot.w, spot.h);
      if (stage.kind === "image") image(context, state, spot);
      else if (stage.values) negatives(context, state, spot);
    }
  });
  seen.forEach((spot) => facts(context, state, spot));
  crosses(context, state);
  titles(context, state);
}

const LINE = 14; // pixels of the screen, of a line on a part

// What a part without numbers is, as far as whole lines have room, or what stands before their colon; in a
// narrow one they stand upright.
function facts(context, state, { stage, x, y, w, h }) {
  if (stage.values || stage.kind === "tokens") return;
  const { k } = state.camera;
  const isNarrow = w * k < 56;
  context.font = `${SMALLEST}px ${state.font}`;
  const wide = (isNarrow ? h : w) * k - 8;
  const whole = stage.facts.map((line) => [line, line.split(":")[0]].find((one) => widthOf(context, one) <= wide));
  const lines = whole.filter(Boolean).slice(0, Math.floor(((isNarrow ? w : h) * k - 2) / LINE));
  if (!lines.length || h * k < 48 || (isNarrow && stage.kind === "heads")) return;
  const high = (LINE * lines.length + 8) / k;
  if (stage.kind === "heads") { // over the lines between its heads
    context.fillStyle = state.paper;
    context.fillRect(x + 2 / k, y + (h - high) / 2, w - 4 / k, high);
  }
  context.fillStyle = state.ink;
  lines.forEach((line, i) => {
    const off = ((i - (lines.length - 1) / 2) * LINE) / k;
    const [across, down] = isNarrow ? [off, 0] : [0, off];
    const look = { align: "center", tilt: isNarrow ? -Math.PI / 2 : 0 };
    say(context, state, line, x + w / 2 + across, y + h / 2 + down, look);
  });
}

// Names of lanes, blocks and parts; below its name the shape of a part, wherever there is room.
function titles(context, state) {
  const { laid, view, camera } = state;
  const { k } = camera;
  context.fillStyle = state.ink;
  view.lanes.forEach((lane, at) => {
    if (view.lanes.length > 1) say(context, state, lane.title, 0, laid.lanes[at].y - 13 / k, { bold: true, size: 12 });
  });
  context.fillStyle = state.soft;
  laid.blocks.forEach((block) => {
    if (block.w * k < 16) return;
    const name = block.w * k > 52 ? view.words.block.replace("{n}", block.block) : String(block.block);
    say(context, state, name, block.x + block.w / 2, block.y - 8 / k, { size: SMALLEST, align: "center" });
  });
  context.font = `${SMALLEST}px ${state.font}`;
  const taken = {}; // by lane and line, what is written so far, in pixels of the screen
  const write = (spot, text, lines) => {
    const half = widthOf(context, text) / 2 + 4;
    const middle = Math.min((spot.x + spot.w / 2) * k, (laid.w + 6) * k - half + 4);
    const isFree = (line) => (taken[`${spot.lane} ${line}`] ?? []).every(([from, to]) => middle + half <= from || middle - half >= to);
    const line = lines.find(isFree);
    if (line === undefined) return undefined;
    (taken[`${spot.lane} ${line}`] ??= []).push([middle - half, middle + half]);
    const lane = laid.lanes[spot.lane];
    say(context, state, text, middle / k, lane.y + lane.h + 7 + (9 + 12 * line) / k, { size: SMALLEST, align: "center" });
    return line;
  };
  const named = laid.places.filter((spot) => spot.w > 0 && spot.stage.kind !== "tokens" && (spot.x - camera.x + spot.w) * k > -200 && (spot.x - camera.x) * k < state.size.w + 200);
  const weight = (spot) => (spot.stage.kind === "heads" ? 0 : spot.stage.isNorm || spot.stage.skips >= 0 ? 2 : 1); // heads are named first
  const isWide = (spot) => spot.w * k > 9;
  const lines = new Map([...named].sort((a, b) => weight(a) - weight(b)).filter(isWide).map((spot) => [spot, write(spot, spot.stage.title, [0, 1, 2])]));
  context.globalAlpha = 0.8;
  lines.forEach((line, spot) => { if (line !== undefined && spot.stage.kind !== "answers") write(spot, spot.stage.whole.join(" × "), [line + 1]); });
  context.globalAlpha = 1;
}
