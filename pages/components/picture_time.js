// The training under the picture: the steps with weights, whose pictures the server makes when they are asked for.

import { element, whole } from "./dom.js";
import { Player } from "./player.js";

const PATIENCE = 3000; // ms until a step is asked for again
const MOST = 16e6; // numbers of the pictures that are kept, in all

// send: gets a step that the server is to show. show: gets a picture that was kept.
export class TimeBar {
  constructor(words, send, show) {
    Object.assign(this, { words, send, show, kept: new Map(), wanted: null, askedAt: -Infinity, steps: [] });
    this.player = new Player(words, {
      moved: () => this.#want(this.steps[this.player.frame]),
      isWaiting: () => this.wanted !== null && !this.kept.has(this.wanted),
    });
    this.player.smooth = false;
    this.label = element("span", "at");
    this.node = element("div", "time", this.player.play, this.player.slider, this.label);
  }

  // The picture to show of a new one from the server: this, or a kept one of the step wanted meanwhile.
  take(view) {
    const { training } = view;
    this.node.hidden = !training || training.steps.length < 2;
    if (!training) { this.player.stop(); return view; }
    if (training.about !== this.about) { this.kept.clear(); this.wanted = null; }
    this.about = training.about;
    this.steps = training.steps;
    this.isLive = training.isLive;
    this.kept.set(training.step, view);
    if (this.kept.size * view.values.length > MOST) this.kept.delete(this.kept.keys().next().value);
    this.served = training.step;
    this.askedAt = -Infinity;
    if (this.wanted === training.step) this.wanted = null;
    this.player.count = this.steps.length;
    this.player.position = this.steps.indexOf(this.wanted ?? training.step);
    this.#draw();
    if (this.wanted === null) return view;
    this.#ask();
    return this.kept.get(this.wanted) ?? view;
  }

  #want(step) {
    if (step === (this.wanted ?? this.served)) return;
    this.wanted = step;
    this.#draw();
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

  #draw() {
    const { frame, last, slider } = this.player;
    this.player.draw(frame);
    const isNewest = frame === last;
    const text = this.words.step.replace("{step}", whole(this.steps[frame])) + (isNewest && this.isLive ? ` ${this.words.newest}` : "");
    this.label.textContent = text;
    slider.setAttribute("aria-valuetext", text);
  }
}
