// A text in the making: what was read, what is written token by token, what else was weighed at each
// of them, and where the model looked. Every step is here, so stepping asks nobody; forcing does.

import { status } from "./announcing.js";
import { paintVeil, pictured, unpack } from "./cells.js";
import { actButton, bytes, dress, drawn, element, fill, filled, isCalm, zoomOf } from "./dom.js";
import { roving, tabStop } from "./keys.js";

const PACE = 420; // milliseconds a token, while it plays
const MIN = 0.03; // thinner links are not drawn
const LATER = 350; // milliseconds until the address hears of a step

export function share(p) {
  if (p > 0 && p < 0.001) return "< 0.1%";
  if (p < 1 && p >= 0.9995) return "> 99.9%";
  return p === 1 || p === 0 ? `${100 * p}%` : `${(100 * p).toFixed(1)}%`;
}

export const visible = (token) => (token === "\n" ? "↵" : token.replace(/^ /, "␣"));

const count = (view) => view.steps.length;
const weights = (view, at) => view.values.subarray((at - 1) * view.keys.length, at * view.keys.length);

// The keys that a step looked at most, the first one first.
export function strongest(view, at, n) {
  const row = weights(view, at);
  return [...row.keys()].sort((a, b) => row[b] - row[a]).slice(0, n).map((i) => [view.keys[i], row[i]]);
}

const button = (name, label, act, className = "") => actButton(className, name, act, label);

function build(state) {
  const { root, view } = state;
  const { words } = view;
  root.textContent = "";
  Object.entries(view.colours).forEach(([name, colour]) => root.style.setProperty(`--${name}`, colour));
  const bar = element("div", "bar", { role: "group", "aria-label": words.steps });
  state.back = button("◀", words.back, () => go(state, state.at - 1));
  state.play = button("", words.play, () => (state.timer ? stop(state, true) : play(state, state.at >= count(view) ? 1 : state.at + 1)), "play");
  state.on = button("▶", words.next, () => go(state, state.at + 1));
  state.said = status("say");
  bar.append(state.back, state.play, state.on, state.said.region);
  if (view.forced.length) {
    const last = visible(view.forced[view.forced.length - 1]);
    bar.append(button(`↶ ${filled(words.undo, { token: last })}`, filled(words.undo, { token: last }), () => state.send("undo", true)));
    if (view.forced.length > 1) bar.append(button(words.free, words.free, () => state.send("free", true)));
  }
  state.links = drawn("svg", { class: "links", "aria-hidden": "true" });
  state.text = element("div", "text", state.links);
  readRow(state);
  writtenRow(state);
  state.weighed = element("div", "weighed");
  roving(state.weighed, () => choicesOf(state));
  root.append(bar, element("div", "body", state.text, state.weighed));
}

function readRow(state) {
  const { view } = state;
  const part = element("div", "", element("div", "head", view.words.read));
  state.text.classList.toggle("pictured", Boolean(view.picture));
  state.text.append(part);
  state.read = [];
  if (view.picture) {
    state.canvas = element("canvas", "", { role: "img" });
    part.append(state.canvas);
    return;
  }
  const row = element("div", "row read");
  view.keys.slice(0, view.n_read).forEach((token) => {
    const chip = element("span", "token", visible(token), element("small"));
    if (view.language) chip.lang = view.language;
    row.append(chip);
    state.read.push(chip);
  });
  part.append(row);
}

function glossOf(view, token) {
  if (!view.glosses[token]) return [];
  return [" ", element("span", "gloss", view.glosses[token], { lang: view.language })];
}

function writtenRow(state) {
  const { view } = state;
  const part = element("div", "", element("div", "head", view.words.written));
  state.text.append(part);
  const row = element("div", "row written");
  state.chips = view.steps.map((step, i) => {
    const kinds = ["token", step.forced && "forced", step.given && "given", step.rank > 1 && "unsure"];
    if (view.own && view.own[i] !== step.token && !step.forced) kinds.push("changed");
    const chip = actButton(kinds.filter(Boolean).join(" "), "", () => go(state, i + 1));
    const chance = element("small", "", step.given ? "" : share(step.chance));
    chip.append(element("span", "", visible(step.token)), ...glossOf(view, step.token), " ", chance);
    chip.title = filled(view.words.chip, { n: i + 1, token: visible(step.token), share: share(step.chance) });
    return chip;
  });
  row.append(...state.chips);
  tabStop(state.chips, state.chips[0]);
  roving(row, () => state.chips, { arrived: (at) => go(state, at + 1) });
  part.append(row);
  if (view.own) part.append(element("div", "own", `${view.words.own} `, element("strong", "", view.own_text)));
}

function sentence(view, at) {
  const step = view.steps[at - 1];
  const { words } = view;
  const looked = strongest(view, at, 1)[0];
  const rule = step.given ? words.given : step.forced ? words.was_forced : step.rank === 1 ? words.first : words.other;
  const parts = [filled(rule, { n: at, count: count(view), token: visible(step.token), share: share(step.chance), rank: step.rank })];
  if (looked && !view.picture) parts.push(filled(words.looked, { token: visible(looked[0]), weight: looked[1].toFixed(2) }));
  return parts.join(" ");
}

function draw(state) {
  const { view, at } = state;
  const isEnd = at >= count(view);
  state.back.setAttribute("aria-disabled", String(at <= 1));
  state.on.setAttribute("aria-disabled", String(isEnd));
  const playing = Boolean(state.timer);
  state.play.textContent = playing ? `❚❚ ${view.words.pause}` : `▶ ${isEnd ? view.words.again : view.words.play}`;
  state.play.setAttribute("aria-label", playing ? view.words.pause : isEnd ? view.words.again : view.words.play);
  state.said.say(sentence(view, at));
  const row = weights(view, at);
  const shade = (chip, i) => {
    chip.style.setProperty("--w", row[i] ?? 0);
    return row[i];
  };
  state.read.forEach((chip, i) => {
    const weight = shade(chip, i);
    chip.lastChild.textContent = weight >= 0.005 ? weight.toFixed(2) : "";
    chip.title = filled(view.words.weight, { token: visible(view.keys[i]), weight: weight.toFixed(4) });
  });
  state.chips.forEach((chip, i) => {
    const key = view.n_read + i;
    chip.style.setProperty("--w", key < view.keys.length && i < at - 1 ? row[key] : 0);
    chip.classList.toggle("now", i === at - 1);
    chip.classList.toggle("later", i > at - 1);
    chip.setAttribute("aria-current", i === at - 1 ? "step" : "false");
  });
  if (view.picture) drawPicture(state, row);
  drawLinks(state, row);
  drawChoices(state);
}

function drawLinks(state, row) {
  const { view, at, links } = state;
  links.textContent = "";
  if (view.picture) return;
  const frame = state.text.getBoundingClientRect();
  const to = state.chips[at - 1].getBoundingClientRect();
  const zoom = zoomOf(state.text);
  const x = (to.left + to.width / 2 - frame.left) / zoom;
  const y = (to.top - frame.top) / zoom;
  state.read.forEach((chip, i) => {
    if (row[i] < MIN) return;
    const from = chip.getBoundingClientRect();
    const [left, top] = [from.left + from.width / 2 - frame.left, from.bottom - frame.top].map((one) => one / zoom);
    const bend = Math.max(18, (y - top) / 2);
    links.append(drawn("path", {
      d: `M ${left} ${top} C ${left} ${top + bend} ${x} ${y - bend} ${x} ${y}`, fill: "none",
      stroke: view.colours.ink, "stroke-width": (0.8 + 6 * row[i]).toFixed(2), "stroke-opacity": (0.25 + 0.65 * row[i]).toFixed(2), "stroke-linecap": "round",
    }));
  });
}

function drawPicture(state, row) {
  const { canvas, view } = state;
  const { size, side, pixels } = view.picture;
  dress(canvas, { width: size, height: size });
  paintVeil(canvas, pictured(bytes(pixels)), row.subarray(0, side ** 2), Math.max(...row));
  const best = strongest(view, state.at, 3).map(([name, weight]) => `${name}: ${weight.toFixed(2)}`);
  canvas.setAttribute("aria-label", filled(view.words.picture, { patches: best.join("; ") }));
}

const choicesOf = ({ weighed }) => [...weighed.querySelectorAll("button")];

function drawChoices(state) {
  const { view, at, weighed } = state;
  const step = view.steps[at - 1];
  const { words } = view;
  const held = weighed.contains(document.activeElement ?? null);
  weighed.replaceChildren(element("div", "head", filled(step.given ? words.copied : words.weighed, { n: at })));
  step.best.forEach(([id, token, chance, after]) => {
    const isOwn = id === step.id;
    const rule = isOwn ? (step.forced ? words.let_go : words.keep) : words.force;
    const label = filled(rule, { token: visible(token), n: at, share: share(chance) });
    const choice = button("", label, () => choose(state, step, at, id), `choice${isOwn ? " own-choice" : ""}`);
    const name = element("span", "name", element("span", "", visible(token)), ...glossOf(view, token));
    const drawn = view.is_drawn && element("span", "drawn", { "--p": after });
    const bars = element("span", view.is_drawn ? "bars" : "bars alone", element("span", "", { "--p": chance }), drawn);
    choice.append(name, bars, " ", element("span", "share", share(chance)));
    choice.removeAttribute("aria-label"); // what is seen, and its title says what a press does
    weighed.append(choice);
  });
  const choices = choicesOf(state);
  tabStop(choices, choices[step.best.findIndex(([id]) => id === step.id)]);
  if (view.is_drawn) weighed.append(legend(view, step));
  if (held) weighed.querySelector(".own-choice")?.focus();
}

function legend(view, step) {
  const colours = [["model", view.words.model], ["drawn", filled(view.words.drawn, { n: step.n_left })]];
  return element("div", "key", ...colours.map(([colour, words]) => (
    element("span", "", element("i", "", { "--shade": `var(--${colour})` }), words))));
}

// A press on what stands there lets it go, where it was forced, or goes on; any other is forced.
function choose(state, step, at, id) {
  stop(state, false);
  if (step.given) { go(state, at + 1); return; }
  if (id === step.id && !step.forced) { go(state, at + 1); return; }
  state.start = at;
  state.send("force", [at - 1, id]);
}

function go(state, to) {
  stop(state, false);
  move(state, to);
  later(state);
}

function move(state, to) {
  state.at = Math.max(1, Math.min(count(state.view), to));
  draw(state);
}

function later(state) {
  clearTimeout(state.waits);
  state.waits = setTimeout(() => {
    const at = state.at >= count(state.view) ? 0 : state.at;
    if (at === state.told) return;
    state.told = at;
    state.sent.push(at);
    state.send("at", at);
  }, LATER);
}

function play(state, from) {
  stop(state, false);
  const next = (at) => {
    state.timer = at < count(state.view) ? setTimeout(() => next(at + 1), PACE) : null;
    move(state, at);
    if (!state.timer) later(state);
  };
  next(from);
}

function stop(state, isTold) {
  clearTimeout(state.timer);
  state.timer = null;
  if (isTold) { draw(state); later(state); }
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".desk");
  const view = unpack(data);
  const state = root.desk ?? { root, sent: [], told: view.at, server: view.at };
  const isFirst = !root.desk;
  root.desk = state;
  state.send = setTriggerValue;
  state.view = view;
  const isNew = state.mark !== view.mark;
  state.mark = view.mark;
  const shown = JSON.stringify({ ...view, at: 0 });
  if (isNew || isFirst || state.shown !== shown) {
    const at = state.at ?? count(view);
    build(state);
    state.at = Math.min(at, count(view));
  }
  state.shown = shown;
  if (isNew) {
    const from = isFirst ? 1 : state.start ?? 1;
    Object.assign(state, { start: undefined, sent: [], told: view.at });
    if (view.at) { stop(state, false); move(state, view.at); }
    else if (isCalm()) { stop(state, false); move(state, count(view)); }
    else play(state, from);
  } else if (view.at !== state.server && !state.sent.includes(view.at)) {
    stop(state, false);
    state.told = view.at;
    move(state, view.at || count(view));
  } else draw(state);
  state.server = view.at;
  fill(root);
  state.observer ??= new ResizeObserver(() => drawLinks(state, weights(state.view, state.at)));
  state.observer.observe(state.text);
  document.fonts?.ready.then(() => drawLinks(state, weights(state.view, state.at)));
  state.end ??= () => {
    state.observer.disconnect();
    clearTimeout(state.waits);
    stop(state, false);
  };
  return state.end;
}
