import assert from "node:assert/strict";
import test from "node:test";

import { colours, inkOn, mix, rgb, unpack } from "../../../../pages/components/cells.js";

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

test("what is written on a colour can be read: at least 4.5 to 1", () => {
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  for (let r = 0; r < 256; r += 5) for (let g = 0; g < 256; g += 5) for (let b = 0; b < 256; b += 15) {
    const ground = luminance([r, g, b]);
    const contrast = inkOn([r, g, b]) === "#000" ? (ground + 0.05) / 0.05 : 1.05 / (ground + 0.05);
    assert.ok(contrast >= 4.5, `${[r, g, b]}: ${contrast}`);
  }
});

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
