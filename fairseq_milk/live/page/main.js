// The page: what is typed or played goes to the sentence, what the models answer goes to their panels.

import { Connection } from "./connection.js";
import { Panel } from "./panel.js";
import { Player } from "./player.js";
import { Sentence, allWords, finishedWords } from "./sentence.js";

const byId = (id) => document.getElementById(id);
const text = byId("text"), play = byId("play"), speed = byId("speed"), refusal = byId("refusal");
const STATES = {
  connecting: "connecting …",
  open: "connected",
  lost: "connection lost, trying again …",
  idle: "paused: goes on when you type",
};

const connection = new Connection(new URL("api/session", location.href.replace(/^http/, "ws")));
const sentence = new Sentence(connection);
const player = new Player(() => Number(speed.value), hear, showPlaying);
let panels = new Map(), described = "";

// ---- input ---------------------------------------------------------------------------------------------------------

function hear(words, ended) {
  refusal.hidden = true;
  sentence.set(words, ended);
  if (!words.length) for (const panel of panels.values()) panel.clear();
  showHeard();
}

function showHeard() {
  const spans = allWords(text.value).map((word, i) => {
    const span = document.createElement("span");
    span.textContent = word;
    span.className = i < sentence.words.length ? "sent" : "";
    return [span, " "];
  });
  byId("heard").replaceChildren(...spans.flat());
}

function startPlaying() {
  const words = allWords(text.value);
  if (!words.length) return text.focus();
  hear([], false);
  player.play(words);
  showPlaying();
  const heard = byId("heard");
  if (heard.getBoundingClientRect().bottom > innerHeight / 2) heard.scrollIntoView(); // a phone: what is said, and what is translated
}

function showPlaying() {
  play.textContent = player.playing ? "Stop" : "Play";
  play.setAttribute("aria-pressed", player.playing);
  text.readOnly = player.playing;
}

text.addEventListener("input", () => hear(finishedWords(text.value), false));
byId("input").addEventListener("submit", (event) => {
  event.preventDefault();
  player.stop();
  hear(allWords(text.value), true);
  text.select();
});
play.addEventListener("click", () => (player.playing ? player.stop() : startPlaying()));
speed.addEventListener("input", () => (byId("wpm").value = `${speed.value} words per minute`));
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  if (player.playing) return player.stop();
  text.value = "";
  hear([], false);
  text.focus();
});

// ---- models --------------------------------------------------------------------------------------------------------

function choose() {
  sentence.models = [...panels].filter(([, panel]) => !panel.article.hidden).map(([name]) => name);
  sentence.knobs = Object.fromEntries(sentence.models.map((name) => [name, panels.get(name).knobs.values]));
}

let waiting = null;
function knobsChanged() {
  clearTimeout(waiting); // a slider that moves is a dozen changes
  waiting = setTimeout(() => (choose(), sentence.restart()), 120);
}

function build({ models, examples }) {
  panels = new Map(models.map((model, i) => [model.name, new Panel(model, i, knobsChanged)]));
  byId("models").replaceChildren(...[...panels.values()].map((panel) => panel.article));
  byId("language").textContent = ` (${models[0].source})`;
  text.lang = models[0].source;
  byId("examples").replaceChildren(...examples.map(exampleButton));
  const chosen = byId("chosen");
  chosen.replaceChildren(chosen.firstElementChild, ...models.map(modelSwitch));
  chosen.hidden = models.length < 2;
  choose();
}

function exampleButton(example) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = example;
  button.addEventListener("click", () => {
    text.value = example;
    startPlaying();
  });
  return button;
}

function modelSwitch({ name }) {
  const label = document.createElement("label"), box = document.createElement("input");
  Object.assign(box, { type: "checkbox", checked: true });
  box.addEventListener("change", () => {
    panels.get(name).article.hidden = !box.checked;
    choose();
    sentence.restart();
  });
  label.append(box, ` ${name}`);
  return label;
}

// ---- connection ----------------------------------------------------------------------------------------------------

connection.addEventListener("state", ({ detail: state }) => {
  byId("connection").textContent = STATES[state];
  byId("connection").dataset.state = state;
});
connection.addEventListener("hello", ({ detail: hello }) => {
  const description = JSON.stringify([hello.models, hello.examples]);
  if (description !== described) build(hello); // the first time, or the server came back with other models
  described = description;
  sentence.restart();
});
connection.addEventListener("answer", ({ detail: answer }) => {
  if (answer.sentence === sentence.number) panels.get(answer.model)?.show(answer);
});
connection.addEventListener("error", ({ detail: { reason } }) => {
  refusal.textContent = reason;
  refusal.hidden = false;
  player.stop();
  sentence.forget();
});
connection.open();
