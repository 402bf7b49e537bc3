import assert from "node:assert/strict";
import test from "node:test";

import { matching } from "../../../../pages/components/search.js";

const entry = (name, also = "", about = "") => ({ name, also, about });
const ENTRIES = [
  entry("Masks", "", "Page"),
  entry("Attention head", "num_heads head_dim W_O 멀티헤드"),
  entry("Query, key, value", "Q K V W_Q"),
  entry("Padding mask", "make_src_mask 패딩 마스크"),
];
const found = (typed) => matching(ENTRIES, typed).map((one) => one.entry.name);

test("a name of code is found whole, before its parts", () => {
  assert.equal(found("num_heads")[0], "Attention head");
  assert.equal(found("W_Q")[0], "Query, key, value");
  assert.equal(found("make_src_mask")[0], "Padding mask");
});

test("case, accents and the beginning of a word are enough", () => {
  assert.deepEqual(found("PADD"), ["Padding mask"]);
  assert.equal(found("head_")[0], "Attention head");
});

test("Korean is found as it is typed, one word or two", () => {
  assert.deepEqual(found("패딩 마스크"), ["Padding mask"]);
  assert.deepEqual(found("멀티"), ["Attention head"]);
});

test("what fits nothing is not found", () => assert.deepEqual(found("zzz"), []));
