// What one head attends to, as lines from keys to queries.

import { shortened, unpack } from "./cells.js";
import { drawn, element, paper, saveButtons, fill } from "./dom.js";
import { followFrames } from "./events.js";

const LINES = 1500; // drawn at most while no token is held; the strongest
const ROW = 24;
const WIDEST = 560;
const NARROWEST = 320;
const TOKEN = 0.35; // of the width, for the tokens of each side
const FEW = 0.01; // thinner lines are drawn for a held token only

const sideOf = (view, side) => (side === "q" ? view.query : view.key).length;
const most = (view) => Math.max(view.query.length, view.key.length);
// The middle of a token; a few words beside many patches are spread over the whole height.
export function middle(view, side, i) {
  const n = sideOf(view, side);
  const step = most(view) >= 2 * n && n > 1 ? (most(view) - 1) / (n - 1) : 1;
  return 46 + i * step * ROW;
}

function weightOf(view, query, key) {
  return view.values[query * view.key.length + key];
}

export function strongest(view) {
  const kept = [];
  view.values.forEach((weight, i) => { if (weight >= FEW) kept.push(i); });
  kept.sort((a, b) => view.values[b] - view.values[a]);
  return kept.slice(0, LINES).map((i) => [Math.floor(i / view.key.length), i % view.key.length]);
}

export function ofToken(view, [side, position]) {
  const others = side === "q" ? view.key : view.query;
  return others.map((_token, i) => (side === "q" ? [position, i] : [i, position]))
    .filter(([query, key]) => weightOf(view, query, key) > 0);
}

function drawLines(state) {
  const { view, layer, left, right } = state;
  const bend = (right - left) / 2;
  const held = state.over ?? state.pin;
  layer.textContent = "";
  const pairs = held ? ofToken(view, held) : strongest(view);
  pairs.forEach(([query, key]) => {
    const weight = weightOf(view, query, key);
    const [from, to] = [middle(view, "k", key) - 4, middle(view, "q", query) - 4];
    layer.append(drawn("path", {
      d: `M ${left} ${from} C ${left + bend} ${from} ${right - bend} ${to} ${right} ${to}`,
      fill: "none", stroke: view.ink, "stroke-width": (0.3 + 7.7 * weight).toFixed(2),
      "stroke-opacity": (held ? 0.25 + 0.7 * weight : 0.08 + 0.8 * weight).toFixed(2),
      "stroke-linecap": "round",
    }));
  });
  state.tokens.forEach((text) => nameToken(state, text, held));
  state.say.textContent = sentence(state, held, pairs.length);
}

function nameToken(state, text, held) {
  const { view } = state;
  const { side } = text.dataset;
  const position = Number(text.dataset.position);
  const token = (side === "q" ? view.query : view.key)[position];
  const words = [drawn("tspan", {}, shortened(token))];
  const gloss = view.glosses[token];
  if (gloss) words.push(" ", drawn("tspan", { "font-size": 12, "fill-opacity": 0.75 }, gloss));
  let fade = 1;
  if (held && held[0] !== side) {
    const weight = side === "q" ? weightOf(view, position, held[1]) : weightOf(view, held[1], position);
    const share = Number.isNaN(weight) ? "–" : weight.toFixed(3);
    if (side === "q") words.push(`  ${share}`);
    else words.unshift(`${share}  `);
    fade = Number.isNaN(weight) ? 0.35 : 0.45 + 0.55 * Math.min(1, weight * 4);
  } else if (held) fade = held[1] === position ? 1 : 0.4;
  text.replaceChildren(...words);
  text.setAttribute("fill-opacity", fade);
  const is = held && held[0] === side && held[1] === position;
  text.setAttribute("font-weight", is ? "700" : "400");
  text.setAttribute("aria-pressed", String(Boolean(state.pin && state.pin[0] === side && state.pin[1] === position)));
}

function sentence(state, held, count) {
  const { view } = state;
  const { words } = view;
  if (!held) return count === LINES ? words.most : words.hint;
  const [side, position] = held;
  const best = ofToken(view, held).sort((a, b) => weightOf(view, ...b) - weightOf(view, ...a)).slice(0, 3);
  const list = best.map(([query, key]) => `${side === "q" ? view.key[key] : view.query[query]} ${weightOf(view, query, key).toFixed(3)}`);
  const read = list.join(", ") || words.nobody;
  if (side === "q") return `${view.rows[position]} · ${words.query_of}: ${read}`;
  return `${words.key_of} “${view.key[position]}” (${position + 1 + (view.first ?? 0)}): ${read}`;
}

function column(state, side, tokens, x, anchor, title) {
  const { svg, view } = state;
  const edge = side === "q" ? state.width : 0; // where there is room for all of it
  svg.append(drawn("text", { x: edge, y: 18, "text-anchor": side === "q" ? "end" : "start", "font-size": 12, fill: state.ink }, title));
  tokens.forEach((token, position) => {
    const text = drawn("text", {
      x, y: middle(view, side, position), "text-anchor": anchor, "font-size": 14, fill: state.ink, tabindex: -1, role: "button",
      "aria-label": side === "q" ? view.rows[position] : `${view.words.key} ${position + 1 + (view.first ?? 0)}: ${token}`,
    });
    text.dataset.side = side;
    text.dataset.position = position;
    svg.append(text);
    state.tokens.push(text);
  });
}

function buildLines(state) {
  const { root, view } = state;
  root.textContent = "";
  const style = getComputedStyle(root);
  state.ink = style.getPropertyValue("--st-text-color").trim() || "#222";
  const width = Math.max(NARROWEST, Math.min(WIDEST, root.clientWidth || WIDEST));
  Object.assign(state, { width, left: width * TOKEN, right: width * (1 - TOKEN) });
  const height = 46 + most(view) * ROW - 8;
  const svg = drawn("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": view.words.lines,
    "font-family": style.fontFamily || "sans-serif",
  });
  Object.assign(state, { svg, tokens: [], layer: drawn("g", { "aria-hidden": "true" }) });
  svg.append(state.layer);
  column(state, "k", view.key, state.left - 8, "end", view.titles.key);
  column(state, "q", view.query, state.right + 8, "start", view.titles.query);
  state.say = element("div", "say", { "aria-live": "polite" });
  root.append(state.say, element("div", "box", svg), saveButtons(view.words, () => [withPaper(state), "attention-lines"]));
  state.tokens[0].setAttribute("tabindex", 0);
}

function withPaper(state) {
  const copy = state.svg.cloneNode(true);
  copy.prepend(drawn("rect", { width: "100%", height: "100%", fill: paper(state.root) }));
  return copy;
}

function pinToken(state, pin) {
  state.pin = pin && state.pin && String(pin) === String(state.pin) ? null : pin;
  drawLines(state);
  state.send("pin", state.pin ? [state.pin[0] === "q" ? 0 : 1, state.pin[1]] : []);
}

function ofText(text) { return [text.dataset.side, Number(text.dataset.position)]; }

function moveFocus(state, from, key) {
  const { view } = state;
  let [side, at] = from;
  if (key === "ArrowLeft") side = "k";
  if (key === "ArrowRight") side = "q";
  if (key === "ArrowUp") at -= 1;
  if (key === "ArrowDown") at += 1;
  const size = (side === "q" ? view.query : view.key).length;
  at = Math.max(0, Math.min(size - 1, at));
  const next = state.tokens.find((text) => String(ofText(text)) === String([side, at]));
  state.tokens.forEach((text) => text.setAttribute("tabindex", text === next ? 0 : -1));
  next.focus();
}

function listenLines(state) {
  const { root } = state;
  const token = (event) => event.target.closest?.("text[data-side]");
  const hold = (event) => { const text = token(event); if (text) { state.over = ofText(text); drawLines(state); } };
  const free = (event) => { if (token(event)) { state.over = null; drawLines(state); } };
  root.addEventListener("pointerover", (event) => { if (event.pointerType !== "touch") hold(event); });
  root.addEventListener("pointerout", free);
  root.addEventListener("focusin", hold);
  root.addEventListener("focusout", free);
  root.addEventListener("click", (event) => { const text = token(event); if (text) pinToken(state, ofText(text)); });
  root.addEventListener("keydown", (event) => {
    const text = token(event);
    if (!text) return;
    if (event.key === "Enter" || event.key === " ") pinToken(state, ofText(text));
    else if (event.key === "Escape") pinToken(state, null);
    else if (event.key.startsWith("Arrow")) moveFocus(state, ofText(text), event.key);
    else return;
    event.preventDefault();
  });
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".lines");
  const view = unpack(data);
  const state = root.headLines ?? { root, over: null };
  state.send = setTriggerValue;
  const tokens = JSON.stringify([view.query, view.key, view.first, view.rows, view.titles, view.ink, view.glosses]);
  state.view = view;
  if (tokens !== state.drawn) { buildLines(state); state.drawn = tokens; state.over = null; }
  state.pin = view.pin;
  drawLines(state);
  fill(root);
  if (!root.headLines) { root.headLines = state; listenLines(state); }
  const follow = (frame) => {
    if (!frame || frame.values.length !== state.view.values.length) return;
    state.view.values = frame.values;
    drawLines(state);
  };
  const unfollow = followFrames(follow);
  const observer = new ResizeObserver(() => {
    const fits = Math.max(NARROWEST, Math.min(WIDEST, root.clientWidth));
    if (root.clientWidth > 0 && Math.abs(fits - state.width) > 12) { buildLines(state); drawLines(state); }
  });
  observer.observe(root);
  return () => { unfollow(); observer.disconnect(); };
}
