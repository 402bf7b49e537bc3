// Returns every text of the page that stands outside of ⟦brackets⟧: [where, text]. It looks into shadow
// roots, drawings, names for screen readers and what was written on canvases.
() => {
  const NAMES = ["aria-label", "aria-valuetext", "aria-description", "title", "placeholder", "alt"];
  const SKIPPED = "script, style, noscript, template, code, pre, .katex, [data-testid$=Icon], [data-testid=stIconMaterial], [role=img][translate=no]";
  const found = [];
  const note = (where, text) => {
    if (/[A-Za-z]{3,}/.test(text) && !/[⟦⟧]/.test(text)) found.push([where, text.trim()]);
  };
  const depth = (text) => (text.match(/⟦/g) ?? []).length - (text.match(/⟧/g) ?? []).length;

  // Bold words and links are nodes of their own inside of a sentence.
  function isInSentence(node) {
    const range = document.createRange();
    range.setEnd(node, 0);
    let above = node.parentElement;
    for (let level = 0; above && level < 8; level += 1, above = above.parentElement) {
      range.setStart(above, 0);
      if (depth(range.toString()) > 0) return true;
    }
    return false;
  }

  function look(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.data.trim() && !isInSentence(node)) note(node.parentElement?.closest("svg") ? "drawing" : "text", node.data);
      return;
    }
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (node.matches(SKIPPED)) return;
      NAMES.forEach((name) => note(name, node.getAttribute(name) ?? ""));
      if (node.shadowRoot) look(node.shadowRoot);
    }
    node.childNodes.forEach(look);
  }

  look(document.documentElement);
  window.drawnTexts?.forEach((text) => note("canvas", text));
  window.drawnTexts?.clear();
  return found;
}
