// The network as SVG: a map where all places are declared, else a circle. Nodes are buttons.

import { drawn, grade } from "./format.js";

const SIZE = { width: 480, height: 360, margin: 44 };

export class Network {
  constructor(place, onChoose) {
    this.place = place;
    this.onChoose = onChoose;
    this.svg = drawn("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "group", "aria-label": "Network of learners" });
    place.replaceChildren(this.svg);
  }

  lay(hello) {
    this.hello = hello;
    const names = hello.learners.map((each) => each.name);
    this.at = positions(hello.learners, hello.watched.length === 1);
    this.edges = hello.edges.map(([a, b]) => ({ a, b, line: this.#line(a, b), title: drawn("title", {}) }));
    for (const edge of this.edges) edge.line.append(edge.title);
    const radius = names.length > 30 ? 8 : names.length > 14 ? 11 : 15;
    this.nodes = new Map(names.map((name) => [name, this.#node(name, radius)]));
    this.svg.replaceChildren(...this.edges.map((edge) => edge.line), ...[...this.nodes.values()].map((each) => each.group));
  }

  #line(a, b) {
    const [from, to] = [this.at.get(a), this.at.get(b)];
    return drawn("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], class: "edge unknown", "stroke-width": 2 });
  }

  #node(name, radius) {
    const [x, y] = this.at.get(name);
    const sign = drawn("text", { class: "sign", x, y: y + 4, "aria-hidden": "true" }, "");
    const below = y >= SIZE.height / 2 || this.hello.learners.length < 3 ? radius + 13 : -radius - 6;
    const text = drawn("text", { x, y: y + below, "aria-hidden": "true" }, shortened(name));
    const group = drawn("g", { class: "node", tabindex: "0", role: "button" }, drawn("circle", { cx: x, cy: y, r: radius }), sign, text, drawn("title", {}, name));
    group.addEventListener("click", () => this.onChoose(name));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        this.onChoose(name);
      }
    });
    return { group, sign };
  }

  update(learners, chosen) {
    for (const [name, { group, sign }] of this.nodes) {
      const seen = grade(learners.get(name)?.state?.verdict);
      group.setAttribute("class", `node ${seen.level}${name === chosen ? " chosen" : ""}`);
      group.setAttribute("aria-label", `${name}: ${seen.word}`);
      group.setAttribute("aria-pressed", String(name === chosen));
      sign.textContent = seen.sign;
    }
    for (const edge of this.edges) {
      const ends = [end(learners, edge.a, edge.b), end(learners, edge.b, edge.a)].filter((each) => each !== undefined);
      const isOpen = ends.length > 0 && ends.every((each) => each?.is_open);
      edge.line.setAttribute("class", `edge ${ends.length ? (isOpen ? "open" : "silent") : "unknown"}`);
      const rate = Math.max(0, ...ends.map((each) => each?.rate ?? 0));
      edge.line.setAttribute("stroke-width", isOpen ? (1.5 + Math.min(4, Math.log10(1 + rate / 100))).toFixed(1) : 1.6);
      edge.title.textContent = `${edge.a} and ${edge.b}: ${isOpen ? "exchanging" : ends.length ? "silent" : "unknown"}`;
    }
  }
}

// The end of an edge; null if its learner is down, undefined if it is not watched.
function end(learners, name, peer) {
  const learner = learners.get(name);
  if (!learner?.state) return undefined;
  if (!learner.state.is_ready) return null;
  return { ...learner.state.neighbors?.[peer], rate: learner.rates.get(peer)?.sent ?? 0 };
}

function positions(learners, isStar) {
  const { width, height, margin } = SIZE;
  const found = new Map();
  if (learners.length > 1 && learners.every((each) => Array.isArray(each.place))) {
    const xs = learners.map((each) => each.place[0]);
    const ys = learners.map((each) => each.place[1]);
    const [x0, y0] = [Math.min(...xs), Math.min(...ys)];
    const scale = Math.min((width - 2 * margin) / (Math.max(...xs) - x0 || 1), (height - 2 * margin) / (Math.max(...ys) - y0 || 1));
    const [padX, padY] = [(width - scale * (Math.max(...xs) - x0)) / 2, (height - scale * (Math.max(...ys) - y0)) / 2];
    learners.forEach((each, k) => found.set(each.name, [padX + scale * (xs[k] - x0), height - padY - scale * (ys[k] - y0)]));
    return found;
  }
  const around = isStar ? learners.slice(1) : learners;
  if (isStar || learners.length === 1) found.set(learners[0].name, [width / 2, height / 2]);
  if (learners.length > 1) {
    around.forEach((each, k) => {
      const angle = (2 * Math.PI * k) / around.length - (isStar ? 0 : Math.PI / 2);
      found.set(each.name, [width / 2 + (width / 2 - margin - 20) * Math.cos(angle), height / 2 + (height / 2 - margin + 8) * Math.sin(angle)]);
    });
  }
  return found;
}

const shortened = (name) => (name.length > 14 ? `${name.slice(0, 12)}…` : name);
