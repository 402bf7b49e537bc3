// Where the focus goes when what had it is gone: to the title of a page that has come, into what a press has
// opened, with Escape back to where it was, or to what now stands in its place.

import { deep, focused, isCalm } from "./dom.js";
import { found } from "./outlined.js";
import { close, isDrawing, OVERLAY, TOOLS } from "./streamlit_words.js";

const LOOK = 150; // milliseconds
const LOOKS = 3; // at a page that has come to rest, before something gets the focus: another may be coming
const CONTROL = "a[href], button, summary, [tabindex='0'], input:is([type=checkbox], [type=radio], [type=range])";
const ABOVE = ".st-key-changes, .st-key-hand-lesson-bar";
const FIGURE = "[class*=st-key-figure-]"; // which an address can lead to
const BELOW = ".st-key-start-bar";

let state; // one for the document: a change of page may make this component anew

const isGone = (node) => !node.isConnected || node.matches(":disabled") || !node.checkVisibility({ visibilityProperty: true });
const heading = () => found(document.documentElement.dataset.title);

function remember(node) {
  const path = [];
  for (let around = node; around; around = around.parentNode ?? around.host) path.push(around);
  const { left, top, width, height } = node.getBoundingClientRect();
  state.last = { node, path, x: left + width / 2, y: top + height / 2, isGone: false, looks: 0 };
  if (path.some((around) => around.id === "root")) state.outside = state.last; // menus and dialogs stand beside it
}

function give(node, options) {
  if (!node) return;
  if (!node.matches(CONTROL)) node.tabIndex = -1;
  node.focus(options);
  remember(node);
}

// What has come in the place of what is gone, or stands next to it; a field of text would open a keyboard.
function successor({ path, x, y }) {
  for (const around of path) {
    if (around === document.body) break;
    const isOne = (node) => node.tabIndex >= 0 && !isGone(node) && !node.closest(TOOLS);
    const controls = around.isConnected ? deep(CONTROL, around).filter(isOne) : [];
    const distance = (node) => { const box = node.getBoundingClientRect(); return Math.hypot(box.left + box.width / 2 - x, box.top + box.height / 2 - y); };
    if (controls.length) return controls.reduce((one, other) => (distance(other) < distance(one) ? other : one));
  }
  return heading();
}

function look() {
  const now = focused();
  if (state.title) { arrive(now); return; }
  if (now) {
    if (now !== state.last?.node) remember(now);
    enter(now);
    return;
  }
  const { last, outside } = state;
  if (!last) return;
  last.isGone ||= isGone(last.node);
  last.looks = isDrawing() ? 0 : last.looks + 1;
  if (last.looks < LOOKS) return;
  if (!last.isGone) state.last = null; // the reader has left it
  else if (!isGone(last.node)) give(last.node); // it was off for a while
  else give(outside && !isGone(outside.node) ? outside.node : successor(outside ?? last));
}

// The title of what comes is another element, or another text once all of it is there.
function arrive(now) {
  const title = heading();
  const isThere = title && (title !== state.title.before || !isDrawing());
  if (isThere && now !== title) give(title);
  if (!isThere || isDrawing()) return;
  if (title.matches(FIGURE)) title.scrollIntoView({ block: "start" }); // what stands above it has grown
  state.title = null;
}

// A popover stands at the end of the document: the focus goes there, not behind it.
function enter(now) {
  const overlay = document.querySelector(OVERLAY);
  if (!overlay) state.overlay = null;
  else if (overlay !== state.overlay && now.matches("[aria-expanded=true]") && !overlay.contains(now)) {
    state.overlay = overlay;
    give(deep(`${CONTROL}, input, textarea`, overlay).find((node) => node.tabIndex >= 0 && !isGone(node)) ?? overlay);
  }
}

function press(event) {
  if (event.key === "Escape" && state.opened && event.composedPath().includes(state.opened.target)) {
    const { from } = state.opened;
    state.opened = null;
    give(isGone(from.node) ? successor(from) : from.node);
    event.preventDefault();
    return;
  }
  if (event.key === "Tab") measure();
  if (event.isTrusted) state.title = null;
  const now = focused();
  if (now) remember(now);
}

// What stays at the edges of the page covers nothing that gets the focus (style.css).
function measure() {
  const height = (selector) => Math.max(0, ...[...document.querySelectorAll(selector)].map((bar) => bar.offsetHeight));
  document.documentElement.style.setProperty("--covered-above", `${height(ABOVE)}px`);
  document.documentElement.style.setProperty("--covered-below", `${height(BELOW)}px`);
}

// What a press has opened out of sight (effects.js).
function open({ detail: target }) {
  measure();
  state.opened = { target, from: state.last };
  target.scrollIntoView({ block: "start", behavior: isCalm() ? "auto" : "smooth" });
  give(target.querySelector("h2, h3, h4") ?? target, { preventScroll: true });
}

export function arrival({ data }) {
  state = (document[Symbol.for("arrival")] ??= { last: null, outside: null, opened: null, overlay: null, title: null });
  const { dataset } = document.documentElement;
  const [page, part] = [dataset.place, dataset.part];
  Object.assign(dataset, data);
  const isAsked = page === undefined && data.title.includes(".st-key-figure-");
  const isOther = isAsked || page !== undefined && (page !== data.place || part !== data.part);
  if (isOther) {
    state.title = { before: heading() };
    close();
  }
  for (let node = document.querySelector(".st-key-page"); isOther && page !== data.place && node; node = node.parentElement) node.scrollTop = 0;
  const hearing = new AbortController();
  const { signal } = hearing;
  window.addEventListener("keydown", press, { signal, capture: true });
  window.addEventListener("click", press, { signal, capture: true });
  document.addEventListener("opened", open, { signal });
  const looking = setInterval(look, LOOK);
  return () => { hearing.abort(); clearInterval(looking); };
}
