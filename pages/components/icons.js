// Icons beside words: a screen reader would say the names of their files.

const ICONS = "span[role=img][aria-label$=' icon']";

export function quieten(root) {
  for (const icon of root.querySelectorAll(ICONS)) icon.setAttribute("aria-hidden", "true");
}

export default function ({ parentElement }) {
  const page = parentElement.ownerDocument.body;
  const observer = new MutationObserver((changes) => {
    if (changes.some((change) => change.addedNodes.length > 0)) quieten(page);
  });
  quieten(page);
  observer.observe(page, { childList: true, subtree: true });
  return () => observer.disconnect();
}
