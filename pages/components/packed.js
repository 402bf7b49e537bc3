// What the components of the attention page share: reading weights, colours, making elements.

const HALF = new Float32Array(65536); // float16 bits -> value, so that hover reads the exact weight
for (let bits = 0; bits < 65536; bits += 1) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) HALF[bits] = fraction ? NaN : sign * Infinity;
  else if (exponent === 0) HALF[bits] = sign * fraction * 2 ** -24;
  else HALF[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function unpack(bytes) {
  const copy = bytes.slice(); // its own buffer: offsets are then multiples of four
  const length = new DataView(copy.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length)));
  const body = copy.buffer.slice(4 + length);
  const values = header.kind === "float16"
    ? Float32Array.from(new Uint16Array(body), (bits) => HALF[bits])
    : new Float32Array(body);
  return { ...header, values };
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

function colours(scale) {
  const stops = scale.map(rgb);
  const table = new Uint32Array(256);
  for (let i = 0; i < 256; i += 1) {
    const place = (i / 255) * (stops.length - 1);
    const from = Math.min(Math.floor(place), stops.length - 2);
    const [r, g, b] = stops[from].map((v, c) => Math.round(v + (stops[from + 1][c] - v) * (place - from)));
    table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

// One event for every view of the page: while the training plays in the grid, the chosen head's
// weights of the moment go to whoever shows that head.
const FRAME = "attention-frame";

function download(name, url) {
  const link = element("a");
  link.href = url;
  link.download = name;
  link.click();
}

const SVG = "http://www.w3.org/2000/svg";

function drawn(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  if (text !== undefined) made.textContent = text;
  return made;
}

function svgUrl(svg) {
  const text = new XMLSerializer().serializeToString(svg);
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

// Save an <svg> as it stands, or as a picture of twice its size.
function save(svg, name, kind) {
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

function saveButtons(words, make) {
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

const paper = (node) => getComputedStyle(node).getPropertyValue("--st-background-color").trim() || "#fff";
