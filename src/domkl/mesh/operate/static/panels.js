// The charts, drawn from what is known of the learners.

import { ALARMING, PLEASING, element } from "./format.js";
import { Chart } from "./chart.js";

const SHOWN = 120; // samples, with prediction and truth
const SIGNS = { up: "▲", ready: "▲", down: "▼", left: "▽", stopped: "■", reloaded: "↻", refused: "!", mismatch: "!" };
const TRUST = { network: "the network's fits", own: "its own fits", "last value": "the last value" };

// Every panel: `data` returns what its chart shows of the chosen learner, null for nothing. A panel
// without a place of its name in index.html gets one at the end. A column of /history is a property
// of the rows of `learner.series`, and the newest state of a learner is `learner.state`.
const PANELS = [
  { id: "errors", label: "Error of every learner", height: 280, data: (seen) => everyone(seen, "error", "n") },
  { id: "disagreement", label: "Disagreement with neighbors", height: 220, data: (seen) => everyone(seen, "gap", "gaps") },
  { id: "error", label: "Error with and without the network", height: 260, marks: true, data: error },
  { id: "truth", label: "Prediction against truth", height: 240, data: truth },
  { id: "weights", label: "Kernel weights", unit: "share", height: 190, format: share, data: weights },
  { id: "trust", label: "What the prediction rests on", unit: "share", height: 190, format: share, data: trust },
  { id: "queue", label: "Samples and queue", unit: "samples a second, samples waiting", height: 170, data: queue },
];

export class Panels {
  constructor(find) {
    this.charts = PANELS.map(({ data, ...panel }) => new Chart(find(panel.id) ?? placed(panel), panel));
  }

  update(view) {
    const to = view.now;
    // a mesh that is younger than the time asked for fills the width all the same
    const first = Math.min(...[...view.learners.values()].map((each) => each.series.rows[0]?.t ?? Infinity));
    const from = Math.max(to - view.range.seconds, Math.min(first, to - 60));
    const learner = view.learners.get(view.chosen);
    if (!learner) return;
    PANELS.forEach((panel, k) => {
      const found = panel.data({ view, learner, from, to });
      this.charts[k].unit = panel.unit ?? view.hello.target.name;
      this.charts[k].place.closest("section").hidden = found === null;
      if (found) this.charts[k].update({ from, to, ...found });
    });
  }
}

function placed({ id, label }) {
  const place = element("div", { id });
  const title = element("h3", { id: `${id}-title` }, label);
  const section = element("section", { class: "card half", "aria-labelledby": `${id}-title` }, title, place);
  [...document.querySelectorAll("#content .grid")].at(-1).append(section);
  return place;
}

function everyone({ view, from }, sum, count) {
  const width = smoothing(view);
  const named = view.learners.size <= 10;
  const lines = [...view.learners].map(([name, learner], k) => ({
    name, points: learner.series.rms(sum, count, from - width, width), isShown: name === view.chosen || named,
    style: `s${k % 10} ${name === view.chosen ? "strong" : view.learners.size > 1 ? "thin" : ""}`,
  }));
  return { lines, low: 0, named };
}

function error({ view, learner, from }) {
  const width = smoothing(view);
  const points = (sum) => learner.series.rms(sum, "n", from - width, width);
  const known = (found) => (found.some((point) => point[1] > 0) ? found : []);
  const lines = [
    { name: "last value", style: "last", points: known(points("last")) },
    { name: "alone", style: "alone", points: known(points("alone")) },
    { name: "with the network", style: "mesh strong", points: points("error") },
  ].filter((line) => line.points.length);
  const marks = view.events.filter((each) => each.learner === view.chosen || ["ready", "stopped", "lost"].includes(each.kind)).map((each) => ({
    t: each.time, text: `${each.learner}: ${each.text}`, sign: SIGNS[each.kind] ?? "●",
    style: ALARMING.has(each.kind) || each.kind === "lost" ? "warn" : PLEASING.has(each.kind) ? "fine" : "",
  }));
  return { lines, marks, low: 0 };
}

function truth({ view, learner }) {
  const seen = spaced(learner.samples.slice(-SHOWN));
  const since = seen.length ? seen[0][1] : view.now - 60;
  const last = seen.length ? seen[seen.length - 1][1] : view.now;
  const known = seen.flatMap((s) => [s[2], s[3]]).filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const margin = 0.3 * (most - least) || 1; // a band that is wider is cut off there
  const { low, high } = view.hello.target;
  const inside = (value) => Math.min(Math.max(value, least - margin, Math.min(low, least)), most + margin, Math.max(high, most));
  return {
    from: since, to: Math.max(last, since + 1),
    areas: [{ style: "band", points: seen.map((s) => (s[4] === null ? [s[1], null, null] : [s[1], inside(s[3] - 1.96 * s[4]), inside(s[3] + 1.96 * s[4])])) }],
    lines: [
      { name: "label", style: "truth", points: interrupted(seen.map((s) => [s[1], s[2]])) },
      { name: "prediction, with the band of 95 %", style: "mesh", points: interrupted(seen.map((s) => [s[1], s[3]])) },
    ],
  };
}

function weights({ view, learner, from }) {
  const lines = view.hello.kernels.map((name, k) => ({
    name, style: `s${k % 10}`, points: learner.series.values((row) => row.weights[k] ?? null, from),
  }));
  return { lines, low: 0, high: 1 };
}

// Not every algorithm can say it.
function trust({ learner, from }) {
  const lines = Object.entries(TRUST).map(([key, name], k) => ({
    name, style: `s${[0, 1, 8][k]}`, points: learner.series.values((row) => row.trust[key] ?? null, from),
  }));
  return lines.some((line) => line.points.some((point) => point[1] !== null)) ? { lines, low: 0, high: 1 } : null;
}

function queue({ learner, from }) {
  return {
    low: 0,
    lines: [
      { name: "samples a second", style: "s0", points: learner.series.values((row) => (row.seconds > 0 ? row.n / row.seconds : null), from) },
      { name: "waiting", style: "s1", points: learner.series.values((row) => row.queued, from) },
    ],
  };
}

// Samples that came in lists have nearly equal times; then they are drawn at equal distances.
function spaced(samples) {
  const [first, last] = [samples[0]?.[1], samples[samples.length - 1]?.[1]];
  const nEqual = samples.filter((sample, k) => k && sample[1] - samples[k - 1][1] < 0.002).length;
  if (nEqual < samples.length / 3) return samples;
  const pause = Math.max(last - first, 1) / samples.length;
  return samples.map((sample, k) => [sample[0], last - pause * (samples.length - 1 - k), ...sample.slice(2)]);
}

// Points with a gap where nothing came for long.
function interrupted(points) {
  const pauses = points.slice(1).map((point, k) => point[0] - points[k][0]).sort((a, b) => a - b);
  const long = 8 * (pauses[Math.floor(pauses.length / 2)] ?? 0) + 1;
  return points.flatMap((point, k) => (k && point[0] - points[k - 1][0] > long ? [[point[0] - long / 2, null], point] : [point]));
}

function share(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

const smoothing = (view) => Math.max(view.range.seconds / 20, 2 * view.range.step);
