// A chart of lines over time as SVG, with a cursor for pointer and arrow keys.

import { clock, drawn, element, moment, number } from "./format.js";

const LEAST = 280; // pixels of width
const EDGE = { left: 52, right: 10, top: 8, bottom: 20 };
const SELDOM = 5; // updates
const STRIP = 18; // height of the strip with marks of events

export class Chart {
  constructor(place, { label, unit = "", height = 200, marks = false, format = number }) {
    Object.assign(this, { label, unit, height, hasMarks: marks, format, data: null, cursor: null });
    this.bottom = height - EDGE.bottom - (marks ? STRIP : 0);
    this.place = place;
    this.width = 640;
    this.svg = drawn("svg", { role: "img", tabindex: "0" });
    this.ground = drawn("g", {});
    this.lines = drawn("g", {});
    this.top = drawn("g", {});
    this.svg.append(this.ground, this.lines, this.top);
    this.readout = element("p", { class: "readout", "aria-live": "polite" });
    this.legend = element("ul", { class: "legend" });
    place.classList.add("chart");
    place.replaceChildren(this.readout, this.svg, this.legend);
    this.svg.addEventListener("pointermove", (event) => this.#point(event));
    this.svg.addEventListener("pointerleave", () => this.#moveTo(null));
    this.svg.addEventListener("keydown", (event) => this.#key(event));
    this.svg.addEventListener("blur", () => this.#moveTo(null));
    this.isSeen = true;
    this.n = 0;
    new IntersectionObserver((entries) => {
      this.isSeen = entries[entries.length - 1].isIntersecting;
      if (this.isSeen && this.given) this.#draw(this.given);
    }).observe(this.svg);
  }

  // lines: [{name, style, points: [[time, value or null], ...]}]; areas: [{style, points: [[t, low, high]]}]
  update(given) {
    this.given = given;
    this.n += 1;
    // what nobody sees is drawn seldom, once there is something to see
    if (this.isSeen || this.n <= 2 * SELDOM || this.n % SELDOM === 0) this.#draw(given);
  }

  #draw({ from, to, lines, areas = [], marks = [], low = null, high = null, named = true }) {
    const values = lines.flatMap((line) => line.points.map((point) => point[1]))
      .concat(areas.flatMap((area) => area.points.flatMap((point) => point.slice(1))))
      .filter((value) => value !== null && Number.isFinite(value));
    const range = scaleOf(low ?? Math.min(...values), high ?? highest(values));
    this.data = { from, to, lines, range };
    this.#fit();
    this.#axes(values.length > 0);
    this.lines.replaceChildren(
      ...areas.map((area) => drawn("path", { class: `area ${area.style}`, d: this.#area(area.points) })),
      ...lines.map((line) => drawn("path", { class: `line ${line.style}`, d: this.#path(line.points) })),
    );
    this.#marks(marks);
    this.#words(lines, named);
    this.#showCursor();
  }

  #fit() {
    const width = Math.max(LEAST, Math.round(this.place.clientWidth));
    if (width !== this.width || !this.svg.hasAttribute("viewBox")) {
      this.width = width;
      this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    }
  }

  #x(t) {
    return EDGE.left + ((t - this.data.from) / (this.data.to - this.data.from)) * (this.width - EDGE.left - EDGE.right);
  }

  #y(value) {
    const { low, high } = this.data.range;
    return this.bottom - ((value - low) / (high - low)) * (this.bottom - EDGE.top);
  }

  #path(points) {
    let d = "";
    let isDown = false;
    for (const [t, value] of points) {
      if (value === null || !Number.isFinite(value) || t < this.data.from) {
        isDown = false;
        continue;
      }
      const y = Math.max(this.#y(value), EDGE.top - 2); // what is above is cut off there
      d += `${isDown ? "L" : "M"}${this.#x(t).toFixed(1)} ${y.toFixed(1)}`;
      if (!isDown) d += "h0"; // a single point is seen, too
      isDown = true;
    }
    return d;
  }

  #area(points) {
    const shown = points.filter((point) => point[0] >= this.data.from && point.every((v) => v !== null && Number.isFinite(v)));
    if (!shown.length) return "";
    const clamp = (v) => Math.min(Math.max(this.#y(v), EDGE.top - 2), this.bottom + 2);
    const upper = shown.map((p) => `${this.#x(p[0]).toFixed(1)} ${clamp(p[2]).toFixed(1)}`);
    const lower = shown.map((p) => `${this.#x(p[0]).toFixed(1)} ${clamp(p[1]).toFixed(1)}`).reverse();
    return `M${upper.concat(lower).join("L")}Z`;
  }

  #axes(hasValues) {
    const { from, to, range } = this.data;
    const parts = [];
    for (const value of range.ticks) {
      const y = this.#y(value);
      parts.push(drawn("line", { class: "gridline", x1: EDGE.left, x2: this.width - EDGE.right, y1: y, y2: y }));
      parts.push(drawn("text", { x: EDGE.left - 6, y: y + 4, "text-anchor": "end" }, number(value, 4)));
    }
    const n = this.width < 420 ? 2 : 4;
    for (let k = 0; k <= n; k += 1) {
      const t = from + ((to - from) * k) / n;
      const anchor = k === 0 ? "start" : k === n ? "end" : "middle";
      parts.push(drawn("text", { x: this.#x(t), y: this.height - 5, "text-anchor": anchor }, clock(t, to - from)));
    }
    parts.push(drawn("line", { class: "axis", x1: EDGE.left, x2: this.width - EDGE.right, y1: this.bottom, y2: this.bottom }));
    if (!hasValues) parts.push(drawn("text", { x: this.width / 2, y: this.bottom / 2, "text-anchor": "middle" }, "no samples in this time"));
    this.ground.replaceChildren(...parts);
  }

  #marks(marks) {
    if (!this.hasMarks) return;
    const shown = marks.filter((mark) => mark.t >= this.data.from && mark.t <= this.data.to);
    this.ground.append(...shown.flatMap((mark) => {
      const x = this.#x(mark.t);
      const title = drawn("title", {}, mark.text);
      return [
        drawn("line", { class: `mark ${mark.style}`, x1: x, x2: x, y1: EDGE.top, y2: this.bottom + 4, "stroke-opacity": 0.45 }),
        drawn("text", { class: `mark-label ${mark.style}`, x, y: this.bottom + 16, "text-anchor": "middle" }, mark.sign, title),
      ];
    }));
  }

  #words(lines, named) {
    const newest = lines.map((line) => line.points.findLast((point) => point[1] !== null)?.[1] ?? null);
    const said = named ? lines.map((line, k) => `${line.name} ${this.format(newest[k])}`).join(", ") : `${lines.length} lines`;
    this.svg.setAttribute("aria-label", `${this.label}, ${this.unit}: ${said}. Arrow keys move the cursor.`);
    const shown = named ? lines : lines.filter((line) => line.isShown);
    this.legend.replaceChildren(...shown.map((line) => element("li", {},
      drawn("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, drawn("path", { class: `line ${line.style}`, d: "M1 4H21" })),
      line.name, element("b", {}, this.format(newest[lines.indexOf(line)])))));
  }

  #times() {
    const times = new Set(this.data?.lines.flatMap((line) => line.points.filter((p) => p[1] !== null && p[0] >= this.data.from).map((p) => p[0])));
    return [...times].sort((a, b) => a - b);
  }

  #point(event) {
    if (!this.data) return;
    const box = this.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    const share = (x - EDGE.left) / (this.width - EDGE.left - EDGE.right);
    const wanted = this.data.from + share * (this.data.to - this.data.from);
    const times = this.#times();
    this.#moveTo(times.length ? times.reduce((a, b) => (Math.abs(b - wanted) < Math.abs(a - wanted) ? b : a)) : null);
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const times = this.#times();
    if (!times.length) return;
    const now = this.cursor === null ? times.length : times.findIndex((t) => t >= this.cursor);
    this.#moveTo(times[Math.min(Math.max((now < 0 ? times.length : now) + step, 0), times.length - 1)]);
  }

  #moveTo(t) {
    this.cursor = t;
    this.#showCursor();
  }

  #showCursor() {
    if (this.cursor === null || !this.data || this.cursor < this.data.from) {
      this.top.replaceChildren();
      this.readout.textContent = this.unit;
      return;
    }
    const x = this.#x(this.cursor);
    this.top.replaceChildren(drawn("line", { class: "cursor", x1: x, x2: x, y1: EDGE.top, y2: this.bottom }));
    const found = this.data.lines
      .map((line) => [line, line.points.find((point) => point[0] === this.cursor)?.[1]])
      .filter(([, value]) => value !== null && value !== undefined);
    const said = found.slice(0, 8).map(([line, value]) => `${line.name} ${this.format(value)}`);
    this.readout.textContent = `${moment(this.cursor)}: ${said.join(", ")} ${this.unit}`;
  }
}

// The greatest value, unless a few are far above all others, such as the errors of the first samples.
function highest(values) {
  const most = Math.max(...values);
  const sorted = Float64Array.from(values).sort();
  const usual = sorted[Math.floor(0.95 * (sorted.length - 1))];
  return sorted.length >= 20 && most > 2.5 * usual && usual > 0 ? 1.25 * usual : most;
}

function scaleOf(low, high) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
  if (high - low < 1e-12 * Math.max(Math.abs(high), 1)) high = low + (Math.abs(low) || 1) * 0.1;
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const first = Math.floor(low / step + 1e-9) * step;
  const ticks = [];
  for (let value = first; value < high + step * 0.999; value += step) ticks.push(Number(value.toPrecision(10)));
  return { low: first, high: ticks[ticks.length - 1], ticks };
}
