import assert from "node:assert/strict";
import test from "node:test";

import { attempt } from "../../../../pages/components/vendors.js";

const failing = (times) => {
  const calls = { n: 0 };
  const action = () => {
    calls.n += 1;
    if (calls.n <= times) throw new Error(`failure ${calls.n}`);
    return "drawn";
  };
  return { calls, action };
};

test("what fails twice is done at the third attempt", async () => {
  const { calls, action } = failing(2);
  assert.equal(await attempt(action, { pause: 0 }), "drawn");
  assert.equal(calls.n, 3);
});

test("what fails every time says its last reason", async () => {
  const { calls, action } = failing(9);
  await assert.rejects(attempt(action, { pause: 0 }), /failure 3/);
  assert.equal(calls.n, 3);
});
