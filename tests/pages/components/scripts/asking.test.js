import assert from "node:assert/strict";
import test from "node:test";

import { answered, classified, cut, joined, likeMnist, pixels, tokensOf } from "../../../../pages/components/asking.js";

const [A, B, C] = [4, 5, 6];
const SRC = ["<pad>", "<bos>", "<eos>", "<unk>", "a", "b", "c"];
const told = { how: "write", cut: "words", join: "spaced", most_read: 3, most_written: 5, never: [], mask_id: 0, src: SRC, tgt: SRC };
const row = (id) => Array.from({ length: 7 }, (_none, i) => (i === id ? 3 : 0));

// A model that copies its source and ends: position t of the target answers the t-th source token.
const copying = (asked) => async (inputs) => {
  asked.push(Object.fromEntries(Object.entries(inputs).map(([name, { data, sizes }]) => [name, [[...data].map(Number), sizes]])));
  const src = [...inputs.src.data].map(Number).filter((id) => id > 0);
  const length = inputs.tgt_in.sizes[1];
  const rows = Array.from({ length }, (_none, t) => row(src[t] ?? 2));
  return { data: Float32Array.from(rows.flat()), sizes: [1, length, 7] };
};

test("a text is refused in a sentence that says why", () => {
  const why = (text) => { try { cut(text, told); return null; } catch (error) { return [error.sentence, error.values]; } };
  assert.deepEqual(why(" . "), ["nothing", {}]);
  assert.deepEqual(why("a zebra"), ["unknown", { word: "zebra" }]);
  assert.deepEqual(why("a <pad>"), ["unknown", { word: "<pad>" }]);
  assert.deepEqual(why("a b c a"), ["long", { n: 4, most: 3 }]);
  assert.deepEqual(cut("A, b!", told), ["a", "b"]);
});

test("a writer goes on from its own words until it ends", async () => {
  const asked = [];
  const heard = [];
  const said = await answered(told, { src: [null, null], tgt_in: [null, null] }, copying(asked), { ids: [C, A] }, (ids) => heard.push([...ids]));
  assert.deepEqual(said.ids, [C, A, 2]);
  assert.deepEqual(tokensOf(said.ids, SRC), ["c", "a"]);
  assert.deepEqual(heard, [[C], [C, A], [C, A, 2]]);
  assert.deepEqual(asked.map(({ tgt_in }) => tgt_in[0]), [[1], [1, C], [1, C, A]]);
  assert.ok(Math.abs(said.sure[0] - Math.exp(3) / (Math.exp(3) + 6)) < 1e-6);
});

test("an input of one length is padded to it", async () => {
  const asked = [];
  const said = await answered(told, { src: [null, 4], tgt_in: [null, 5] }, copying(asked), { ids: [B] });
  assert.deepEqual(asked[0], { src: [[B, 0, 0, 0], [1, 4]], tgt_in: [[1, 0, 0, 0, 0], [1, 5]] });
  assert.deepEqual(tokensOf(said.ids, SRC), ["b"]);
});

test("what never ends is cut, and what may not be written is not", async () => {
  const always = async (inputs) => ({ data: Float32Array.from([...inputs.tgt_in.data].flatMap(() => [9, 0, 0, 0, 1, 0, 0])), sizes: [1, inputs.tgt_in.sizes[1], 7] });
  const said = await answered({ ...told, how: "continue", most_read: 3, never: [0] }, { tgt_in: [null, null] }, always, { ids: [B, C, C] });
  assert.deepEqual(said.ids, [A, A, A, A, A]);
});

test("hidden words are filled in, and the others stay", async () => {
  const logits = async () => ({ data: Float32Array.from([A, B, C].flatMap(row)), sizes: [1, 3, 7] });
  const slots = { ...told, how: "slots", mask_id: 6 };
  const said = await answered(slots, { src: [null, null] }, logits, { ids: [B, 6] });
  assert.deepEqual(said.ids, [B, B, 0]);
  assert.equal(said.sure[0], 1);
  assert.deepEqual(tokensOf(said.ids, SRC), ["b", "b"]);
});

test("pictures are normalised, channel by channel, and classes have probabilities", async () => {
  const { images } = pixels(Uint8Array.from([0, 255, 0, 255]), [null, 2, 1, 2], { mean: [0.5, 0], std: [0.5, 2] });
  assert.deepEqual([...images.data], [-1, 1, 0, 0.5]);
  const shares = await classified(async () => ({ data: Float32Array.from([1, 1]) }), {});
  assert.deepEqual(shares, [0.5, 0.5]);
});

test("a drawing is scaled and centred by its mass; an empty one is none", () => {
  const drawing = new Uint8Array(112 * 112);
  assert.equal(likeMnist(drawing, 112, 28), null);
  for (let y = 4; y < 44; y += 1) for (let x = 60; x < 70; x += 1) drawing[y * 112 + x] = 200;
  const made = likeMnist(drawing, 112, 28);
  const lit = [...made].flatMap((value, i) => (value > 127 ? [[i % 28, Math.floor(i / 28)]] : []));
  const [rows, columns] = [lit.map(([, y]) => y), lit.map(([x]) => x)];
  assert.equal(Math.max(...rows) - Math.min(...rows) + 1, 20);
  assert.equal(Math.max(...columns) - Math.min(...columns) + 1, 5);
  assert.equal(Math.min(...rows), 4);
  assert.equal(Math.max(...made), 255);
});

test("what a rule does not know is joined by spaces", () => {
  assert.equal(joined(["a", "b"], { join: "another" }), "a b");
});

test("pieces are merged in the order that was learned, and written on", () => {
  const bpe = { ...told, cut: "pieces", join: "united", most_read: 99, merges: ["l o", "▁ lo", "▁lo w", "e r"] };
  const pieces = ["▁low", "▁lo", "er", "▁", "lo", "l", "o", "w", "e", "r", "!"];
  const spec = { ...bpe, src: [...SRC.slice(0, 4), ...pieces] };
  assert.deepEqual(cut(" lower  low! loo", spec), ["▁low", "er", "▁low", "!", "▁lo", "o"]);
  assert.equal(joined(["▁low", "er", "▁low", "!"], spec), "lower low!");
});
