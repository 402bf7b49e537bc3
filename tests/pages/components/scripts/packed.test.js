import assert from "node:assert/strict";
import test from "node:test";

import { unpack } from "../../../../pages/components/cells.js";

function message(header, body) {
  const text = new TextEncoder().encode(JSON.stringify(header).padEnd(64));
  const bytes = new Uint8Array(4 + text.length + body.byteLength);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  bytes.set(new Uint8Array(body), 4 + text.length);
  return bytes;
}

test("half precision is read exactly", () => {
  const bits = [0x3c00, 0x3555, 0x0001, 0x8000, 0x7bff, 0xc000, 0x7c00];
  const { values, kind } = unpack(message({ kind: "float16" }, Uint16Array.from(bits).buffer));
  assert.equal(kind, "float16");
  assert.deepEqual([...values], [1, 0.333251953125, 2 ** -24, -0, 65504, -2, Infinity]);
});

test("what is not a number stays none, for a masked weight is", () => {
  const { values } = unpack(message({ kind: "float16" }, Uint16Array.from([0x7e00, 0x3800]).buffer));
  assert.ok(Number.isNaN(values[0]));
  assert.equal(values[1], 0.5);
});

test("single precision is read as it is, and the header comes along", () => {
  const sent = Float32Array.from([0.1, -7.5, 3e9]);
  const view = unpack(message({ kind: "float32", shape: [1, 3] }, sent.buffer));
  assert.deepEqual(view.shape, [1, 3]);
  assert.deepEqual([...view.values], [...sent]);
});
