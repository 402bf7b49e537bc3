import assert from "node:assert/strict";
import test from "node:test";

import { stepOf } from "../../../../pages/components/moving.js";
import { moved } from "../../../../pages/components/keys.js";
import { completions } from "../../../../pages/components/word_chips.js";
import { changed, isInSight } from "../../../../pages/components/effects.js";

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

test("the arrow keys move over cells and stop at their edges", () => {
  assert.equal(moved("ArrowUp", 0, 35, 7), 0);
  assert.equal(moved("ArrowRight", 0, 35, 7), 1);
  assert.equal(moved("ArrowRight", 6, 35, 7), 6);
  assert.equal(moved("ArrowDown", 34, 35, 7), 34);
  assert.equal(moved("ArrowDown", 3, 10), 4);
  assert.equal(moved("ArrowDown", 9, 10), 0);
  assert.equal(moved("Enter", 0, 35, 7), -1);
});

test("the last word is completed, and what stands before it is kept", () => {
  const words = ["teacher", "the", "today", "dog"];
  assert.deepEqual(completions("A dog saw t", words, " "), ["A dog saw teacher", "A dog saw the", "A dog saw today"]);
  assert.deepEqual(completions("the", words, " "), []);
  assert.deepEqual(completions("te", words, " "), ["teacher"]);
  assert.deepEqual(completions("", words, " "), []);
});
