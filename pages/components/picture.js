// The picture of a model at work: zoom from the whole to one number, follow a token through it.

import { status } from "./announcing.js";
import { showTip, unpack } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, element, fill, filled, isCalm, pixelRatio, presentedHeight, zoomOf } from "./dom.js";
import { layout, mapAt, under } from "./picture_layout.js";
import { glossed, paint, percent, prepare, weightAt } from "./picture_paint.js";
import { TimeBar } from "./picture_time.js";
import { BoardPanel } from "./picture_board.js";

const MOVE = 380; // ms of a move of the camera
const MARGIN = 26;
const HIGH = [340, 620]; // pixels of the picture: as its own shape asks, within these
const FAR = 400; // how far it can be zoomed in
const LEAST = 0.6; // on a narrow screen the picture begins so large, at its left
const NARROW = 640; // pixels of the picture; there the inspector stands below it
const INSPECTOR = 336; // pixels of its width
const AROUND = 176; // pixels of what stands above and below it

function build(root, state) {
  root.textContent = "";
  const canvas = element("canvas", "model", { tabIndex: 0, role: "application" });
  const trail = element("div", "trail");
  const zoom = element("div", "zoom");
  const middle = () => [state.size.w / 2, state.size.h / 2];
  [
    ["smaller", "−", () => zoomBy(state, 1 / 1.5, ...middle())],
    ["larger", "+", () => zoomBy(state, 1.5, ...middle())],
    ["all", "⤢", () => focusOn(state, null)],
  ].forEach(([name, sign, act]) => {
    const made = actButton("small", sign, act);
    made.dataset.name = name;
    zoom.append(made);
  });
  const inspector = element("div", "inspector", { hidden: true });
  const tip = element("div", "tip", { hidden: true });
  const spoken = status();
  const outs = element("div", "outs");
  const bar = element("div", "bar", trail, outs, zoom);
  const stage = element("div", "stage", canvas, inspector);
  const legend = element("div", "legend");
  const time = new TimeBar(state.view.words, (step) => state.send("weights", step), (view) => display(state, view));
  root.append(bar, stage, time.node, legend, tip, spoken.region);
  Object.assign(state, { root, canvas, trail, zoom, inspector, tip, spoken, outs, legend, time, context: canvas.getContext("2d") });
}

// ---- camera ----

// beside: pixels at the right that something stands on.
function fitted(state, box, margin = MARGIN, beside = 0) {
  const { size } = state;
  const wide = size.w - beside;
  const k = Math.min((wide - 2 * margin) / box.w, (size.h - 2 * margin) / box.h, FAR);
  return { k, x: box.x + box.w / 2 - wide / (2 * k), y: box.y + box.h / 2 - size.h / (2 * k) };
}

const isNarrow = (state) => state.size.w <= NARROW;
const focused = (state) => fitted(state, boxOf(state, state.focus), MARGIN, isNarrow(state) || state.view.opens ? 0 : INSPECTOR);
const whole = (state) => fitted(state, { x: -6, y: 0, w: state.laid.w + 12, h: state.laid.h }, 8);

function first(state) {
  const fit = whole(state);
  if (fit.k >= LEAST || !isNarrow(state)) return fit;
  const k = Math.min(LEAST, (state.size.h - 12) / state.laid.h);
  return { k, x: -8 / k, y: -4 / k };
}

function moveTo(state, camera) {
  cancelAnimationFrame(state.moving);
  if (isCalm() || !state.camera) { state.camera = camera; redraw(state); return; }
  const from = state.camera;
  const start = performance.now();
  const step = (now) => {
    const at = Math.min(1, (now - start) / MOVE);
    const eased = 1 - (1 - at) ** 3;
    const k = from.k * (camera.k / from.k) ** eased;
    // the middle of the screen moves on a line, in pixels of the picture
    const middle = (one) => [one.x + state.size.w / (2 * one.k), one.y + state.size.h / (2 * one.k)];
    const [a, b] = [middle(from), middle(camera)];
    const share = Math.abs(from.k / camera.k - 1) < 1e-6 ? eased : (1 / k - 1 / from.k) / (1 / camera.k - 1 / from.k);
    const [x, y] = [0, 1].map((i) => a[i] + (b[i] - a[i]) * share);
    state.camera = { k, x: x - state.size.w / (2 * k), y: y - state.size.h / (2 * k) };
    redraw(state);
    if (at < 1) state.moving = requestAnimationFrame(step);
  };
  state.moving = requestAnimationFrame(step);
}

function zoomBy(state, factor, sx, sy) {
  const { camera } = state;
  const k = Math.max(whole(state).k * 0.8, Math.min(FAR, camera.k * factor));
  const isWhole = !state.focus && k <= first(state).k * 1.01; // a finger scrolls the page again
  state.canvas.style.touchAction = isWhole ? "pan-y" : "none";
  state.camera = { k, x: camera.x + sx / camera.k - sx / k, y: camera.y + sy / camera.k - sy / k };
  redraw(state);
}

function redraw(state) {
  if (state.due) return;
  state.due = requestAnimationFrame(() => { state.due = 0; paint(state); });
}

// ---- focus: null, { block, lane }, or { spot, head, row, column } with null for "all of it" ----

const within = (spot, head = null, row = null, column = null) => ({ spot, head, row, column });
const blockOf = (state, { lane, block }) => state.laid.blocks.find((one) => one.lane === lane && one.block === block);
const spotOf = (state, { lane, place }) => state.laid.places.find((one) => one.lane === lane && one.place === place);

function boxOf(state, focus) {
  const { spot, head, row } = focus;
  if (focus.block) {
    const { x, y, w, h } = blockOf(state, focus);
    return { x, y: y - 14, w, h: h + 40 };
  }
  if (spot.stage.kind === "heads" && head !== null) {
    const map = mapAt(spot, head);
    const label = map.w * 0.35;
    return { x: map.x - label, y: map.y - label * 0.6, w: map.w + label * 1.2, h: map.h + label * 0.7 };
  }
  if (spot.stage.kind === "tokens" && row !== null) { // a token is followed through all of its lane
    const lane = state.laid.lanes[spot.lane];
    return { x: -6, y: lane.y - 24, w: lane.w + 12, h: lane.h + 80 };
  }
  if (row !== null && !["heads", "image"].includes(spot.stage.kind)) {
    const high = spot.h / Math.max(1, spot.stage.rows.length);
    return { x: spot.x - 30, y: spot.y + (row - 1) * high, w: spot.w + 60, h: 3 * high };
  }
  return { x: spot.x - 26, y: spot.y - 22, w: spot.w + 52, h: spot.h + 54 };
}

const openOf = (focus) => {
  if (!focus) return "";
  const [lane, block] = focus.block ? [focus.lane, focus.block] : [focus.spot.lane, focus.spot.stage.block];
  return block ? `${lane} ${block}` : "";
};

// The least and the greatest height of the picture, in pixels. In presenter mode it has the whole screen
// but for the rows above and below it.
function highs({ root }) {
  const presented = presentedHeight(root);
  if (presented) return [200, Math.max(200, presented - AROUND)];
  return [HIGH[0], Math.max(HIGH[0], Math.min(HIGH[1], window.innerHeight - 300))];
}

const mostHigh = (state) => highs(state)[1];

// How large a picture so wide and high is drawn at first.
const scaleOf = (state) => (wide, high) => {
  const fit = ((state.root.clientWidth || 1000) - 16) / (wide + 12);
  return Math.min((mostHigh(state) - 16) / high, state.root.clientWidth > NARROW ? fit : Math.max(LEAST, fit));
};

function relay(state, open) {
  const key = `${open} ${state.root.clientWidth}`;
  if (state.laidFor === key && state.laid) return;
  state.laidFor = key;
  state.open = open;
  state.context.font = `13px ${state.font}`;
  state.laid = layout(state.view, open, (text) => state.context.measureText(glossed(state.view, text)).width, scaleOf(state));
  const { focus } = state;
  if (focus?.spot) focus.spot = spotOf(state, focus.spot);
}

const anchor = (state, focus) => (focus.block ? blockOf(state, focus) : spotOf(state, focus.spot));

function focusOn(state, focus) {
  const fixed = focus ?? state.focus; // what is opened or closed stays where it is, until the camera moves
  const before = fixed && { ...anchor(state, fixed) };
  state.focus = focus;
  relay(state, openOf(focus));
  if (before && state.camera) {
    const now = anchor(state, fixed);
    state.camera = { ...state.camera, x: state.camera.x + now.x - before.x, y: state.camera.y + now.y - before.y };
  }
  follow(state, pinned(state));
  state.canvas.style.touchAction = state.focus ? "none" : "pan-y"; // until then a finger scrolls the page
  moveTo(state, state.focus ? focused(state) : first(state));
  inspect(state);
  trail(state);
  const name = state.focus?.spot?.stage.name;
  if (name && name !== state.opened) { state.opened = name; state.send("open", name); }
}

const pinned = ({ focus }) => (focus?.spot && focus.row !== null ? { lane: focus.spot.lane, row: laneRow(focus.spot, focus.row) } : null);

function laneRow(spot, row) {
  const at = spot.stage.rows[row];
  return at === undefined || at < 0 ? null : at;
}

// Follow a token through all parts; hit: what is pointed at.
function follow(state, what, hit = state.focus) {
  state.follow = what && what.row !== null ? what : null;
  state.attended = state.follow ? attended(state, hit) : null;
}

// What the followed token reads: in the map that is pointed at, else on average in all maps over another lane.
function attended(state, hit) {
  const { lane, row } = state.follow;
  const isMap = hit?.spot?.stage.kind === "heads" && hit.spot.stage.mean;
  const maps = isMap ? [hit.spot] : state.laid.places.filter((spot) => spot.lane === lane && spot.stage.kind === "heads" && spot.stage.keys !== lane && spot.stage.mean);
  if (!maps.length) return null;
  const keys = maps[0].stage.shape[2];
  const read = (spot, key) => weightAt(spot.stage, isMap ? hit.head : null, row, key) || 0; // NaN where it is masked
  const weights = Array.from({ length: keys }, (_, key) => maps.reduce((sum, spot) => sum + read(spot, key), 0) / maps.length);
  return { lane: maps[0].stage.keys, weights, top: Math.max(...weights) || 1 };
}

// The next smaller thing under the pointer, inside what is in focus.
function inner(state, hit) {
  if (!hit) return null;
  const { focus } = state;
  if (hit.block) return { block: hit.block.block, lane: hit.block.lane };
  const { spot, head, row, column } = hit;
  const isOpen = !spot.isCompact && (spot.stage.block === 0 || !state.laid.blocks.some((one) => one.isCompact) || state.open === `${spot.lane} ${spot.stage.block}`);
  if (!isOpen) return { block: spot.stage.block, lane: spot.lane };
  if (focus?.spot !== spot) return within(spot, null, spot.stage.kind === "tokens" ? row : null);
  if (spot.stage.kind === "heads" && focus.head !== head) return within(spot, head);
  return hit;
}

function outer(focus) {
  if (!focus || focus.block) return null;
  const { spot, head, row, column } = focus;
  if (column !== null) return within(spot, head, row);
  if (row !== null) return within(spot, head);
  if (head !== null) return within(spot);
  return spot.stage.block ? { block: spot.stage.block, lane: spot.lane } : null;
}

// ---- words ----

const tokensOf = (state, spot) => state.view.lanes[spot.lane].tokens;
const rowName = (state, spot, row) => {
  const at = laneRow(spot, row);
  return at === null ? spot.stage.title : glossed(state.view, tokensOf(state, spot)[at]);
};

function number(value) {
  if (Number.isNaN(value)) return "";
  return Math.abs(value) < 0.001 && value !== 0 ? value.toExponential(2) : value.toFixed(3);
}

function describe(state, hit) {
  const { words, lanes } = state.view;
  if (!hit) return "";
  if (hit.block) return `${lanes[hit.block.lane].title}, ${words.block.replace("{n}", hit.block.block)}`;
  const { spot, head, row, column } = hit;
  const { stage } = spot;
  const title = [`${stage.title} (${stage.whole.join(" × ")})`, ...stage.facts].join("\n");
  if (row === null) return title;
  if (stage.kind === "tokens") return rowName(state, spot, row);
  if (stage.kind === "image") return stage.rows.length ? words.patch.replace("{patch}", rowName(state, spot, row)) : title;
  if (!stage.values) return title;
  if (stage.kind === "answers") {
    const truth = stage.truths.length ? [filled(words.truth, { truth: glossed(state.view, stage.truths[row]) })] : [];
    const was = stage.were.length && stage.were[row] !== stage.answers[row][0] ? [filled(words.instead, { word: glossed(state.view, stage.were[row]) })] : [];
    return [rowName(state, spot, row), ...stage.answers[row].map((word, i) => `${glossed(state.view, word)} ${(100 * stage.values[row * stage.answers[row].length + i]).toFixed(1)}%`), ...was, ...truth].join("\n");
  }
  if (stage.kind === "heads") {
    const weight = weightAt(stage, head, row, column);
    const what = Number.isNaN(weight) ? words.masked : weight.toFixed(3);
    return `${stage.title}, ${words.head.replace("{n}", head + 1)}\n${rowName(state, spot, row)} → ${glossed(state.view, lanes[stage.keys].tokens[column])}: ${what}`;
  }
  return `${title}\n${rowName(state, spot, row)}, ${words.number.replace("{n}", column + 1)}: ${number(stage.values[row * stage.columns + column])}`;
}

// How a number came about, where it follows from what is in the picture; else "".
function arithmetic(state, { spot, head, row, column }) {
  const { stage } = spot;
  const { words } = state.view;
  if (stage.kind === "heads" && stage.logits) {
    const [, rows, keys] = stage.shape;
    const first = (head * rows + row) * keys;
    const scores = stage.logits.subarray(first, first + keys);
    const sum = scores.reduce((total, score) => total + (Number.isNaN(score) ? 0 : Math.exp(score)), 0);
    const weight = weightAt(stage, head, row, column);
    const own = Math.exp(scores[column]) / sum;
    if (Number.isNaN(weight) || Math.abs(own - weight) > 0.01) return "";
    return filled(words.softmax, { score: number(scores[column]), sum: number(sum), weight: number(weight) });
  }
  const before = stage.skips >= 0 && state.view.lanes[spot.lane].stages[stage.skips];
  if (!before?.values || before.columns !== stage.columns) return "";
  const [x, made] = [before, stage].map((one) => one.values[row * one.columns + column]);
  return filled(words.added, { before: number(x), change: number(made - x), sum: number(made) });
}

function trail(state) {
  const { focus, view, trail: bar } = state;
  const { words } = view;
  const steps = [[words.whole, null]];
  if (focus) {
    const lane = view.lanes[focus.block ? focus.lane : focus.spot.lane];
    const block = focus.block || focus.spot.stage.block;
    const name = view.lanes.length > 1 ? `${lane.title}, ${words.block.replace("{n}", block).toLowerCase()}` : words.block.replace("{n}", block);
    if (block) steps.push([name, { block, lane: focus.block ? focus.lane : focus.spot.lane }]);
    if (focus.spot) {
      const { spot, head, row } = focus;
      steps.push([spot.stage.title, within(spot)]);
      if (head !== null) steps.push([words.head.replace("{n}", head + 1), within(spot, head)]);
      if (row !== null) steps.push([rowName(state, spot, row), within(spot, head, row)]);
      if (focus.column !== null) steps.push([describe(state, focus).split(": ").at(-1), focus]);
    }
  }
  state.root.dataset.level = steps.length;
  bar.replaceChildren(...steps.flatMap(([name, to], i) => {
    const made = actButton("small", name, () => { focusOn(state, to); state.canvas.focus(); });
    if (i === steps.length - 1) made.setAttribute("aria-current", "true");
    return i ? [element("span", "", "›"), made] : [made];
  }));
}

function weightsList(names, weights) {
  const largest = [...weights.keys()].filter((i) => weights[i] > 0.005).sort((a, b) => weights[b] - weights[a]).slice(0, 8);
  return element("div", "weights", ...largest.flatMap((i) => (
    [element("span", "", names[i]), element("i", "", { "--share": weights[i] }), element("span", "", weights[i].toFixed(2))])));
}

function bars(state, values, chosen) {
  const canvas = element("canvas", "", { width: 296 * state.ratio, height: 64 * state.ratio });
  const context = canvas.getContext("2d");
  const top = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
  const wide = canvas.width / values.length;
  values.forEach((value, i) => {
    context.fillStyle = i === chosen ? state.ink : state.view.diverging.at(value < 0 ? 1 : -2);
    const high = (Math.abs(value) / top) * canvas.height / 2;
    context.fillRect(i * wide, value < 0 ? canvas.height / 2 : canvas.height / 2 - high, Math.max(1, wide - 1), high);
  });
  return canvas;
}

function knockButton(state, path, head) {
  const { view } = state;
  const code = view.codes[`${path} ${head ?? -1}`];
  if (!code) return [];
  const isOut = code in view.out;
  const text = isOut ? view.words.restore : view.words.knock;
  return [actButton(isOut ? "small" : "small knock", text, () => state.send("knock", code))];
}

// What is knocked out, each with a button to put it back, and what that did to the answers.
function outs(state) {
  const { view } = state;
  const { words } = view;
  const codes = Object.keys(view.out);
  state.outs.hidden = !codes.length;
  const buttons = codes.map((code) => {
    const made = actButton("small", `${view.out[code]} ×`, () => state.send("knock", code));
    made.title = words.restore;
    return made;
  });
  const { were, answers, sure } = view.lanes.at(-1).stages.at(-1);
  const [before, after] = sure.map(percent);
  const n = were.filter((word, row) => word !== answers[row][0]).length;
  const text = were.length > 1 ? filled(words.changed, { n, all: were.length, before, after }) : filled(n ? words.other : words.same, { now: answers[0]?.[0], was: were[0], before, after });
  state.outs.replaceChildren(element("span", "", words.knocked), ...buttons, element("strong", n ? "changed" : "", were.length ? text : ""));
}

function legend(state) {
  const { words, scale, diverging, masked } = state.view;
  const item = (colour, text, mark = "") => {
    const swatch = element("i", "", mark, { "aria-hidden": "true" });
    swatch.style.background = colour;
    return element("span", "item", swatch, text);
  };
  const hasValues = state.view.lanes.some((lane) => lane.stages.some((stage) => stage.values));
  const items = !hasValues ? [] : [item(`linear-gradient(to right, ${scale.join(", ")})`, words.weightScale), item(`linear-gradient(to right, ${diverging.join(", ")})`, words.numberScale, "–")];
  const isMasked = state.view.lanes.some((lane) => lane.stages.some((stage) => stage.kind === "heads" && stage.values?.some(Number.isNaN)));
  if (isMasked) items.push(item(masked, words.masked));
  const { truths, answers } = state.view.lanes.at(-1).stages.at(-1);
  if (truths.some((word, row) => word !== answers[row][0])) items.push(item(state.view.ink.wrong, words.wrong));
  const numbers = actButton("small", words.table, () => openTables(state.root, nameOf(state), tables(state), words));
  state.legend.replaceChildren(...items, element("span", "hint", words.hint), numbers);
}

// The numbers of the part in focus as tables; of the whole model or a block the parts and their shapes, and
// of the whole model the answers, too.
function tables(state) {
  const { focus, view } = state;
  if (focus?.spot && !view.opens) return tablesOf(state, focus.spot, focus.head);
  const spots = state.laid.places.filter(({ lane, stage }) => !focus?.block || (lane === focus.lane && stage.block === focus.block));
  const { words } = view;
  const place = ({ lane, stage }) => [view.lanes[lane].title, ...(stage.block ? [words.block.replace("{n}", stage.block)] : []), stage.title].join(", ");
  const parts = { caption: "", head: [words.part, words.shapeOf, ...(view.opens ? [words.factsOf] : [])], rows: spots.map((spot) => [place(spot), spot.stage.whole.join(" × "), ...(view.opens ? [spot.stage.facts.join(", ")] : [])]) };
  const last = state.laid.places.findLast(({ stage }) => stage.kind === "answers");
  return focus || !last ? [parts] : [parts, ...tablesOf(state, last, null)];
}

function tablesOf(state, spot, head) {
  const { words, lanes } = state.view;
  const { stage } = spot;
  const rows = stage.rows.map((_, row) => rowName(state, spot, row));
  if (stage.kind === "tokens" || !stage.values) {
    const named = stage.values || stage.kind === "tokens" ? rows : [];
    return [{ caption: stage.title, head: [words.token], rows: named.map((name) => [name]) }].filter((one) => one.rows.length);
  }
  if (stage.kind === "heads") {
    const keys = lanes[stage.keys].tokens.map((name) => glossed(state.view, name));
    const heads = head === null ? Array.from({ length: stage.shape[0] }, (_, i) => i) : [head];
    return heads.map((n) => ({
      caption: `${stage.title}, ${words.head.replace("{n}", n + 1)}`, head: [words.token, ...keys],
      rows: Array.from({ length: stage.shape[1] }, (_, row) => [rowName(state, spot, row), ...keys.map((_key, column) => weightAt(stage, n, row, column))]),
    }));
  }
  if (stage.kind === "answers") {
    return [{
      caption: stage.title, head: [words.token, words.answer, words.share, words.truthOf],
      rows: stage.answers.flatMap((some, row) => some.map((word, i) => [rows[row] ?? "", word, stage.values[row * some.length + i], i ? "" : stage.truths[row] ?? ""])),
    }];
  }
  return [{
    caption: stage.title, head: [words.token, ...Array.from({ length: stage.columns }, (_, i) => i + 1)],
    rows: Array.from({ length: stage.values.length / stage.columns }, (_, row) => [stage.kind === "image" ? row + 1 : rows[row] ?? row + 1, ...stage.values.subarray(row * stage.columns, (row + 1) * stage.columns)]),
  }];
}

const nameOf = ({ focus, view }) => (focus?.spot ? focus.spot.stage.title : view.words.whole);

function inspect(state) {
  const { focus, view, inspector } = state;
  const { words } = view;
  inspector.hidden = !focus || view.opens; // a part opens beside the picture
  if (!focus) { state.spoken.say(words.whole); return; }
  if (focus.block) {
    const parts = [element("strong", "", describe(state, { block: { ...focus } })), ...knockButton(state, `${view.lanes[focus.lane].name}.layers.${focus.block - 1}`, null)];
    inspector.replaceChildren(...parts);
    state.spoken.say(parts[0].textContent);
    return;
  }
  const { spot, head, row, column } = focus;
  const { stage } = spot;
  const parts = [element("strong", "", stage.title)];
  if (stage.key) parts.push(element("code", "", stage.key));
  if (stage.kind === "heads") {
    const [heads, rows, keys] = stage.whole;
    parts.push(element("div", "", filled(words.maps, { heads, rows, keys })));
  } else if (stage.kind === "vectors") {
    parts.push(element("div", "", filled(words.shape, { rows: stage.whole[0], columns: stage.whole[1] })));
    if (stage.group > 1) parts.push(element("div", "", filled(words.group, { n: stage.group })));
  }
  if (!stage.values && stage.kind !== "tokens") parts.push(element("div", "", words.shapes_only));
  if (row !== null && stage.values) {
    if (stage.kind === "heads") {
      const names = view.lanes[stage.keys].tokens.map((name) => glossed(view, name));
      const weights = Float32Array.from(names, (_, key) => weightAt(stage, head, row, key)).map((weight) => (Number.isNaN(weight) ? 0 : weight));
      parts.push(element("div", "", filled(words.reads, { query: rowName(state, spot, row) })), weightsList(names, weights));
      if (column !== null) parts.push(element("div", "", describe(state, focus).split("\n")[1]), element("div", "", arithmetic(state, focus)));
    } else if (stage.kind === "vectors") {
      const values = stage.values.subarray(row * stage.columns, (row + 1) * stage.columns);
      parts.push(element("div", "", rowName(state, spot, row)), bars(state, values, column));
      if (column !== null) parts.push(element("div", "", describe(state, focus).split("\n")[1]), element("div", "", arithmetic(state, focus)));
    } else if (stage.kind === "answers") {
      const size = stage.answers[row].length;
      parts.push(element("div", "", rowName(state, spot, row)), weightsList(stage.answers[row].map((word) => glossed(view, word)), stage.values.subarray(row * size, (row + 1) * size)));
      if (stage.truths.length) parts.push(element("div", "", filled(words.truth, { truth: glossed(view, stage.truths[row]) })));
    }
  }
  if (stage.step) {
    parts.push(actButton("small", words.explain, () => state.send("step", [stage.step, stage.block])));
  }
  if (stage.values && stage.skips < 0) parts.push(...knockButton(state, stage.path, head));
  inspector.replaceChildren(...parts);
  state.spoken.say(...parts.filter((part) => part.tagName !== "BUTTON").map((part) => part.textContent));
}

// ---- pointer, wheel, keys ----

const at = (state, event) => {
  const box = state.canvas.getBoundingClientRect();
  const zoom = zoomOf(state.canvas);
  const [sx, sy] = [(event.clientX - box.left) / zoom, (event.clientY - box.top) / zoom];
  const { camera } = state;
  return { sx, sy, x: camera.x + sx / camera.k, y: camera.y + sy / camera.k };
};

function hover(state, event) {
  const { x, y } = at(state, event);
  const hit = under(state.laid, x, y);
  showTip(state.tip, event, describe(state, hit));
  if (pinned(state)) return;
  const row = hit?.spot && hit.row !== null ? laneRow(hit.spot, hit.row) : null;
  const next = row === null ? null : { lane: hit.spot.lane, row };
  const key = next && `${next.lane} ${row} ${hit.spot.place} ${hit.head}`;
  if (key !== state.hovered) { state.hovered = key; follow(state, next, hit); redraw(state); }
}

function listen(state) {
  const { canvas } = state;
  const pointers = new Map();
  let moved = 0;
  let apart = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) moved = 0;
    apart = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) { hover(state, event); return; }
    const now = [event.clientX, event.clientY];
    pointers.set(event.pointerId, now);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
      const box = canvas.getBoundingClientRect();
      const [sx, sy] = [(a[0] + b[0]) / 2 - box.left, (a[1] + b[1]) / 2 - box.top].map((one) => one / zoomOf(canvas));
      if (apart) zoomBy(state, distance / apart, sx, sy);
      apart = distance;
      moved = 99;
      return;
    }
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved < 5) return;
    state.tip.hidden = true;
    const k = state.camera.k * zoomOf(canvas);
    const down = canvas.style.touchAction === "none" || event.pointerType === "mouse" ? now[1] - before[1] : 0; // else the page scrolls
    state.camera = { ...state.camera, x: state.camera.x - (now[0] - before[0]) / k, y: state.camera.y - down / k };
    redraw(state);
  });
  const up = (event) => {
    const was = pointers.delete(event.pointerId);
    if (!was || event.type === "pointercancel" || moved >= 5 || pointers.size) return;
    const { x, y } = at(state, event);
    state.tip.hidden = true;
    focusOn(state, inner(state, under(state.laid, x, y)));
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    state.tip.hidden = true;
    state.hovered = null;
    if (!pinned(state) && state.follow) { follow(state, null); redraw(state); }
  });
  canvas.addEventListener("wheel", (event) => {
    const isActive = event.ctrlKey || state.root.getRootNode().activeElement === canvas;
    if (!isActive) return; // the page scrolls
    event.preventDefault();
    const { sx, sy } = at(state, event);
    zoomBy(state, Math.exp(-event.deltaY * 0.002), sx, sy);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => press(state, event));
}

function press(state, event) {
  if (event.key === "Delete") { state.inspector.querySelector(".knock")?.click(); return; }
  const next = KEYS[event.key]?.(state);
  if (next === undefined) return;
  event.preventDefault();
  focusOn(state, next);
}

function beside(state, way) {
  const { focus, laid } = state;
  const spots = laid.places.filter((spot) => spot.w > 0);
  if (!focus) return within(spots.at(way > 0 ? 0 : -1));
  if (focus.block) {
    const { blocks } = laid;
    const now = blocks.findIndex((one) => one.lane === focus.lane && one.block === focus.block);
    const { block, lane } = blocks[(now + way + blocks.length) % blocks.length];
    return { block, lane };
  }
  const { spot, head, row, column } = focus;
  const wrap = (value, n) => (value + way + n) % n;
  if (column !== null) return within(spot, head, row, wrap(column, spot.stage.columns));
  if (head !== null) return within(spot, wrap(head, spot.stage.shape[0]), row);
  const now = spots.indexOf(spot);
  const to = spots[(now + way + spots.length) % spots.length];
  const isRow = row !== null && to.lane === spot.lane && to.stage.rows.length > row && to.stage.kind !== "heads";
  return within(to, null, isRow ? row : null);
}

function rowBy(state, way) {
  const { focus } = state;
  if (!focus?.spot) return undefined;
  const n = focus.spot.stage.kind === "heads" ? focus.spot.stage.shape[1] : focus.spot.stage.rows.length;
  if (!n) return undefined;
  const head = focus.spot.stage.kind === "heads" && focus.head === null ? 0 : focus.head;
  return { ...focus, head, row: focus.row === null ? (way > 0 ? 0 : n - 1) : (focus.row + way + n) % n };
}

function deeper(state) {
  const { focus, laid } = state;
  if (!focus) return within(laid.places[0]);
  if (focus.block) return within(laid.places.find((one) => one.lane === focus.lane && one.stage.block === focus.block && one.w > 0));
  const { spot, head, row, column } = focus;
  if (spot.stage.kind === "heads" && head === null) return within(spot, 0);
  if (row === null && spot.stage.rows.length) return within(spot, head, 0);
  if (column === null && spot.stage.values && ["heads", "vectors"].includes(spot.stage.kind)) return within(spot, head, row, 0);
  return undefined;
}

const KEYS = {
  ArrowRight: (state) => beside(state, 1),
  ArrowLeft: (state) => beside(state, -1),
  ArrowDown: (state) => rowBy(state, 1),
  ArrowUp: (state) => rowBy(state, -1),
  Enter: deeper,
  Escape: (state) => (state.focus ? outer(state.focus) : undefined),
};

// ---- mounting ----

function dress(state) {
  const style = getComputedStyle(state.root);
  const of = (name) => style.getPropertyValue(name).trim();
  Object.assign(state, {
    ink: of("--st-text-color") || "#222",
    line: of("--st-border-color") || "#ccc",
    card: of("--st-secondary-background-color") || "#eee",
    paper: of("--st-background-color") || "#fff",
    soft: of("--st-gray-color") || "#777",
    font: of("--st-font") || "sans-serif",
  });
}

function furnish(state) {
  if (state.panel && state.view.board) { state.panel.take(state.view); return; }
  [state.panel?.toggle, state.panel?.node].forEach((node) => node?.remove());
  state.panel = null;
  if (!state.view.board) return;
  state.panel = new BoardPanel(state.view, (drawing) => state.send("drawn", drawing));
  state.zoom.before(state.panel.toggle);
  state.canvas.after(state.panel.node);
}

function resize(state) {
  const wide = state.root.clientWidth;
  if (!wide) return;
  relay(state, openOf(state.focus));
  const k = scaleOf(state)(state.laid.w, state.laid.h);
  const [least, most] = highs(state);
  const high = Math.round(Math.max(least, Math.min(most, state.laid.h * k + 16)));
  if (!state.focus || !state.size || state.size.w !== wide) { // the height stays while a block is open
    state.root.style.setProperty("--high", `${high}px`);
    state.isSame = state.size?.w === wide && state.size?.h === high;
    state.size = { w: wide, h: high };
  }
  state.ratio = pixelRatio(state.canvas);
  const [w, h] = [state.size.w * state.ratio, state.size.h * state.ratio];
  if (state.canvas.width !== w || state.canvas.height !== h) Object.assign(state.canvas, { width: w, height: h });
  if (!state.isSame || !state.camera) state.camera = state.focus ? focused(state) : first(state);
  state.isSame = true;
  paint(state);
}

// Show a picture: new data, or one that was shown before.
function display(state, view) {
  state.view = view;
  dress(state);
  const shape = JSON.stringify(view.lanes.map((lane) => [lane.tokens, lane.stages.map((stage) => [stage.path, stage.whole])]));
  if (state.shape !== shape) { state.shape = shape; state.focus = null; state.camera = null; }
  state.laid = null;
  relay(state, openOf(state.focus));
  follow(state, pinned(state));
  state.hovered = null;
  state.canvas.setAttribute("aria-label", view.words.picture);
  state.zoom.querySelectorAll("button").forEach((button) => {
    button.title = view.words[button.dataset.name];
    button.setAttribute("aria-label", view.words[button.dataset.name]);
  });
  resize(state);
  trail(state);
  outs(state);
  legend(state);
  inspect(state);
  openChosen(state);
}

// Show the part that was opened elsewhere.
function openChosen(state) {
  const { chosen } = state.view;
  const isOther = state.opened !== undefined && chosen !== state.opened;
  state.opened = chosen;
  if (!isOther) return;
  const places = state.laid.places.filter(({ stage }) => stage.name === chosen);
  const spot = places.find(({ stage }) => stage.block === state.focus?.spot?.stage.block) ?? places[0];
  if (spot) focusOn(state, within(spot));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".picture");
  const view = unpack(data);
  prepare(view);
  const state = root.picture ?? { focus: null };
  state.send = setTriggerValue;
  state.view = view;
  if (!root.picture) { build(root, state); root.picture = state; listen(state); }
  furnish(state);
  display(state, state.time.take(view));
  fill(root);
  if (!state.observer) {
    state.observer = new ResizeObserver(() => resize(state));
    state.observer.observe(root);
  }
  const call = {};
  state.call = call;
  return () => {
    if (state.call !== call) return;
    state.observer.disconnect();
    state.observer = null;
    state.time.player.stop();
    cancelAnimationFrame(state.moving);
  };
}
