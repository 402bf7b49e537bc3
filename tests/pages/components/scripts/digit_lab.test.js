import assert from "node:assert/strict";
import test from "node:test";

import { mapOf, strongest } from "../../../../pages/components/digit_lab.js";

test("a map is found by its time and its number", () => {
  const values = Uint8Array.from({ length: 2 * 3 * 4 }, (_none, i) => i);
  assert.deepEqual([...mapOf({ values, n: 3, patches: 4 }, 1, 2)], [20, 21, 22, 23]);
});

test("the strongest patch is named by row and column from 1", () => {
  assert.deepEqual(strongest(Uint8Array.from([0, 1, 2, 0, 9, 0, 3, 0, 0])), { row: 2, column: 2 });
});
