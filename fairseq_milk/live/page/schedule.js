// The diagram of the paper, growing: source words to the right, target words down, and the way of READ and WRITE.
// Where it is larger than its place it scrolls; the words stay at its edges, on grounds that cover what passes below them.

const CELL = 28, RADIUS = 8, LABEL = 20; // pixels; letters of a label
const SVG = "http://www.w3.org/2000/svg";

function set(target, attributes) {
  for (const [key, value] of Object.entries(attributes)) target.setAttribute(key, value);
}

function element(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  set(made, attributes);
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
    container.addEventListener("scroll", () => this.#keepWordsInView());
    this.clear();
  }

  clear() {
    this.svg.replaceChildren();
    this.#definePattern();
    [this.grid, this.rows, this.columns] = ["grid", "rows", "columns"].map((name) => element("g", { class: name }, this.svg));
    [this.rowsGround, this.columnsGround, this.corner] = [this.rows, this.columns, this.svg].map((parent) => element("rect", { class: "ground" }, parent));
    this.way = element("polyline", { class: "way" }, this.grid);
    this.here = element("circle", { class: "here", r: 0 }, this.grid);
    this.read = this.written = 0;
    this.points = [];
    this.left = this.top = this.overhang = 0;
    this.story = [];
    this.#resize();
  }

  add({ action, text }) {
    this.story.push(`${action} ${text}`);
    action === "READ" ? this.#column(text) : this.#row(text);
    this.way.setAttribute("points", this.points.map(([x, y]) => `${x * CELL},${y * CELL}`).join(" "));
    const [x, y] = this.points.at(-1);
    set(this.here, { cx: x * CELL, cy: y * CELL, r: RADIUS / 2 });
    this.#resize();
  }

  #column(text) {
    if (this.read) this.points.push([this.read - 1, this.written]);
    this.points.push([this.read, this.written]);
    const label = element("text", { class: "source", transform: `translate(${this.read * CELL},-16) rotate(-50)` }, this.columns);
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
    const label = element("text", { class: "target", x: -CELL / 2 - 6, y, dy: "0.35em" }, this.rows);
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
    this.left = Math.ceil(this.left);
    this.top = Math.ceil(this.top);
    const x = this.x, y = this.y;
    const width = x + Math.max(this.read, 1) * CELL + this.overhang, height = y + (this.written + 1) * CELL;
    set(this.svg, { width, height, "aria-label": this.story.length ? `Schedule: ${this.story.join(", ")}` : "Schedule: nothing yet" });
    set(this.grid, { transform: `translate(${x},${y})` });
    set(this.rowsGround, { x: -x, y: -y, width: x - CELL / 2, height });
    set(this.columnsGround, { x: -x, y: -y, width, height: y - CELL / 2 });
    set(this.corner, { width: x - CELL / 2, height: y - CELL / 2 });
    this.container.scrollTo({ left: this.container.scrollWidth, top: this.container.scrollHeight });
    this.#keepWordsInView();
  }

  // The place of the first cell: right of the target words, below the source words.
  get x() {
    return this.left + CELL / 2 + 12;
  }

  get y() {
    return this.top + 30;
  }

  #keepWordsInView() {
    const { scrollLeft, scrollTop } = this.container;
    set(this.rows, { transform: `translate(${this.x + scrollLeft},${this.y})` });
    set(this.columns, { transform: `translate(${this.x},${this.y + scrollTop})` });
    set(this.corner, { x: scrollLeft, y: scrollTop });
  }
}
