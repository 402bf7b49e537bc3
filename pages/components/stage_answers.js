// The model's answers to the same examples: token by token, or a picture with its likeliest classes.

import { dress, element } from "./dom.js";
import { percent } from "./stage_curves.js";
import { glossOf } from "./stage_heads.js";

export function buildAnswers(state) {
  const { words } = state.data;
  const bar = element("div", "answers-bar", element("h2", "", words.answers));
  const rows = element("div", "rows");
  rows.addEventListener("click", (event) => {
    const row = event.target.closest("[data-example]");
    if (row && !isWithout(state.view, Number(row.dataset.example))) state.choose(state.view.attention, Number(row.dataset.example));
  });
  return { box: element("div", "answers", bar, rows), bar, rows, built: null };
}

// What a prediction is, token by token: right, wrong, or missing at its end.
export function marked(tokens, truth) {
  const found = [];
  for (let i = 0; i < Math.max(tokens.length, truth.length); i += 1) {
    if (i >= tokens.length) found.push({ token: truth[i], verdict: "missing" });
    else found.push({ token: tokens[i], verdict: tokens[i] === truth[i] ? "right" : "wrong" });
  }
  return found;
}

// Of large maps a run keeps those of its first examples alone.
const isWithout = (view, n) => view.surface !== "none" && n >= view.n_attended;
const letters = (tokens) => tokens.length > 1 && tokens.every((token) => token.length === 1);

function build(state) {
  const { view, answers } = state;
  const { words } = state.data;
  answers.rows.textContent = "";
  const isPictures = view.examples.every(({ picture, tokens }) => picture && !tokens.length);
  answers.rows.classList.toggle("thumbs", isPictures);
  answers.rows.classList.toggle("pictured", !isPictures && view.examples.some(({ picture }) => picture));
  answers.parts = view.examples.map((example, n) => {
    const image = example.picture && Object.assign(element("img"), { src: example.picture, alt: example.truth });
    const source = element("span", "source", example.source, image);
    if (view.language) source.lang = view.language;
    const answer = element("span", "answer");
    const sign = element("span", "sign");
    const row = element("button", "row", source, answer, sign, element("span", "truth", `${words.truth}: ${example.truth}`));
    row.dataset.example = n;
    if (isWithout(view, n)) dress(row, { title: words.not_kept, "aria-disabled": "true" });
    answers.rows.append(row);
    return { row, answer, sign };
  });
}

export function showAnswers(state, frame) {
  const { view, answers } = state;
  const { words } = state.data;
  const key = `${view.name} ${view.examples.length}`;
  if (answers.built !== key) { build(state); answers.built = key; answers.shown = null; }
  if (answers.shown === frame && answers.chosen === state.example && answers.glossed === state.isGlossed) return;
  Object.assign(answers, { shown: frame, chosen: state.example, glossed: state.isGlossed });
  view.examples.forEach((example, n) => {
    const { row, answer, sign } = answers.parts[n];
    const said = frame.answers[n];
    row.setAttribute("aria-pressed", String(n === state.example));
    const verdict = said.right === null ? "" : said.right ? "right" : "wrong";
    row.dataset.verdict = verdict;
    sign.textContent = { right: "✓", wrong: "✗" }[verdict] ?? "";
    sign.setAttribute("aria-label", words[verdict] ?? "");
    answer.textContent = "";
    if (said.classes.length) {
      said.classes.forEach(([name, share], place) => {
        if (place && n !== state.example) return;
        const told = element("b", name === example.truth ? "true" : "", name);
        answer.append(element("span", "bar", { "--share": share }, told, element("small", "", percent(share))));
      });
      return;
    }
    const parts = example.tokens.length ? marked(said.tokens, example.tokens)
      : said.tokens.map((token) => ({ token, verdict: "" }));
    if (!parts.length) answer.append(element("i", "", words.nothing));
    answer.classList.toggle("letters", letters(said.tokens));
    parts.forEach(({ token, verdict: its }, i) => {
      const part = element("span", `t ${its}`, token.trim() ? token.replace(/^ /, "␣") : "␣");
      const hint = its ? [words[its]] : [];
      if (its === "wrong" && i < example.tokens.length) hint.push(`${words.truth}: ${example.tokens[i]}`);
      if (i < said.sure.length && its !== "missing") hint.push(`${words.probability} ${percent(said.sure[i])}`);
      part.title = hint.join(", ");
      const gloss = glossOf(state, token);
      if (state.isGlossed) part.append(element("small", "", gloss || "\u00a0", { lang: view.language }));
      answer.append(part);
    });
  });
}
