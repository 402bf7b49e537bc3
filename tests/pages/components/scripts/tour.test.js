import assert from "node:assert/strict";
import test from "node:test";
import { found, isInSight } from "../../../../pages/components/outlined.js";
import { rememberedAnswers } from "../../../../pages/components/kept.js";
import { left } from "../../../../pages/components/tour_resume.js";

const place = (inner = null, children = []) => ({
  shadowRoot: inner && { querySelector: (selector) => inner[selector] ?? null },
  querySelectorAll: () => children,
});
const page = (...hosts) => ({ querySelector: (selector) => `page ${selector}`, querySelectorAll: () => hosts });

test("without a component the page is searched", () => {
  assert.equal(found(".st-key-begin", page()), "page .st-key-begin");
});

test("inside components the first match of the first host that has one is found", () => {
  const bare = place(null, [place({ ".other": 1 })]);
  const full = place(null, [place(), place({ ".heads": "heads" })]);
  assert.equal(found(".host >>> .heads", page(bare, full)), "heads");
  assert.equal(found(".host >>> .heads", page(bare)), null);
  assert.equal(found(".host >>> .heads", page(place({ ".heads": "own" }))), "own");
});

test("what fits stands between the strip and the bar, what does not begins there", () => {
  const room = { top: 100, bottom: 500 };
  const box = (top, height) => ({ top, height, bottom: top + height });
  assert.ok(isInSight(box(100, 400), room));
  assert.ok(!isInSight(box(90, 300), room));
  assert.ok(!isInSight(box(250, 300), room));
  assert.ok(isInSight(box(110, 900), room));
  assert.ok(!isInSight(box(60, 900), room));
  assert.ok(!isInSight(box(400, 900), room));
});

test("a browser's memory is taken only if it names a stop", () => {
  const tours = { digit: { title: "A digit", count: 6 } };
  assert.deepEqual(left('["digit.3","abc"]', tours), { name: "digit", n: 3, value: ["digit.3", "abc"] });
  assert.deepEqual(left('["digit.3","abc",{"digit.1":0}]', tours).value, ["digit.3", "abc"]);
  for (const text of [null, "", "{", "7", "[]", '["digit.3"]', '["digit.0","a"]', '["digit.7","a"]', '["digit.x","a"]',
    '["toString.1","a"]', '["digit.3",5]', '[["digit.3"],"a"]']) {
    assert.equal(left(text, tours), null, text);
  }
});

test("answers are remembered of one tour over one run", () => {
  const text = '["digit.3","abc",{"digit.1":0,"digit.2":"x","digit.3":2}]';
  assert.deepEqual(rememberedAnswers(text, { place: "digit.5", run: "abc" }), { "digit.1": 0, "digit.3": 2 });
  assert.deepEqual(rememberedAnswers(text, { place: "digit.5", run: "other" }), {});
  assert.deepEqual(rememberedAnswers(text, { place: "translate.5", run: "abc" }), {});
  for (const bad of [null, "{", '["digit.3","abc"]', '["digit.3","abc",[1]]', '["digit.3","abc",7]']) {
    assert.deepEqual(rememberedAnswers(bad, { place: "digit.3", run: "abc" }), {}, bad);
  }
});
