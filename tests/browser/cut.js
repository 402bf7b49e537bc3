// Returns the words that a reader cannot see whole at this width: cut by their box, or outside of the page or of their figure.
() => {
  const HOLDERS = "button, h1, h2, h3, label, legend, summary, option, [role=tab], [role=option], .stMarkdown p, .stMarkdownEllipsis";
  const main = document.querySelector("[data-testid=stMain]");
  const found = [];

  // A row of tabs or options may be longer than the page if it can be scrolled.
  function scrolls(node) {
    for (let above = node; above && above !== main; above = above.parentElement ?? above.getRootNode().host) {
      if (/auto|scroll/.test(getComputedStyle(above).overflowX)) return true;
    }
    return false;
  }

  function look(root) {
    root.querySelectorAll("*").forEach((node) => {
      if (node.shadowRoot) look(node.shadowRoot);
      if (!node.matches(HOLDERS) || !node.textContent.includes("⟦")) return;
      const box = node.getBoundingClientRect();
      const style = getComputedStyle(node);
      if (!box.width || !box.height || style.visibility === "hidden" || style.clipPath !== "none") return;
      const isCut = style.overflowX !== "visible" && node.scrollWidth > node.clientWidth + 2;
      const isOutside = box.right > window.innerWidth + 1 && !scrolls(node);
      if (isCut || isOutside) found.push(`${node.tagName}: ${node.textContent.trim().slice(0, 80)}`);
    });
  }
  look(document);
  // A figure clips what it writes: names in legends, on axes and scales, and notes.
  document.querySelectorAll(".live-figure .main-svg text").forEach((node) => {
    const box = node.getBoundingClientRect();
    const edge = node.closest(".live-figure").getBoundingClientRect();
    if (!box.width || node.closest(".hoverlayer")) return;
    const beyond = Math.max(edge.left - box.left, box.right - edge.right, edge.top - box.top, box.bottom - edge.bottom);
    if (beyond > 2) found.push(`${Math.round(beyond)} px outside of its figure: ${node.textContent.slice(0, 80)}`);
  });
  return found;
}
