// The charts, drawn from what is known of the learners.

import { ALARMING, PLEASING } from "./format.js";
import { Chart } from "./chart.js";

const SHOWN = 120; // samples, with prediction and truth
const SIGNS = { up: "▲", ready: "▲", down: "▼", left: "▽", stopped: "■", reloaded: "↻", refused: "!", mismatch: "!" };

export class Panels {
  constructor(find) {
    const made = (id, options) => new Chart(find(id), options);
    this.errors = made("errors", { label: "Error of every learner", height: 280 });
    this.disagreement = made("disagreement", { label: "Disagreement with neighbors", height: 220 });
    this.error = made("error", { label: "Error with and without the network", height: 260, marks: true });
    this.truth = made("truth", { label: "Prediction against truth", height: 240 });
    this.weights = made("weights", { label: "Kernel weights", unit: "share", height: 190, format: share });
    this.trust = made("trust", { label: "What the prediction rests on", unit: "share", height: 190, format: share });
    this.queue = made("queue", { label: "Samples and queue", height: 170 });
  }

  update(view) {
    const to = view.now;
    // a mesh that is younger than the time asked for fills the width all the same
    const first = Math.min(...[...view.learners.values()].map((each) => each.series.rows[0]?.t ?? Infinity));
    const from = Math.max(to - view.range.seconds, Math.min(first, to - 60));
    const unit = view.hello.target.name;
    for (const chart of [this.errors, this.disagreement, this.error, this.truth]) chart.unit = unit;
    this.queue.unit = "samples a second, samples waiting";
    this.#everyone(view, from, to);
    const learner = view.learners.get(view.chosen);
    if (!learner) return;
    this.#error(view, learner, from, to);
    this.#truth(learner, view);
    this.#shares(view, learner, from, to);
    this.#queue(learner, from, to);
  }

  #everyone(view, from, to) {
    const width = smoothing(view);
    const lines = (sum, count) => [...view.learners].map(([name, learner], k) => ({
      name, points: learner.series.rms(sum, count, from - width, width), isShown: name === view.chosen || view.learners.size <= 10,
      style: `s${k % 10} ${name === view.chosen ? "strong" : view.learners.size > 1 ? "thin" : ""}`,
    }));
    const named = view.learners.size <= 10;
    this.errors.update({ from, to, lines: lines("error", "n"), low: 0, named });
    this.disagreement.update({ from, to, lines: lines("gap", "gaps"), low: 0, named });
  }

  #error(view, learner, from, to) {
    const width = smoothing(view);
    const points = (sum) => learner.series.rms(sum, "n", from - width, width);
    const known = (found) => (found.some((point) => point[1] > 0) ? found : []);
    const lines = [
      { name: "last value", style: "last", points: known(points("last")) },
      { name: "alone", style: "alone", points: known(points("alone")) },
      { name: "with the network", style: "mesh strong", points: points("error") },
    ].filter((line) => line.points.length);
    const marks = view.events.filter((each) => each.learner === view.chosen || each.kind === "ready" || each.kind === "stopped" || each.kind === "lost").map((each) => ({
      t: each.time, text: `${each.learner}: ${each.text}`, sign: SIGNS[each.kind] ?? "●",
      style: ALARMING.has(each.kind) || each.kind === "lost" ? "warn" : PLEASING.has(each.kind) ? "fine" : "",
    }));
    this.error.update({ from, to, lines, marks, low: 0 });
  }

  #truth(learner, view) {
    const seen = spread(learner.samples.slice(-SHOWN));
    const since = seen.length ? seen[0][1] : view.now - 60;
    const last = seen.length ? seen[seen.length - 1][1] : view.now;
    const known = seen.flatMap((s) => [s[2], s[3]]).filter((value) => value !== null);
    const [least, most] = [Math.min(...known), Math.max(...known)];
    const spare = 0.3 * (most - least) || 1; // a band that is wider is cut off there
    const { low, high } = view.hello.target;
    const inside = (value) => Math.min(Math.max(value, least - spare, Math.min(low, least)), most + spare, Math.max(high, most));
    this.truth.update({
      from: since, to: Math.max(last, since + 1),
      areas: [{ style: "band", points: seen.map((s) => (s[4] === null ? [s[1], null, null] : [s[1], inside(s[3] - 1.96 * s[4]), inside(s[3] + 1.96 * s[4])])) }],
      lines: [
        { name: "label", style: "truth", points: interrupted(seen.map((s) => [s[1], s[2]])) },
        { name: "prediction, with the band of 95 %", style: "mesh", points: interrupted(seen.map((s) => [s[1], s[3]])) },
      ],
    });
  }

  #shares(view, learner, from, to) {
    const kernels = view.hello.kernels.map((name, k) => ({
      name, style: `s${k % 10}`, points: learner.series.values((row) => row.weights[k] ?? null, from),
    }));
    this.weights.update({ from, to, lines: kernels, low: 0, high: 1 });
    const names = ["network", "own", "last value"];
    const trust = names.map((name, k) => ({
      name: { network: "the network's fits", own: "its own fits", "last value": "the last value" }[name],
      style: `s${[0, 1, 8][k]}`, points: learner.series.values((row) => row.trust[name] ?? null, from),
    }));
    // not every algorithm can say it
    this.trust.place.closest("section").hidden = !trust.some((line) => line.points.some((point) => point[1] !== null));
    this.trust.update({ from, to, lines: trust, low: 0, high: 1 });
  }

  #queue(learner, from, to) {
    this.queue.update({
      from, to, low: 0,
      lines: [
        { name: "samples a second", style: "s0", points: learner.series.values((row) => (row.seconds > 0 ? row.n / row.seconds : null), from) },
        { name: "waiting", style: "s1", points: learner.series.values((row) => row.queued, from) },
      ],
    });
  }
}

// Samples that came in lists have nearly equal times; then they are drawn at equal distances.
function spread(samples) {
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

const share = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
const smoothing = (view) => Math.max(view.range.seconds / 20, 2 * view.range.step);
