import assert from "node:assert/strict";
import test from "node:test";

import { share } from "../../../../pages/components/insides.js";
import { every, thin, weighed } from "../../../../pages/components/live_figure.js";
import { readOut } from "../../../../pages/components/number_sheet.js";

const axis = (n) => ({ tickmode: "array", tickvals: Array.from({ length: n }, (_value, i) => i), ticktext: Array.from({ length: n }, (_value, i) => `t${i}`) });

test("an animation writes its weight into the hover text of any language", () => {
  assert.equal(weighed("질의 1: a<br>가중치 <span>0.1000</span> (가림)", 0.25), "질의 1: a<br>가중치 <span>0.2500</span> (가림)");
});

test("every n-th token is written where all would cover each other", () => {
  const one = axis(40);
  every(one, 40, 200, 11);
  assert.deepEqual(one.tickvals.slice(0, 3), [0, 3, 6]);
  assert.deepEqual(one.ticktext.slice(0, 3), ["t0", "t3", "t6"]);
});

test("a few tokens are all written, however narrow the page", () => {
  const one = axis(11);
  every(one, 11, 20, 11);
  assert.equal(one.tickvals.length, 11);
});

test("a narrow page thins both sides of a square map", () => {
  const layout = { xaxis: { ...axis(60), tickangle: -60 }, yaxis: { ...axis(60), scaleanchor: "x" }, height: 900 };
  thin({ layout }, 300);
  assert.ok(layout.xaxis.tickvals.length < 60);
  assert.ok(layout.yaxis.tickvals.length < 60);
});

test("the longest axis tells how much of its room is taken, a free one takes it all", () => {
  const square = (length) => ({ isFree: false, domain: [0, 0.5], length });
  assert.equal(share([square(100), square(150)], 400), 0.75);
  assert.equal(share([square(100), { isFree: true }], 400), 1);
  assert.equal(share([], 400), 1);
});

test("a pair of a mask is read out from all boards", () => {
  const grid = { rows: ["a"], columns: ["p", "q"], row_title: "query", column_title: "key", values: [["0.5", "1"]], states: [] };
  const cell = (says, names) => ({ board: { title: "Scores" }, grid: { ...grid, says }, row: 0, column: 1, names });
  const pointed = cell("score: {value}", ["0,1"]);
  const output = cell("output: {value}", ["o0"]);
  assert.deepEqual(readOut(pointed, [pointed, cell("{row} reads {column}", ["0,1"]), output]).split("\n"), [
    "query 1: a", "key 2: q", "score: 1", "a reads q",
  ]);
});
