// Graphviz in the browser. A diagram is laid out once; picking a node only marks it.

import { openTables } from "./data_table.js";
import { actButton, drawn, element, isDark, named, presentedHeight } from "./dom.js";
import { loadViz } from "./vendors.js";

const MAX_STOPS = 40; // nodes that the tab key visits one by one; with more, only the marked one
const READABLE = 0.9; // of its natural size, for an audience
const NATURAL = 1.15; // pixels for one of Graphviz's points: its 12 points are our small text

function build(root, state) {
  root.textContent = "";
  const bar = element("div", "bar");
  const { words } = state.data;
  [["−", "smaller", () => scale(state, state.zoom / 1.25)],
    ["+", "larger", () => scale(state, state.zoom * 1.25)],
    ["↔", "fit", () => { state.fitted = "width"; fit(state); }],
    ["↕", "all", () => { state.fitted = "all"; fit(state); }]].forEach(([sign, name, act]) => {
    bar.append(actButton("", sign, act, words[name]));
  });
  bar.append(actButton("numbers", words.table, () => {
    const { table: [head, ...rows], words: said } = state.data;
    openTables(root, said.name, [{ caption: "", head, rows }], said);
  }));
  state.view = element("div", "view", { role: "group" });
  root.append(bar, state.view);
  listen(state);
}

function scale(state, zoom) {
  const { view } = state;
  const before = state.zoom;
  state.fitted = "";
  setZoom(state, zoom);
  const middle = view.scrollTop + view.clientHeight / 2; // what is in the middle stays there
  view.scrollTop = (middle * state.zoom) / before - view.clientHeight / 2;
}

function setZoom(state, zoom) {
  const { svg, size } = state;
  state.zoom = Math.max(0.2, Math.min(3, zoom));
  svg.setAttribute("width", `${size[0] * NATURAL * state.zoom}px`);
  svg.setAttribute("height", `${size[1] * NATURAL * state.zoom}px`);
}

function fit(state) {
  if (!state.svg || !state.fitted) return;
  const room = state.view.clientWidth - 16;
  if (room <= 0) return;
  const wide = room / (state.size[0] * NATURAL);
  if (presentedHeight(state.view)) return setZoom(state, Math.max(READABLE, Math.min(1, wide)));
  if (state.fitted === "width") return setZoom(state, Math.max(0.55, Math.min(1, wide)));
  const most = state.view.clientHeight;
  setZoom(state, Math.min(1, wide, (most - 18) / (state.size[1] * NATURAL)));
}

function colours(root, state) {
  state.dark = isDark(root);
  const look = state.data.looks[state.dark ? "dark" : "light"];
  Object.entries(look).forEach(([kind, colour]) => root.style.setProperty(`--d-${kind}`, colour));
}

function dress(state) {
  const { svg, data } = state;
  state.nodes = new Map();
  svg.querySelectorAll("g.node").forEach((group) => {
    const name = group.querySelector("title").textContent;
    if (name in data.nodes) state.nodes.set(name, group);
  });
  svg.querySelectorAll("title").forEach((title) => title.remove());
  svg.querySelectorAll("a").forEach((link) => link.replaceWith(...link.childNodes));
  // kinds are classes; their colours come from the theme, not from the DOT
  svg.querySelectorAll("g.node").forEach((group) => {
    const kind = [...group.classList].find((name) => name !== "node");
    const shape = group.querySelector("path, ellipse, polygon");
    if (kind && shape) shape.style.fill = `var(--d-${kind})`;
  });
  state.nodes.forEach((group, name) => {
    group.setAttribute("role", "button");
    group.querySelectorAll("text").forEach((text) => text.after(" ")); // between lines, for who hears them
    named(group, data.nodes[name]);
    group.dataset.name = name;
    group.prepend(drawn("title", {}, data.nodes[name]));
  });
}

function mark(state, name) {
  const many = state.nodes.size > MAX_STOPS;
  const stop = state.nodes.has(name) ? name : state.nodes.keys().next().value;
  state.nodes.forEach((group, own) => {
    const is = own === name;
    group.classList.toggle("chosen", is);
    group.setAttribute("aria-pressed", String(is));
    group.setAttribute("tabindex", !many || own === stop ? "0" : "-1");
  });
}

// Scroll inside the frame only, and only where the node is not to be seen.
function reveal(state, name) {
  const group = state.nodes.get(name);
  if (!group) return;
  const [box, frame] = [group.getBoundingClientRect(), state.view.getBoundingClientRect()];
  if (box.top < frame.top || box.bottom > frame.bottom) {
    state.view.scrollTop += box.top - frame.top - (frame.height - box.height) / 2;
  }
  if (box.left < frame.left || box.right > frame.right) {
    state.view.scrollLeft += box.left - frame.left - (frame.width - box.width) / 2;
  }
}

function pick(state, name) {
  mark(state, name);
  state.picked = { name, until: Date.now() + 2000 };
  state.send("pick", name);
}

function listen(state) {
  const at = (event) => event.target.closest?.("g.node[data-name]")?.dataset.name;
  state.view.addEventListener("click", (event) => {
    const name = at(event);
    if (name) pick(state, name);
  });
  state.view.addEventListener("keydown", (event) => {
    const name = at(event);
    if (!name) return;
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (step) {
      const names = [...state.nodes.keys()];
      const next = names[names.indexOf(name) + step];
      event.preventDefault();
      if (!next) return;
      state.nodes.get(next).setAttribute("tabindex", "0");
      state.nodes.get(next).focus({ preventScroll: true });
      reveal(state, next);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pick(state, name);
    }
  });
}

function draw(root, state, viz) {
  const { data } = state;
  if (state.drawn !== data.dot) {
    const old = state.svg;
    const hadFocus = old?.contains(root.getRootNode().activeElement);
    state.svg = viz.renderSVGElement(data.dot);
    state.svg.setAttribute("role", "presentation");
    state.size = ["width", "height"].map((side) => parseFloat(state.svg.getAttribute(side)));
    if (old) old.replaceWith(state.svg);
    else state.view.append(state.svg);
    dress(state);
    const top = new Map([...state.nodes].map(([name, group]) => [name, group.getBBox().y]));
    state.nodes = new Map([...state.nodes].sort(([a], [b]) => top.get(a) - top.get(b)));
    state.drawn = data.dot;
    if (!old) state.fitted = "all";
    if (state.fitted) fit(state);
    else setZoom(state, state.zoom);
    if (hadFocus) state.nodes.get(data.chosen)?.focus({ preventScroll: true });
    state.revealed = undefined;
  }
  const isLate = state.picked && Date.now() < state.picked.until && state.picked.name !== data.chosen;
  if (isLate) return; // an answer to an older click; the newest one is on its way
  state.picked = null;
  mark(state, data.chosen);
  if (state.revealed !== data.chosen) reveal(state, data.chosen);
  state.revealed = data.chosen;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".diagram");
  const state = (root.diagram ??= {});
  state.data = data;
  state.send = setTriggerValue;
  if (!state.view) build(root, state);
  state.view.setAttribute("aria-label", data.words.diagram);
  colours(root, state);
  loadViz(data.root)
    .then((viz) => { if (state.data === data) draw(root, state, viz); })
    .catch(() => { state.view.textContent = data.words.sorry; });
  state.observer?.disconnect();
  const observer = new ResizeObserver(() => fit(state));
  observer.observe(root);
  state.observer = observer;
  clearInterval(state.timer);
  state.timer = setInterval(() => {
    if (root.isConnected && isDark(root) !== state.dark) colours(root, state);
  }, 500);
  const { timer } = state;
  return () => { observer.disconnect(); clearInterval(timer); }; // its own only: a newer draw has others
}
