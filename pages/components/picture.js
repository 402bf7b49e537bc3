// The picture of a model at work: zoom from the whole to one number, follow a token through it.

import { element, fill } from "./dom.js";
import { layout, mapAt, under } from "./picture_layout.js";
import { paint, prepare, weightAt } from "./picture_paint.js";
import { BoardPanel } from "./picture_board.js";
import { unpack } from "./packed.js";

const MOVE = 380; // ms of a move of the camera
const MARGIN = 26;
const HIGH = [260, 560]; // pixels of the picture: as its own shape asks, within these
const FAR = 400; // how far it can be zoomed in
const LEAST = 0.6; // on a narrow screen the picture begins so large, at its left

const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const isCalm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

function build(root, state) {
  root.textContent = "";
  const canvas = element("canvas", "model");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  const trail = element("div", "trail");
  const zoom = element("div", "zoom");
  [["smaller", "−", 1 / 1.5], ["larger", "+", 1.5]].forEach(([name, sign, factor]) => {
    const button = element("button", "small", sign);
    button.type = "button";
    button.dataset.name = name;
    button.addEventListener("click", () => zoomBy(state, factor, state.size.w / 2, state.size.h / 2));
    zoom.append(button);
  });
  const inspector = element("div", "inspector");
  inspector.hidden = true;
  const tip = element("div", "tip");
  tip.hidden = true;
  const spoken = element("div", "spoken");
  spoken.setAttribute("aria-live", "polite");
  const bar = element("div", "bar");
  bar.append(trail, zoom);
  const stage = element("div", "stage");
  stage.append(canvas, inspector);
  root.append(bar, stage, tip, spoken);
  Object.assign(state, { root, canvas, trail, zoom, inspector, tip, spoken, context: canvas.getContext("2d") });
}

// ---- camera ----

function fitted(state, box, margin = MARGIN) {
  const { size } = state;
  const k = Math.min((size.w - 2 * margin) / box.w, (size.h - 2 * margin) / box.h, FAR);
  return { k, x: box.x + box.w / 2 - size.w / (2 * k), y: box.y + box.h / 2 - size.h / (2 * k) };
}

const whole = (state) => fitted(state, { x: -6, y: -6, w: state.laid.w + 12, h: state.laid.h + 28 }, 12);

function first(state) {
  const fit = whole(state);
  if (fit.k >= LEAST || state.size.w > 700) return fit;
  const k = Math.min(LEAST, (state.size.h - 24) / (state.laid.h + 28));
  return { k, x: -12 / k, y: -12 / k };
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
    const share = from.k === camera.k ? eased : (1 / k - 1 / from.k) / (1 / camera.k - 1 / from.k);
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
  state.camera = { k, x: camera.x + sx / camera.k - sx / k, y: camera.y + sy / camera.k - sy / k };
  state.isFree = true;
  redraw(state);
}

function redraw(state) {
  if (state.due) return;
  state.due = requestAnimationFrame(() => { state.due = 0; paint(state); });
}

// ---- focus: null, { block, lane }, or { spot, head, row, column } with null for "all of it" ----

function boxOf(state, focus) {
  const { spot, head, row } = focus;
  if (focus.block) {
    const { x, y, w, h } = state.laid.blocks.find((one) => one.lane === focus.lane && one.block === focus.block);
    return { x, y: y - 14, w, h: h + 40 };
  }
  if (spot.stage.kind === "heads" && head !== null) {
    const map = mapAt(spot, head);
    const label = map.w * 0.35;
    return { x: map.x - label, y: map.y - label * 0.6, w: map.w + label * 1.2, h: map.h + label * 0.7 };
  }
  if (row !== null && spot.stage.kind !== "heads") {
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

function relay(state, open) {
  if (state.open === open && state.laid) return;
  state.open = open;
  state.context.font = `13px ${state.font}`;
  state.laid = layout(state.view, open, (text) => state.context.measureText(text).width);
  const { focus } = state;
  if (focus?.spot) focus.spot = state.laid.places.find((one) => one.lane === focus.spot.lane && one.place === focus.spot.place);
}

function focusOn(state, focus) {
  state.focus = focus;
  state.isFree = false;
  relay(state, openOf(focus));
  follow(state, focus?.spot && focus.row !== null ? { lane: focus.spot.lane, row: laneRow(focus.spot, focus.row) } : null);
  state.canvas.style.touchAction = state.focus ? "none" : "pan-y"; // until then a finger scrolls the page
  moveTo(state, state.focus ? fitted(state, boxOf(state, state.focus)) : first(state));
  inspect(state);
  trail(state);
}

function laneRow(spot, row) {
  const at = spot.stage.rows[row];
  return at === undefined || at < 0 ? null : at;
}

function follow(state, what) {
  state.follow = what && what.row !== null ? what : null;
  state.attended = state.follow ? attended(state) : null;
}

// How much the followed token reads of each token of another lane, on average over all maps.
function attended(state) {
  const { lane, row } = state.follow;
  const maps = state.laid.places.filter((spot) => spot.lane === lane && spot.stage.kind === "heads" && spot.stage.keys !== lane && spot.stage.mean);
  if (!maps.length) return null;
  const keys = maps[0].stage.shape[2];
  const weights = Array.from({ length: keys }, (_, key) => maps.reduce((sum, spot) => sum + weightAt(spot.stage, null, row, key), 0) / maps.length);
  return { lane: maps[0].stage.keys, weights };
}

// The next smaller thing under the pointer, inside what is in focus.
function inner(state, hit) {
  if (!hit) return null;
  const { focus } = state;
  if (hit.block) return { block: hit.block.block, lane: hit.block.lane };
  const { spot, head, row, column } = hit;
  const isOpen = !spot.isCompact && (spot.stage.block === 0 || !state.laid.blocks.some((one) => one.isCompact) || state.open === `${spot.lane} ${spot.stage.block}`);
  if (!isOpen) return { block: spot.stage.block, lane: spot.lane };
  if (focus?.spot !== spot) return { spot, head: null, row: spot.stage.kind === "tokens" ? row : null, column: null };
  if (spot.stage.kind === "heads" && focus.head !== head) return { spot, head, row: null, column: null };
  return { spot, head, row, column };
}

function outer(focus) {
  if (!focus || focus.block) return null;
  const { spot, head, row, column } = focus;
  if (column !== null) return { spot, head, row, column: null };
  if (row !== null) return { spot, head, row: null, column: null };
  if (head !== null) return { spot, head: null, row: null, column: null };
  return spot.stage.block ? { block: spot.stage.block, lane: spot.lane } : null;
}

// ---- words ----

const tokensOf = (state, spot) => state.view.lanes[spot.lane].tokens;
const rowName = (state, spot, row) => {
  const at = laneRow(spot, row);
  return at === null ? spot.stage.title : tokensOf(state, spot)[at];
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
  if (row === null) return stage.title;
  if (stage.kind === "tokens") return rowName(state, spot, row);
  if (stage.kind === "image" || !stage.values) return stage.title;
  if (stage.kind === "answers") {
    return [rowName(state, spot, row), ...stage.answers[row].map((word, i) => `${word} ${(100 * stage.values[row * stage.answers[row].length + i]).toFixed(1)} %`)].join("\n");
  }
  if (stage.kind === "heads") {
    const weight = weightAt(stage, head, row, column);
    const what = Number.isNaN(weight) ? words.masked : weight.toFixed(3);
    return `${stage.title}, ${words.head.replace("{n}", head + 1)}\n${tokensOf(state, spot)[row]} → ${lanes[stage.keys].tokens[column]}: ${what}`;
  }
  return `${stage.title}\n${rowName(state, spot, row)}, ${words.number.replace("{n}", column + 1)}: ${number(stage.values[row * stage.columns + column])}`;
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
      steps.push([spot.stage.title, { spot, head: null, row: null, column: null }]);
      if (head !== null) steps.push([words.head.replace("{n}", head + 1), { spot, head, row: null, column: null }]);
      if (row !== null) steps.push([rowName(state, spot, row), { spot, head, row, column: null }]);
      if (focus.column !== null) steps.push([describe(state, focus).split(": ").at(-1), focus]);
    }
  }
  bar.replaceChildren(...steps.flatMap(([name, to], i) => {
    const button = element("button", "small", name);
    button.type = "button";
    if (i === steps.length - 1) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => { focusOn(state, to); state.canvas.focus(); });
    return i ? [element("span", "", "›"), button] : [button];
  }));
}

function weightsList(names, weights) {
  const list = element("div", "weights");
  [...weights.keys()].filter((i) => weights[i] > 0.005).sort((a, b) => weights[b] - weights[a]).slice(0, 8).forEach((i) => {
    const bar = element("i");
    bar.style.setProperty("--share", weights[i]);
    list.append(element("span", "", names[i]), bar, element("span", "", weights[i].toFixed(2)));
  });
  return list;
}

function bars(state, values, chosen) {
  const canvas = element("canvas");
  canvas.width = 296 * state.ratio;
  canvas.height = 64 * state.ratio;
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

function inspect(state) {
  const { focus, view, inspector } = state;
  const { words } = view;
  inspector.hidden = !focus?.spot;
  if (inspector.hidden) { state.spoken.textContent = focus ? describe(state, { block: { ...focus } }) : words.whole; return; }
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
      const names = view.lanes[stage.keys].tokens;
      const weights = Float32Array.from(names, (_, key) => weightAt(stage, head, row, key)).map((weight) => (Number.isNaN(weight) ? 0 : weight));
      parts.push(element("div", "", filled(words.reads, { query: tokensOf(state, spot)[row] })), weightsList(names, weights));
      if (column !== null) parts.push(element("div", "", describe(state, focus).split("\n")[1]), element("div", "", arithmetic(state, focus)));
    } else if (stage.kind === "vectors") {
      const values = stage.values.subarray(row * stage.columns, (row + 1) * stage.columns);
      parts.push(element("div", "", rowName(state, spot, row)), bars(state, values, column));
      if (column !== null) parts.push(element("div", "", describe(state, focus).split("\n")[1]), element("div", "", arithmetic(state, focus)));
    } else if (stage.kind === "answers") {
      const size = stage.answers[row].length;
      parts.push(element("div", "", rowName(state, spot, row)), weightsList(stage.answers[row], stage.values.subarray(row * size, (row + 1) * size)));
      if (view.truth) parts.push(element("div", "", filled(words.truth, { truth: view.truth })));
    }
  }
  if (stage.step) {
    const button = element("button", "small", words.explain);
    button.type = "button";
    button.addEventListener("click", () => state.send("step", [stage.step, stage.block]));
    parts.push(button);
  }
  const code = view.codes[`${stage.path} ${head ?? -1}`];
  if (code && stage.values) {
    const isOut = view.out.includes(code);
    const button = element("button", "small", isOut ? words.restore : words.knock);
    button.type = "button";
    button.addEventListener("click", () => state.send("knock", code));
    parts.push(button);
  }
  inspector.replaceChildren(...parts);
  state.spoken.textContent = parts.map((part) => part.textContent).filter(Boolean).join(". ");
}

// ---- pointer, wheel, keys ----

const at = (state, event) => {
  const box = state.canvas.getBoundingClientRect();
  const [sx, sy] = [event.clientX - box.left, event.clientY - box.top];
  const { camera } = state;
  return { sx, sy, x: camera.x + sx / camera.k, y: camera.y + sy / camera.k };
};

function hover(state, event) {
  const { x, y } = at(state, event);
  const hit = under(state.laid, x, y);
  const text = describe(state, hit);
  const { tip } = state;
  tip.hidden = !text || event.pointerType === "touch";
  tip.textContent = text;
  const right = event.clientX + 14 + tip.offsetWidth > window.innerWidth;
  tip.style.left = `${right ? event.clientX - 14 - tip.offsetWidth : event.clientX + 14}px`;
  tip.style.top = `${Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 4)}px`;
  const pinned = state.focus?.spot && state.focus.row !== null;
  if (pinned) return;
  const row = hit?.spot && hit.row !== null && hit.spot.stage.kind !== "image" ? laneRow(hit.spot, hit.row) : null;
  const next = row === null || row === undefined ? null : { lane: hit.spot.lane, row };
  if (JSON.stringify(next) !== JSON.stringify(state.follow)) { follow(state, next); redraw(state); }
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
      if (apart) zoomBy(state, distance / apart, (a[0] + b[0]) / 2 - box.left, (a[1] + b[1]) / 2 - box.top);
      apart = distance;
      moved = 99;
      return;
    }
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved < 5) return;
    state.tip.hidden = true;
    state.camera = { ...state.camera, x: state.camera.x - (now[0] - before[0]) / state.camera.k, y: state.camera.y - (now[1] - before[1]) / state.camera.k };
    state.isFree = true;
    redraw(state);
  });
  const up = (event) => {
    const was = pointers.delete(event.pointerId);
    if (!was || event.type === "pointercancel" || moved >= 5 || pointers.size) return;
    const { x, y } = at(state, event);
    focusOn(state, inner(state, under(state.laid, x, y)));
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => {
    state.tip.hidden = true;
    if (!(state.focus?.spot && state.focus.row !== null) && state.follow) { follow(state, null); redraw(state); }
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
  const next = KEYS[event.key]?.(state);
  if (next === undefined) return;
  event.preventDefault();
  focusOn(state, next);
}

function beside(state, way) {
  const { focus, laid } = state;
  const spots = laid.places.filter((spot) => spot.w > 0);
  if (!focus) return { spot: spots.at(way > 0 ? 0 : -1), head: null, row: null, column: null };
  if (focus.block) {
    const { blocks } = laid;
    const now = blocks.findIndex((one) => one.lane === focus.lane && one.block === focus.block);
    const { block, lane } = blocks[(now + way + blocks.length) % blocks.length];
    return { block, lane };
  }
  const { spot, head, row, column } = focus;
  const wrap = (value, n) => (value + way + n) % n;
  if (column !== null) return { spot, head, row, column: wrap(column, spot.stage.columns) };
  if (head !== null) return { spot, head: wrap(head, spot.stage.shape[0]), row, column };
  const now = spots.indexOf(spot);
  const to = spots[(now + way + spots.length) % spots.length];
  const isRow = row !== null && to.lane === spot.lane && to.stage.rows.length > row && to.stage.kind !== "heads";
  return { spot: to, head: null, row: isRow ? row : null, column: null };
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
  if (!focus) return { spot: laid.places[0], head: null, row: null, column: null };
  if (focus.block) return { spot: laid.places.find((one) => one.lane === focus.lane && one.stage.block === focus.block && one.w > 0), head: null, row: null, column: null };
  const { spot, head, row, column } = focus;
  if (spot.stage.kind === "heads" && head === null) return { spot, head: 0, row: null, column: null };
  if (row === null && spot.stage.rows.length) return { spot, head, row: 0, column: null };
  if (column === null && spot.stage.values && ["heads", "vectors"].includes(spot.stage.kind)) return { spot, head, row, column: 0 };
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
  const shape = state.laid.h / state.laid.w;
  const high = Math.max(HIGH[0], Math.min(HIGH[1], Math.round(Math.max(wide, 560) * shape) + 70, window.innerHeight - 150));
  state.root.style.setProperty("--high", `${high}px`);
  state.ratio = window.devicePixelRatio || 1;
  const isSame = state.size?.w === wide && state.size?.h === high;
  state.size = { w: wide, h: high };
  state.canvas.width = wide * state.ratio;
  state.canvas.height = high * state.ratio;
  if (!isSame || !state.camera) state.camera = state.focus ? fitted(state, boxOf(state, state.focus)) : first(state);
  paint(state);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".picture");
  const view = unpack(data);
  prepare(view);
  const state = root.picture ?? { open: null, focus: null, follow: null };
  state.send = setTriggerValue;
  const shape = JSON.stringify(view.lanes.map((lane) => [lane.tokens, lane.stages.map((stage) => [stage.path, stage.whole])]));
  if (!root.picture) { build(root, state); root.picture = state; }
  state.view = view;
  dress(state);
  if (state.shape !== shape) { state.shape = shape; state.focus = null; state.follow = null; state.attended = null; state.camera = null; }
  state.laid = null;
  relay(state, openOf(state.focus));
  furnish(state);
  state.canvas.setAttribute("aria-label", `${view.title}. ${view.words.picture}`);
  state.zoom.querySelectorAll("button").forEach((button) => {
    button.title = view.words[button.dataset.name];
    button.setAttribute("aria-label", view.words[button.dataset.name]);
  });
  if (!state.isListening) { listen(state); state.isListening = true; }
  resize(state);
  trail(state);
  inspect(state);
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
    cancelAnimationFrame(state.moving);
  };
}
