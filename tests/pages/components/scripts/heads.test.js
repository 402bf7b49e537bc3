import assert from "node:assert/strict";
import test from "node:test";

import { nameAt, shortened } from "../../../../pages/components/cells.js";
import { wrapped } from "../../../../pages/components/head_grid.js";
import { describe, received } from "../../../../pages/components/heads.js";
import { middle, ofToken, strongest } from "../../../../pages/components/head_lines.js";

const words = { named: "Layer {layer}, head {head}", key: "key", weight: "weight", masked: "masked", patch: "patch" };

test("a cell is described by its tokens, counted as they are drawn, and its exact weight", () => {
  const weights = Float32Array.from({ length: 2 * 3 * 2 * 5 }, (_value, i) => i / 100);
  const keys = ["21: p", "22: q", "23: r", "24: s", "25: t"];
  const view = { shape: [2, 3, 2, 5], weights, block: 1, rows: ["query 1: a", "2: writes b, after a"], keys, words };
  assert.equal(describe(view, 5, 1, 4), "Layer 2, head 3\n2: writes b, after a\nkey 25: t\nweight 0.5900");
  view.weights[59] = NaN;
  assert.match(describe(view, 5, 1, 4), /0 \(masked\)$/);
});

test("a cell that stands for several tokens names the first and the last", () => {
  const names = ["1: a", "2: b", "3: c", "4: d", "5: e"];
  assert.equal(nameAt(names, 2, 2), "5: e");
  assert.equal(nameAt(names, 1, 2), "3: c … 4: d");
});

test("a head over a picture shows one row, or the mean of all, without CLS", () => {
  const weights = Float32Array.from([0.5, 0.25, 0.25, 0, 0.5, 0.5, 0, 0.25, 0.75]);
  assert.deepEqual([...received(weights, 3, 3, { first: 1, row: 0 })], [0.25, 0.25]);
  assert.deepEqual([...received(weights, 3, 3, { first: 1, row: null })].map((v) => v.toFixed(3)), ["0.333", "0.500"]);
  const view = { shape: [1, 1, 3, 3], weights, words, over: { first: 1, row: 1, who: "read by patch 1,1" } };
  assert.equal(describe(view, 0, 0, 0), "Layer 1, head 1\nread by patch 1,1\npatch 1,1\nweight 0.5000");
});

test("labels are cut between words", () => {
  assert.equal(wrapped("one two three", 13), 1);
  assert.equal(wrapped("one two three", 8), 2);
  assert.equal(wrapped("unbreakable", 4), 1);
  assert.equal(wrapped("불분명, 키 5.8개", 15), 2); // Hangul is twice as wide
});

test("the lines of a token are its row or its column, without what is masked", () => {
  const view = { query: ["a", "b"], key: ["p", "q", "r"], values: Float32Array.from([0.5, NaN, 0.5, 0.2, 0.8, 0]) };
  assert.deepEqual(ofToken(view, ["q", 0]), [[0, 0], [0, 2]]);
  assert.deepEqual(ofToken(view, ["k", 1]), [[1, 1]]);
});

test("the strongest lines come first, and the thinnest are left out", () => {
  const view = { query: ["a", "b"], key: ["p", "q"], values: Float32Array.from([0.3, 0.009, 0.02, 0.9]) };
  assert.deepEqual(strongest(view), [[1, 1], [0, 0], [1, 0]]);
});

test("a few words beside many patches are spread over the whole height", () => {
  const view = { query: ["a", "b", "c"], key: Array.from({ length: 49 }, String) };
  assert.equal(middle(view, "q", 2), middle(view, "k", 48));
  assert.equal(middle(view, "q", 0), middle(view, "k", 0));
});

test("a long token is cut, and a blank one can be seen", () => {
  assert.equal(shortened("internationalisation"), "internation…");
  assert.equal(shortened(" "), "␣");
});
