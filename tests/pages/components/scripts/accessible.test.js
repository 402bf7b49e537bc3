import assert from "node:assert/strict";
import test from "node:test";

import { news } from "../../../../pages/components/announcing.js";
import { csvOf, decoded, shownCell, tablesOf } from "../../../../pages/components/data_table.js";
import { describedLine, pitch, range } from "../../../../pages/components/stage_curves.js";

const packed = (values, dtype, shape) => ({ dtype, shape, bdata: Buffer.from(values.buffer).toString("base64") });

test("packed numbers come out as they went in, rows as rows", () => {
  assert.deepEqual([...decoded(packed(Int16Array.of(3, -7), "i2"))], [3, -7]);
  const rows = decoded(packed(Float64Array.of(1, 2, 3, 5, 7, 11), "f8", "2, 3"));
  assert.deepEqual(rows.map((row) => [...row]), [[1, 2, 3], [5, 7, 11]]);
  assert.deepEqual(decoded(["a"]), ["a"]);
});

test("lines of the same axes are columns, and every place has one row", () => {
  const data = [
    { x: packed(Float32Array.of(0, 5, 13), "f4"), y: packed(Float32Array.of(4, 2, 0.5), "f4"), name: "training", mode: "lines" },
    { x: [5, 17], y: [3, 1], name: "validation", mode: "lines+markers" },
    { x: [0, 99], y: [0, 99], name: "aid", hoverinfo: "skip" },
  ];
  const [table, ...rest] = tablesOf({ data, layout: { xaxis: { title: { text: "step" } }, yaxis: { title: { text: "loss" } } } });
  assert.equal(rest.length, 0);
  assert.deepEqual(table.head, ["step", "training", "validation"]);
  assert.deepEqual(table.rows, [[0, 4, null], [5, 2, 3], [13, 0.5, null], [17, null, 1]]);
});

test("a line that passes a place twice is told point by point", () => {
  const [table] = tablesOf({ data: [{ x: [1, 1], y: [2, 3], mode: "lines" }], layout: {} });
  assert.equal(table.rows.length, 2);
});

test("a map is a table with the words of its axes", () => {
  const axis = (words) => ({ tickvals: words.map((_word, i) => i), ticktext: words });
  const [{ head, rows }] = tablesOf({
    data: [{ type: "heatmap", z: packed(Float32Array.of(0.25, 0.75, 0.5, 0.5), "f4", "2, 2") }],
    layout: { xaxis: axis(["k0", "&lt;eos&gt;"]), yaxis: axis(["q0<br><i>zero</i>", "q1"]) },
  });
  assert.deepEqual(head, ["", "k0", "<eos>"]);
  assert.deepEqual(rows, [["q0 zero", 0.25, 0.75], ["q1", 0.5, 0.5]]);
});

test("bars that lie and trees are tables of their names and numbers", () => {
  const [bars] = tablesOf({
    data: [{ type: "bar", orientation: "h", x: packed(Float32Array.of(0.5, 0.25), "f4"), y: ["head 1", "head 2"], name: "share" }],
    layout: { xaxis: { title: { text: "right" } }, yaxis: { title: { text: "without" } } },
  });
  assert.deepEqual([bars.head, bars.rows], [["without", "share"], [["head 1", 0.5], ["head 2", 0.25]]]);
  const [tree] = tablesOf({ data: [{ type: "treemap", ids: ["all", "all/a"], values: packed(Int16Array.of(5, 3), "i2") }], layout: {} });
  assert.deepEqual(tree.rows, [["all", 5], ["all/a", 3]]);
});

test("a file holds every number, and no formula", () => {
  const text = csvOf([{ caption: "c", head: ["a", "b"], rows: [["=1+1", 0.123456789], ['say "x", y', null], ["-2", -2]] }]);
  assert.equal(text, "a,b\r\n'=1+1,0.123456789\r\n\"say \"\"x\"\", y\",\r\n-2,-2");
  assert.equal(shownCell(0.123456789), "0.1235");
  assert.equal(shownCell(123457), "123457");
  assert.equal(shownCell(NaN), "");
});

const WORDS = { step_of: "Step {step} of {total}", loss: "Loss", training: "training", one_value: "{name}: {value} at {at}.",
  line: "{name}: {first} at {start}, {last} at {end}.", line_and_extremes: "{name}: {first}, {last}, {low} at {low_at}, {high} at {high_at}." };

test("a curve is told by its ends and its extremes", () => {
  const told = (values) => describedLine({ quantity: "loss", role: "training", steps: [0, 7, 11], values }, WORDS);
  assert.equal(told([4, 2, 1]), "training: 4.000 at 0, 1.000 at 11.");
  assert.equal(told([4, 0.5, 1]), "training: 4.000, 1.000, 0.500 at 7, 4.000 at 0.");
  assert.equal(told([null, 2, null]), "training: 2.000 at 7.");
  assert.equal(told([null, null, null]), "");
});

test("a training tells its first step, its moments and its end, and nothing twice", () => {
  const filled = (template, step, total) => template.replace("{step}", step).replace("{total}", total);
  const at = (now, more = {}) => ({ live: true, paused: false, ended: "", moments: [], now, total: 30, words: WORDS, ...more });
  const told = (before, data) => news(before, data, filled);
  assert.equal(told(null, at(0)), null);
  assert.equal(told(at(0), at(3)), "Step 3 of 30");
  assert.equal(told(at(3), at(9)), null);
  assert.equal(told(at(9), at(11, { moments: [[11, "It aligns."]] })), "It aligns.");
  assert.equal(told(at(11, { moments: [[11, "It aligns."]] }), at(13, { moments: [[11, "It aligns."]] })), null);
  assert.equal(told(at(9), at(11, { moments: [[11, "It aligns."]], paused: true })), null);
  assert.equal(told(at(29), at(30, { live: false, ended: "Finished." })), "Finished.");
  assert.equal(told(null, at(30, { live: false, ended: "Finished." })), null);
  assert.equal(told(at(30, { live: false, ended: "Finished." }), at(30, { live: false, ended: "Finished." })), null);
});

test("a higher loss has a higher tone, an octave for each equal factor", () => {
  const [low, high] = range({ values: [null, 4, 1, 0, 16] });
  assert.deepEqual([low, high], [1, 16]);
  const tones = [1, 2, 4, 8, 16].map((value) => pitch(value, low, high));
  const steps = tones.slice(1).map((tone, i) => tone / tones[i]);
  steps.forEach((step) => assert.ok(step > 1 && Math.abs(step - steps[0]) < 1e-9));
  assert.ok(Number.isFinite(pitch(3, 3, 3)));
  assert.deepEqual(range({ values: [null] }), [0, 0]);
});
