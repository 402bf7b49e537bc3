import assert from "node:assert/strict";
import test from "node:test";

import { strongest } from "../../../../pages/components/cells.js";
import { highest, mapOf, percent, stopAt } from "../../../../pages/components/digit_lab.js";

test("the digit of the largest share is read, and shares are said in whole per cent", () => {
  assert.equal(highest([0.1, 0.2, 0.6, 0.1]), 2);
  assert.equal(percent(0.996), "100%");
  assert.equal(percent(0.414), "41%");
});

test("what was read at a step stands above the slider's thumb at that step", () => {
  assert.equal(stopAt(0, 5), "calc(8px + (100% - 16px) * 0)");
  assert.equal(stopAt(3, 5), "calc(8px + (100% - 16px) * 0.75)");
  assert.equal(stopAt(0, 1), "calc(8px + (100% - 16px) * 1)");
});

test("a map is found by its time and its number", () => {
  const values = Uint8Array.from({ length: 2 * 3 * 4 }, (_none, i) => i);
  assert.deepEqual([...mapOf({ values, n: 3, patches: 4 }, 1, 2)], [20, 21, 22, 23]);
});

test("the strongest patch is found by row and column; what is masked is none", () => {
  assert.deepEqual(strongest([NaN, 1, 2, 0, 9, 0, 3, 0, 0], 3), { value: 9, row: 1, column: 1 });
});
