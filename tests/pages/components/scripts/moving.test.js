import assert from "node:assert/strict";
import test from "node:test";

import { movedCell } from "../../../../pages/components/live_figure.js";
import { stepOf } from "../../../../pages/components/moving.js";
import { completions } from "../../../../pages/components/word_chips.js";
import { changed, isInSight } from "../../../../pages/components/reveal.js";

test("words follow the film of the same thing, and else stand where the server stands", () => {
  const data = { animation: "run cross 0", step: 100, trees: { 0: [], 8: [], 100: [] } };
  assert.equal(stepOf(data, { animation: "run cross 0", step: 8 }), 8);
  assert.equal(stepOf(data, { animation: "run cross 1", step: 8 }), 100);
  assert.equal(stepOf(data, { animation: "run cross 0", step: 9 }), 100);
  assert.equal(stepOf(data, null), 100);
});

test("what a press opened is brought into sight, and nothing that was there", () => {
  assert.equal(changed({ cell: "", deeper: "" }, { cell: "", deeper: "heads" }), "deeper");
  assert.equal(changed({ cell: "1" }, { cell: "" }), undefined);
  assert.ok(isInSight({ top: 120, bottom: 600 }, 720));
  assert.ok(!isInSight({ top: 700, bottom: 900 }, 720));
  assert.ok(!isInSight({ top: -400, bottom: 20 }, 720));
});

test("the arrow keys move over the cells of a map and stop at its edges", () => {
  assert.deepEqual(movedCell([0, 0], "ArrowUp", 5, 7), [0, 0]);
  assert.deepEqual(movedCell([0, 0], "ArrowRight", 5, 7), [0, 1]);
  assert.deepEqual(movedCell([4, 6], "ArrowDown", 5, 7), [4, 6]);
});

test("the last word is completed, and what stands before it is kept", () => {
  const words = ["teacher", "the", "today", "dog"];
  assert.deepEqual(completions("A dog saw t", words, " "), ["A dog saw teacher", "A dog saw the", "A dog saw today"]);
  assert.deepEqual(completions("the", words, " "), []);
  assert.deepEqual(completions("te", words, " "), ["teacher"]);
  assert.deepEqual(completions("", words, " "), []);
});
