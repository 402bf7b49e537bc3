// Presenter mode: one figure of the page fills the screen, in type that can be read from the last row.
// The figures are found on the page; arrow keys press what the figure itself has for its next beat.

import { status } from "./announcing.js";
import { actButton, deep, element, zoomOf } from "./dom.js";
import { isPageKey } from "./keys.js";
import { close } from "./streamlit_words.js";

const LEGIBLE = 18; // pixels of the smallest type, on a screen as high as LOW
const LOW = 720;
const SLACK = 40; // pixels below which nobody misses what is not seen
const EDGE = 12; // pixels around a figure
const LOOK = 300; // ms between two looks whether the page has drawn the figure anew
const FITS = 5; // looks after which a figure has drawn itself in its new room
const LOOKS = 100; // after which no figure comes that would stand before it
const HINT = 2500; // ms for which the buttons stay after the pointer has moved
const KEPT = "presenting"; // in the session's storage: a reload goes on
const USES_ARROWS = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=slider], [role=combobox]"
  + ", [role=listbox], [role=radio], [role=tab], [role=grid], [role=gridcell], [role=application], [role=group] > button";

// One for the document: a change of page may make this component anew.
const state = (document[Symbol.for("presenter")] ??= { data: null, bar: null, shown: null });

const hostOf = (root) => root.getRootNode().host ?? root.parentElement;
const isLarge = (root) => root.clientWidth > 100 && root.clientHeight > 40 && root.checkVisibility();

// What can be presented: each figure of the page; the page itself where it has none, or during a task.
function figures() {
  const page = document.querySelector(".st-key-page");
  if (!page) return [];
  const found = [];
  if (!taskBar()) deep(state.data.kinds.map((kind) => kind.css).join(), page).forEach((root) => {
    const kind = state.data.kinds.find((one) => root.matches(one.css));
    const host = hostOf(root);
    const isInside = found.some((other) => other.host === host || other.host.contains(host));
    if (!isInside && (isLarge(root) || root === state.shown?.root)) found.push({ kind, root, host, name: nameOf(kind, root) });
  });
  const whole = { css: "", narrowest: 640, canvas: 0 };
  return found.length ? found : [{ kind: whole, root: page, host: page, name: nameOf(whole, page) }];
}

// The bar of the task that the page shows, if any.
const taskBar = () => document.querySelector(".st-key-task-bar");

const stepTitle = () => (document.querySelector(state.data.steps[1]) ? document.querySelector(".st-key-page h2")?.textContent : "");
const nameOf = (kind, root) => (state.isStepping && stepTitle()) || kind.title || stepTitle() || root.getAttribute("aria-label") || (document.querySelector(".st-key-page h1")?.textContent ?? "");
const isPage = ({ kind }) => !kind.css;

// ---- type

function* texts(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) {
    if (node.shadowRoot) yield* texts(node.shadowRoot);
    else if (node.nodeType === Node.TEXT_NODE && node.data.trim()) yield node.parentElement ?? node.parentNode.host;
    else if (node.matches?.("input:not([type=range]), select, textarea")) yield node;
  }
}

const isHeard = (node) => { const { width, height } = node.getBoundingClientRect(); return width <= 1 || height <= 1; };

// Of a text that may be turned.
function scaleOf(node) {
  const { a, b, c, d } = node.getScreenCTM();
  return Math.sqrt(Math.abs(a * d - b * c));
}

// Pixels of the smallest type in an element, as it is drawn. onCanvas: of its canvases, whom nobody can
// ask; 0 where it has none.
function smallest(root, onCanvas) {
  let least = Infinity;
  for (const node of texts(root)) {
    if (["STYLE", "SCRIPT", "TITLE"].includes(node.tagName?.toUpperCase()) || isHeard(node)) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    const drawn = node.ownerSVGElement ? scaleOf(node) : zoomOf(node);
    least = Math.min(least, parseFloat(getComputedStyle(node).fontSize) * drawn);
  }
  if (!onCanvas) return least;
  const hasCanvas = deep("canvas", root).some((canvas) => canvas.clientWidth);
  return hasCanvas ? Math.min(least, onCanvas * zoomOf(root)) : least;
}

const legible = () => LEGIBLE * Math.max(1, window.innerHeight / LOW);

// Whether a page has drawn something later that is too small, and may still grow.
function isTooSmall({ kind, host }) {
  return isPage({ kind }) && host.style.zoom < window.innerWidth / kind.narrowest && smallest(host, kind.canvas) < legible() - 0.1;
}

// As large as its type needs, or larger where the figure leaves room, but never so narrow that it folds up.
function fit({ kind, host, root }) {
  const goal = legible();
  const widest = Math.max(1, window.innerWidth / kind.narrowest);
  const set = (zoom) => {
    host.style.zoom = zoom;
    host.style.setProperty("--presented-height", `${(window.innerHeight - 2 * EDGE) / zoom}px`);
  };
  set(1);
  let zoom = 1;
  for (let round = 0; round < 3; round += 1) { // what folds may have smaller type
    const least = smallest(host, kind.canvas);
    if (!(least < goal)) break;
    zoom = Math.min(widest, zoom * (goal / least) * 1.001);
    set(zoom);
  }
  const room = (window.innerHeight - 2 * EDGE) / (root.getBoundingClientRect().height || 1);
  if (!isPage({ kind }) && room > 1.1) set(Math.min(widest, zoom * Math.min(room, 2)));
}

// ---- showing

function show(at) {
  const all = figures();
  if (!all.length) return;
  hide();
  const index = Math.min(all.length - 1, at);
  const shown = { all, at: index, ...all[index], page: state.data.page, looks: 0 };
  const { host } = shown;
  state.shown = shown;
  document.documentElement.classList.add("presenting");
  document.documentElement.classList.toggle("presenting-figure", !isPage(shown));
  document.documentElement.style.setProperty("--presented-zoom", isPage(shown) ? LEGIBLE / 12 : 1);
  host.classList.add("presented");
  if (!isPage(shown)) {
    host.popover = "manual"; // above everything, whatever stands around it
    host.showPopover();
  }
  document.activeElement?.blur?.();
  fit(shown);
  say();
}

function hide() {
  if (!state.shown) return;
  const { host } = state.shown;
  host.classList.remove("presented");
  host.style.zoom = "";
  host.style.removeProperty("--presented-height");
  if (host.popover) {
    if (host.matches(":popover-open")) host.hidePopover();
    host.popover = null;
  }
  state.shown = null;
}

function leave() {
  hide();
  state.bar?.remove();
  state.bar = null;
  sessionStorage.removeItem(KEPT);
  document.documentElement.classList.remove("presenting", "presenting-figure");
  document.documentElement.style.removeProperty("--presented-zoom");
}

function start() {
  close();
  sessionStorage.setItem(KEPT, "1");
  state.bar ??= bar();
  state.hasMoved = false;
  state.isStepping = false;
  show(0);
}

// The page has been drawn anew or left, or its figure has come only now.
function look() {
  const { shown, data, hasMoved } = state;
  if (!shown) {
    if (state.bar) show(0); // the page was not there when it began
    return;
  }
  if (shown.page !== data.page) { state.hasMoved = false; state.isStepping = false; show(0); }
  else if (!shown.host.isConnected || !shown.host.classList.contains("presented")
    || (!isPage(shown) && !shown.host.matches(":popover-open"))) show(shown.at);
  else if (shown.looks < LOOKS) {
    shown.looks += 1;
    const name = nameOf(shown.kind, shown.root);
    if (name !== shown.name) { shown.name = name; say(); }
    const all = figures();
    const at = state.isStepping ? ofStep(all) : 0;
    if ((state.isStepping || !hasMoved) && all[at]?.host !== shown.host) { show(at); return; }
    if (shown.looks <= FITS || isTooSmall(shown)) fit(shown);
    const place = all.findIndex(({ host }) => host === shown.host);
    if (place >= 0 && all.length !== shown.all.length) { // one has come that stands before or behind it
      Object.assign(shown, { all, at: place });
      say();
    }
  }
}

// ---- beats

const dispatch = (node, key) => node.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true }));

// Press what leads to the next beat of the figure; return whether there was one.
function pressBeat({ kind, root }, by) {
  const bar = taskBar();
  if (bar) {
    bar.querySelector(`.st-key-task-go-${by > 0 ? "next" : "back"} button:enabled`)?.click();
    return true;
  }
  if (state.isStepping) return step(by); // also past a step whose question hides its figure
  const [back, next] = kind.buttons ?? [];
  if (next) {
    const button = root.querySelector(by > 0 ? next : back);
    if (!button || button.disabled) return false;
    button.click();
    return true;
  }
  if (kind.choices) {
    const all = [...root.querySelectorAll(kind.choices)];
    const at = all.findIndex((one) => one.matches("[aria-selected=true], [aria-pressed=true], [aria-checked=true]"));
    all[at + by]?.click();
    return at + by in all;
  }
  if (kind.keys) {
    const before = root.dataset.level;
    dispatch(root.querySelector(kind.hears), kind.keys[by > 0 ? 1 : 0]);
    return root.dataset.level !== before;
  }
  return step(by);
}

// The figure that a step of the page has brought: it stands below the button that leads to the next one.
function ofStep(all) {
  const button = document.querySelector(state.data.steps[1]);
  const at = all.findIndex(({ host }) => button?.compareDocumentPosition(host) & Node.DOCUMENT_POSITION_FOLLOWING);
  return Math.max(0, at);
}

// Go one step of the page; return whether there was one.
function step(by) {
  const button = document.querySelector(state.data.steps[by > 0 ? 1 : 0]);
  if (!button || button.disabled) return false;
  button.click();
  state.isStepping = true;
  state.shown.looks = 0; // the step brings a figure of its own
  return true;
}

function beat(by) {
  if (!pressBeat(state.shown, by)) turn(by);
}

// Go to another figure of the page; from the last one nowhere.
function turn(by) {
  const { all, at } = state.shown;
  state.hasMoved = true;
  state.isStepping = false;
  if (at + by in all) show(at + by);
}

// ---- the buttons, for those who have no keys

function bar() {
  const { words } = state.data;
  const made = element("div", "presenter");
  state.name = status("name");
  made.append(
    actButton("", "‹", () => beat(-1), words.back),
    actButton("", "›", () => beat(1), words.next),
    actButton("", "⇵", () => { state.hasMoved = true; state.isStepping = false; show((state.shown.at + 1) % state.shown.all.length); }, words.figure),
    state.name.region,
    actButton("", "✕", leave, words.leave),
  );
  document.body.append(made);
  return made;
}

function say() {
  const { bar: made, shown: { all, at, name }, data: { words } } = state;
  state.name.say([`${at + 1} / ${all.length}`, name].filter(Boolean).join(" · "));
  made.title = words.keys;
  made.popover = "manual";
  if (made.matches(":popover-open")) made.hidePopover();
  made.showPopover(); // above the figure, which was shown last
  wake();
}

function wake() {
  if (!state.bar) return;
  state.bar.classList.add("awake");
  clearTimeout(state.sleep);
  state.sleep = setTimeout(() => state.bar?.classList.remove("awake"), HINT);
}

// ---- keys

const BEATS = { ArrowRight: 1, ArrowLeft: -1, PageDown: 1, PageUp: -1 };
const FIGURES = { ArrowDown: 1, ArrowUp: -1 };

// Whether what is higher than the screen has more to show; then it scrolls.
function scrolls(host, by) {
  const scroller = host.popover ? host : host.closest("main");
  const left = scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop;
  const isMore = by > 0 ? left > SLACK : scroller.scrollTop > SLACK;
  if (isMore) scroller.scrollBy({ top: by * 0.4 * window.innerHeight });
  return isMore;
}

function onKey(event) {
  const { shown } = state;
  if (!shown || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.composedPath().some((node) => node.matches?.(USES_ARROWS))) return;
  if (event.key in BEATS) beat(BEATS[event.key]);
  else if (!(event.key in FIGURES)) return;
  else if (!scrolls(shown.host, FIGURES[event.key])) turn(FIGURES[event.key]);
  event.preventDefault();
  event.stopImmediatePropagation();
}

function onLateKey(event) {
  if (state.shown && event.key === "Escape" && !event.defaultPrevented && !document.querySelector("[role=dialog]")) leave();
  else if (isPageKey(event, "p")) { if (state.shown) leave(); else start(); }
}

export default function ({ data: [data] }) {
  const isLink = data.start > (state.data?.start ?? 0);
  state.data = data;
  const hearing = new AbortController();
  const { signal } = hearing;
  window.addEventListener("keydown", onKey, { signal, capture: true });
  document.addEventListener("keydown", onLateKey, { signal });
  document.addEventListener("click", ({ target }) => { if (target.closest(".st-key-present button")) start(); }, { signal });
  ["pointermove", "pointerdown"].forEach((kind) => document.addEventListener(kind, wake, { signal }));
  window.addEventListener("resize", () => { if (state.shown) fit(state.shown); }, { signal });
  const looking = setInterval(look, LOOK);
  document.documentElement.dataset.presents = data.page; // it hears the keys of this page
  if (!state.shown && (isLink || sessionStorage.getItem(KEPT))) start();
  return () => { hearing.abort(); clearInterval(looking); };
}
