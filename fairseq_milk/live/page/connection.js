// A WebSocket that comes back by itself. It holds no sentence: whoever listens sends again what is needed after "hello".

const FIRST_PAUSE = 500, LONGEST_PAUSE = 8000; // milliseconds between attempts
const IDLE = 4000; // close code of the server, see docs/reference/serve.md

export class Connection extends EventTarget {
  #socket = null;
  #pause = FIRST_PAUSE;
  #timer = null;

  constructor(url) {
    super();
    this.url = url;
    addEventListener("online", () => this.#retryNow());
    document.addEventListener("visibilitychange", () => document.hidden || this.#retryNow());
  }

  open() {
    if (this.#socket) return;
    clearTimeout(this.#timer);
    this.#say("connecting");
    const socket = this.#socket = new WebSocket(this.url);
    socket.addEventListener("message", ({ data }) => this.#receive(JSON.parse(data)));
    socket.addEventListener("close", ({ code }) => this.#lost(code));
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  send(message) {
    this.#socket.send(JSON.stringify(message));
  }

  #receive(message) {
    if (message.type === "hello") {
      this.#pause = FIRST_PAUSE;
      this.#say("open");
    }
    this.dispatchEvent(new CustomEvent(message.type, { detail: message }));
  }

  #lost(code) {
    this.#socket = null;
    if (code === IDLE) return this.#say("idle");
    this.#say("lost");
    this.#timer = setTimeout(() => this.open(), this.#pause);
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  #retryNow() {
    if (!this.#socket) this.open();
  }

  #say(state) {
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }
}
