import assert from "node:assert/strict";
import test from "node:test";
import { found, isInSight } from "../../../../pages/components/outlined.js";

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
