import assert from "node:assert/strict";
import test from "node:test";

import { along, mapsAt, sizeOf } from "../../../../pages/components/animation.js";

test("snapshots are evenly spaced along the slider, steps between them by their share", () => {
  const places = [10, 20, 120];
  assert.equal(along(places, 10), 0);
  assert.equal(along(places, 20), 0.5);
  assert.equal(along(places, 70), 0.75);
  assert.equal(along(places, 120), 1);
  assert.equal(along(places, 3), 0);
  assert.equal(along(places, 900), 1);
});

test("the maps of a snapshot are its own part of all weights", () => {
  const view = { shape: [1, 2, 3, 5], values: Float32Array.from({ length: 90 }, (_value, i) => i) };
  assert.equal(sizeOf(view), 30);
  assert.deepEqual([...mapsAt(view, 2).slice(0, 3)], [60, 61, 62]);
  assert.equal(mapsAt(view, 2).length, 30);
});
