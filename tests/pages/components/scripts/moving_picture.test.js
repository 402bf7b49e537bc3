import assert from "node:assert/strict";
import test from "node:test";
import { placed, runs, shades } from "../../../../pages/components/moving_picture.js";

test("curves fill their picture, begin at its top, and known values cross it", () => {
  const { ways, levels } = placed({ lines: [[[0, 2, 4], [1, 0.5, 0], "a"], [[1], [0.5], "b"]], levels: [0.5] });
  assert.deepEqual(ways, [[[[6, 6], [160, 75], [314, 144]], "a"], [[[83, 75]], "b"]]);
  assert.deepEqual(levels, [75]);
});

test("a loss begins at the top, a little above the highest level", () => {
  const { ways, levels } = placed({ lines: [[[0, 1], [99, 0], "a"]], levels: [0, 10], isLoss: true });
  assert.deepEqual(ways[0][0], [[6, 6], [314, 144]]);
  assert.deepEqual(levels, [144, 45.4]);
});

test("a plane is as wide as high, with 0 in its middle", () => {
  assert.deepEqual(placed({ lines: [[[0, 2], [0, -2], "a"]], isSquare: true }).ways[0][0], [[160, 75], [229, 144]]);
});

test("neighbours of one colour are one box", () => {
  assert.deepEqual(runs(["a", "a", "", "a"]), [[0, 2, "a"], [2, 1, ""], [3, 1, "a"]]);
});

test("weights are shades, and none where nothing can be seen", () => {
  assert.deepEqual(shades({ weights: [[1, 0.001, 0.03]], colour: "#2f7fc1" }), [["#2f7fc1ff", "", "#2f7fc108"]]);
});
