// The last minutes of one figure as a small line. Kept in this page alone; a reload starts anew.

import { drawing } from "./format.js";

const WIDTH = 132;
const HEIGHT = 32;
const KEPT = 90; // three minutes of one sample every two seconds

export class Sparkline {
  constructor(label) {
    this.samples = [];
    this.area = drawing("path", { class: "area" });
    this.line = drawing("path", { class: "line" });
    this.end = drawing("circle", { class: "end", r: 0 });
    this.title = drawing("title", { text: label });
    this.label = label;
    this.node = drawing(
      "svg",
      { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      this.title,
      drawing("path", { class: "base", d: `M4 ${HEIGHT - 2} H${WIDTH - 4}` }),
      this.area, this.line, this.end,
    );
  }

  add(value) {
    if (value == null) return;
    this.samples.push(value);
    if (this.samples.length > KEPT) this.samples.shift();
    this.draw();
  }

  draw() {
    const highest = Math.max(1, ...this.samples);
    const step = (WIDTH - 8) / (KEPT - 1);
    const left = WIDTH - 4 - step * (this.samples.length - 1);
    const points = this.samples.map((value, index) => [
      left + index * step,
      HEIGHT - 4 - (value / highest) * (HEIGHT - 8),
    ]);
    const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(" L");
    const [x, y] = points[points.length - 1];
    this.line.setAttribute("d", `M${path}`);
    this.area.setAttribute("d", `M${points[0][0].toFixed(1)} ${HEIGHT - 2} L${path} L${x.toFixed(1)} ${HEIGHT - 2} Z`);
    this.end.setAttribute("r", "2.4");
    this.end.setAttribute("cx", x.toFixed(1));
    this.end.setAttribute("cy", y.toFixed(1));
    const text = `${this.label}: now ${this.samples.at(-1)}, highest ${Math.max(...this.samples)}`;
    this.node.setAttribute("aria-label", text);
    this.title.textContent = text;
  }
}
