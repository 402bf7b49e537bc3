import assert from "node:assert/strict";
import test from "node:test";

import { bright, colours, mix, rgb } from "../../../../pages/components/colours.js";

test("a hexadecimal colour is three numbers", () => {
  assert.deepEqual(rgb("#102fff"), [16, 47, 255]);
});

test("a mixture stands between its stops, and ends at them", () => {
  const scale = ["#000000", "#646464", "#ffffff"];
  assert.deepEqual(mix(scale, 0), [0, 0, 0]);
  assert.deepEqual(mix(scale, 0.25), [50, 50, 50]);
  assert.deepEqual(mix(scale, 1), [255, 255, 255]);
  assert.deepEqual(mix(scale, 7), [255, 255, 255]);
  assert.deepEqual(mix(scale, -7), [0, 0, 0]);
});

test("a table of colours is the mixtures, opaque, blue before green before red", () => {
  const scale = ["#0a141e", "#c8d2dc"];
  const table = colours(scale);
  assert.equal(table.length, 256);
  [0, 97, 255].forEach((i) => {
    const [r, g, b] = mix(scale, i / 255);
    assert.equal(table[i], ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
  });
});

test("white is bright, and blue is not", () => {
  assert.equal(bright([255, 255, 255]), true);
  assert.equal(bright([20, 40, 160]), false);
});
