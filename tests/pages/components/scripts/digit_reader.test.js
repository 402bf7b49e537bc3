import assert from "node:assert/strict";
import test from "node:test";

import { highest, percent, stopAt } from "../../../../pages/components/digit_reader.js";

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
