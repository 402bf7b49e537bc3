import assert from "node:assert/strict";
import test from "node:test";

import { marked } from "../../../../pages/components/stage.js";
import { across, drawLines, ends, percent, said, stepFrom, stepTicks, ticks, upward } from "../../../../pages/components/stage_curves.js";
import { arranged } from "../../../../pages/components/stage_heads.js";
import { frameAt, isBetween, pace, positionOf, stepAt, weightsAt } from "../../../../pages/components/player.js";
import { lastUpTo, momentAt, valueAt } from "../../../../pages/components/stage_time.js";

const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-6, `${found} is not ${wanted}`);

test("a position is a step, and a step a position", () => {
  const steps = [0, 1, 9, 99, 1000];
  steps.forEach((step, i) => { near(stepAt(steps, i), step); near(positionOf(steps, step), i); });
  near(stepAt(steps, 2.5), Math.sqrt(10 * 100) - 1);
  [0.2, 1.7, 3.99].forEach((position) => near(positionOf(steps, stepAt(steps, position)), position));
  near(stepAt(steps, 99), 1000);
  near(positionOf(steps, 5000), 4);
  near(stepAt([], 0), 0);
});

test("a line ends at the point that the legend says", () => {
  const line = { quantity: "accuracy", role: "validation", steps: [0, 10, 20], values: [0, 0.3, 0.9] };
  const drawn = [];
  const draw = (_name, x) => drawn.push(x);
  const pen = new Proxy({}, { get: (_pen, name) => (name === "moveTo" || name === "lineTo" ? (...at) => draw(name, ...at) : () => {}), set: () => true });
  const part = { quantity: "accuracy", x: (step) => step, y: (value) => value };
  drawLines({ data: { lines: [line] } }, pen, part, { width: 100, height: 100 }, () => true, 1, 15);
  assert.deepEqual(drawn, [0, valueAt(line, 15).step]);
});

test("what was known at a step is the newest before it", () => {
  const line = { steps: [0, 10, 20], values: [3, null, 1] };
  assert.equal(lastUpTo(line.steps, 9.9), 0);
  assert.deepEqual(valueAt(line, 15), { step: 0, value: 3 });
  assert.deepEqual(valueAt(line, 20), { step: 20, value: 1 });
  assert.equal(valueAt({ steps: [5], values: [1] }, 4), null);
  assert.equal(momentAt([[5, "a"], [9, "b"]], 4), null);
  assert.deepEqual(momentAt([[5, "a"], [9, "b"]], 8.9), [5, "a"]);
});

test("weights are a snapshot's own, and mixed between two", () => {
  const view = { shape: [1, 1, 1, 2], frames: [{}, {}, {}], values: Float32Array.from([0, 1, 0.5, 0.5, 1, NaN]) };
  assert.deepEqual([...weightsAt(view, 1)], [0.5, 0.5]);
  assert.deepEqual([...weightsAt(view, 0.5)], [0.25, 0.75]);
  assert.deepEqual([...weightsAt(view, 2)], [1, NaN]);
  assert.ok(Number.isNaN(weightsAt(view, 1.5)[1])); // what is masked stays masked
  assert.equal(frameAt(1.99, 3), 1);
  assert.equal(frameAt(7, 3), 2);
  assert.ok(isBetween(1.4) && !isBetween(2));
});

test("a short training isn't over at once, a long one doesn't take for ever", () => {
  assert.equal(pace(2), 800);
  assert.equal(pace(400), 220);
  near(pace(31), 300);
});

test("axes: steps evenly or by their logarithm, there and back", () => {
  [true, false].forEach((isLog) => [1, 30, 1000].forEach((step) => near(stepFrom(across(step, 1000, isLog), 1000, isLog), step)));
  assert.equal(across(0, 1000, true), 0);
  assert.deepEqual(stepTicks(1200, true), [1, 10, 100, 1000]);
  assert.deepEqual(ticks(0, 1, 4), [0, 0.5, 1]);
  assert.deepEqual(ends("accuracy", [], [], false), [0, 1]);
  const lines = [{ quantity: "loss", role: "batch", values: [90] }, { quantity: "loss", role: "training", values: [2, null, 0.01] }];
  assert.deepEqual(ends("loss", lines, [{ quantity: "loss", value: 4 }], false), [0, 4.2]); // a spike is cut off
  const range = ends("loss", lines, [], true);
  near(upward(range[0], range, true), 0);
  near(upward(range[1], range, true), 1);
});

test("100% is said only where nothing at all is missing", () => {
  assert.equal(percent(1), "100%");
  assert.equal(percent(0.9999), "99.9%");
  assert.equal(percent(0.5), "50.0%");
});

test("a small loss has two digits, as where Python says it", () => {
  [[1.23456, "1.235"], [0.1, "0.100"], [0.00123, "0.0012"], [0.001, "0.0010"], [0, "0.000"]]
    .forEach(([loss, words]) => assert.equal(said("loss", loss), words));
});

test("predictions are compared place by place", () => {
  const verdicts = (said, truth) => marked([...said], [...truth]).map(({ verdict }) => verdict).join(" ");
  assert.equal(verdicts("abc", "abc"), "right right right");
  assert.equal(verdicts("axc", "abc"), "right wrong right");
  assert.equal(verdicts("ab", "abc"), "right right missing");
  assert.equal(verdicts("abcd", "abc"), "right right right wrong");
  assert.equal(verdicts("", "a"), "missing");
});

test("heads are as large as their room lets them be, fit into it, and carry their names", () => {
  [[1, 4, 690, 200], [2, 4, 690, 200], [3, 4, 490, 240], [1, 1, 300, 300]].forEach(([layers, heads, width, height]) => {
    [[0, 0], [61, 53]].forEach(([left, top]) => {
      const { columns, cell, title, role, slot } = arranged(layers, heads, width, height, 1, [left, top]);
      const rows = columns > heads ? Math.ceil((layers * heads) / columns) : layers * Math.ceil(heads / columns);
      assert.ok(columns <= heads || columns % heads === 0); // no row ends within a layer
      assert.ok(left + columns * slot + (columns - 1) * 6 <= width);
      assert.ok(slot >= (title === 1 ? 92 : 48) || cell === slot);
      assert.ok(rows * (top + cell + 16 * (title + role)) + (rows - 1) * 6 <= height || top || rows > 2);
    });
  });
  const many = arranged(12, 12, 690, 200, 1); // more than fit, so they scroll
  assert.ok(many.columns * many.slot + (many.columns - 1) * 6 <= 690 && many.cell >= 48 && many.title === 1);
});
