// Five linked maps. The grids are built once for a set of tokens; afterwards only cells change.

import { inkOn, mix, rgb } from "./colours.js";
import { element } from "./dom.js";
import { isDark } from "./theme.js";

const MIN = 16; // pixels of a cell that a finger can hit
const PAIRS = ["scores", "mask", "masked", "weights"];

function named(className, text, place, axis) {
  const made = element("span", className, text);
  made.title = text;
  made.dataset[axis] = place;
  return made;
}

function map(state, name) {
  const { view } = state;
  const columns = name === "output" ? view.output[0].length : view.key.length;
  const figure = element("figure", name);
  figure.append(element("figcaption", "", view.words[name]));
  const grid = element("div", `grid ${name}`);
  if (name === "mask") {
    grid.setAttribute("role", "grid");
    grid.setAttribute("aria-label", view.words.grid);
  } else {
    grid.setAttribute("aria-hidden", "true"); // the read-out says all values
  }
  const width = { output: "var(--wide)", mask: "var(--cell)" }[name] ?? "var(--pair)";
  grid.style.gridTemplateColumns = `74px repeat(${columns}, ${width})`;
  grid.append(element("span"));
  for (let k = 0; k < columns; k += 1) {
    grid.append(name === "output"
      ? element("span", "top", columns <= 16 ? String(k + 1) : "")
      : named("top", view.key[k], k, "k"));
  }
  const cells = view.query.map((token, q) => {
    const row = element("div", "row");
    if (name === "mask") row.setAttribute("role", "row");
    row.append(named("side", token, q, "q"));
    const made = Array.from({ length: columns }, (_, k) => {
      const cell = element(name === "mask" ? "button" : "div", "cell");
      if (name === "mask") {
        cell.type = "button";
        cell.tabIndex = q + k === 0 ? 0 : -1;
        cell.setAttribute("role", "gridcell");
      }
      cell.dataset.q = q;
      cell.dataset.k = k;
      cell.dataset.map = name;
      row.append(cell);
      return cell;
    });
    grid.append(row);
    return made;
  });
  figure.append(grid);
  state.cells[name] = cells;
  return figure;
}

function build(root, state) {
  root.textContent = "";
  state.cells = {};
  const maps = element("div", "maps");
  [...PAIRS, "output"].forEach((name) => maps.append(map(state, name)));
  state.readout = element("div", "readout", state.view.words.hint);
  state.readout.setAttribute("aria-live", "polite");
  maps.append(state.readout);
  root.append(maps);
}

function fill(cell, colour, text) {
  const look = `${colour.join()} ${text}`;
  if (cell.look === look) return; // most cells of a large map stay as they are
  cell.look = look;
  cell.style.backgroundColor = `rgb(${colour.join()})`;
  cell.style.color = inkOn(colour);
  cell.textContent = text;
}

const largest = (rows) => Math.max(1e-9, ...rows.flat().map(Math.abs));

function paint(state) {
  const { view, cells, edited } = state;
  const { words } = view;
  const colours = view.colours[state.dark ? "dark" : "light"];
  const grey = rgb(colours.masked);
  const top = largest(view.scores);
  const most = largest(view.output);
  const text = (value, digits) => (state.pair >= 23 ? value.toFixed(digits) : "");
  const score = (value, range) => mix(colours.score, 0.5 + value / range / 2);
  view.query.forEach((query, q) => view.key.forEach((key, k) => {
    const may = view.mask[q][k];
    const value = view.scores[q][k];
    const shown = text(value, 1);
    fill(cells.scores[q][k], score(value, top), shown);
    fill(cells.mask[q][k], may ? mix(colours.weight, 0.12) : grey, may ? "✓" : "×");
    fill(cells.masked[q][k], may ? score(value, top) : grey, may ? shown : text(0, 0) && words.least);
    const weight = view.weights[q][k];
    fill(cells.weights[q][k], may ? mix(colours.weight, weight) : grey, text(weight, 2).replace(/^0\./, "."));
    const button = cells.mask[q][k];
    button.classList.toggle("changed", edited.has(`${q},${k}`));
    button.setAttribute("aria-selected", String(may));
    button.setAttribute("aria-label", `${words.query} ${query}, ${words.key} ${key}: `
      + `${may ? words.allowed : words.forbidden}`);
  }));
  view.output.forEach((row, q) => row.forEach((value, d) => {
    fill(cells.output[q][d], score(value, most), state.wide >= 23 ? value.toFixed(1) : "");
  }));
}

function light(root, state, q, k, dimension) {
  root.querySelectorAll(".lit, .on").forEach((part) => part.classList.remove("lit", "on"));
  const { view, cells } = state;
  if (k !== null) PAIRS.forEach((name) => cells[name][q][k].classList.add("lit"));
  else PAIRS.forEach((name) => cells[name][q].forEach((cell) => cell.classList.add("lit")));
  if (dimension === null) cells.output[q].forEach((cell) => cell.classList.add("lit"));
  else cells.output[q][dimension].classList.add("lit");
  root.querySelectorAll(`span[data-q="${q}"]`).forEach((name) => name.classList.add("on"));
  if (k !== null) root.querySelectorAll(`span[data-k="${k}"]`).forEach((name) => name.classList.add("on"));
  state.lit = [q, k, dimension];
  state.readout.textContent = describe(view, q, k, dimension);
}

export function describe(view, q, k, dimension) {
  const { words } = view;
  const lines = [`${words.query} ${q + 1}: ${view.query[q]}`];
  if (k !== null) {
    const may = view.mask[q][k];
    const score = view.scores[q][k].toFixed(6);
    lines.push(
      `${words.key} ${k + 1}: ${view.key[k]}`,
      `${words.score}: ${score}`,
      may ? words.allowed : words.forbidden,
      `${words.masked_score}: ${may ? score : words.lowest}`,
      `${words.weight}: ${view.weights[q][k].toFixed(6)}`,
    );
  } else {
    lines.push(`${words.of_output}, ${words.dimension} ${dimension + 1}: ${view.output[q][dimension].toFixed(6)}`);
  }
  if (!view.mask[q].some(Boolean)) lines.push(words.blind);
  return lines.join("\n");
}

function toggle(root, state, q, k) {
  const name = `${q},${k}`;
  if (!state.edited.delete(name)) state.edited.add(name);
  state.view.mask[q][k] = !state.view.mask[q][k]; // at once; the softmax comes with the answer
  paint(state);
  const cells = [...state.edited].map((cell) => cell.split(",").map(Number));
  state.sent = { key: [...state.edited].sort().join(";"), until: Date.now() + 2000 };
  state.send("edit", { version: state.view.version, cells });
}

function listen(root, state) {
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const at = (event) => event.target.closest?.(".cell");
  const show = (event) => {
    const cell = at(event);
    if (!cell) return;
    const [q, k] = [Number(cell.dataset.q), Number(cell.dataset.k)];
    const isOutput = cell.dataset.map === "output";
    light(root, state, q, isOutput ? null : k, isOutput ? k : null);
  };
  root.addEventListener("pointerover", show);
  root.addEventListener("focusin", show);
  root.addEventListener("click", (event) => {
    const cell = at(event);
    if (cell?.dataset.map === "mask") toggle(root, state, Number(cell.dataset.q), Number(cell.dataset.k));
  });
  root.addEventListener("keydown", (event) => {
    const cell = at(event);
    const step = STEPS[event.key];
    if (!cell || !step) return;
    event.preventDefault();
    const next = state.cells.mask[Number(cell.dataset.q) + step[0]]?.[Number(cell.dataset.k) + step[1]];
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function fit(root, state) {
  const n = state.view.key.length;
  const width = root.clientWidth || 900;
  // as many maps beside one another as still have cells that can be read and hit
  const most = width >= 900 ? 3 : width >= 620 ? 2 : 1;
  const cell = (maps) => Math.floor((width / maps - (maps > 1 ? 22 : 0) - 82) / n);
  const beside = Array.from({ length: most }, (_, i) => most - i).find((maps) => cell(maps) >= MIN) ?? 1;
  const side = width / beside - (beside > 1 ? 22 : 0);
  state.size = Math.max(MIN, Math.min(40, cell(beside)));
  // long sentences: the mask stays large, to be clicked; the others are small beside one another
  const isTight = beside === 1 && width >= 620;
  state.pair = isTight ? Math.max(4, cell(2)) : state.size;
  root.classList.toggle("tight", isTight);
  root.style.setProperty("--pair", `${state.pair}px`);
  const dimensions = state.view.output[0].length;
  state.wide = Math.max(3, Math.min(state.pair, Math.floor((side - 82) / dimensions)));
  root.style.setProperty("--cell", `${state.size}px`);
  root.style.setProperty("--wide", `${state.wide}px`);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".lab");
  const state = root.maskEditor ?? {};
  root.maskEditor = state;
  state.send = setTriggerValue;
  const arrived = data.edited.map(String).sort().join(";");
  const isLate = state.view?.version === data.version && state.sent
    && Date.now() < state.sent.until && arrived !== state.sent.key;
  if (isLate) return undefined; // an answer to an older click; the newest one is on its way
  state.sent = null;
  state.view = structuredClone(data);
  state.edited = new Set(data.edited.map(String));
  state.dark = isDark(root);
  const shape = JSON.stringify([data.query, data.key, data.output[0].length]);
  if (state.shape !== shape) {
    build(root, state);
    state.lit = null;
    state.shape = shape;
  }
  if (!state.isListening) { listen(root, state); state.isListening = true; }
  if (state.lit && state.lit[0] < data.query.length && (state.lit[1] ?? 0) < data.key.length) {
    state.readout.textContent = describe(state.view, ...state.lit); // with the new numbers
  }
  const draw = () => { state.dark = isDark(root); fit(root, state); paint(state); };
  draw();
  state.observer?.disconnect();
  const observer = new ResizeObserver(draw);
  observer.observe(root);
  state.observer = observer;
  clearInterval(state.timer);
  state.timer = setInterval(() => { if (root.isConnected && isDark(root) !== state.dark) draw(); }, 500);
  const { timer } = state;
  return () => { observer.disconnect(); clearInterval(timer); }; // its own only: a newer draw has others
}
