// What of a page can have the focus, and whether what has it is seen. As the other scripts of this folder
// one expression: an object of functions.
(() => {
  const KINDS = "a[href], button, input, select, textarea, summary, [tabindex]";
  const THEIRS = "[data-testid=stDataFrame], [data-testid=stFileUploader]"; // see docs/accessibility.md
  const POINTS = [[0.5, 0.5], [0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9]];
  const parent = (node) => node.parentNode ?? node.host;
  const isIn = (node, around) => { for (let one = node; one; one = parent(one)) if (one === around) return true; return false; };

  function all(root = document, found = []) {
    for (const node of root.querySelectorAll("*")) {
      const isOne = node.matches(KINDS) && node.tabIndex >= 0 && !node.disabled && !node.closest(`[inert], ${THEIRS}`);
      if (isOne && node.checkVisibility({ visibilityProperty: true })) found.push(node);
      if (node.shadowRoot) all(node.shadowRoot, found);
    }
    return found;
  }

  function under(x, y, root = document) {
    const node = root.elementFromPoint(x, y);
    return node?.shadowRoot && node.shadowRoot !== root ? under(x, y, node.shadowRoot) ?? node : node;
  }

  function focused() {
    let node = document.activeElement;
    while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
    return node;
  }

  function fault(node) {
    if (!node || node === document.body) return "nothing has the focus";
    const box = node.getBoundingClientRect();
    const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
    const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
    if (left >= right || top >= bottom) return "off screen";
    const label = node.closest("label") ?? node;
    const isSeen = POINTS.some(([across, down]) => {
      const there = under(left + across * (right - left), top + down * (bottom - top));
      return there && (isIn(there, label) || isIn(label, there));
    });
    return isSeen ? "" : "covered";
  }

  const named = (node) => `${node.tagName.toLowerCase()} “${(node.getAttribute("aria-label") || node.textContent).trim().slice(0, 50)}”`;

  return {
    focused: () => fault(focused()),
    // backwards, as with Shift and Tab: the page scrolls up to each
    unseen: async () => {
      window.dispatchEvent(new KeyboardEvent("keydown", { key: "Tab" }));
      const found = [];
      for (const node of all().reverse()) {
        node.focus();
        if (fault(node)) await new Promise((done) => setTimeout(done, 300)); // what explained the stop before goes
        if (fault(node)) found.push(`${fault(node)}: ${named(node)}`);
      }
      return found;
    },
    // the control at a share of all of the page; a press of it keeps the document and saves no file
    choose: (share) => {
      const page = document.querySelector(".st-key-page");
      const isPressed = (node) => node.matches("button, summary, input[type=checkbox]") || (node.origin === location.origin && !node.target);
      const controls = all().filter((node) => isIn(node, page) && isPressed(node)
        && !node.matches("[role=radio], [role=tab], [download]") && !node.closest("[data-testid=stDownloadButton], .modebar"));
      const node = controls[Math.floor(share * controls.length)];
      node?.focus();
      return node ? [named(node), node.matches("input") ? "Space" : "Enter"] : null;
    },
  };
})()
