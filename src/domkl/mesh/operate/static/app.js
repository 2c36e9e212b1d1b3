// The page: follows the stream, keeps what is known of each learner, and draws it once a second.

import { duration, element, grade } from "./format.js";
import { Network } from "./network.js";
import { Panels } from "./panels.js";
import { Series } from "./series.js";
import { Unauthorized, follow, get, hasToken, setToken } from "./stream.js";
import { edgesTable, eventList, learnersTable, windowOf, windowsTable } from "./tables.js";

const find = (id) => document.getElementById(id);
const RANGES = [
  { name: "1 minute", seconds: 60, step: 1 }, { name: "10 minutes", seconds: 600, step: 5 },
  { name: "1 hour", seconds: 3600, step: 30 }, { name: "1 day", seconds: 86400, step: 600 },
  { name: "1 week", seconds: 7 * 86400, step: 3600 }, { name: "1 year", seconds: 365 * 86400, step: 86400 },
];
const AGAIN = 1000; // milliseconds before a lost stream is opened again
const MOST_SAMPLES = 1000;

const view = {
  hello: null, learners: new Map(), events: [], chosen: null, horizon: "1", range: RANGES[1],
  now: Date.now() / 1000, shift: 0, isLive: false, lostAt: null, choose,
};
let network = null;
let panels = null;
let isDue = false;

function choose(name) {
  if (!view.learners.has(name)) return;
  view.chosen = name;
  find("learner").value = name;
  loadSamples(name);
  draw();
}

function learnerOf() {
  return { state: null, heard: 0, series: new Series(), samples: [], rates: new Map(), moved: new Map() };
}

function onLine(line) {
  if (line.hello) begin(line.hello);
  if (line.learners) {
    view.shift = line.time - Date.now() / 1000;
    for (const [name, news] of Object.entries(line.learners)) take(name, news, line.time);
    setLive(true);
    draw();
  }
}

function begin(hello) {
  const before = JSON.stringify(view.hello);
  view.hello = hello;
  if (before !== JSON.stringify(hello)) lay(hello);
  loadHistory();
  if (view.chosen) loadSamples(view.chosen);
}

function lay(hello) {
  document.title = hello.watched.length === 1 ? `${hello.watched[0]} · ${hello.mesh}` : `${hello.mesh} · domkl`;
  find("title").textContent = hello.watched.length === 1 ? `${hello.watched[0]} of ${hello.mesh}` : hello.mesh;
  for (const name of hello.watched) if (!view.learners.has(name)) view.learners.set(name, learnerOf());
  for (const name of view.learners.keys()) if (!hello.watched.includes(name)) view.learners.delete(name);
  find("content").hidden = false;
  find("ask").hidden = true;
  find("forget").hidden = !hasToken();
  network ??= new Network(find("network"), choose);
  panels ??= new Panels(find);
  network.lay(hello);
  options(find("learner"), hello.watched);
  options(find("horizon"), hello.horizons.map(String));
  find("horizon-part").hidden = hello.horizons.length < 2;
  view.horizon = String(hello.horizons[0]);
  if (!view.chosen || !view.learners.has(view.chosen)) view.chosen = hello.watched[0] ?? null;
  find("learner").value = view.chosen;
}

function options(select, names) {
  select.replaceChildren(...names.map((name) => element("option", { value: name }, name)));
}

function take(name, news, time) {
  const learner = view.learners.get(name);
  if (!learner) return;
  const { rows, samples, events, ...state } = news;
  const wasReady = learner.state?.is_ready;
  if (wasReady && !state.is_ready) note({ learner: name, kind: "lost", number: -time, time, peer: "", text: `${name} does not answer` });
  // what was known last stays in sight while it is down
  learner.state = state.is_ready ? state : { ...learner.state, ...state, neighbors: learner.state?.neighbors };
  if (state.is_ready) learner.heard = Date.now();
  if (state.neighbors) rates(learner, state.neighbors, time);
  if (rows) learner.series.add(rows, view.horizon);
  learner.samples.push(...(samples?.[view.horizon] ?? []));
  if (learner.samples.length > MOST_SAMPLES) learner.samples.splice(0, learner.samples.length - MOST_SAMPLES);
  for (const each of events ?? []) note({ learner: name, ...each });
}

function note(event) {
  if (view.events.some((each) => each.learner === event.learner && each.number === event.number)) return;
  view.events.push(event);
  view.events.sort((a, b) => a.time - b.time);
  if (view.events.length > 2000) view.events.splice(0, view.events.length - 2000);
}

function rates(learner, neighbors, time) {
  for (const [peer, edge] of Object.entries(neighbors)) {
    const before = learner.moved.get(peer);
    if (before && time > before.time) {
      const per = (now, then) => Math.max(0, now - then) / (time - before.time);
      const fresh = { sent: per(edge.sent_bytes, before.sent), received: per(edge.received_bytes, before.received) };
      const old = learner.rates.get(peer) ?? fresh;
      learner.rates.set(peer, { sent: 0.7 * old.sent + 0.3 * fresh.sent, received: 0.7 * old.received + 0.3 * fresh.received });
    }
    learner.moved.set(peer, { time, sent: edge.sent_bytes, received: edge.received_bytes });
  }
}

async function loadHistory() {
  const range = view.range;
  for (const learner of view.learners.values()) learner.series.clear(range.step);
  const since = Date.now() / 1000 + view.shift - range.seconds * 1.1;
  try {
    const answer = await get("/history", { since: Math.max(0, Math.floor(since)), step: range.step });
    if (range !== view.range) return; // another was chosen meanwhile
    for (const [name, found] of Object.entries(answer.learners ?? { [answer.learner]: answer })) {
      const learner = view.learners.get(name);
      if (!learner || !found) continue;
      learner.series.load(found, view.horizon);
      for (const each of found.events) note({ learner: name, ...each });
    }
    draw();
  } catch (error) {
    if (error instanceof Unauthorized) askForToken();
  }
}

async function loadSamples(name) {
  try {
    const found = await get("/recent", { learner: name, horizon: view.horizon });
    const learner = view.learners.get(name);
    if (!learner || !Array.isArray(found)) return;
    const last = found.length ? found[found.length - 1][0] : 0;
    learner.samples = found.concat(learner.samples.filter((sample) => sample[0] > last));
    draw();
  } catch {
    // it is down: what is known stays
  }
}

function draw() {
  if (isDue || !view.hello) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    render();
  });
}

function render() {
  view.now = Date.now() / 1000 + view.shift;
  for (const learner of view.learners.values()) learner.series.drop(view.now - view.range.seconds * 1.2 - view.range.step);
  const chosen = view.learners.get(view.chosen);
  summarize();
  network.update(view.learners, view.chosen);
  learnersTable(find("learners"), view);
  const window = windowOf(chosen?.state, view.horizon);
  find("window-hint").textContent = `Errors are root mean squares in units of ${view.hello.target.name}, over ${window?.name.startsWith("last") ? `the ${window.name} samples` : `the last ${window?.name ?? "hour"}`}, or the shortest window with 100 samples; gain is what the network saves of the error of a twin without neighbors.`;
  panels.update(view);
  find("chosen-title").textContent = view.chosen ?? "";
  find("chosen-says").textContent = chosen?.state ? `${grade(chosen.state.verdict).word}: ${chosen.state.verdict?.says ?? ""}` : "";
  windowsTable(find("windows"), chosen?.state, view.horizon, view.hello.target.name);
  edgesTable(find("edges"), chosen);
  const since = view.now - view.range.seconds;
  eventList(find("events"), view.events.filter((each) => each.time >= since));
  find("about").textContent = chosen?.state?.version ? `domkl ${chosen.state.version}, ${chosen.state.algorithm}, ${chosen.state.mode}; process ${chosen.state.pid}; ${chosen.state.n_learned ?? 0} samples learned` : "";
}

function summarize() {
  const counts = new Map();
  for (const name of view.hello.watched) {
    const { word } = grade(view.learners.get(name)?.state?.verdict);
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const said = [...counts].map(([word, n]) => `${n} ${word}`).join(", ");
  const text = `${view.hello.watched.length === 1 ? "1 learner" : `${view.hello.watched.length} learners`}: ${said}`;
  if (find("summary").textContent !== text) find("summary").textContent = text;
}

function setLive(isLive) {
  if (!isLive && view.isLive) view.lostAt = Date.now();
  view.isLive = isLive;
  const pill = find("connection");
  const text = isLive ? "live" : view.lostAt ? `no connection for ${duration((Date.now() - view.lostAt) / 1000)}` : "connecting";
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${isLive ? "live" : view.lostAt ? "lost" : ""}`;
  if (!isLive && view.hello?.watched.length === 1) {
    const learner = view.learners.get(view.hello.watched[0]);
    if (learner?.state) learner.state = { ...learner.state, is_ready: false, verdict: { word: "down", says: "it does not answer" } };
    draw();
  }
}

function askForToken() {
  find("ask").hidden = false;
  find("content").hidden = true;
  find("connection").textContent = "waiting for the token";
  find("ask-error").textContent = hasToken() ? "This token is not the right one." : "";
  setToken("");
  find("token").focus();
}

async function run() {
  for (;;) {
    try {
      await follow("/watch", onLine);
    } catch (error) {
      if (error instanceof Unauthorized) {
        askForToken();
        return;
      }
      setLive(false);
    }
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}

options(find("range"), RANGES.map((range) => range.name));
find("range").value = view.range.name;
find("range").addEventListener("change", (event) => {
  view.range = RANGES.find((range) => range.name === event.target.value);
  loadHistory();
});
find("learner").addEventListener("change", (event) => choose(event.target.value));
find("horizon").addEventListener("change", (event) => {
  view.horizon = event.target.value;
  loadHistory();
  for (const learner of view.learners.values()) learner.samples = [];
  loadSamples(view.chosen);
});
find("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(find("token").value.trim());
  find("token").value = "";
  run();
});
find("forget").addEventListener("click", () => {
  setToken("");
  location.reload();
});
run();
