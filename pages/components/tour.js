// The bar of a tour at the bottom of the window, and rings around what it speaks of.
//
// Nothing here asks the server what to show: it says what was pressed.

import { element } from "./dom.js";
import { keep, keepInTab, kept, keptInTab, rememberedAnswers, TOUR } from "./kept.js";
import { besides, found, isInSight } from "./outlined.js";

const FOLDED = "tfm-tour-folded";
const SHORT = 520; // pixels of a window below which the bar begins folded: the page needs the room
const PRESSED = "tfm-tour-pressed"; // the bar of the next stop takes the focus over
const LOOK = 200; // milliseconds between two looks at what is outlined
const TOUCHED = ["wheel", "touchmove", "pointerdown", "keydown"];

function pressable(className, act) {
  const made = element("button", className);
  made.type = "button";
  made.addEventListener("click", () => { if (made.getAttribute("aria-disabled") !== "true") act(); });
  return made;
}

function build(state) {
  const { root } = state;
  root.setAttribute("role", "region");
  const head = element("div", "head");
  const count = element("span", "count");
  const title = element("h2");
  title.tabIndex = -1;
  const fold = pressable("fold", () => turn(state, !state.isFolded));
  const leave = pressable("leave", () => send(state, "leave"));
  leave.textContent = "✕";
  head.append(count, title, fold, leave);
  const told = element("div", "told");
  const text = element("div", "text");
  text.setAttribute("aria-live", "polite");
  const wait = element("p", "wait");
  told.append(text, wait);
  const question = element("div", "question");
  question.setAttribute("role", "group");
  const asked = element("p", "asked");
  asked.id = "tour-asked";
  question.setAttribute("aria-labelledby", asked.id);
  const options = element("div", "options");
  const verdict = element("p", "verdict");
  verdict.setAttribute("role", "status");
  question.append(asked, options, verdict);
  const go = element("div", "go");
  const happened = element("p", "happened");
  happened.setAttribute("role", "status");
  const bar = element("div", "bar");
  bar.append(head, told, question, go, happened);
  const rings = element("div", "rings");
  rings.setAttribute("aria-hidden", "true");
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
  keepInTab(PRESSED, "yes");
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
  const label = isFolded ? words.unfold : words.fold;
  parts.fold.setAttribute("aria-label", label);
  parts.fold.title = label;
  parts.fold.setAttribute("aria-expanded", String(!isFolded));
  parts.leave.setAttribute("aria-label", words.leave);
  parts.leave.title = words.leave;
  bar.classList.toggle("folded", isFolded);
  if (parts.text.dataset.said !== data.text) {
    parts.text.dataset.said = data.text;
    parts.text.replaceChildren(...data.text.split("\n\n").filter(Boolean).map((line) => element("p", "", line)));
  }
  say(parts.wait, data.wait);
  parts.wait.hidden = !data.wait;
  say(parts.happened, data.happened);
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
      const made = pressable("option", () => {
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
  say(parts.verdict, isPending ? words.checking : question.verdict);
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
    const held = go.getRootNode().activeElement?.dataset.name;
    go.dataset.key = key;
    go.replaceChildren(...buttons.map(({ name }) => {
      const made = pressable("", () => send(state, name));
      made.dataset.name = name;
      return made;
    }));
    if (held) ([...go.children].find((one) => one.dataset.name === held) ?? go.lastElementChild)?.focus({ preventScroll: true });
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
    const ring = element("div", name);
    ring.hidden = true;
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
  const { top, bottom } = besides(state.bar);
  const room = { above: Math.ceil(top), height: Math.ceil(window.innerHeight - bottom) };
  if (room.height !== state.room?.height) state.isTouched = false; // it may cover what it spoke of
  if (room.height === state.room?.height && room.above === state.room.above) return;
  state.room = room;
  document.documentElement.style.setProperty("--tour-top", `${room.above}px`);
  document.documentElement.style.setProperty("--tour-height", `${room.height}px`);
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
    ["--tour-top", "--tour-height"].forEach((name) => document.documentElement.style.removeProperty(name));
  };
}

// Who pressed something goes on from the title of the stop; who opened a link is left alone.
function arrive(state) {
  state.isTouched = false;
  const isPressed = keptInTab(PRESSED) || navigator.userActivation?.hasBeenActive;
  keepInTab(PRESSED, null);
  if (isPressed) state.parts.title.focus({ preventScroll: true });
}

const begunFolded = () => (keptInTab(FOLDED) ?? (window.innerHeight < SHORT ? "yes" : "no")) === "yes";

export default function ({ data: [data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".tour");
  const isNew = !root.tour;
  const state = root.tour ?? { root, rings: [], isFolded: begunFolded(), pending: null };
  root.tour = state;
  const call = {};
  const before = state.data?.place;
  Object.assign(state, { call, data, send: setTriggerValue });
  if (isNew) build(state);
  state.answers = rememberedAnswers(kept(TOUR), data);
  fill(state);
  state.unwatch ??= watch(state);
  outline(state);
  remember(state);
  if (before !== data.place) arrive(state);
  state.ask();
  return () => { if (state.call === call) state.unwatch?.(); };
}
