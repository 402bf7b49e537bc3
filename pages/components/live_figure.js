// A plotly figure on a node that stays: new data changes the lines and keeps zoom, hover, hidden lines.

import { status } from "./announcing.js";
import { openTables, tablesOf } from "./data_table.js";
import { actButton, fill, isCalm, isDark, tell } from "./dom.js";
import { followFrames, lastFrame } from "./events.js";
import { barButtons, drawnLayout, followZoom, heatmap, pointWords, share } from "./insides.js";
import { clearManyLines, drawManyLines, isOfManyLines, resizeManyLines } from "./many_lines.js";
import { moved, roving } from "./keys.js";
import { attempt, loadPlotly, loadUplot } from "./vendors.js";

const nodes = new WeakMap();
const MAX_TRIMS = 5; // of a figure's height, before it is left as it is
const HANGING = 60; // pixels of an axis' words: plotly hangs them into the room below square cells
const RETRY = 100; // milliseconds until a figure that stands nowhere looks again whether it does
const PATIENCE = 2000; // milliseconds for which a figure that is out of sight waits for a quiet moment
const APART = { x: 14, y: 11 }; // pixels between two tokens of an axis, at least; across they lean

function draw(state) {
  const { node, data } = state;
  if (!data || nodes.get(state.parent) !== state) return Promise.resolve();
  if (!node.isConnected) { // it may be put back
    setTimeout(() => refresh(state), RETRY);
    return Promise.resolve();
  }
  state.drawn = data;
  const figure = parsed(state);
  state.parsed = null;
  const templates = JSON.parse(data.templates);
  state.dark = isDark(node);
  const template = templates[state.dark ? "dark" : "light"];
  // a screen reader says what the figure shows: what plotly draws, letter by letter, says nothing
  node.setAttribute("role", data.picks ? "application" : "figure"); // of its own arrow keys
  tell(node, [data.name, data.described]);
  if (isOfManyLines(figure)) {
    stand(state, figure.layout.height);
    return drawManyLines(state, figure, template);
  }
  clearManyLines(state);
  const plotly = chosen(state);
  figure.layout.template = template;
  figure.layout.uirevision ??= "kept";
  figure.layout.autosize = true;
  delete figure.layout.width;
  thin(figure, node.clientWidth);
  state.trims = 0;
  stand(state, figure.layout.height ?? 360);
  figure.layout.height = undefined;
  if (state.spoken !== data.language) Object.assign(state, { config: undefined, spoken: data.language });
  state.config ??= configOf(state); // the same object at every tick: plotly starts over with another
  const { data: traces, layout, frames } = figure;
  const drawn = frames?.length // a figure that plays, see play()
    ? plotly.react(node, { data: traces, layout, frames, config: state.config })
    : plotly.react(node, traces, layout, state.config);
  state.plays = Boolean(frames?.length);
  return drawn.then(() => { listen(state); followZoom(node); trim(state); part(state); tidy(node); });
}

// The newest figure. Who draws it takes it away: plotly writes into what it is given.
function parsed(state) {
  const text = state.data.figure;
  if (state.parsed?.text !== text) state.parsed = { text, figure: JSON.parse(text) };
  return state.parsed.figure;
}

// The plotly that was loaded last for this figure; what another one has drawn goes first.
function chosen(state) {
  const { node, plotly, loaded } = state;
  if (plotly !== loaded) {
    if (node.data) (plotly ?? loaded).purge(node); // without one, an earlier draw of this node left it
    Object.assign(state, { plotly: loaded, config: undefined, listening: false });
  }
  return loaded;
}

// One tab stop for the buttons of a figure: arrow keys go from one to the next.
function tidy(node) {
  for (const drawn of node.querySelectorAll("svg")) drawn.setAttribute("aria-hidden", "true");
  barButtons(node).forEach((button, i) => { button.tabIndex = i ? -1 : 0; });
}

// The numbers that are drawn now: an animation may have moved them on.
function openNumbers({ parent, node, plotly, data }) {
  const figure = JSON.parse(data.figure);
  if (data.follows && node.data) figure.data[0].z = node.data[0].z;
  const { words } = data;
  const isPlotly = plotly && node.data; // else it has buttons of its own
  const savings = isPlotly ? [["png", words.savePng], ["svg", words.saveSvg]] : []; // a finger finds no bar that shows where it points
  const buttons = savings.map(([format, label]) => actButton("", label, () => save(plotly, node, format)));
  openTables(parent, data.name, tablesOf(figure), words, ...buttons);
}

const save = (plotly, node, format) => plotly.downloadImage(node, { format, filename: "figure" });

// Where the page is narrow, square cells leave room below them; it is given back to the page.
function stand(state, full) {
  const { node } = state;
  if (state.full !== full || state.width !== node.clientWidth) Object.assign(state, { spare: 0, trims: 0 });
  state.full = full;
  state.width = node.clientWidth;
  node.style.height = `${full - state.spare}px`;
}

function trim(state) {
  const layout = drawnLayout(state.node);
  if (!layout) return;
  const words = layout.hasWordsBelow ? HANGING : 0;
  const spare = Math.floor(layout.height * (1 - share(layout.yAxes, layout.height))) - words;
  const lacks = state.spare > 0 ? Math.floor(layout.width * (1 - share(layout.xAxes, layout.width))) : 0;
  if ((lacks <= 24 && spare <= 24) || state.trims >= MAX_TRIMS) return;
  state.trims += 1;
  const given = layout.yAxes.length > 1 ? Math.floor(0.8 * spare) : spare; // a strip has words below each picture
  state.spare = Math.max(0, state.spare + (lacks > 24 ? -lacks : given));
  stand(state, state.full); // the observer of its size lays it out anew
}

// Words beside moving points: one that would cover another waits until it is pointed at.
function part({ node, plays }) {
  if (!plays || !node.isConnected) return;
  const shown = [];
  pointWords(node).forEach((text) => {
    const box = text.getBoundingClientRect();
    const covers = shown.some((other) => box.left < other.right && other.left < box.right
      && box.top + 2 < other.bottom && other.top + 2 < box.bottom);
    text.style.visibility = covers ? "hidden" : "";
    if (!covers) shown.push(box);
  });
}

// Rows of tokens: where the page is too narrow for all of them, every n-th is written.
export function thin({ layout }, width) {
  const { xaxis, yaxis } = layout;
  const count = (axis) => (axis?.tickmode === "array" && Array.isArray(axis.tickvals) ? axis.tickvals.length : 0);
  const wide = width - 100; // without the tokens of the other axis
  const high = (layout.height ?? 360) - 110;
  const isSquare = Boolean(yaxis?.scaleanchor) && count(xaxis) > 0;
  const squared = isSquare ? (wide * yaxis.tickvals?.at(-1)) / xaxis.tickvals.at(-1) : high;
  if (xaxis?.tickangle) every(xaxis, count(xaxis), wide, APART.x);
  every(yaxis, count(yaxis), Math.min(high, squared), APART.y);
}

export function every(axis, n, room, apart) {
  if (n < 12 || room <= 0) return;
  const step = Math.ceil((apart * n) / room);
  const kept = (values) => values.filter((_value, i) => i % step === 0);
  if (step > 1) Object.assign(axis, { tickvals: kept(axis.tickvals), ticktext: kept(axis.ticktext) });
}

function configOf({ data, plotly }) {
  const [first, ...rest] = data.config.modeBarButtons;
  const displayModeBar = window.matchMedia("(hover: none)").matches ? false : "hover"; // it would always be on
  const locales = { [data.language]: { dictionary: data.bar, format: {} } };
  return { ...data.config, locale: data.language, locales, displayModeBar, modeBarButtons: [[...first, saveSvg(data, plotly)], ...rest] };
}

function saveSvg(data, plotly) {
  const icon = { width: 24, height: 24, path: "M5 20h14v-2H5v2zM19 9h-4V3H9v6H5l7 7 7-7z" };
  return { name: "svg", title: data.words.saveSvg, icon, click: (node) => save(plotly, node, "svg") };
}

// A click on a cell of a heatmap goes to the server; the animation of the head grid moves the heatmap.
function listen(state) {
  const { node } = state;
  if (state.listening || !node.on) return;
  state.listening = true;
  node.on("plotly_buttonclicked", ({ button }) => play(state, button.args));
  node.on("plotly_sliderchange", ({ step, interaction }) => interaction && play(state, step.args));
  node.on("plotly_animatingframe", ({ animation }) => setTimeout(part, animation.transition.duration + 50, state));
  if (state.data.picks && !state.hasKeys) listenToKeys(state);
  node.on("plotly_click", (event) => {
    const cell = event.points[0]?.pointIndex;
    if (state.data.picks && Array.isArray(cell)) state.send("cell", [cell[0], cell[1]]);
  });
}

// The arrow keys move over the cells, saying each as the pointer does; Enter is a click.
function listenToKeys(state) {
  const { node } = state;
  state.hasKeys = true;
  state.cells = status();
  state.parent.append(state.cells.region);
  node.tabIndex = 0;
  const say = () => {
    const { z, hovertext } = heatmap(node);
    const [row, column] = state.cell ?? [0, 0];
    state.cell = [Math.min(row, z.length - 1), Math.min(column, z[0].length - 1)];
    state.plotly.Fx.hover(node, [{ curveNumber: 0, pointNumber: state.cell }]);
    const words = hovertext?.[state.cell[0]]?.[state.cell[1]] ?? "";
    state.cells.say(...words.split("<br>").map((part) => new DOMParser().parseFromString(part, "text/html").body.textContent));
  };
  node.addEventListener("focus", () => { if (node.matches(":focus-visible")) say(); });
  node.addEventListener("blur", () => state.plotly.Fx.unhover(node));
  node.addEventListener("keydown", (event) => {
    if (event.target !== node) return; // a button of the figure
    if (event.key === "Enter" && state.cell) state.send("cell", state.cell);
    else {
      const { z } = heatmap(node);
      const columns = z[0].length;
      const [row, column] = state.cell ?? [0, 0];
      const to = moved(event.key, row * columns + column, z.length * columns, columns);
      if (to < 0) return;
      state.cell = [Math.floor(to / columns), to % columns];
      say();
    }
    event.preventDefault();
  });
}

// Slider and buttons of a figure with frames are plotly's, with execute: false: run by plotly itself,
// an animation that another one interrupts leaves an error in the console.
function play(state, [frames, options]) {
  const moving = isCalm() ? { ...options, transition: { duration: 0 } } : options;
  state.plotly.animate(state.node, frames, moving).catch(() => {});
}

// Hover text says its weight in a span, whatever the language around it.
export const weighed = (text, weight) => text.replace(/<span>[^<]*<\/span>/, `<span>${weight.toFixed(4)}</span>`);

function follow(state, frame) {
  const { node, data } = state;
  if (!frame || frame.isBetween || !data?.follows || !state.plotly || !node.data || state.busy) return;
  const { values, rows, columns } = frame;
  const z = Array.from({ length: rows }, (_row, i) => Array.from(values.subarray(i * columns, (i + 1) * columns), (v) => (Number.isNaN(v) ? null : v)));
  const { hovertext } = node.data[0];
  if (Array.isArray(hovertext) && hovertext.length !== rows) return; // another example
  const texts = Array.isArray(hovertext)
    ? hovertext.map((row, i) => row.map((text, j) => weighed(text, z[i][j] ?? 0)))
    : hovertext;
  state.plotly.restyle(node, { z: [z], hovertext: [texts] }, [0]);
  tell(node, [data.name]); // what was computed is of the step before
}

function mount(parentElement) {
  const node = nodeOf(parentElement);
  const state = { node, parent: parentElement, data: null, dark: null, busy: false, again: false, spare: 0, trims: 0 };
  state.resize = new ResizeObserver(() => {
    if (!node.isConnected || !isDrawn(state) || !node.clientWidth) return;
    if (state.width !== node.clientWidth) stand(state, state.full);
    if (state.many) { resizeManyLines(state); return; }
    state.plotly.Plots.resize(node).then(() => { if (node.isConnected) { followZoom(node); trim(state); part(state); } });
  });
  state.resize.observe(node);
  state.sight = new IntersectionObserver((seen) => { state.isInSight = seen.at(-1).isIntersecting; });
  state.sight.observe(node);
  roving(node, () => [...barButtons(node)]);
  parentElement.addEventListener("click", state.press = ({ target }) => {
    if (target.closest(".figure-data")) openNumbers(state);
  });
  state.watch = setInterval(() => {
    if (state.isLeft && !node.isConnected) leave(state);
    else if (isReplaced(state)) show(parentElement, state);
    else if (isForgotten(state)) arrive(state);
    else if (node.isConnected && isDrawn(state) && isDark(node) !== state.dark) refresh(state);
  }, 500);
  state.unfollow = followFrames((frame) => follow(state, frame));
  nodes.set(parentElement, state);
  return state;
}

// Every draw of the page brings every figure of it; one that follows an animation may have moved on.
function isShown({ node, many, plotly, data, drawn }) {
  return isDrawn({ node, many, plotly }) && !data.follows && ["figure", "name", "described", "language"].every((part) => data[part] === drawn?.[part]);
}

const isDrawn = ({ node, many, plotly }) => Boolean((plotly && node.data) || many);

async function refresh(state) {
  if (state.busy) {
    state.again = true; // a newer figure came while this one was being drawn
    return;
  }
  state.busy = true;
  try {
    do {
      state.again = false;
      await attempt(() => drawAnew(state));
    } while (state.again);
    state.busy = false;
    follow(state, lastFrame());
  } catch (error) {
    console.error("A figure could not be drawn.", error);
    say(state, state.data.sorry.notDrawn);
  } finally {
    state.busy = false;
  }
}

// What a failed attempt has left on the node would make the next one fail too.
async function drawAnew(state) {
  try {
    await draw(state);
  } catch (error) {
    clear(state);
    throw error;
  }
}

function clear(state) {
  clearManyLines(state);
  if (state.plotly) state.plotly.purge(state.node);
  state.node.textContent = "";
}

function say(state, sentence) {
  if (nodes.get(state.parent) !== state) return; // it has left the page
  clear(state);
  state.node.textContent = sentence;
}

// Asked once: later the browser says so by itself, and lays out no page in between to know it.
function isOnScreen(node) {
  const { top, bottom } = node.getBoundingClientRect();
  return top < window.innerHeight && bottom > 0;
}

// What is out of sight is drawn when the browser has nothing else to do, or at last all the same.
function arrive(state) {
  if (state.isComing) return; // what is drawn then is the newest
  if (state.isInSight ?? isOnScreen(state.node)) { loadAndDraw(state); return; }
  state.isComing = true;
  const come = () => {
    state.isComing = false;
    if (nodes.get(state.parent) === state) loadAndDraw(state);
  };
  if (window.requestIdleCallback) requestIdleCallback(come, { timeout: PATIENCE });
  else setTimeout(come, PATIENCE / 10); // Safari
}

function loadAndDraw(state) {
  const { data: traces, layout } = parsed(state);
  const { root, sorry } = state.data;
  state.isLoading = true;
  const load = isOfManyLines({ layout }) ? loadUplot(root) : loadPlotly(root, traces).then((loaded) => Object.assign(state, { loaded }));
  load.then(() => refresh(state), () => say(state, sorry.notLoaded)).finally(() => { state.isLoading = false; });
}

// Streamlit may put a new node in place of the one that was drawn on: the figure moves there.
const nodeOf = (parent) => parent.querySelector(".live-figure");
const isReplaced = ({ node, parent }) => !node.isConnected && nodeOf(parent) !== null && nodeOf(parent) !== node;

// On the page, and yet neither drawn nor about to be: its node was off the page when its turn came.
const isForgotten = (state) => state.node.isConnected && state.node.clientWidth > 0 && !isDrawn(state)
  && !state.isComing && !state.isLoading && !state.busy && !state.node.textContent;

function show(parent, { data, send }) {
  const before = nodes.get(parent);
  if (before && isReplaced(before)) leave(before);
  const isNew = !nodes.has(parent);
  const state = nodes.get(parent) ?? mount(parent);
  Object.assign(state, { data, send, isLeft: false });
  const button = parent.querySelector(".figure-data");
  if (button.textContent !== data.words.table) button.textContent = data.words.table;
  if (isNew) { // plotly is large: its room does not wait for it
    stand(state, parsed(state).layout.height ?? 360);
    fill(state.node);
  }
  if (isNew || !isShown(state)) arrive(state);
}

function leave(state) {
  clearInterval(state.watch);
  state.resize.disconnect();
  state.sight.disconnect();
  state.unfollow();
  state.parent.removeEventListener("click", state.press);
  clearManyLines(state);
  if (state.node.data) state.plotly?.purge(state.node);
  nodes.delete(state.parent);
}

export default function ({ data, parentElement, setTriggerValue }) {
  show(parentElement, { data, send: setTriggerValue });
  parentElement.leaves ??= () => {
    const state = nodes.get(parentElement);
    if (!state) return;
    state.isLeft = true; // Streamlit also says so of figures that stay on the page and hear no more
    if (!state.node.isConnected) leave(state);
  };
  return parentElement.leaves;
}
