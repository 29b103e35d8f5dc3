// The diagram of the paper, growing: source words to the right, target words down, and the way of READ and WRITE.

const CELL = 28, RADIUS = 8, LABEL = 20; // pixels; letters of a label
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

const short = (text) => (text.length <= LABEL ? text : text.slice(0, LABEL - 1) + "…");

export class Schedule {
  constructor(container, name) {
    this.container = container;
    this.cells = `cells-${name}`;
    this.svg = element("svg", { role: "img" });
    container.append(this.svg);
    this.clear();
  }

  clear() {
    this.svg.replaceChildren();
    this.#definePattern();
    this.grid = element("g", {}, this.svg);
    this.way = element("polyline", { class: "way" }, this.grid);
    this.read = this.written = 0;
    this.points = [];
    this.left = this.top = 0;
    this.story = [];
    this.#resize();
  }

  add({ action, text }) {
    this.story.push(`${action} ${text}`);
    action === "READ" ? this.#column(text) : this.#row(text);
    this.way.setAttribute("points", this.points.map(([x, y]) => `${x * CELL},${y * CELL}`).join(" "));
    this.#resize();
  }

  #column(text) {
    if (this.read) this.points.push([this.read - 1, this.written]);
    this.points.push([this.read, this.written]);
    const label = element("text", { class: "source", transform: `translate(${this.read * CELL},-16) rotate(-50)` }, this.grid);
    label.textContent = short(text);
    this.top = Math.max(this.top, 0.78 * label.getComputedTextLength());
    this.overhang = 0.65 * label.getComputedTextLength();
    this.read += 1;
  }

  #row(text) {
    const y = this.written * CELL, x = (this.read - 1) * CELL;
    this.points.push([this.read - 1, this.written]);
    element("rect", { x: -CELL / 2, y: y - CELL / 2, width: this.read * CELL, height: CELL, fill: `url(#${this.cells})` }, this.grid);
    element("circle", { class: "head", cx: x, cy: y, r: RADIUS }, this.grid);
    const label = element("text", { class: "target", x: -CELL / 2 - 6, y, dy: "0.35em" }, this.grid);
    label.textContent = short(text);
    this.left = Math.max(this.left, label.getComputedTextLength());
    this.written += 1;
  }

  // One circle per cell that had been read: a pattern, so that a long sentence does not need thousands of circles.
  #definePattern() {
    const box = { x: -CELL / 2, y: -CELL / 2, width: CELL, height: CELL, patternUnits: "userSpaceOnUse" };
    const pattern = element("pattern", { id: this.cells, ...box }, element("defs", {}, this.svg));
    element("circle", { class: "cell", cx: CELL / 2, cy: CELL / 2, r: RADIUS }, pattern);
  }

  #resize() {
    const left = this.left + CELL / 2 + 12, top = this.top + 30;
    const width = left + Math.max(this.read, 1) * CELL + (this.overhang ?? 0), height = top + (this.written + 1) * CELL;
    this.grid.setAttribute("transform", `translate(${left},${top})`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", this.story.length ? `Schedule: ${this.story.join(", ")}` : "Schedule: nothing yet");
    this.container.scrollTo({ left: this.container.scrollWidth, top: this.container.scrollHeight });
  }
}
