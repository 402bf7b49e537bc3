import assert from "node:assert/strict";
import test from "node:test";

import { share } from "../../../../pages/components/insides.js";
import { every, thin, weighed } from "../../../../pages/components/live_figure.js";
import { describe } from "../../../../pages/components/mask_editor.js";

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

test("the mask editor reads out a pair, and says where nothing may be attended to", () => {
  const words = { query: "query", key: "key", score: "score", masked_score: "masked", allowed: "may", forbidden: "may not", lowest: "lowest", weight: "weight", blind: "blind" };
  const view = { words, query: ["a"], key: ["p", "q"], mask: [[false, false]], scores: [[0.5, 1]], weights: [[0, 0]], output: [[0]] };
  assert.deepEqual(describe(view, 0, 1, null).split("\n"), [
    "query 1: a", "key 2: q", "score: 1.000000", "may not", "masked: lowest", "weight: 0.000000", "blind",
  ]);
});
