// The bar of a tour at the bottom of the window, and rings around what it speaks of.
//
// Nothing here asks the server what to show: it says what was pressed.

import { status } from "./announcing.js";
import { actButton, element, label } from "./dom.js";
import { keep, keepInTab, kept, keptInTab, rememberedAnswers, TOUR } from "./kept.js";
import { besides, found, isInSight } from "./outlined.js";

const FOLDED = "tfm-tour-folded";
const SHORT = 520; // pixels of a window below which the bar begins folded: the page needs the room
const LOOK = 200; // milliseconds between two looks at what is outlined
const TOUCHED = ["wheel", "touchmove", "pointerdown", "keydown"];

function build(state) {
  const { root } = state;
  root.setAttribute("role", "region");
  const count = element("span", "count");
  const title = element("h2");
  const fold = actButton("fold", "", () => turn(state, !state.isFolded));
  const leave = actButton("leave", "✕", () => send(state, "leave"));
  const text = element("div", "text", { "aria-live": "polite" });
  const wait = element("p", "wait");
  const asked = element("p", "asked", { id: "tour-asked" });
  const options = element("div", "options");
  const verdict = status("verdict");
  const question = element("div", "question", { role: "group", "aria-labelledby": asked.id }, asked, options, verdict.region);
  const go = element("div", "go");
  const happened = status("happened");
  const [head, told] = [element("div", "head", count, title, fold, leave), element("div", "told", text, wait)];
  const bar = element("div", "bar", head, told, question, go, happened.region);
  const rings = element("div", "rings", { "aria-hidden": "true" });
  root.append(rings, bar);
  Object.assign(state, { bar, parts: { count, title, fold, leave, text, wait, question, asked, options, verdict, go, happened, rings } });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    send(state, "leave");
  });
}

function send(state, what) {
  state.isOver = what === "finish";
  if (state.isOver) keep(TOUR, null);
  state.send("go", [state.data.place, what]);
}

function turn(state, isFolded) {
  state.isFolded = isFolded;
  keepInTab(FOLDED, isFolded ? "yes" : "no");
  fill(state);
}

// ---- what it says

const say = (node, words) => { if (node.textContent !== words) node.textContent = words; };

function fill(state) {
  const { data, parts, bar, root, isFolded } = state;
  const { words } = data;
  root.setAttribute("aria-label", data.label);
  say(parts.count, data.count);
  say(parts.title, data.title);
  say(parts.fold, isFolded ? "▴" : "▾");
  label(parts.fold, isFolded ? words.unfold : words.fold);
  parts.fold.setAttribute("aria-expanded", String(!isFolded));
  label(parts.leave, words.leave);
  bar.classList.toggle("folded", isFolded);
  if (parts.text.dataset.said !== data.text) {
    parts.text.dataset.said = data.text;
    parts.text.replaceChildren(...data.text.split("\n\n").filter(Boolean).map((line) => element("p", "", line)));
  }
  say(parts.wait, data.wait);
  parts.wait.hidden = !data.wait;
  parts.happened.say(data.happened);
  fillQuestion(state);
  fillGo(state);
}

function fillQuestion(state) {
  const { data: { question, words, place }, parts } = state;
  parts.question.hidden = !question;
  if (!question) { parts.options.replaceChildren(); return; }
  say(parts.asked, question.text);
  const key = JSON.stringify([place, question.options]);
  if (parts.options.dataset.key !== key) {
    parts.options.dataset.key = key;
    state.pending = null;
    parts.options.replaceChildren(...question.options.map((option, i) => {
      const made = actButton("option", "", () => {
        commit(state, i);
        fillQuestion(state);
      });
      made.append(element("span", "mark"), option);
      return made;
    }));
    const before = state.answers[place];
    if (question.chosen === null && question.options[before] !== undefined) commit(state, before);
  }
  const chosen = question.chosen ?? state.pending;
  [...parts.options.children].forEach((option, i) => {
    const isChosen = i === chosen;
    const isRight = question.right === i;
    option.setAttribute("aria-pressed", String(isChosen));
    option.setAttribute("aria-disabled", String(chosen !== null));
    option.classList.toggle("right", isRight);
    option.classList.toggle("wrong", isChosen && question.right !== null && !isRight);
    say(option.firstChild, isRight ? "✓ " : isChosen && question.right !== null ? "✗ " : "");
  });
  const isPending = question.chosen === null && state.pending !== null;
  parts.verdict.say(isPending ? words.checking : question.verdict);
}

function commit(state, index) {
  state.pending = index;
  state.answers[state.data.place] = index;
  remember(state);
  state.send("answer", [state.data.place, index]);
}

function remember(state) {
  const { data: { place, run }, answers, isOver } = state;
  if (!isOver) keep(TOUR, JSON.stringify([place, run, answers]));
}

function fillGo(state) {
  const { data: { buttons }, parts: { go } } = state;
  const key = JSON.stringify(buttons.map(({ name }) => name));
  if (go.dataset.key !== key) {
    go.dataset.key = key;
    go.replaceChildren(...buttons.map(({ name }) => {
      const made = actButton("", "", () => send(state, name));
      made.dataset.name = name;
      return made;
    }));
  }
  buttons.forEach(({ label, is_primary: isPrimary, is_off: isOff }, i) => {
    const made = go.children[i];
    say(made, label);
    made.classList.toggle("primary", isPrimary);
    made.setAttribute("aria-disabled", String(isOff));
  });
}

// ---- what it outlines

function ringsOf(state, name, selectors) {
  return selectors.map((selector) => {
    const ring = element("div", name, { hidden: true });
    state.parts.rings.append(ring);
    return { selector, ring, node: null, isVeil: name === "veil" };
  });
}

function outline(state) {
  const { data, parts } = state;
  const key = JSON.stringify([data.place, data.outlines, data.veils]);
  if (state.outlined === key) return;
  state.outlined = key;
  unveil(state);
  parts.rings.replaceChildren();
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
  if (isDrawn[0] && !state.isTouched) bring(state, state.rings[0].node);
}

// What is outlined comes into sight above the bar, as long as nobody has scrolled since.
function bring(state, node) {
  if (isInSight(node.getBoundingClientRect(), besides(state.bar))) return;
  const { top, bottom } = besides(state.bar);
  const isSmall = node.getBoundingClientRect().height <= bottom - top;
  node.scrollIntoView({ block: isSmall ? "center" : "start", inline: "nearest", behavior: "auto" });
}

// The page ends above the bar, and what gets the focus is scrolled there.
function measure(state) {
  const room = Math.ceil(window.innerHeight - besides(state.bar).bottom);
  if (room === state.room) return;
  state.isTouched = false; // it may cover what it spoke of
  state.room = room;
  document.documentElement.style.setProperty("--tour-height", `${room}px`);
  state.ask();
}

function watch(state) {
  const hearing = new AbortController();
  const heard = { signal: hearing.signal, passive: true, capture: true };
  state.ask = () => { state.request ??= requestAnimationFrame(() => place(state)); };
  window.addEventListener("scroll", state.ask, heard);
  window.addEventListener("resize", state.ask, heard);
  TOUCHED.forEach((name) => window.addEventListener(name, (event) => {
    if (!event.composedPath().includes(state.root)) state.isTouched = true;
  }, heard));
  const sizes = new ResizeObserver(() => measure(state));
  sizes.observe(state.bar);
  const looking = setInterval(state.ask, LOOK);
  document.documentElement.dataset.tour = "";
  return () => {
    hearing.abort();
    unveil(state);
    sizes.disconnect();
    clearInterval(looking);
    cancelAnimationFrame(state.request);
    state.unwatch = state.room = null;
    delete document.documentElement.dataset.tour;
    document.documentElement.style.removeProperty("--tour-height");
  };
}

const begunFolded = () => (keptInTab(FOLDED) ?? (window.innerHeight < SHORT ? "yes" : "no")) === "yes";

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".tour");
  const isNew = !root.tour;
  const state = (root.tour ??= { root, rings: [], isFolded: begunFolded(), pending: null });
  const call = {};
  if (state.data?.place !== data.place) state.isTouched = false;
  Object.assign(state, { call, data, send: setTriggerValue });
  if (isNew) build(state);
  state.answers = rememberedAnswers(kept(TOUR), data);
  fill(state);
  state.unwatch ??= watch(state);
  outline(state);
  remember(state);
  state.ask();
  return () => { if (state.call === call) state.unwatch?.(); };
}
