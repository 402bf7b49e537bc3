// Asking a model that a page carries: texts to ids, greedy decoding as the engine decodes, ids to texts.
//
// `told` is of tfm_core/export/asking.py. `call` runs the model once: it takes inputs by name, each
// { type, data, sizes }, and promises { data, sizes } of its logits.

const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];

const spread = (text, signs) => text.replace(signs, " ").split(" ").filter(Boolean);
const words = (text) => spread(text.toLowerCase(), /[\s.,!?;]+/g);
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);

function dates(text, { names }) {
  const cased = (found) => {
    const name = capital(found.toLowerCase());
    return names.includes(name) ? name : name.toLowerCase();
  };
  const plain = text.trim().split(/\s+/).join(" ").replace(/\.$/, "");
  return [...plain.replace(/[A-Za-z]+/g, cased)];
}

function spans(text) {
  let n = 0;
  return words(text).map((word) => (/^(_{2,}|<extra_id_\d+>)$/.test(word) ? `<extra_id_${n++}>` : word));
}

const single = (text) => text.trim().split(/\s+/).join(" ");

// Unicode's form NFC, without hidden characters: as variants/tasks.py has it.
const HIDDEN = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff]/g;
const normalised = (text) => text.replace(HIDDEN, "").normalize("NFC");

// A word has its combining marks and joiners, a sign its own.
const LETTERS = "[\\p{L}\\p{N}_][\\p{L}\\p{N}_\\p{M}\\p{EMod}\\u200c\\u200d]*";
const MARKED = "[^\\p{L}\\p{N}_\\s][\\p{M}\\p{EMod}]*";
const SIGN = `${MARKED}(?:[\\u200c\\u200d]${MARKED})*`;
const WORDS = new RegExp(`${LETTERS}(?:['’\\-]${LETTERS})*|\\n|${SIGN}`, "gu");
const PIECES = new RegExp(` ?${LETTERS}| ?${SIGN}`, "gu");

const RUNNING_PIECES = new RegExp(` ?${LETTERS.slice(0, -1)}{0,63}| ?${SIGN}| +(?= )|\\s`, "gu");

// Neighbours are merged, the pair that was learned first before all others; ▁ is a space.
function merging({ merges }) {
  const ranks = new Map(merges.map((pair, rank) => [pair, rank]));
  return (piece) => {
    let parts = [...piece.replaceAll(" ", "▁")];
    for (;;) {
      const known = parts.slice(1).map((part, i) => ranks.get(`${parts[i]} ${part}`) ?? Infinity);
      const first = Math.min(...known);
      if (first === Infinity) return parts;
      const [left, right] = merges[first].split(" ");
      const merged = [];
      for (let i = 0; i < parts.length; i += 1) {
        if (parts[i] === left && parts[i + 1] === right) { merged.push(left + right); i += 1; } else merged.push(parts[i]);
      }
      parts = merged;
    }
  };
}

// Pieces of the words of a sentence.
function pieces(text, told) {
  const found = ` ${single(normalised(text).replaceAll("▁", " "))}`.match(PIECES) ?? [];
  return found.flatMap(merging(told));
}

// Pieces of a running text, with every space and line break.
function parts(text, told) {
  const merged = merging(told);
  const found = normalised(text).replace(/\r\n?/g, "\n").match(RUNNING_PIECES) ?? [];
  return found.flatMap((piece) =>
    piece.includes("▁") ? [...piece] : merged(piece).map((part) => part.replaceAll("▁", " ")));
}

const CUTS = {
  pieces,
  parts,
  signs: (text) => [...single(normalised(text))],
  spaces: (text) => normalised(text).match(/(?<!\S)<(?=(?:pad|bos|eos|unk)>(?!\S))|\S+/g) ?? [],
  words,
  dates,
  spans,
  gaps: (text) => words(text).map((word) => (/^_{2,}$/.test(word) ? "<mask>" : word)),
  opinion: (text) => words(text.toLowerCase().replace(/(is|was)n['’]t/g, "$1 not")),
  numbers: (text) => spread(text.toLowerCase(), /[-\s,.]+/g),
  symbols: (text) => [...text.toLowerCase().replace(/[\s,;]+/g, "")],
  residues: (text) =>
    text.replace(/(?<=[0-9])\s*[-+−×*·÷/∘,]\s*(?=[0-9])/g, " ").match(/[0-9]+|[^0-9\s=]+/g) ?? [],
  sum: (text) => [...text.replace(/\s+/g, "").replace(/=$/, "")],
  letters: (text) => [...normalised(text).replace(/\r\n?/g, "\n")],
  running: (text) => normalised(text).replace(/\r\n?/g, "\n").match(WORDS) ?? [],
};

const JOINS = {
  plain: (tokens) => tokens.join(""),
  spaced: (tokens) => tokens.join(" "),
  suffixed: (tokens, { joined, ending }) => {
    const text = tokens.map((token, i) => (i === 0 || joined.includes(token) ? token : ` ${token}`)).join("");
    return ending && tokens.at(-1) === ending ? `${text}.` : text;
  },
  united: (tokens) => tokens.join("").replaceAll("▁", " ").trim(),
  sentence: (tokens) => (tokens.length ? `${capital(tokens.join(" ").replaceAll("<mask>", "___"))}.` : ""),
  running: (tokens) => tokens.join(" ")
    .replace(/ *\n */g, "\n").replace(/ ([.,;:!?…)\]}’”।॥۔،؛؟。，、！？：；」』）】》〉])/g, "$1")
    .replace(/([([{‘¿¡「『（【《〈„]) /g, "$1").replace(/" ([^"\n]*) "/g, '"$1"')
    .replace(/(„[^„“\n]*) “|“ /g, (_found, before) => `${before ?? ""}“`),
};

export const joined = (tokens, told) => (JOINS[told.join] ?? JOINS.spaced)(tokens, told);

// The tokens of a text that was typed. Throws { sentence, values } where the model cannot read it.
export function cut(text, told) {
  const known = new Set(told.src.slice(4));
  const tokens = CUTS[told.cut](text, told).map((token) => {
    if (!told.tries_capitals) return token;
    const forms = [token, token.toLowerCase(), capital(token.toLowerCase()), token.toUpperCase()];
    return forms.find((form) => known.has(form)) ?? (told.reads_unknown ? told.src[UNK] : token);
  });
  const strange = tokens.find((token) => !known.has(token) && !(told.reads_unknown && token === told.src[UNK]));
  if (!tokens.length) throw refused("nothing");
  if (strange !== undefined) throw refused("unknown", { word: strange });
  const most = told.most_read - (told.how === "continue" ? 1 : 0);
  if (told.how !== "continue" && tokens.length > most) throw refused("long", { n: tokens.length, most });
  return tokens;
}

function refused(sentence, values = {}) {
  return Object.assign(new Error(sentence), { sentence, values });
}

export const idsOf = (tokens, vocabulary) => tokens.map((token) => vocabulary.indexOf(token));

// The tokens up to the end, without those that stand for nothing.
export function tokensOf(ids, vocabulary) {
  const end = ids.indexOf(EOS);
  return (end < 0 ? ids : ids.slice(0, end)).filter((id) => id !== PAD && id !== BOS).map((id) => vocabulary[id]);
}

// ---- calling

// Ids as an input, padded where the graph was unrolled for one length.
function texts(name, ids, sizes) {
  const length = sizes[name][1] ?? ids.length;
  const data = BigInt64Array.from({ length }, (_none, i) => BigInt(ids[i] ?? PAD));
  return { [name]: { type: "int64", data, sizes: [1, length] } };
}

// Pixels (C, H, W) from 0 to 255, normalised as the model's were.
export function pixels(values, [, channels, height, width], { mean, std }) {
  const area = height * width;
  const data = Float32Array.from(values, (value, i) => {
    const channel = Math.floor(i / area);
    return (value / 255 - mean[channel]) / std[channel];
  });
  return { images: { type: "float32", data, sizes: [1, channels, height, width] } };
}

// The likeliest of a row of logits, and its probability.
function best(row, never) {
  let [at, top] = [-1, -Infinity];
  row.forEach((value, i) => { if (value > top && !never.includes(i)) [at, top] = [i, value]; });
  let sum = 0;
  row.forEach((value, i) => { if (!never.includes(i)) sum += Math.exp(value - top); });
  return [at, 1 / sum];
}

const rowOf = ({ data, sizes }, t) => data.subarray(t * sizes.at(-1), (t + 1) * sizes.at(-1));

// What the model answers: ids and the probability of each. given: ids of the source or of the text to
// continue; or `image`, an input for pictures. heard(ids) is told of each token.
export async function answered(told, sizes, call, { ids = [], image = null }, heard = () => {}) {
  const source = image ?? (sizes.src ? texts("src", ids, sizes) : {});
  if (told.how === "slots") return atOnce(told, await call(source), ids);
  const [written, sure] = [[], []];
  const isContinued = told.how === "continue";
  while (written.length < told.most_written && written.at(-1) !== EOS) {
    const before = isContinued ? [...ids, ...written].slice(-(told.most_read - 1)) : written;
    const seen = [BOS, ...before];
    const logits = await call({ ...source, ...texts("tgt_in", seen, sizes) });
    const [id, share] = best(rowOf(logits, seen.length - 1), told.never);
    written.push(id);
    sure.push(share);
    heard(written);
  }
  return { ids: written, sure };
}

// A model that answers all slots in one pass; where words are hidden, the others stay as they are.
function atOnce(told, logits, given) {
  const found = Array.from({ length: logits.sizes[1] }, (_none, t) => {
    const id = given[t] ?? PAD;
    return told.mask_id && id !== told.mask_id ? [id, 1] : best(rowOf(logits, t), told.never);
  });
  return { ids: found.map(([id]) => id), sure: found.map(([, share]) => share) };
}

// The probability of each class.
export async function classified(call, image) {
  const { data } = await call(image);
  const top = Math.max(...data);
  const shares = Array.from(data, (value) => Math.exp(value - top));
  const sum = shares.reduce((total, share) => total + share, 0);
  return shares.map((share) => share / sum);
}

// ---- drawings

const FAINT = 30; // of 255: paler is background
const INK = 20 / 28; // of the side, that the longer side of a digit fills

// A drawing, light on dark, size x size, as MNIST's digits are: scaled into the middle box and centred
// by its mass (LeCun et al. 1998, III.A), side x side; null where nothing is drawn.
export function likeMnist(values, size, side) {
  const top = values.reduce((most, value) => Math.max(most, value), 0);
  if (top < FAINT) return null;
  const ink = Float32Array.from(values, (value) => Math.floor((value * 255) / top));
  let [left, right, above, below] = [size, -1, size, -1];
  ink.forEach((value, i) => {
    if (value <= FAINT) return;
    const [x, y] = [i % size, Math.floor(i / size)];
    [left, right] = [Math.min(left, x), Math.max(right, x)];
    [above, below] = [Math.min(above, y), Math.max(below, y)];
  });
  const [wide, high] = [right - left + 1, below - above + 1];
  const scale = Math.round(side * INK) / Math.max(wide, high);
  const [width, height] = [wide, high].map((length) => Math.max(1, Math.round(length * scale)));
  const small = shrunk((x, y) => ink[(above + y) * size + left + x], wide, high, width, height);
  const mass = [0, 0, 0];
  small.forEach((value, i) => {
    mass[0] += value;
    mass[1] += value * ((i % width) + 0.5);
    mass[2] += value * (Math.floor(i / width) + 0.5);
  });
  const from = (axis, length) => Math.min(Math.max(Math.round(side / 2 - mass[axis] / Math.max(mass[0], 1)), 0), side - length);
  const [x0, y0] = [from(1, width), from(2, height)];
  const whole = new Uint8Array(side * side);
  small.forEach((value, i) => { whole[(y0 + Math.floor(i / width)) * side + x0 + (i % width)] = value; });
  return whole;
}

// A picture made smaller or larger: each pixel the mean of the area that it covers.
function shrunk(at, wide, high, width, height) {
  const across = covers(wide, width);
  const down = covers(high, height);
  return Uint8Array.from({ length: width * height }, (_none, i) => {
    let [sum, area] = [0, 0];
    for (const [y, tall] of down[Math.floor(i / width)]) {
      for (const [x, broad] of across[i % width]) { sum += at(x, y) * tall * broad; area += tall * broad; }
    }
    return Math.round(sum / area);
  });
}

// For each of `to` cells the cells of `from` that it covers, and how much of each.
function covers(from, to) {
  const each = from / to;
  return Array.from({ length: to }, (_none, i) => {
    const [low, high] = [i * each, (i + 1) * each];
    const parts = [];
    for (let cell = Math.floor(low); cell < Math.min(from, Math.ceil(high)); cell += 1) {
      parts.push([cell, Math.min(high, cell + 1) - Math.max(low, cell)]);
    }
    return parts.filter(([, share]) => share > 1e-9);
  });
}
