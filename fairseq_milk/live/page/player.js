// Says a sentence word by word, at a speed that may change while it does.

export class Player {
  #timer = null;

  // said: called with the words so far, and whether they are all; stopped: called when it is over.
  constructor(wordsPerMinute, said, stopped) {
    Object.assign(this, { wordsPerMinute, said, stopped });
  }

  get playing() {
    return this.#timer !== null;
  }

  play(words) {
    this.stop();
    this.#next(words, 1);
  }

  stop() {
    if (!this.playing) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.stopped();
  }

  #next(words, count) {
    this.said(words.slice(0, Math.min(count, words.length)), count > words.length);
    this.#timer = setTimeout(() => (count > words.length ? this.stop() : this.#next(words, count + 1)), 60000 / this.wordsPerMinute());
  }
}
