// One model: its translation, its lag and DAL, its schedule, its knobs.

import { Knobs } from "./knobs.js";
import { Schedule } from "./schedule.js";

const NARROW = matchMedia("(max-width: 40rem)"); // as in style.css: knobs are folded, so that translations are nearer

export class Panel {
  #sentence = null; // the number of the one that is shown

  constructor(model, index, changed) {
    const article = document.querySelector("#panel").content.cloneNode(true).firstElementChild;
    this.article = article;
    this.part = (name) => article.querySelector(`.${name}`);
    const heading = article.querySelector("h2");
    heading.textContent = model.name;
    heading.id = `model-${index}`;
    article.setAttribute("aria-labelledby", heading.id);
    article.dataset.model = model.name;
    this.part("about").textContent = model.description;
    this.part("translation").lang = model.target;
    this.part("schedule").setAttribute("aria-label", `Schedule of ${model.name}`);
    this.schedule = new Schedule(this.part("schedule"), index);
    this.knobs = new Knobs(this.part("knobs"), model, changed);
    this.part("knobs").open = !NARROW.matches;
    this.clear();
  }

  clear() {
    this.#sentence = null;
    this.written = 0;
    this.part("translation").replaceChildren();
    for (const name of ["lag", "dal", "al"]) this.part(name).textContent = "–";
    this.article.classList.remove("done");
    this.schedule.clear();
  }

  show(answer) {
    if (answer.sentence !== this.#sentence) {
      this.clear();
      this.#sentence = answer.sentence;
    }
    for (const event of answer.events) {
      this.schedule.add(event);
      if (event.action === "WRITE") this.#write(event.text);
    }
    this.part("translation").title = answer.text;
    this.part("lag").textContent = answer.done ? "–" : words(answer.words - this.written);
    this.part("dal").textContent = answer.latency?.DAL.toFixed(2) ?? "–";
    this.part("al").textContent = (answer.done && answer.latency?.AL.toFixed(2)) || "–"; // of a part it means nothing
    this.article.classList.toggle("done", answer.done);
  }

  #write(text) {
    const span = document.createElement("span");
    span.textContent = text;
    this.part("translation").append(this.written ? " " : "", span);
    this.written += text.split(" ").length;
  }
}

const words = (count) => `${count} ${Math.abs(count) === 1 ? "word" : "words"}`;
