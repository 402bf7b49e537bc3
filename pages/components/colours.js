// Colours of weights and of cells: hexadecimal to numbers, and between the stops of a scale.

export const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// A colour as canvases take it, in one number.
export const abgr = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

// A scale of 256 colours, as canvases take them.
export const colours = (scale) => Uint32Array.from({ length: 256 }, (_none, i) => abgr(mix(scale, i / 255)));

export function mix(scale, share) {
  const stops = scale.map(rgb);
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const from = Math.min(Math.floor(at), stops.length - 2);
  return stops[from].map((v, c) => Math.round(v + (stops[from + 1][c] - v) * (at - from)));
}

// Black or white, whichever can be read on a colour: at least 4.5 to 1 (WCAG 2.2, 1.4.3).
export function inkOn(colour) {
  const [r, g, b] = colour.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
