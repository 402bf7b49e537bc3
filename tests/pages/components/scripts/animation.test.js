import assert from "node:assert/strict";
import test from "node:test";

import { along } from "../../../../pages/components/animation.js";

test("snapshots are evenly spaced along the slider, steps between them by their share", () => {
  const places = [10, 20, 120];
  assert.equal(along(places, 10), 0);
  assert.equal(along(places, 20), 0.5);
  assert.equal(along(places, 70), 0.75);
  assert.equal(along(places, 120), 1);
  assert.equal(along(places, 3), 0);
  assert.equal(along(places, 900), 1);
});
