// The bar of a task at the bottom of the window, which Streamlit draws: it folds, Escape leaves it, the page
// ends above it, and rings stand around what it speaks of.

import { status } from "./announcing.js";
import { actButton, element, label } from "./dom.js";
import { keepInTab, keptInTab } from "./kept.js";
import { besides, found, isInSight } from "./outlined.js";

const BAR = ".st-key-task-bar";
const FOLDED = "tfm-task-folded";
const SHORT = 520; // pixels of a window below which the bar begins folded: the page needs the room
const LOOK = 200; // milliseconds between two looks at what is outlined
const TOUCHED = ["wheel", "touchmove", "pointerdown", "keydown"];
const SPOKEN = { ".st-key-task-told": { "aria-live": "polite" }, ".st-key-task-verdict": { role: "status" } };

const bar = () => document.querySelector(BAR);
const begunFolded = () => (keptInTab(FOLDED) ?? (window.innerHeight < SHORT ? "yes" : "no")) === "yes";

function build(state) {
  const { root } = state;
  const fold = actButton("fold", "", () => turn(state, !state.isFolded));
  const rings = element("div", "rings", { "aria-hidden": "true" });
  const happened = status("happened");
  root.append(fold, rings, happened.region);
  Object.assign(state, { fold, rings: [], ringBox: rings, happened });
}

function turn(state, isFolded) {
  state.isFolded = isFolded;
  keepInTab(FOLDED, isFolded ? "yes" : "no");
  fill(state);
}

function fill(state) {
  const { fold, isFolded, data: { words, happened } } = state;
  document.documentElement.dataset.task = isFolded ? "folded" : "open";
  fold.textContent = isFolded ? "▴" : "▾";
  label(fold, isFolded ? words.unfold : words.fold);
  fold.setAttribute("aria-expanded", String(!isFolded));
  state.happened.say(happened);
}

// ---- what it outlines

function ringsOf(state, name, selectors) {
  return selectors.map((selector) => {
    const ring = element("div", name, { hidden: true });
    state.ringBox.append(ring);
    return { selector, ring, node: null, isVeil: name === "veil" };
  });
}

function outline(state) {
  const { data } = state;
  const key = JSON.stringify([data.place, data.outlines, data.veils]);
  if (state.outlined === key) return;
  state.outlined = key;
  unveil(state);
  state.ringBox.replaceChildren();
  state.rings = [...ringsOf(state, "ring", data.outlines), ...ringsOf(state, "veil", data.veils)];
}

// What is veiled is out of reach of the keyboard and of screen readers, too.
function veil(one) {
  if (!one.isVeil || !one.node || one.node.inert) return;
  one.node.inert = one.isShut = true;
}

function unveil(state) {
  for (const one of state.rings) if (one.isShut) one.node.inert = one.isShut = false;
}

// Every ring stands where its element is now.
function place(state) {
  state.request = null;
  if (!bar()) return;
  for (const [selector, spoken] of Object.entries(SPOKEN)) {
    Object.entries(spoken).forEach(([name, text]) => document.querySelector(selector)?.setAttribute(name, text));
  }
  measure(state);
  const isDrawn = state.rings.map((one) => {
    if (!one.node?.isConnected) Object.assign(one, { node: found(one.selector), isShut: false });
    veil(one);
    const box = one.node?.getBoundingClientRect();
    const isThere = Boolean(box && box.width && box.height);
    one.ring.hidden = !isThere;
    if (!isThere) return false;
    const edges = [box.left, box.top, box.width, box.height].map(Math.round).join();
    if (one.edges !== edges) {
      one.edges = edges;
      const [left, top, width, height] = edges.split(",");
      Object.assign(one.ring.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
    }
    return true;
  });
  if (isDrawn[0] && !state.isTouched) bring(state.rings[0].node);
}

// What is outlined comes into sight above the bar, as long as nobody has scrolled since.
function bring(node) {
  const { top, bottom } = besides(bar());
  if (isInSight(node.getBoundingClientRect(), { top, bottom })) return;
  const isSmall = node.getBoundingClientRect().height <= bottom - top;
  node.scrollIntoView({ block: isSmall ? "center" : "start", inline: "nearest", behavior: "auto" });
}

// The page ends above the bar, and what gets the focus is scrolled there.
function measure(state) {
  const room = Math.ceil(window.innerHeight - besides(bar()).bottom);
  if (room === state.room) return;
  state.isTouched = false; // it may cover what it spoke of
  state.room = room;
  document.documentElement.style.setProperty("--task-height", `${room}px`);
  state.ask();
}

function watch(state) {
  const hearing = new AbortController();
  const heard = { signal: hearing.signal, passive: true, capture: true };
  state.ask = () => { state.request ??= requestAnimationFrame(() => place(state)); };
  window.addEventListener("scroll", state.ask, heard);
  window.addEventListener("resize", state.ask, heard);
  TOUCHED.forEach((name) => window.addEventListener(name, (event) => {
    if (!event.composedPath().includes(bar())) state.isTouched = true;
  }, heard));
  window.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !event.composedPath().includes(bar())) return;
    event.stopPropagation();
    document.querySelector(".st-key-task-leave button")?.click();
  }, { signal: hearing.signal });
  const looking = setInterval(state.ask, LOOK);
  return () => {
    hearing.abort();
    unveil(state);
    clearInterval(looking);
    cancelAnimationFrame(state.request);
    state.request = state.unwatch = state.room = null;
    delete document.documentElement.dataset.task;
    document.documentElement.style.removeProperty("--task-height");
  };
}

export default function ({ data: [data], parentElement }) {
  const root = parentElement.querySelector(".task-bar");
  const isNew = !root.task;
  const state = (root.task ??= { root, isFolded: begunFolded() });
  const call = {};
  if (state.data?.place !== data.place) state.isTouched = false;
  Object.assign(state, { call, data });
  if (isNew) build(state);
  fill(state);
  state.unwatch ??= watch(state);
  outline(state);
  state.ask();
  return () => { if (state.call === call) state.unwatch?.(); };
}
