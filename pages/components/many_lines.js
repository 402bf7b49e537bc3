// A figure of very many lines: uPlot draws one on a canvas in a tenth of the time that plotly takes for
// its elements. What is drawn is a plotly figure, which is also what is saved.

import { actButton, element, placeTip, zoomOf } from "./dom.js";
import { decoded } from "./data_table.js";
import { loadPlotly, loadUplot } from "./vendors.js";

const REACH = 30; // pixels from the pointer to the line that it reads
const PALE = 0.2; // what the other lines keep of their ink meanwhile
const SIDE = 58; // pixels for the numbers of an upward axis
const BELOW = 44; // for those along the x axis, with its title
const ABOVE = 10; // between two panels
const DASHES = { dash: [9, 6], dot: [2, 3], dashdot: [9, 5, 2, 5], longdash: [14, 5], longdashdot: [14, 5, 2, 5] };

export const isOfManyLines = (figure) => Boolean(figure.layout.meta?.manyLines);

export const numbers = (packed) => Float32Array.from(decoded(packed) ?? []);

export function dashes(name) {
  if (!name || name === "solid") return [];
  return DASHES[name] ?? name.split(",").map((part) => parseFloat(part));
}

// A trace may hold several lines with a gap between them: [[x, y], ...], each without a gap.
export function pieces(x, y) {
  const found = [];
  let begin = 0;
  for (let i = 0; i <= x.length; i += 1) {
    if (i < x.length && !Number.isNaN(x[i]) && !Number.isNaN(y[i])) continue;
    if (i > begin) found.push([x.subarray(begin, i), y.subarray(begin, i)]);
    begin = i + 1;
  }
  return found;
}

// All x of some lines, each once and ascending, and the values of each line there; undefined between.
export function aligned(lines) {
  const xs = Float64Array.from(new Set(lines.flatMap((line) => Array.from(line.x)))).sort();
  const place = new Map(Array.from(xs, (x, i) => [x, i]));
  const places = lines.map((line) => Int32Array.from(line.x, (x) => place.get(x)));
  const values = lines.map((line, n) => {
    const row = new Array(xs.length);
    places[n].forEach((at, i) => { row[at] = line.y[i]; });
    return row;
  });
  return { xs, places, values };
}

// Of some ascending places, the one whose x is nearest to that of the pointer.
export function nearest(xs, places, at) {
  let [low, high] = [0, places.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] < at) low = middle + 1; else high = middle;
  }
  const before = places[Math.max(0, low - 1)];
  return Math.abs(xs[before] - xs[at]) <= Math.abs(xs[places[low]] - xs[at]) ? before : places[low];
}

export const shownNumber = (value, isShare) => {
  if (isShare) return `${(100 * value).toFixed(1)}%`;
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });
};

// The panels of a figure from the top, each with its axis and its lines.
export function panels({ data, layout }) {
  const axes = Object.keys(layout).filter((name) => name.startsWith("yaxis"))
    .sort((one, other) => layout[other].domain[1] - layout[one].domain[1]);
  return axes.map((name) => {
    const short = name.replace("yaxis", "y");
    const drawable = (y) => (layout[name].type === "log" ? y.map((value) => (value > 0 ? value : NaN)) : y);
    const lines = data.filter((trace) => (trace.yaxis ?? "y") === short).flatMap((trace) => (
      pieces(numbers(trace.x), drawable(numbers(trace.y))).map(([x, y]) => ({
        x,
        y,
        name: trace.name,
        colour: trace.line.color,
        width: trace.line.width,
        dash: dashes(trace.line.dash),
        alpha: trace.opacity ?? 1,
        isRead: trace.hoverinfo !== "skip",
      }))
    ));
    return { axis: layout[name], isShare: layout[name].tickformat === ".0%", lines };
  });
}

// The text of what plotly takes for marks.
const plain = (text) => new DOMParser().parseFromString(text ?? "", "text/html").documentElement.textContent;

function rangeOf(axis, isX) {
  if (axis.range) return () => axis.range;
  if (axis.type === "log") return undefined;
  return (_chart, low, high) => {
    const first = axis.rangemode === "tozero" ? Math.min(0, low) : low;
    return [first, isX ? high : high + 0.05 * (high - first || 1)];
  };
}

function options(state, panel, at, isLast, size) {
  const { figure, look } = state.many;
  const [across, up] = [figure.layout.xaxis, panel.axis];
  const ink = { stroke: look.font.color, font: `${look.font.size}px ${look.font.family}`, labelFont: `${look.font.size}px ${look.font.family}` };
  const grid = { stroke: look.xaxis.gridcolor, width: 1 };
  const ticks = { show: false };
  const write = (_chart, values) => values.map((value) => (value === null || !isLast ? "" : shownNumber(value, false)));
  const upward = (_chart, values) => values.map((value) => {
    if (value === null) return "";
    return panel.isShare ? `${Math.round(100 * value)}%` : shownNumber(value, false);
  });
  return {
    ...size,
    padding: [ABOVE, 24, 0, 0],
    legend: { show: false },
    focus: { alpha: PALE },
    cursor: {
      sync: { key: state.many.key, scales: ["x", null] },
      focus: { prox: REACH, dist: (_chart, n, _at, value, pointer) => (panel.lines[n - 1].isRead ? value - pointer : Infinity) },
      dataIdx: (chart, n, i) => (n === 0 ? i : nearest(chart.data[0], panel.places[n - 1], i)),
      points: { show: (_chart, n) => (panel.lines[n - 1]?.isRead ? undefined : false), size: 6 },
      drag: { x: true, y: true, uni: 20 },
      y: false,
      move: (chart, left, top) => [left / zoomOf(chart.root), top / zoomOf(chart.root)],
    },
    scales: {
      x: { time: false, distr: across.type === "log" ? 3 : 1, range: rangeOf(across, true) },
      y: { distr: up.type === "log" ? 3 : 1, range: rangeOf(up, false) },
    },
    axes: [
      { ...ink, grid, ticks, values: write, label: isLast ? plain(across.title.text) : undefined, labelSize: 20, size: isLast ? BELOW - 20 : 0, space: 60 },
      { ...ink, grid, ticks, values: upward, label: plain(up.title.text), labelSize: 18, size: SIDE - 18, space: 28 },
    ],
    series: [{}, ...panel.lines.map((line) => ({
      stroke: line.colour,
      width: line.width,
      dash: line.dash,
      alpha: line.alpha,
      points: { show: line.x.length === 1, size: 5, fill: line.colour },
    }))],
    hooks: {
      setScale: [(chart, name) => { if (name === "x") follow(state, chart); }],
      setSeries: [(chart, n) => read(state, chart, panel, n)],
      setCursor: [(chart) => { if (chart.cursor.left < 0) hush(state); }],
      draw: [() => drawn(state, at)],
    },
  };
}

// One x axis for all: zooming a panel zooms the others, and what is drawn next begins there.
function follow(state, chart) {
  const { many } = state;
  if (many.isFollowing || !many.charts.includes(chart)) return;
  const { min, max } = chart.scales.x;
  many.isFollowing = true;
  many.charts.forEach((other) => {
    if (other !== chart && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale("x", { min, max });
  });
  many.isFollowing = false;
  const [xs] = chart.data;
  const isWhole = min <= xs[0] && max >= xs[xs.length - 1];
  many.zoom = isWhole ? null : [min, max];
}

function read(state, chart, panel, n) {
  const line = n ? panel.lines[n - 1] : null;
  const i = n ? chart.cursor.idxs[n] : null;
  if (!line?.isRead || i === null || i === undefined) { hush(state); return; }
  const { tip } = state.many;
  const [x, y] = [chart.data[0][i], chart.data[n][i]];
  const swatch = element("span", "swatch");
  swatch.style.background = line.colour;
  const across = `${plain(state.many.figure.layout.xaxis.title.text)} ${shownNumber(x, false)}`;
  const up = `${shownNumber(y, panel.isShare)} ${plain(panel.axis.title.text)}`;
  tip.replaceChildren(swatch, element("b", "", plain(line.name)), element("span", "values", `${up} · ${across}`));
  tip.hidden = false;
  const { left, top } = chart.over.getBoundingClientRect();
  const zoom = zoomOf(state.node);
  placeTip(tip, left + zoom * chart.valToPos(x, "x"), top + zoom * chart.valToPos(y, "y"));
}

const hush = (state) => { state.many.tip.hidden = true; };

// The page is told once all panels are painted: how many lines there are, and along what.
function drawn(state, at) {
  const { many, node } = state;
  many.painted.add(at);
  if (many.painted.size < many.panels.length) return;
  node.dataset.lines = String(Math.max(...many.panels.map((panel) => panel.lines.filter((line) => line.isRead).length)));
  node.dataset.along = plain(many.figure.layout.xaxis.title.text);
}

function toolbar(state, words) {
  const bar = element("div", "tools");
  const button = (text, help, press) => bar.append(actButton("", text, press, help));
  const save = (format) => () => {
    const figure = savedFigure(state);
    const size = { width: state.node.clientWidth, height: state.full };
    return loadPlotly(state.data.root, figure.data).then((Plotly) => Plotly.downloadImage(figure, { format, filename: "figure", ...size }));
  };
  button("PNG", words.savePng, save("png"));
  button("SVG", words.saveSvg, save("svg"));
  button("⤢", words.whole, () => {
    state.many.charts.forEach((chart) => chart.setData(chart.data, true));
    state.many.zoom = null;
  });
  return bar;
}

const savedFigure = (state) => {
  const { data, layout } = JSON.parse(state.data.figure);
  return { data, layout: { ...layout, template: state.many.template } };
};

// Draw all panels anew; a zoom is kept as long as it is the same figure that moves on.
export async function drawManyLines(state, figure, template) {
  const { node, data } = state;
  const UPlot = await loadUplot(data.root);
  if (!node.isConnected) return;
  if (node.data) state.plotly.purge(node); // it had fewer lines until now
  const isSame = state.many?.revision === figure.layout.uirevision;
  const zoom = isSame ? state.many.zoom : null;
  clearManyLines(state);
  const tip = element("div", "tip reads", { hidden: true });
  const key = `lines-${Math.random()}`;
  const many = { figure, template, look: template.layout, key, tip, charts: [], painted: new Set(), revision: figure.layout.uirevision, zoom };
  state.many = many;
  many.panels = panels(figure).map((panel) => ({ ...panel, ...aligned(panel.lines) }));
  const holder = element("div", "many-lines");
  node.replaceChildren(holder, tip, toolbar(state, data.words));
  const room = Math.floor((state.full - BELOW) / many.panels.length);
  many.panels.forEach((panel, at) => {
    const isLast = at === many.panels.length - 1;
    const size = { width: node.clientWidth, height: room + (isLast ? BELOW : 0) };
    const chart = new UPlot(options(state, panel, at, isLast, size), [panel.xs, ...panel.values], holder);
    many.charts.push(chart);
    if (zoom) chart.setScale("x", { min: zoom[0], max: zoom[1] });
  });
}

export function resizeManyLines(state) {
  state.many.charts.forEach((chart) => chart.setSize({ width: state.node.clientWidth, height: chart.height }));
}

export function clearManyLines(state) {
  if (!state.many) return;
  state.many.charts.forEach((chart) => chart.destroy());
  state.node.replaceChildren();
  delete state.node.dataset.lines;
  state.many = null;
}
