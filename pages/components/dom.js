// Making elements and pictures of them.

export function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) { made.textContent = text; markKorean(made, text); }
  return made;
}

// What models read and write may be Korean on a page of another language.
export function markKorean(node, text) {
  if (/[가-힣]/.test(text) && !/[a-z]/i.test(text)) node.setAttribute("lang", "ko");
}

// Name an element so that what is seen on it is in its name: who speaks to a page says what is seen.
export function named(node, name) {
  const seen = [];
  const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) if (!walk.currentNode.parentNode.closest("title")) seen.push(walk.currentNode.data.trim());
  const text = seen.filter(Boolean).join(" ");
  node.setAttribute("aria-label", name.includes(text) ? name : `${name}, ${text}`);
}

// How much larger than its own pixels an element is drawn: in presenter mode figures are zoomed.
export const zoomOf = (node) => node.currentCSSZoom ?? 1;

// Pixels of the screen for each of an element's own.
export const pixelRatio = (node) => (window.devicePixelRatio || 1) * zoomOf(node);

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

// What a head is called; layer and head from 0.
export const headName = (words, layer, head) => words.named.replace("{layer}", layer + 1).replace("{head}", head + 1);

function download(name, url) {
  const link = element("a");
  link.href = url;
  link.download = name;
  link.click();
}

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
    const button = element("button", "small", kind.toUpperCase());
    button.type = "button";
    button.setAttribute("aria-label", `${words.save} ${kind.toUpperCase()}`);
    button.title = `${words.save} ${kind.toUpperCase()}`;
    button.addEventListener("click", () => { const [svg, name] = make(); save(svg, name, kind); });
    bar.append(button);
  });
  return bar;
}

export const paper = (node) => getComputedStyle(node).getPropertyValue("--st-background-color").trim() || "#fff";
