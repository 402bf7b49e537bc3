// What Streamlit itself writes, in English always, in the language of the app. All that is known of where
// it writes, and of what it opens, stands here: an upgrade that renames a part leaves English words, or the
// focus where Streamlit puts it, and nothing else.

const NAMED = ["aria-label", "title", "placeholder", "alt"];
const THEIRS = "header, [data-testid=stFileUploaderDropzone]"; // whose words are Markdown, like ours
const OURS = "[data-testid=stMarkdownContainer], [data-testid^=stBidiComponent], [role=option], [data-baseweb=tag], code, textarea";

export const OVERLAY = "[data-testid=stPopoverBody], [role=dialog]"; // what opens above the page
export const close = () => document.querySelector("[data-testid=stPopoverButton][aria-expanded=true]")?.click();
export const TOOLS = "[data-testid=stElementToolbar]"; // seen where the pointer is
export const isDrawing = () => document.querySelector("[data-testid=stApp]")?.dataset.testScriptState === "running";

// Only what differs is written: each write is seen again.
function replace(node, said) {
  if (node.nodeType === Node.TEXT_NODE) {
    const parent = node.parentElement;
    if (parent?.closest(OURS) && !parent.closest(THEIRS)) return;
    const text = said(node.data);
    if (text !== node.data) node.data = text;
    return;
  }
  for (const name of NAMED) {
    const before = node.getAttribute?.(name);
    if (!before) continue;
    const text = said(before);
    if (text !== before) node.setAttribute(name, text);
  }
}

function replaceBelow(root, said) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.currentNode; node; node = walker.nextNode()) replace(node, said);
}

// Replaces the earlier words, or the English ones, in the whole document.
export function reword(state, words) {
  const said = phrasebook(words, state.words);
  state.words = words;
  state.observer?.disconnect();
  replaceBelow(document.body, said);
  if (!Object.keys(words).length) return;
  state.observer = new MutationObserver((changes) => changes.forEach(({ type, target, addedNodes }) => {
    if (type === "childList") addedNodes.forEach((node) => replaceBelow(node, said));
    else replace(target, said);
  }));
  state.observer.observe(document.body, {
    childList: true, characterData: true, attributes: true, attributeFilter: NAMED, subtree: true,
  });
}

// Fixed phrases, perhaps with one {name} in them, from one language into another.

const PLACE = /\{\w+(?::[^}]*)?\}/;
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// The function that puts a text, in English or in the words of before, into the words of now.
// words, before: the English phrase -> the phrase; what is not among them stays as it is.
export function phrasebook(words, before = {}) {
  const plain = new Map();
  const patterns = [];
  const learn = (from, to) => {
    if (!PLACE.test(from)) { plain.set(from, to); return; }
    const [head, tail] = from.split(PLACE).map(escaped);
    patterns.push([new RegExp(`^${head}(.+)${tail}$`, "s"), to]);
  };
  Object.entries(before).forEach(([english, phrase]) => learn(phrase, words[english] ?? english));
  Object.entries(words).forEach(([english, phrase]) => learn(english, phrase));
  return (text) => {
    const bare = text.trim();
    if (!bare) return text;
    const phrase = plain.get(bare);
    if (phrase !== undefined) return text.replace(bare, () => phrase);
    const [pattern, to] = patterns.find(([each]) => each.test(bare)) ?? [];
    return pattern ? text.replace(bare, () => to.replace(PLACE, () => pattern.exec(bare)[1])) : text;
  };
}
