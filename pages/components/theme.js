// Whether the page is dark, asked of its own background.

const darkness = new Map(); // by colour: it is asked for twice a second, and a canvas costs

export function isDark(element) {
  const colour = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  if (!darkness.has(colour)) darkness.set(colour, looksDark(colour));
  return darkness.get(colour);
}

function looksDark(colour) {
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour || "#fff";
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
}

