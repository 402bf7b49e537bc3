// The small picture of a finding, of curves or rows of colours, which draws itself once.

import { drawn } from "./dom.js";

const WIDE = 320, HIGH = 150, INSET = 6;
const BAND = 0.9; // of a row
const ABOVE = 0.4; // of the distance between the levels

const ends = (values) => [Math.min(...values), Math.max(...values)];
const place = (value, [low, high], [from, to]) => from + ((value - low) / (high - low || 1)) * (to - from);

// Where curves, [x, y, colour], and the levels that are known stand. isLoss: what is between the levels is what
// matters, so curves begin at the top. isSquare: a plane around 0, as wide as it is high.
export function placed({ lines, levels = [], isLoss = false, isSquare = false }) {
  const [lowest, highest] = ends(levels);
  const top = isLoss ? highest + ABOVE * (highest - lowest) : Infinity;
  const clipped = lines.map(([x, y, colour]) => [x, y.map((value) => Math.min(value, top)), colour]);
  const reach = Math.max(...clipped.flatMap(([x, y]) => [...x, ...y]).map(Math.abs));
  const room = (HIGH - 2 * INSET) / 2;
  const across = isSquare ? [-reach, reach] : ends(clipped.flatMap(([x]) => x));
  const up = isSquare ? [-reach, reach] : ends([...levels, ...clipped.flatMap(([, y]) => y)]);
  const wide = isSquare ? [WIDE / 2 - room, WIDE / 2 + room] : [INSET, WIDE - INSET];
  const high = [HIGH - INSET, INSET];
  const round = (value) => Math.round(value * 10) / 10;
  return {
    ways: clipped.map(([x, y, colour]) => [x.map((value, i) => [value, y[i]].map((one, axis) => round(place(one, [across, up][axis], [wide, high][axis])))), colour]),
    levels: levels.map((value) => round(place(value, up, high))),
  };
}

// Neighbours of one colour as one box each: [first, how many, colour].
export function runs(colours) {
  return colours.reduce((found, colour, i) => {
    const last = found.at(-1);
    if (last?.[2] === colour) last[1] += 1;
    else found.push([i, 1, colour]);
    return found;
  }, []);
}

function curves(data) {
  const { ways, levels } = placed(data);
  const arrows = data.isSquare ? ways.map(([points, stroke]) => [[[WIDE / 2, HIGH / 2], points.at(-1)], stroke]) : [];
  return [
    ...levels.map((y) => drawn("line", { class: "level", x1: INSET, x2: WIDE - INSET, y1: y, y2: y })),
    ...[...ways, ...arrows].map(([points, stroke], i) => drawn("polyline", { class: data.isSquare && i < ways.length ? "way thin" : "way", pathLength: 1, points: points.join(" "), stroke })),
  ];
}

// Weights as shades of a colour; what can't be seen is left out.
export const shades = ({ weights, colour }) => weights.map((row) => row.map((weight) => {
  const ink = Math.round(255 * weight);
  return ink ? `${colour}${ink.toString(16).padStart(2, "0")}` : "";
}));

function bands(data) {
  const rows = data.rows ?? shades(data);
  const high = (HIGH - 2 * INSET) / rows.length, wide = (WIDE - 2 * INSET) / rows[0].length;
  const group = drawn("g", { class: "bands" });
  rows.forEach((row, n) => runs(row).filter(([, , fill]) => fill).forEach(([first, count, fill]) => {
    group.append(drawn("rect", { x: INSET + first * wide, y: INSET + n * high, width: count * wide, height: BAND * high, fill }));
  }));
  return [group];
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".moving-picture"), shown = JSON.stringify(data);
  if (root.shown === shown) return;
  root.shown = shown;
  const svg = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  svg.append(...(data.lines ? curves(data) : bands(data)));
  root.replaceChildren(svg);
}
