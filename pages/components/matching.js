// Which entries of the search fit what is typed, the best first.

const MAX = 8;

// Letters alone, without accents and case.
const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const words = (text) => plain(text).split(/[^\p{L}\p{N}]+/u).filter(Boolean);

// How well a name begins with, has, or is explained by what is typed; 0 where it does not fit.
function fit(entry, typed) {
  const name = plain(entry.name);
  const codeNames = plain(entry.also).split(/\s+/); // "num_heads" is one of them, not "num" and "heads"
  if (codeNames.includes(typed)) return 6;
  const begins = (text) => words(text).some((word) => word.startsWith(typed));
  if (name.startsWith(typed)) return 5;
  if (begins(entry.name)) return 4;
  if (begins(entry.also) || codeNames.some((word) => word.startsWith(typed))) return 3;
  if (name.includes(typed)) return 2;
  const known = words(`${entry.name} ${entry.also} ${entry.about}`);
  return words(typed).length && words(typed).every((one) => known.some((word) => word.startsWith(one))) ? 1 : 0;
}

export function matching(entries, text) {
  const typed = plain(text).trim();
  if (!typed) return [];
  return entries
    .map((entry, index) => ({ entry, index, fit: fit(entry, typed) }))
    .filter((one) => one.fit)
    .sort((one, other) => other.fit - one.fit || one.index - other.index)
    .slice(0, MAX);
}
