// What a page does unseen: each effect is called with the data of its component, and may return what ends it.

import { announcer } from "./announcing.js";
import { arrival } from "./arrival.js";
import { isDark } from "./dom.js";
import { keepCookie } from "./kept.js";

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
  document.dispatchEvent(new CustomEvent("opened", { detail: target })); // arrival.js
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

const LOOK = 500; // milliseconds

function theme({ data, root, setTriggerValue }) {
  const looking = setInterval(() => {
    if (!root.isConnected) return;
    const dark = isDark(root);
    if (dark === data.dark) root.told = null;
    if (dark === data.dark || dark === root.told) return; // told once, even if the server sees it otherwise
    root.told = dark;
    setTriggerValue("theme", dark);
  }, LOOK);
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
