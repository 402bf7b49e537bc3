// A run as one page that asks nobody: what the stage and the model need stands in the page itself.

import { answered, classified, cut, idsOf, joined, likeMnist, pixels, tokensOf } from "./asking.js";
import { visible } from "./cells.js";
import { bytes, element, filled, isCalm } from "./dom.js";
import { DrawingBoard } from "./drawing_board.js";
import { followTheme, openedPart, playFilm } from "./film_page.js";
import { percent } from "./stage_curves.js";

// ---- the model itself, asked in the page: a text, or a drawing; loaded at the first question

const SIDE = 112; // pixels of the board
const MAX_CLASSES = 10;

// The model as a function, from the parts of the page; one pass at a time.
async function load(sizes) {
  const { ort } = window;
  const url = URL.createObjectURL(new Blob([await openedPart("runtime")], { type: "application/wasm" }));
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = { "ort-wasm-simd.wasm": url, "ort-wasm.wasm": url };
  const session = await ort.InferenceSession.create(await openedPart("model"), { executionProviders: ["wasm"] });
  URL.revokeObjectURL(url);
  return async (inputs) => {
    const feeds = Object.fromEntries(Object.entries(inputs).map(([name, one]) => [name, new ort.Tensor(one.type, one.data, one.sizes)]));
    const { logits } = await session.run(feeds);
    return { data: logits.data, sizes: logits.dims };
  };
}

function buildAsking(root, { told, sizes, examples, words }) {
  const state = { told, sizes, examples, words, call: null, asked: 0, parts: {} };
  const answer = element("div", "answer", words.ready, { "aria-live": "polite" });
  const isTyped = Boolean(told.cut);
  state.parts = { answer };
  const left = element("div", "question");
  if (isTyped) left.append(textForm(state));
  if (told.is_drawn) left.append(board(state));
  left.append(chips(state));
  root.append(left, answer);
  root.hidden = false;
  root.asking = state;
}

// Load the model once, then answer; of several questions only the last one's answer is shown.
async function ask(state, question) {
  const { parts: { answer }, words } = state;
  const number = ++state.asked;
  answer.setAttribute("aria-busy", "true"); // who listens hears the whole answer at its end
  if (!state.loaded) answer.textContent = words.loading;
  state.loaded ??= load(state.sizes);
  try {
    const call = await state.loaded;
    await question(call, () => number === state.asked);
  } catch (error) {
    if (number === state.asked) answer.textContent = `${words.failed} ${error.message}`;
  } finally {
    if (number === state.asked) answer.setAttribute("aria-busy", "false");
  }
}

function textForm(state) {
  const { told, words } = state;
  const form = element("form");
  const field = { id: "asked-text", autocomplete: "off", spellcheck: false };
  const input = element(told.how === "continue" ? "textarea" : "input", "", field);
  input.value = state.examples[0]?.text ?? told.example;
  const button = element("button", "small", told.how === "continue" ? words.go_on : words.ask, { type: "submit" });
  form.append(element("label", "", words.type, { for: field.id }), input, button);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    readText(state, input.value);
  });
  state.parts.input = input;
  return form;
}

function readText(state, text) {
  const { told, words, parts: { answer } } = state;
  let tokens;
  try {
    tokens = cut(text, told);
  } catch (error) {
    if (!error.sentence) throw error;
    state.asked += 1;
    answer.textContent = filled(words[error.sentence], { some: some(told), ...error.values });
    return;
  }
  answerText(state, tokens, text);
}

function some({ src }) {
  const own = src.slice(4);
  const every = Math.max(1, Math.floor(own.length / 12));
  return own.filter((_token, i) => i % every === 0).slice(0, 12).join(", ");
}

function answerText(state, tokens, text) {
  const { told, sizes } = state;
  ask(state, async (call, isLast) => {
    const before = told.how === "continue" ? text : "";
    const given = { ids: idsOf(tokens, told.src) };
    const said = await answered(told, sizes, call, given, (ids) => {
      if (isLast()) showText(state, before, ids, null);
    });
    if (isLast()) showText(state, before, said.ids, said.sure);
  });
}

function showText(state, before, ids, sure) {
  const { told, words, parts: { answer } } = state;
  answer.textContent = "";
  const tokens = tokensOf(ids, told.tgt);
  answer.dataset.tokens = JSON.stringify(tokens);
  const isSpaced = before && told.join === "running" && tokens.length;
  answer.append(element("p", "said", element("span", "given", before), isSpaced && " ", element("b", "", joined(tokens, told))));
  if (!sure) return;
  const parts = tokens.map((token, i) => (
    element("span", "t", visible(token), element("small", "", percent(sure[i])))
  ));
  answer.append(element("p", "tokens", ...parts), element("p", "note", tokens.length ? words.sure : words.silent));
}

function board(state) {
  const { words } = state;
  const box = element("div", "pad");
  const onStroke = () => {
    const picture = pad.isEmpty ? null : likeMnist(bytes(pad.encoded()), SIDE, state.sizes.images[2]);
    if (picture) answerPicture(state, picture);
    else { state.asked += 1; state.parts.answer.textContent = ""; }
  };
  const pad = new DrawingBoard(SIDE, words, { onStroke });
  box.append(pad.node, pad.tools);
  state.parts.pad = pad;
  return box;
}

function answerPicture(state, values) {
  const { told, sizes } = state;
  const image = pixels(values, sizes.images, told);
  ask(state, async (call, isLast) => {
    if (told.how === "classes") {
      const shares = await classified(call, image);
      if (isLast()) showClasses(state, shares);
      return;
    }
    const said = await answered(told, sizes, call, { image }, (ids) => { if (isLast()) showText(state, "", ids, null); });
    if (isLast()) showText(state, "", said.ids, said.sure);
  });
}

function showClasses(state, shares) {
  const { told, parts: { answer } } = state;
  answer.textContent = "";
  const order = shares.map((share, i) => [share, told.classes[i]]);
  if (order.length > MAX_CLASSES) order.sort((a, b) => b[0] - a[0]).splice(MAX_CLASSES);
  const top = shares.indexOf(Math.max(...shares));
  answer.dataset.tokens = JSON.stringify([told.classes[top]]);
  const line = element("p", "said", element("b", "", told.classes[top]), ` ${percent(shares[top])}`);
  const bars = order.map(([share, name]) => (
    element("div", "bar", { "--share": share }, element("span", "", name), element("small", "", percent(share)))));
  answer.append(line, element("div", "bars", ...bars));
}

// The run's own unseen examples, each a press away.
function chips(state) {
  const { told, words, examples } = state;
  const box = element("div", "chips");
  if (!told.cut && !told.is_drawn) box.append(element("p", "note", words.no_pad));
  box.append(element("p", "note", told.cut || told.is_drawn ? words.or_examples : words.examples));
  examples.forEach((example, n) => {
    const chip = element("button", "small chip");
    chip.dataset.example = n;
    if (example.pixels) picture(state, chip, example, n);
    else {
      chip.textContent = example.text;
      chip.addEventListener("click", () => {
        if (state.parts.input) state.parts.input.value = example.text;
        answerText(state, example.tokens, joined(example.tokens, told));
      });
    }
    box.append(chip);
  });
  return box;
}

function picture(state, chip, example, n) {
  chip.append(Object.assign(element("img"), { src: example.picture, alt: `${state.words.picture} ${n + 1}` }));
  chip.addEventListener("click", () => {
    const values = bytes(example.pixels);
    const { pad } = state.parts;
    if (pad) { pad.clear(); pad.show(values); }
    answerPicture(state, values);
  });
}

// ---- the page

const box = document.getElementById("stage");

function moments() {
  document.querySelectorAll("button[data-step]").forEach((button) => {
    button.addEventListener("click", () => {
      box.querySelector(".stage").stage.goToStep(Number(button.dataset.step));
      box.scrollIntoView({ behavior: isCalm() ? "auto" : "smooth" });
    });
  });
}

async function begin() {
  const film = await playFilm(box);
  followTheme(box);
  moments();
  const asking = document.getElementById("asking");
  if (film.asking) buildAsking(asking, film.asking);
  document.documentElement.dataset.ready = "";
}

begin().catch((error) => {
  document.getElementById("problem").hidden = false;
  document.getElementById("problem").append(element("code", "", String(error)));
});
