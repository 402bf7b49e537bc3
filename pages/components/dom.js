// Making elements and pictures of them.

// parts: texts, other elements, and attributes by name: of the style (--name), properties where they are no texts.
// What is empty is left out.
export function element(tag, className, ...parts) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (tag === "button") made.type = "button"; // it sends no form
  parts.filter(Boolean).forEach((part) => {
    if (part.constructor === Object) dress(made, part);
    else made.append(part);
    if (typeof part === "string") markKorean(made, part);
  });
  return made;
}

export function dress(made, attributes) {
  Object.entries(attributes).forEach(([name, value]) => {
    if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (typeof value === "string") made.setAttribute(name, value);
    else made[name] = value;
  });
}

// Say what something does, to who points at it and to who hears it.
export const label = (made, text) => dress(made, { title: text, "aria-label": text });

// A button, which does nothing while it is marked as disabled; does: where a sign is all that is seen of it.
export function actButton(className, text, act, does = "") {
  const made = element("button", className, text);
  made.addEventListener("click", (event) => { if (made.getAttribute("aria-disabled") !== "true") act(event); });
  if (does) label(made, does);
  return made;
}

// Show on a button whether a press on it plays or pauses.
export function showPlaying(button, isPlaying, words) {
  const text = isPlaying ? "❚❚" : "▶";
  if (button.textContent === text) return;
  button.textContent = text;
  label(button, isPlaying ? words.pause : words.play);
}

export const isCalm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

// A slider; act: gets its value.
export function slider(name, act, settings = {}) {
  const made = element("input", "", { type: "range", min: 0, "aria-label": name, ...settings });
  made.addEventListener("input", () => act(Number(made.value)));
  return made;
}

// What was sent as base64.
export const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// What models read and write may be Korean on a page of another language.
export function markKorean(node, text) {
  if (/[가-힣]/.test(text) && !/[a-z]/i.test(text)) node.setAttribute("lang", "ko");
}

// All elements of a selector, also within components, in the order of the page.
export function deep(selector, root = document) {
  const found = [];
  const walk = (node) => {
    for (const child of node.children) {
      if (child.matches(selector)) found.push(child);
      if (child.shadowRoot) walk(child.shadowRoot);
      walk(child);
    }
  };
  if (root.shadowRoot) walk(root.shadowRoot);
  walk(root);
  return found;
}

// What has the focus, also within a component; null where nothing has it.
export function focused() {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node === document.body ? null : node;
}

// Name an element so that what is seen on it is in its name: who speaks to a page says what is seen.
export function named(node, name) {
  const seen = [];
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentNode.closest("title")) seen.push(walk.currentNode.data.trim());
  const text = seen.filter(Boolean).join(" ");
  node.setAttribute("aria-label", name.includes(text) ? name : `${name}, ${text}`);
}

const BREATH = 120; // characters of a name that is heard in one breath

// Name an element by the first of its sentences; the others are its description.
export function tell(node, sentences) {
  const all = sentences.filter(Boolean).reduce((before, next) => `${before}${/[.!?:]$/.test(before) ? "" : "."} ${next}`);
  const ends = [". ", "; ", ", ", " "].map((mark) => all.lastIndexOf(mark, BREATH - 1) + 1);
  const end = all.length > BREATH ? ends.find((one) => one > BREATH / 3) ?? BREATH : all.length;
  const parts = { "aria-label": all.slice(0, end).trim(), "aria-description": all.slice(end).trim() };
  Object.entries(parts).forEach(([name, words]) => { if (node.getAttribute(name) !== words) node.setAttribute(name, words); });
}

// How much larger than its own pixels an element is drawn: in presenter mode figures are zoomed.
export const zoomOf = (node) => node.currentCSSZoom ?? 1;

// Pixels of the screen for each of an element's own.
export const pixelRatio = (node) => (window.devicePixelRatio || 1) * zoomOf(node);

// Return the 2D context of a cleared canvas at device resolution.
export function penOf(canvas, width, height) {
  const ratio = pixelRatio(canvas);
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) dress(canvas, { width: wide, height: high });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}

// Pixels of its own that a figure may be high in presenter mode; 0 outside it.
export const presentedHeight = (node) => parseFloat(getComputedStyle(node).getPropertyValue("--presented-height")) || 0;

// Put what is said of a place beside the pointer.
export function placeTip(tip, x, y) {
  const zoom = zoomOf(tip);
  const beside = (at, size, room) => (at + 14 + size * zoom > room ? at - 14 - size * zoom : at + 14) / zoom;
  tip.style.left = `${beside(x, tip.offsetWidth, window.innerWidth)}px`;
  tip.style.top = `${beside(y, tip.offsetHeight, window.innerHeight)}px`;
}

// Say to the page that a component has its height: what stands below it may be seen from the next frame
// on, so that nobody sees it move.
export function fill(root) {
  const place = root.getRootNode().host ?? root;
  requestAnimationFrame(() => requestAnimationFrame(() => { place.dataset.filled = ""; }));
}

// A template with its {names} filled in.
export const filled = (template, values) => template.replace(/\{(\w+)\}/g, (_all, name) => values[name]);

// A whole number, such as a step, as it is read.
export const whole = (number) => Math.round(number).toLocaleString("en");

export const download = (name, href) => element("a", "", { href, download: name }).click();

const SVG = "http://www.w3.org/2000/svg";

export function drawn(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  if (text !== undefined) { made.textContent = text; markKorean(made, text); }
  return made;
}

function svgUrl(svg) {
  const text = new XMLSerializer().serializeToString(svg);
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// Save an <svg> as it stands, or as a picture of twice its size.
export function save(svg, name, kind) {
  const url = svgUrl(svg);
  if (kind === "svg") { download(`${name}.svg`, url); return; }
  const image = new Image();
  image.onload = () => {
    const canvas = element("canvas");
    canvas.width = 2 * Number(svg.getAttribute("width"));
    canvas.height = 2 * Number(svg.getAttribute("height"));
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    download(`${name}.png`, canvas.toDataURL("image/png"));
  };
  image.src = url;
}

export function saveButtons(words, make) {
  const bar = element("div", "save");
  ["png", "svg"].forEach((kind) => {
    bar.append(actButton("small", kind.toUpperCase(), () => { const [svg, name] = make(); save(svg, name, kind); }, `${words.save} ${kind.toUpperCase()}`));
  });
  return bar;
}

export const paper = (node) => getComputedStyle(node).getPropertyValue("--st-background-color").trim() || "#fff";

// Whether the page is dark, by its background colour.

const darkness = new Map(); // by colour: it is asked for twice a second, and a canvas costs

export function isDark(element) {
  const colour = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  if (!darkness.has(colour)) darkness.set(colour, looksDark(colour));
  return darkness.get(colour);
}

function looksDark(colour) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour || "#fff";
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
}

