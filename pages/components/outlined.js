// Finding what a tour outlines, also inside components, and whether all of it can be seen.

const INSIDE = " >>> ";

// "host >>> inner": the first such inside a component below a host; else the first in the page.
export function found(selector, page = document) {
  const [host, inner] = selector.split(INSIDE);
  if (!inner) return page.querySelector(host);
  for (const place of page.querySelectorAll(host)) {
    for (const node of [place, ...place.querySelectorAll("*")]) {
      const match = node.shadowRoot?.querySelector(inner);
      if (match) return match;
    }
  }
  return null;
}

// The room between what stays at the top of the window and the bar at its bottom.
export function besides(bar) {
  const strip = document.querySelector(".st-key-strip")?.getBoundingClientRect();
  return { top: Math.max(0, strip?.bottom ?? 0), bottom: bar.getBoundingClientRect().top };
}

// Whether a box stands between them; one that is larger need only begin there, or fill the room.
export function isInSight(box, { top, bottom }) {
  if (box.height <= bottom - top) return box.top >= top - 1 && box.bottom <= bottom + 1;
  return box.top <= top + 1 + (bottom - top) / 4 && box.top >= top - 1;
}
