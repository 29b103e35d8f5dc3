// Sliders and switches for the knobs of a model, as the server describes them.

export class Knobs {
  // changed: called after a knob was moved; values: those that differ from their defaults.
  constructor(container, model, changed) {
    this.values = {};
    this.controls = model.knobs.map((knob) => this.#control(container, `${model.name}-${knob.name}`, knob, changed));
    const reset = container.querySelector(".reset");
    container.append(reset);
    reset.addEventListener("click", () => {
      for (const control of this.controls) control.reset();
      changed();
    });
  }

  #control(container, id, knob, changed) {
    const label = document.createElement("label"), input = document.createElement("input"), output = document.createElement("output");
    const isSwitch = knob.kind === "bool";
    label.textContent = knob.name.replaceAll("_", " ");
    label.htmlFor = output.htmlFor = input.id = id;
    label.title = input.title = knob.help;
    input.type = isSwitch ? "checkbox" : "range";
    if (!isSwitch) Object.assign(input, { min: knob.low, max: knob.high, step: knob.kind === "int" ? 1 : 0.01 });
    const read = () => (isSwitch ? input.checked : Number(input.value));
    const show = () => (output.value = isSwitch ? (input.checked ? "yes" : "no") : input.value);
    const reset = () => {
      if (isSwitch) input.checked = knob.default;
      else input.value = knob.default;
      delete this.values[knob.name];
      show();
    };
    input.addEventListener("input", () => {
      show();
      if (read() === knob.default) delete this.values[knob.name];
      else this.values[knob.name] = read();
      changed();
    });
    reset();
    const row = document.createElement("div");
    row.className = "row";
    row.append(label, input, output);
    container.append(row);
    return { reset };
  }
}
