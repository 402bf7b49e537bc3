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
