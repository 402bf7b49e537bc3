// The training under the picture: a slider over the steps with weights, and a button that plays them.

import { actButton, element, showPlaying, slider, whole } from "./dom.js";

const PLAY = 600; // ms from one step to the next, at least
const PATIENCE = 3000; // ms until a step is asked for again
const MOST = 16e6; // numbers of the pictures that are kept, in all

// send: gets a step that the server is to show. show: gets a picture that was kept.
export class TimeBar {
  constructor(words, send, show) {
    Object.assign(this, { words, send, show, kept: new Map(), wanted: null, askedAt: -Infinity, timer: 0 });
    this.button = actButton("small", "", () => this.#play(!this.timer));
    this.slider = slider(words.weights, (at) => { this.#play(false); this.#want(this.steps[at]); });
    this.label = element("span", "at");
    this.node = element("div", "time", this.button, this.slider, this.label);
    this.#name();
  }

  // The picture to show of a new one from the server: this, or a kept one of the step wanted meanwhile.
  take(view) {
    const { training } = view;
    this.node.hidden = !training || training.steps.length < 2;
    if (!training) { this.end(); return view; }
    if (training.about !== this.about) { this.kept.clear(); this.wanted = null; }
    this.about = training.about;
    this.steps = training.steps;
    this.isLive = training.isLive;
    this.kept.set(training.step, view);
    if (this.kept.size * view.values.length > MOST) this.kept.delete(this.kept.keys().next().value);
    this.served = training.step;
    this.askedAt = -Infinity;
    if (this.wanted === training.step) this.wanted = null;
    this.slider.max = String(this.steps.length - 1);
    this.#draw(this.wanted ?? training.step);
    if (this.wanted === null) return view;
    this.#ask();
    return this.kept.get(this.wanted) ?? view;
  }

  end() {
    this.#play(false);
  }

  #want(step) {
    this.wanted = step;
    this.#draw(step);
    if (this.kept.has(step)) this.show(this.kept.get(step));
    this.#ask();
  }

  #ask() {
    const now = performance.now();
    if (now - this.askedAt < PATIENCE) return; // one question at a time; take() goes on
    if (this.wanted === this.served) { this.wanted = null; return; }
    this.askedAt = now;
    this.send(this.wanted);
  }

  #draw(step) {
    const at = this.steps.indexOf(step);
    this.slider.value = String(at);
    const isNewest = at === this.steps.length - 1;
    const text = this.words.step.replace("{step}", whole(step)) + (isNewest && this.isLive ? ` ${this.words.newest}` : "");
    this.label.textContent = text;
    this.slider.setAttribute("aria-valuetext", text);
  }

  #play(isOn) {
    clearInterval(this.timer);
    this.timer = isOn ? setInterval(() => this.#next(), PLAY) : 0;
    if (isOn && Number(this.slider.value) === this.steps.length - 1) this.#want(this.steps[0]);
    this.#name();
  }

  #next() {
    if (this.wanted !== null && !this.kept.has(this.wanted)) return; // it is on its way
    const at = Number(this.slider.value) + 1;
    if (at < this.steps.length) this.#want(this.steps[at]);
    else this.#play(false);
  }

  #name() {
    showPlaying(this.button, Boolean(this.timer), this.words);
  }
}
