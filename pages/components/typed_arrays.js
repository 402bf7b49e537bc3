// Arrays as plotly sends them: base64 of numbers, of one dimension or two.

const KINDS = {
  f4: Float32Array, f8: Float64Array, i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array, u4: Uint32Array,
};

// The values of an array, or its rows; what is not packed is returned as it is.
export function decoded(packed) {
  if (!packed?.bdata) return packed;
  const bytes = Uint8Array.from(atob(packed.bdata), (letter) => letter.charCodeAt(0));
  const values = new KINDS[packed.dtype](bytes.buffer);
  const [rows, columns] = String(packed.shape ?? "").split(",").map(Number);
  if (!columns) return values;
  return Array.from({ length: rows }, (_row, i) => values.subarray(i * columns, (i + 1) * columns));
}
