import assert from "node:assert/strict";
import test from "node:test";

import { aligned, dashes, isOfManyLines, nearest, numbers, panels, pieces, shownNumber } from "../../../../pages/components/many_lines.js";

const packed = (values) => ({ dtype: "f4", bdata: Buffer.from(new Float32Array(values).buffer).toString("base64") });

test("numbers arrive as they were packed", () => {
  assert.deepEqual([...numbers(packed([1, 2.5, -3]))], [1, 2.5, -3]);
  assert.deepEqual([...numbers({ dtype: "f8", bdata: Buffer.from(new Float64Array([7]).buffer).toString("base64") })], [7]);
  assert.deepEqual([...numbers([4, 5])], [4, 5]);
});

test("a gap parts a trace into lines, and no line is lost", () => {
  const found = pieces(Float32Array.of(1, 2, NaN, 1, 3, NaN, 9), Float32Array.of(5, 6, NaN, 7, 8, NaN, 1));
  assert.deepEqual(found.map(([x, y]) => [[...x], [...y]]), [[[1, 2], [5, 6]], [[1, 3], [7, 8]], [[9], [1]]]);
});

test("lines of different steps stand on one axis with each of their values", () => {
  const { xs, places, values } = aligned([
    { x: Float32Array.of(10, 30), y: Float32Array.of(1, 3) },
    { x: Float32Array.of(2, 10), y: Float32Array.of(4, 5) },
  ]);
  assert.deepEqual([...xs], [2, 10, 30]);
  assert.deepEqual(values.map((row) => Array.from(row)), [[undefined, 1, 3], [4, 5, undefined]]);
  assert.deepEqual(places.map((row) => [...row]), [[1, 2], [0, 1]]);
});

test("the pointer reads the nearest value of a line, on both sides and beyond its ends", () => {
  const xs = [0, 1, 2, 10, 11, 50];
  assert.equal(nearest(xs, [0, 3], 1), 0);
  assert.equal(nearest(xs, [0, 3], 2), 0);
  assert.equal(nearest(xs, [0, 3], 4), 3);
  assert.equal(nearest(xs, [1, 3], 0), 1);
  assert.equal(nearest(xs, [2], 5), 2);
});

test("every line style of plotly has its dashes", () => {
  assert.deepEqual(dashes("solid"), []);
  assert.deepEqual(dashes("12px,3px,2px,3px"), [12, 3, 2, 3]);
  for (const name of ["dash", "dot", "dashdot", "longdash", "longdashdot"]) assert.ok(dashes(name).length >= 2, name);
});

test("panels stand from the top, each with the lines of its axis", () => {
  const line = { color: "#123456", width: 2, dash: "dot" };
  const figure = {
    layout: { meta: { manyLines: true }, yaxis: { domain: [0.5, 1] }, yaxis2: { domain: [0, 0.4], tickformat: ".0%" }, xaxis: {} },
    data: [
      { x: packed([1, 2]), y: packed([3, 4]), yaxis: "y", name: "one", line },
      { x: packed([1, 2]), y: packed([0.3, 0.4]), yaxis: "y2", name: "one", line, hoverinfo: "skip", opacity: 0.4 },
    ],
  };
  assert.ok(isOfManyLines(figure));
  assert.ok(!isOfManyLines({ layout: {} }));
  const [upper, lower] = panels(figure);
  assert.deepEqual([upper.isShare, lower.isShare], [false, true]);
  assert.deepEqual([upper.lines[0].isRead, lower.lines[0].isRead], [true, false]);
  assert.deepEqual([upper.lines[0].alpha, lower.lines[0].alpha], [1, 0.4]);
});

test("a share is read as per cent, a small number keeps its figures", () => {
  assert.equal(shownNumber(0.5, true), "50.0%");
  assert.equal(shownNumber(0.00012344, false), "0.0001234");
  assert.equal(shownNumber(12000, false), "12,000");
});
