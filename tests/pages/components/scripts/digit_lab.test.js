import assert from "node:assert/strict";
import test from "node:test";

import { strongest } from "../../../../pages/components/cells.js";
import { mapOf } from "../../../../pages/components/digit_reader.js";

test("a map is found by its time and its number", () => {
  const values = Uint8Array.from({ length: 2 * 3 * 4 }, (_none, i) => i);
  assert.deepEqual([...mapOf({ values, n: 3, patches: 4 }, 1, 2)], [20, 21, 22, 23]);
});

test("the strongest patch is found by row and column; what is masked is none", () => {
  assert.deepEqual(strongest([NaN, 1, 2, 0, 9, 0, 3, 0, 0], 3), { value: 9, row: 1, column: 1 });
});
