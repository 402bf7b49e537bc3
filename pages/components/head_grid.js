// All heads as small maps on canvases, at every snapshot of a training: they are all here, so playing asks the
// server for nothing.

import { abgr, cellUnder, colours, nameAt, part, pictured, rgb, strongest, tipOver, unpack } from "./cells.js";
import { openTables } from "./data_table.js";
import { actButton, bytes, drawn, element, isCalm, paper, presentedHeight, saveButtons, fill, whole } from "./dom.js";
import { forgetFrame, tellFrame } from "./events.js";
import { canvasOf, cellsOf, describe, headButton, labelHead, nameOf, paintHead } from "./heads.js";
import { roving, tabStop } from "./keys.js";
import { Player, isBetween, positionOf, weightsAt } from "./player.js";

const HOLD = 420; // milliseconds that a snapshot stands while the training plays
const LARGE = 150_000; // weights of a snapshot from which on it turns into the next at once
const LAYER = 54; // pixels that the names of the layers take
const LARGEST = 190;
const FEW_LAYERS = 4; // of so many, all heads stand in one screen
const ALL_HIGH = 340; // pixels that they take then
const AROUND = 170; // pixels of what stands above and below them, in presenter mode
const LINE = 13; // pixels of a line of the labels below the maps
const LETTER = 5.4; // pixels of a letter of the labels below the maps, on average

const ZOOM = 4; // pixels of a canvas to one of the picture, so that the edges of patches are sharp

// As top_of in Python: a weight that one in a hundred exceeds.
function strong(weights) {
  const known = weights.filter((weight) => !Number.isNaN(weight)).sort();
  return known[Math.floor((known.length - 1) * 0.99)];
}

// Draw a head, over the picture or as a matrix; returns its largest weight, and where it is.
function paint(canvas, view, number) {
  const [, , rows, columns] = view.shape;
  const map = part(view.weights, number, rows * columns);
  const spot = strongest(map, columns);
  const edge = view.over && view.over.size * ZOOM;
  if (edge) Object.assign(canvas, { width: edge, height: edge });
  const most = view.over || columns < view.many ? spot.value : strong(map);
  paintHead(canvas, cellsOf(view, number), { ...view, top: view.over ? view.top : (view.top ?? most) || 1 });
  return spot;
}

function build(root, view) {
  const [layers, heads] = view.shape;
  const { words } = view;
  const count = (n, make) => Array.from({ length: n }, (_none, i) => make(i));
  const names = count(heads, (head) => element("span", "name", { role: "columnheader" }, `${words.head} ${head + 1}`));
  const rows = count(layers, (layer) => {
    const cells = count(heads, () => headButton({ role: "gridcell" }));
    const name = element("span", "name layer", { role: "rowheader" }, `${words.layer} ${layer + 1}`);
    return element("div", "row", { role: "row" }, name, ...cells);
  });
  const top = element("div", "row", { role: "row" }, element("span"), ...names);
  const grid = element("div", "grid", { role: "grid" }, top, ...rows);
  grid.style.gridTemplateColumns = `auto repeat(${heads}, auto)`;
  const animation = element("div", "animation");
  const title = element("h2", "title", view.title);
  const bar = saveButtons(words, () => picture(root));
  bar.prepend(actButton("small", words.table, () => openTables(root, words.grid, [table(root.headGrid)], words)));
  root.replaceChildren(...(view.title ? [title] : []), animation, grid, bar);
  return { grid, buttons: [...grid.querySelectorAll("button")], animation, title, time: null };
}

// A row a head: what it does, and its strongest cell.
function table({ view, at, spots }) {
  const { words } = view;
  return {
    caption: `${words.step} ${whole(view.frames[at].step)}`,
    head: [words.head, words.does, words.largest, words.query, words.key],
    rows: spots.map(({ value, row, column }, i) => [
      nameOf(view, i), view.frames[at].labels[i] ?? "", value, nameAt(view.rows, row, view.block), nameAt(view.keys, column, view.block),
    ]),
  };
}

// The width of a word in Latin letters: one of Hangul, kana or Han is twice as wide.
const widthOf = (word) => word.length + (word.match(/[\u1100-\u11ff\u2e80-\uffdc]/g)?.length ?? 0);

// How many lines of so many letters a label takes, cut between words.
export function wrapped(label, letters) {
  return label.split(" ").map(widthOf).reduce(([count, at], width) => (
    at + width + 1 > letters && at ? [count + 1, width] : [count, at + width + (at ? 1 : 0)]
  ), [1, 0])[0];
}

// How many lines of so many letters the longest label of the whole animation takes.
function lines(state, letters) {
  const labels = new Set(state.view.frames.flatMap((frame) => [...frame.labels]));
  return Math.max(1, ...[...labels].map((label) => wrapped(label, letters)));
}

function fit(root, state) {
  const [layers, heads, queries, keys] = state.view.shape;
  const [rows, columns] = state.view.over ? [1, 1] : [queries, keys];
  const room = (root.clientWidth - LAYER) / heads - 6;
  const cell = Math.max(46, Math.min(LARGEST, Math.floor(room)));
  root.style.setProperty("--cell", `${cell}px`);
  const style = getComputedStyle(state.parts.buttons[0].lastChild); // readers may space letters and lines
  const line = Math.ceil(parseFloat(style.lineHeight)) || LINE;
  const n = lines(state, Math.floor((cell - 8) / (LETTER + (parseFloat(style.letterSpacing) || 0))));
  root.style.setProperty("--lines", n);
  root.style.setProperty("--line", `${line}px`);
  const presented = presentedHeight(root);
  const allHigh = presented ? presented - AROUND : ALL_HIGH;
  const high = layers <= FEW_LAYERS ? Math.max(52, allHigh / layers - line * n - 18) : LARGEST;
  const inner = Math.min(cell - 8, high);
  // square cells, but where a map would be a mere line: at least half as high as wide, and so on
  const width = inner * Math.min(1, Math.max(columns / rows, 0.5));
  const height = inner * Math.min(1, Math.max(rows / columns, 0.5));
  root.style.setProperty("--map", `${Math.round(height)}px`);
  state.parts.buttons.forEach((button) => {
    const canvas = canvasOf(button);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  });
}

function mark(state, [layer, head]) {
  const { buttons } = state.parts;
  const chosen = buttons[layer * state.view.shape[1] + head];
  buttons.forEach((button) => button.setAttribute("aria-selected", String(button === chosen)));
  tabStop(buttons, chosen);
}

function pick(state, index, wait) {
  const heads = state.view.shape[1];
  const head = [Math.floor(index / heads), index % heads];
  state.pending = { head, until: Date.now() + 1500 };
  mark(state, head);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => state.send("pick", head), wait);
}

function listen(root, state) {
  const at = (event) => state.parts.buttons.indexOf(event.target.closest(".grid button"));
  root.addEventListener("click", (event) => {
    if (at(event) >= 0) pick(state, at(event), 0);
  });
  roving(root, () => state.parts.buttons, { columnsOf: () => state.view.shape[1], arrived: (to) => pick(state, to, 120) });
  root.after(tipOver([root], (event) => {
    const { over, shape } = state.view;
    const canvas = event.target.closest("button canvas");
    const cell = canvas && cellUnder(event, canvas, over ? [over.side, over.side] : shape.slice(2));
    return cell && describe(state.view, at(event), ...cell);
  }));
}

// The whole grid as one <svg>, its maps as pictures of their own cells.
function picture(root) {
  const { view, parts } = root.headGrid;
  const [layers, heads] = view.shape;
  const style = getComputedStyle(root);
  const ink = style.getPropertyValue("--st-text-color").trim() || "#222";
  const side = 120;
  const svg = drawn("svg", { width: 70 + heads * (side + 8), height: 30 + layers * (side + 26) + 8, "font-family": style.fontFamily || "sans-serif", "font-size": 12 });
  svg.append(drawn("rect", { width: "100%", height: "100%", fill: paper(root) }));
  const say = (x, y, text) => svg.append(drawn("text", { x, y, fill: ink, "text-anchor": "middle" }, text));
  for (let head = 0; head < heads; head += 1) say(70 + head * (side + 8) + side / 2, 20, `${view.words.head} ${head + 1}`);
  parts.buttons.forEach((button, i) => {
    const [layer, head] = [Math.floor(i / heads), i % heads];
    const [x, y] = [70 + head * (side + 8), 30 + layer * (side + 26)];
    if (head === 0) say(34, y + side / 2, `${view.words.layer} ${layer + 1}`);
    svg.append(drawn("image", {
      x, y, width: side, height: side, href: canvasOf(button).toDataURL("image/png"), "image-rendering": "pixelated",
    }));
    say(x + side / 2, y + side + 14, view.frames[root.headGrid.at].labels[i] ?? "");
  });
  return [svg, `attention-step-${view.frames[root.headGrid.at].step}`];
}

function show(state) {
  const { view, parts } = state;
  const { words } = view;
  state.at = state.player.frame;
  state.spots = parts.buttons.map((button, i) => paint(canvasOf(button), view, i));
  parts.buttons.forEach((button, i) => {
    const { value, row, column } = state.spots[i];
    const label = view.frames[state.at].labels[i] ?? "";
    const place = `${nameAt(view.rows, row, view.block)}, ${words.key} ${nameAt(view.keys, column, view.block)}`;
    labelHead(button, label, `${nameOf(view, i)}: ${label ? `${label}, ` : ""}${words.largest} ${value.toFixed(2)}, ${place}`);
    button.classList.toggle("dim", Boolean(view.dim[i]));
  });
}

// ---- the training, played

// New data came: stay at the step that is shown, unless the server moved on or shows something else.
function startAt(state, before) {
  const { view, player } = state;
  const isMoved = before?.frames[before.frame].step !== view.frames[view.frame].step;
  const at = before?.animation === view.animation ? view.frames.findIndex(({ step }) => step === before.frames[state.at].step) : -1;
  const stays = at >= 0 && (player.playing || !isMoved);
  if (!stays) player.stop();
  Object.assign(player, { count: view.frames.length, position: stays ? at : view.frame, smooth: !isCalm() && view.shape.reduce((product, n) => product * n, 1) <= LARGE });
  view.weights = weightsAt(view, player.shown);
}

function move(state) {
  const { view, player, parts } = state;
  const isWhole = !isBetween(player.shown);
  if (isWhole && !player.smooth && state.at === player.frame) return;
  view.weights = weightsAt(view, player.shown);
  if (isWhole || state.at !== player.frame) { show(state); showTime(state); }
  else parts.buttons.forEach((button, i) => paint(canvasOf(button), view, i));
  tell(state);
}

// The weights of the chosen head, for whoever shows it.
export function tell({ view, player, pending }) {
  if (view.block > 1) return;
  const [, heads, rows, columns] = view.shape;
  const [layer, head] = pending?.head ?? view.chosen;
  const values = part(view.weights, layer * heads + head, rows * columns).slice();
  tellFrame({ animation: view.animation, step: view.frames[player.frame].step, values, rows, columns, isBetween: isBetween(player.shown) });
}

// Where it was left the rest of the page follows.
function rest(state) {
  const { player, view } = state;
  player.place(player.frame);
  showTime(state);
  state.send("step", view.frames[player.frame].step);
}

function showTime(state) {
  const { view, parts, player } = state;
  const { words } = view;
  parts.animation.hidden = view.frames.length < 2;
  if (parts.animation.hidden) return;
  if (!parts.time) {
    const [step, answer, chart] = [element("span", "step"), element("div", "answer"), element("div", "chart")];
    const controls = view.says ? [player.back, player.slider, player.next] : []; // on a page, its own slider chooses the step
    parts.animation.replaceChildren(element("div", "bar", player.play, ...controls, step), answer, chart);
    parts.time = { step, answer, chart };
  }
  const { step, answer } = parts.time;
  const frame = view.frames[state.at];
  player.draw(state.at);
  step.textContent = `${words.step} ${whole(frame.step)}`;
  player.slider.setAttribute("aria-valuetext", step.textContent);
  answer.textContent = "";
  answer.hidden = !view.says;
  if (view.says && frame.answer !== null) {
    answer.append(element("span", "who", `${words.model} `), element("b", "", frame.answer || "–"));
    if (frame.is_right !== null) answer.append(element("span", frame.is_right ? "good" : "bad", frame.is_right ? ` ✓ ${words.right}` : ` ✗ ${words.wrong}`));
  }
  drawCurve(state);
}

// Loss over the training, with the same spacing as the slider: early steps get as much room.
function drawCurve({ view, at, parts: { time: { chart } } }) {
  chart.textContent = "";
  if (!view.curve) return;
  const { steps, values, name, described } = view.curve;
  const [wide, high] = [600, 46];
  const framed = view.frames.map((frame) => frame.step);
  const x = (step) => (wide * positionOf(framed, step)) / (framed.length - 1);
  const least = Math.min(...values);
  const spread = Math.max(...values) - least || 1;
  const points = steps.map((step, i) => `${x(step).toFixed(1)},${(4 + (high - 8) * (1 - (values[i] - least) / spread)).toFixed(1)}`);
  const look = { "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" };
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: "none", role: "img", "aria-label": described });
  svg.append(
    drawn("polyline", { points: points.join(" "), fill: "none", stroke: view.curve.colour, ...look }),
    drawn("line", { x1: x(framed[at]), x2: x(framed[at]), y1: 0, y2: high, stroke: "currentColor", ...look }),
  );
  chart.append(svg, element("span", "name", name));
}

function watch(root, state) {
  const observer = new ResizeObserver(() => fit(root, state));
  observer.observe(root);
  return () => {
    observer.disconnect();
    state.player.stop();
    forgetFrame();
    state.end = null;
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".heads");
  const view = unpack(data);
  view.table = colours(view.scale);
  view.maskedInk = abgr(rgb(view.masked));
  view.keys = view.key.map((name, i) => `${i + 1 + (view.first ?? 0)}: ${name}`);
  if (view.over) view.over.picture = pictured(bytes(view.over.pixels), view.over.channels);
  const state = (root.headGrid ??= { listening: false, at: null });
  state.player ??= new Player(view.words, { moved: () => move(state), over: () => rest(state), readAt: () => HOLD });
  state.send = setTriggerValue;
  const shape = view.shape.slice(0, 2).join();
  const before = state.view;
  state.view = view;
  if (state.shape !== shape) {
    state.parts = build(root, view);
    state.shape = shape;
  }
  root.classList.toggle("named", view.frames[0].labels.length > 0);
  state.parts.grid.setAttribute("aria-label", view.words.grid);
  state.parts.title.textContent = view.title;
  startAt(state, before);
  show(state);
  showTime(state);
  if (state.player.playing) tell(state);
  else forgetFrame();
  const pending = state.pending && Date.now() < state.pending.until ? state.pending.head : null;
  if (pending && String(pending) !== String(view.chosen)) mark(state, pending);
  else { state.pending = null; mark(state, view.chosen); }
  if (!state.listening) { listen(root, state); state.listening = true; }
  fit(root, state);
  fill(root);
  state.end ??= watch(root, state);
  return state.end;
}
