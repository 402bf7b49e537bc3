// Keys that belong to the whole page, from wherever nobody types.

const TYPES = "input, textarea, select, [contenteditable]:not([contenteditable=false]), [role=textbox]";

// Whether a key was pressed for the page: not in a field, not with others, not under an open dialog.
export function isPageKey(event, key) {
  if (event.key !== key || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return false;
  return !event.composedPath().some((node) => node.matches?.(TYPES)) && !document.querySelector("[role=dialog]");
}
