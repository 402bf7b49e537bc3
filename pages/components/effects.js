// What a page does unseen: each effect is called with the data of its component, and may return what ends it.

import { announcer } from "./announcing.js";
import { deep, focused, isCalm, isDark } from "./dom.js";
import { keepCookie } from "./kept.js";
import { found } from "./outlined.js";
import { close, isDrawing, OVERLAY, TOOLS } from "./streamlit_words.js";

// ---- arrival: where the focus goes when what had it is gone: to the title of a page that has come, into what a press has
// opened, with Escape back to where it was, or to what now stands in its place.

const LOOK = 150; // milliseconds
const LOOKS = 3; // at a page that has come to rest, before something gets the focus: another may be coming
const CONTROL = "a[href], button, summary, [tabindex='0'], input:is([type=checkbox], [type=radio], [type=range])";
const ABOVE = ".st-key-changes, .st-key-hand-lesson-bar";
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
  if (isThere && !isDrawing()) state.title = null;
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

function onPress(event) {
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

// What a press has opened out of sight (reveal).
function open({ detail: target }) {
  measure();
  state.opened = { target, from: state.last };
  target.scrollIntoView({ block: "start", behavior: isCalm() ? "auto" : "smooth" });
  give(target.querySelector("h2, h3, h4") ?? target, { preventScroll: true });
}

function arrival({ data }) {
  state = (document[Symbol.for("arrival")] ??= { last: null, outside: null, opened: null, overlay: null, title: null });
  const { dataset } = document.documentElement;
  const [page, part] = [dataset.place, dataset.part];
  Object.assign(dataset, data);
  const isOther = page !== undefined && (page !== data.place || part !== data.part);
  if (isOther) {
    state.title = { before: heading() };
    close();
  }
  for (let node = document.querySelector(".st-key-page"); isOther && page !== data.place && node; node = node.parentElement) node.scrollTop = 0;
  const hearing = new AbortController();
  const { signal } = hearing;
  window.addEventListener("keydown", onPress, { signal, capture: true });
  window.addEventListener("click", onPress, { signal, capture: true });
  document.addEventListener("opened", open, { signal });
  const looking = setInterval(look, LOOK);
  return () => { hearing.abort(); clearInterval(looking); };
}

// ---- reveal: what a press has changed comes into sight, as the big map on a phone or a question's answer

const EDGE = 90; // pixels: what lies below the bar on top, or shows less than this, is out of sight

export const isInSight = ({ top, bottom }, height) => top >= EDGE - 10 && top <= height - 2 * EDGE && bottom > EDGE;

export function changed(before, after) {
  return Object.keys(after).find((name) => after[name] && before[name] !== after[name]);
}

function reveal({ data, parentElement }) {
  const before = parentElement.marks;
  parentElement.marks = data;
  const name = before && changed(before, data);
  const target = name && document.querySelector(`.st-key-${name}`);
  if (!target || isInSight(target.getBoundingClientRect(), window.innerHeight)) return;
  document.dispatchEvent(new CustomEvent("opened", { detail: target })); // of arrival
}

// ---- press: presses a button of the page once for each mark, so that what was made on a press saves itself

const MAX_FRAMES = 120; // about two seconds in which the button may still come

function press({ data, parentElement }) {
  if (parentElement.mark === data.mark) return;
  parentElement.mark = data.mark;
  let left = MAX_FRAMES;
  const look = () => {
    const button = document.querySelector(`.st-key-${data.target} button`);
    if (button && !button.disabled) button.click();
    else if (left-- > 0) requestAnimationFrame(look);
  };
  look();
}

// ---- icons beside words are hidden: a screen reader would say the names of their files

const ICONS = "span[role=img][aria-label$=' icon']";

function icons() {
  const page = document.body;
  const quieten = () => page.querySelectorAll(ICONS).forEach((icon) => icon.setAttribute("aria-hidden", "true"));
  const observer = new MutationObserver((changes) => {
    if (changes.some((change) => change.addedNodes.length > 0)) quieten();
  });
  quieten();
  observer.observe(page, { childList: true, subtree: true });
  return () => observer.disconnect();
}

// ---- theme: says when it is no longer the one that the server drew its figures for

const THEME_LOOK = 500; // milliseconds

function theme({ data, root, setTriggerValue }) {
  const looking = setInterval(() => {
    if (!root.isConnected) return;
    const dark = isDark(root);
    if (dark === data.dark) root.told = null;
    if (dark === data.dark || dark === root.told) return; // told once, even if the server sees it otherwise
    root.told = dark;
    setTriggerValue("theme", dark);
  }, THEME_LOOK);
  return () => clearInterval(looking);
}

// ---- ended: says how the run in the strip ended, while its stage is on another page

function ended({ data, root }) {
  if (!root.announcer) {
    root.announcer = announcer();
    root.append(root.announcer.region);
  }
  const before = root.before;
  root.before = data;
  if (before && before.run === data.run && !before.ended) root.announcer.say(data.ended);
}

// ---- cookie: one that all tabs write, of parts "page:mark:mark", separated by "/"

export function merged(...texts) {
  const parts = new Map();
  texts.flatMap((text) => text.split("/")).filter(Boolean).forEach((part) => {
    const [name, ...marks] = part.split(":");
    const known = parts.get(name) ?? new Set();
    marks.forEach((mark) => known.add(mark));
    parts.set(name, known);
  });
  return [...parts].map(([name, marks]) => [name, ...marks].join(":")).join("/");
}

const keptCookie = (name) => document.cookie.split("; ").find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";

function cookie({ data: { name, text, path, resets }, parentElement }) {
  const isReset = resets > (parentElement.resets ?? 0);
  parentElement.resets = resets;
  const before = keptCookie(name);
  const value = isReset ? text : merged(before, text);
  if (value !== before) keepCookie(name, value, path);
}

// ---- embedded: a page in a frame of another site says how high it is, so that the frame can be as high and only the
// site scrolls. The words are those of LTI, which Canvas takes. Any origin may hear it: the browser
// lets no site but those of TFM_FRAME_ANCESTORS show the page.

// What holds all of the page, inside what scrolls.
function whole() {
  let node = document.querySelector(".st-key-page");
  while (node && node.parentElement?.tagName !== "MAIN") node = node.parentElement;
  return node;
}

function embedded() {
  if (window.parent === window) return undefined;
  let page = null; // drawn after this, and perhaps drawn anew
  const sizes = new ResizeObserver(() => {
    const height = Math.ceil(page.getBoundingClientRect().height);
    window.parent.postMessage({ subject: "lti.frameResize", height }, "*");
  });
  const find = () => {
    const found = whole();
    if (found === page) return;
    sizes.disconnect();
    page = found;
    if (page) sizes.observe(page);
  };
  const nodes = new MutationObserver(find);
  nodes.observe(document.body, { childList: true, subtree: true });
  find();
  return () => {
    nodes.disconnect();
    sizes.disconnect();
  };
}

const EFFECTS = { arrival, reveal, press, icons, theme, ended, cookie, embedded };

export default function ({ data: [name, data], parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".effects");
  return EFFECTS[name]({ data, parentElement, root, setTriggerValue });
}
