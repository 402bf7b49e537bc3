// The player of a training: a position that time, buttons and a slider move. It counts snapshots: 2.5 lies half
// way between the third and the fourth.

import { actButton, isCalm, showPlaying, slider } from "./dom.js";

const TURN = 9000; // milliseconds that a whole training takes when it is played
const [SHORTEST, LONGEST] = [220, 800]; // and one snapshot
const HOLD = 1800; // at the end before it begins again
const ARRIVE = 600; // in which a new snapshot moves in

export const frameAt = (position, count) => Math.max(0, Math.min(count - 1, Math.floor(position + 1e-6)));
export const isBetween = (position) => Math.abs(position - Math.round(position)) > 1e-3;
export const pace = (count) => Math.max(SHORTEST, Math.min(LONGEST, TURN / Math.max(1, count - 1)));

// Snapshots are dense at the beginning: the logarithm of the step moves evenly between two of them.
export function stepAt(steps, position) {
  if (!steps.length) return 0;
  const from = Math.max(0, Math.min(steps.length - 1, Math.floor(position)));
  const to = Math.min(steps.length - 1, from + 1);
  const share = Math.max(0, Math.min(1, position - from));
  if (!share || to === from) return steps[from];
  const [low, high] = [Math.log1p(steps[from]), Math.log1p(steps[to])];
  return Math.expm1(low + (high - low) * share);
}

export function positionOf(steps, step) {
  if (!steps.length || step <= steps[0]) return 0;
  const to = steps.findIndex((one) => one >= step);
  if (to < 0) return steps.length - 1;
  const [low, high] = [Math.log1p(steps[to - 1]), Math.log1p(steps[to])];
  return to - 1 + (Math.log1p(step) - low) / (high - low);
}

// The weights at a position: a snapshot's own numbers, or those of its neighbours mixed into `view.room`.
export function weightsAt(view, position) {
  const size = view.shape.reduce((product, n) => product * n, 1);
  const count = view.frames.length;
  const from = frameAt(position, count);
  const share = position - from;
  const first = view.values.subarray(from * size, (from + 1) * size);
  if (share < 1e-3 || from + 1 >= count) return first;
  const second = view.values.subarray((from + 1) * size, (from + 2) * size);
  view.room ??= new Float32Array(size);
  for (let i = 0; i < size; i += 1) view.room[i] = first[i] + (second[i] - first[i]) * share;
  return view.room;
}

export class Player {
  #request = null;

  #before = null; // when the last frame of the browser was drawn

  #wait = 0; // milliseconds to stay

  #arrivesFrom = null;

  // moved: is called after each move. over: where the playing ends; gets whether by itself. readAt: milliseconds
  // to stay at a snapshot. isWaiting: whether what was asked for is on its way. The slider counts snapshots, unless
  // `range` sets it and `under` says the position of a value.
  constructor(words, { moved, over = () => {}, readAt = () => 0, isWaiting = () => false, range = null, under = (value) => value }) {
    Object.assign(this, { words, moved, over, readAt, isWaiting, range });
    Object.assign(this, { count: 0, position: 0, playing: false, follows: true, smooth: !isCalm(), loops: false, isSeen: true });
    this.play = actButton("small play", "▶", () => this.toggle(), words.play);
    this.back = actButton("small back", "‹", () => this.move(-1), words.back);
    this.next = actButton("small next", "›", () => this.move(1), words.next);
    this.slider = slider(words.scrub, (value) => this.scrub(under(value)), range ?? {});
  }

  get last() { return Math.max(0, this.count - 1); }

  // The snapshot that is shown, and where it moves evenly the place between two.
  get frame() { return frameAt(this.position, this.count); }

  get shown() { return this.smooth ? this.position : this.frame; }

  place(position) {
    this.position = Math.max(0, Math.min(this.last, position));
    this.moved();
  }

  // By hand: it stays there, and follows a training whose newest snapshot that is.
  scrub(position) {
    this.stop();
    this.follows = position >= this.last - 1e-3;
    this.place(position);
  }

  move(by) {
    this.scrub(by + (by > 0 ? Math.floor(this.position + 1e-3) : Math.ceil(this.position - 1e-3)));
  }

  toggle() {
    if (this.playing) this.pause();
    else this.start();
  }

  start() {
    if (!this.last) return;
    const isAtEnd = this.position >= this.last - 1e-3;
    this.stop();
    Object.assign(this, { playing: true, follows: false });
    showPlaying(this.play, true, this.words);
    this.#stayAt(isAtEnd ? 0 : this.position);
    this.#ask();
  }

  pause() {
    this.stop();
    this.over(false);
  }

  // Without a word to anybody.
  stop() {
    cancelAnimationFrame(this.#request);
    this.playing = false;
    showPlaying(this.play, false, this.words);
    this.#arrivesFrom = this.#request = this.#before = null;
  }

  // A new snapshot came, to which it moves.
  arrive(from) {
    this.#arrivesFrom = { from, since: performance.now() };
    this.place(from);
    this.#ask();
  }

  // Play only what somebody sees.
  see(isSeen) {
    this.isSeen = isSeen;
    this.#before = null;
    if (this.playing) this.#ask();
  }

  // Show what can be pressed. value: of the slider, where it does not count snapshots.
  draw(value = this.position) {
    if (!this.range) this.slider.max = this.last;
    if (Number(this.slider.value) !== value) this.slider.value = value;
    this.slider.disabled = this.play.disabled = !this.last;
    this.back.disabled = this.position <= 0;
    this.next.disabled = this.position >= this.last;
  }

  #ask() {
    this.#request ??= requestAnimationFrame((now) => this.#turn(now));
  }

  #turn(now) {
    this.#request = null;
    if (this.playing && this.isSeen) {
      const passed = Math.min(100, now - (this.#before ?? now));
      this.#before = now;
      this.#advance(passed);
      if (this.playing) this.#ask();
    } else if (this.#arrivesFrom) {
      const { from, since } = this.#arrivesFrom;
      const share = Math.min(1, (now - since) / ARRIVE);
      if (share === 1) this.#arrivesFrom = null;
      else this.#ask();
      this.place(from + (this.last - from) * share);
    }
  }

  #advance(passed) {
    if (this.#wait > 0) this.#wait -= passed;
    else if (this.isWaiting()) return;
    else if (this.position < this.last) {
      const to = Math.min(this.last, this.position + passed / pace(this.count));
      const at = this.#stopBefore(to);
      this.#stayAt(at ?? to);
      if (this.position >= this.last && this.loops) this.#wait = HOLD;
    } else if (this.loops) this.#stayAt(0);
    else {
      this.stop();
      this.follows = true;
      this.over(true);
    }
  }

  // The first snapshot on the way to a position at which it stays.
  #stopBefore(to) {
    for (let at = Math.floor(this.position + 1e-6) + 1; at <= to; at += 1) if (this.readAt(at)) return at;
    return null;
  }

  #stayAt(position) {
    this.#wait = isBetween(position) || position >= this.last ? 0 : this.readAt(Math.round(position));
    this.place(position);
  }
}
