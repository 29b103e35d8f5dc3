// The sentence that the models should have heard, and the messages that bring them there from what they have heard.

export class Sentence {
  #connection;
  #number = 0;
  #sent = null; // the words that the server has, null if it has no sentence
  #sentEnd = false;

  constructor(connection) {
    this.#connection = connection;
    this.words = [];
    this.ended = false;
    this.models = [];
    this.knobs = {};
  }

  get number() {
    return this.#number;
  }

  // What should have been heard. An edit of words that were sent begins the sentence anew.
  set(words, ended) {
    this.words = words;
    this.ended = ended;
    this.#update();
  }

  // Other models or knobs, or another connection: the models hear the whole sentence again.
  restart() {
    this.#sent = null;
    this.#update();
  }

  // The server has dropped the sentence.
  forget() {
    this.#sent = null;
  }

  #update() {
    if (!this.#connection.isOpen) {
      this.#sent = null;
      if (this.words.length) this.#connection.open();
      return;
    }
    if (!this.#continues()) this.#begin();
    if (!this.#sent) return;
    const words = this.words.slice(this.#sent.length);
    for (let i = 0; i < words.length; i += 20) this.#send({ type: "push", text: words.slice(i, i + 20).join(" ") });
    if (this.ended && !this.#sentEnd) this.#send({ type: "end" });
    this.#sent = [...this.words];
    this.#sentEnd = this.ended;
  }

  #continues() {
    return this.#sent && this.#sent.every((word, i) => word === this.words[i])
      && (!this.#sentEnd || (this.ended && this.#sent.length === this.words.length));
  }

  #begin() {
    this.#number += 1;
    this.#sent = this.#sentEnd = null;
    if (!this.words.length || !this.models.length) return;
    this.#sent = [];
    this.#send({ type: "begin", sentence: this.#number, models: this.models, knobs: this.knobs });
  }

  #send(message) {
    this.#connection.send(message);
  }
}

// The words of a text that is being typed: one that is not followed by a space may still change.
export function finishedWords(text) {
  const words = allWords(text);
  return /\S$/u.test(text) ? words.slice(0, -1) : words;
}

export function allWords(text) {
  return text.split(/\s+/u).filter(Boolean);
}
