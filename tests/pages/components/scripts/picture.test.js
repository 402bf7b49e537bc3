import assert from "node:assert/strict";
import test from "node:test";

import { layout, mapAt, under } from "../../../../pages/components/picture_layout.js";
import { everyRow, isNamed } from "../../../../pages/components/picture_paint.js";
import { TimeBar } from "../../../../pages/components/picture_time.js";
import { browser } from "./browser.js";

const stage = (kind, shape, rows, more = {}) => ({
  kind, shape, rows, columns: shape.at(-1), keys: 0, block: 0, skips: -1, were: [], title: kind, ...more,
});
const rows = (n) => Array.from({ length: n }, (_, i) => i);
const lane = (n, stages) => ({ name: "encoder", tokens: rows(n).map(String), stages });
const laid = (lanes) => layout({ lanes, answers: 5 }, "", (text) => 7 * text.length, () => 0.5);
const heads = (n, blocks) => lane(7, rows(blocks).map((block) => stage("heads", [n, 7, 7], rows(7), { block: block + 1 })));

test("the maps of a lane leave no hole", () => {
  for (let n = 1; n <= 24; n += 1) {
    for (const blocks of [1, 2, 12]) {
      const [spot] = laid([heads(n, blocks)]).places;
      assert.equal(spot.grid.columns * spot.grid.lines, n);
    }
  }
});

test("what is under the middle of a cell is that cell", () => {
  const picture = laid([lane(7, [stage("tokens", [7], rows(7)), stage("vectors", [7, 11], rows(7)), ...heads(3, 1).stages])]);
  const [, vectors, maps] = picture.places;
  const { head: none, row, column } = under(picture, vectors.x + (vectors.w * 4.5) / 11, vectors.y + (vectors.h * 2.5) / 7);
  assert.deepEqual([none, row, column], [null, 2, 4]);
  const map = mapAt(maps, 1);
  const hit = under(picture, map.x + (map.w * 6.5) / 7, map.y + (map.h * 3.5) / 7);
  assert.deepEqual([hit.spot, hit.head, hit.row, hit.column], [maps, 1, 3, 6]);
  assert.equal(under(picture, -100, -100), null);
});

test("no two names touch, however high their rows are", () => {
  for (let pixels = 1; pixels < 40; pixels += 0.25) {
    const size = Math.max(11, Math.min(13, Math.floor(pixels / 1.35)));
    assert.ok(everyRow(pixels, 13) * pixels >= 1.3 * size, `rows of ${pixels} px`);
  }
  assert.equal(everyRow(15, 13), 1);
  assert.equal(everyRow(12, 13), 2);
  assert.deepEqual(rows(10).filter((row) => isNamed(row, 3, 5)), [0, 5, 9]);
  assert.deepEqual(rows(10).filter((row) => isNamed(row, 3, null)), [0, 3, 6, 9]);
});

test("rows of ten tokens have room for their names", () => {
  const { lanes, unit } = laid([lane(10, [stage("tokens", [10], rows(10))]), lane(10, [stage("tokens", [10], rows(10))])]);
  assert.ok(lanes.every(({ row }) => everyRow(row / unit, 13) === 1));
});

test("a place in an image is its patch", () => {
  const picture = laid([lane(10, [stage("image", [1, 28, 28], rows(10).slice(1))])]); // the first row is CLS
  const [spot] = picture.places;
  const hit = under(picture, spot.x + spot.w * 0.9, spot.y + spot.h * 0.5);
  assert.equal(hit.row, 5);
  assert.equal(spot.stage.rows[hit.row], 6);
});

test("while the server makes one step, only the last of those wanted meanwhile is asked for", () => {
  browser();
  const sent = [];
  const shown = [];
  const words = { step: "Step {step}", newest: "(newest)" };
  const bar = new TimeBar(words, (step) => sent.push(step), (view) => shown.push(view.training.step));
  const view = (step) => ({ values: [], training: { step, steps: [0, 9, 70, 800], about: "a run", isLive: false } });
  const { slider } = bar.player;
  const drag = (place) => { slider.value = String(place); slider.listeners.input(); };

  assert.equal(bar.take(view(800)).training.step, 800);
  [2, 1, 0].forEach(drag);
  assert.deepEqual(sent, [70]);
  assert.equal(bar.take(view(70)).training.step, 70);
  assert.deepEqual(sent, [70, 0]);
  assert.equal(slider.value, "0"); // it stays where the hand is
  drag(2);
  assert.deepEqual(shown, [70]); // seen before: at once
  assert.equal(bar.take(view(0)).training.step, 70);
  assert.deepEqual(sent, [70, 0, 70]);
  bar.take(view(70));
  drag(2);
  assert.deepEqual(sent, [70, 0, 70]); // the server shows it
});
