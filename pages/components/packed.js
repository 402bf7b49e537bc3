// How weights arrive: header length (uint32), JSON header, then float16 or float32, little-endian.

const HALF = new Float32Array(65536); // float16 bits -> value, so that hover reads the exact weight
for (let bits = 0; bits < 65536; bits += 1) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) HALF[bits] = fraction ? NaN : sign * Infinity;
  else if (exponent === 0) HALF[bits] = sign * fraction * 2 ** -24;
  else HALF[bits] = sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function unpack(bytes) {
  const copy = bytes.slice(); // its own buffer: offsets are then multiples of four
  const length = new DataView(copy.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, 4 + length)));
  const body = copy.buffer.slice(4 + length);
  const values = header.kind === "float16"
    ? Float32Array.from(new Uint16Array(body), (bits) => HALF[bits])
    : new Float32Array(body);
  return { ...header, values };
}
