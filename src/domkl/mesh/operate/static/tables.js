// The tables: learners, windows, edges; and the list of events.

import { ALARMING, PLEASING, bytes, drawn, duration, element, grade, moment, number, percent } from "./format.js";

const WINDOWS = ["hour", "day", "week", "last 1000"];

// The shortest window with samples enough, as the verdict takes it.
export function windowOf(state, horizon) {
  const by = state?.recent?.[horizon];
  if (!by) return null;
  const name = WINDOWS.find((each) => (by[each]?.n ?? 0) >= 100) ?? "last 1000";
  return by[name] ? { name, ...by[name] } : null;
}

export function gainOf(recent) {
  return recent?.rmse > 0 && recent.rmse_alone > 0 ? 1 - recent.rmse / recent.rmse_alone : null;
}

export function learnersTable(table, view) {
  const unit = view.hello.target.name;
  const head = ["Learner", "Verdict", `Error, ${unit}`, "Alone", "Last value", "Gain", "Coverage", "Last sample", "Queue", "Edges", "In/s", "Out/s", "Certificate"];
  const rows = view.hello.watched.map((name) => learnerRow(name, view));
  fill(table, head, rows, ["Verdict"]);
}

function learnerRow(name, view) {
  const learner = view.learners.get(name);
  const state = learner?.state;
  const recent = windowOf(state, view.horizon);
  const seen = grade(state?.verdict);
  const button = element("button", { type: "button", "aria-pressed": String(name === view.chosen) }, name);
  button.addEventListener("click", () => view.choose(name));
  const edges = Object.values(state?.neighbors ?? {});
  const isUp = Boolean(state?.is_ready);
  const rate = [...(learner?.rates.values() ?? [])].reduce((a, b) => ({ sent: a.sent + b.sent, received: a.received + b.received }), { sent: 0, received: 0 });
  const age = isUp && state.sample_age !== null ? state.sample_age + (Date.now() - learner.heard) / 1000 : null;
  const cells = [
    element("th", { scope: "row" }, button),
    element("td", { class: `text ${seen.level}` }, `${seen.sign} ${seen.word}`),
    number(recent?.rmse), number(recent?.rmse_alone), number(recent?.rmse_last_value),
    element("td", {}, percent(gainOf(recent)), bar(gainOf(recent))),
    percent(recent?.coverage ?? null), duration(age), isUp ? String(state.n_queued) : "–",
    isUp ? `${edges.filter((edge) => edge.is_open).length}/${edges.length}` : "–",
    isUp ? bytes(rate.received) : "–", isUp ? bytes(rate.sent) : "–",
    isUp && state.expires ? duration((Date.parse(state.expires) - Date.now()) / 1000) : "–",
  ];
  return { cells, style: name === view.chosen ? "chosen-row" : null };
}

function bar(gain) {
  if (gain === null) return "";
  const width = Math.min(Math.abs(gain), 0.5) * 60;
  const x = gain < 0 ? 32 - width : 32;
  return drawn("svg", { class: "bar", viewBox: "0 0 64 10", "aria-hidden": "true" },
    drawn("rect", { class: gain < 0 ? "minus" : "plus", x, y: 1, width, height: 8 }),
    drawn("line", { class: "zero", x1: 32, x2: 32, y1: 0, y2: 10 }));
}

export function windowsTable(table, state, horizon, unit) {
  const by = state?.recent?.[horizon] ?? {};
  const rows = ["hour", "day", "week", "last 100", "last 1000"].filter((name) => by[name]).map((name) => ({
    cells: [element("th", { scope: "row" }, name.startsWith("last") ? name : `last ${name}`), String(by[name].n), number(by[name].rmse), number(by[name].rmse_alone), number(by[name].rmse_last_value), percent(by[name].coverage)],
  }));
  fill(table, ["Window", "Samples", `Error, ${unit}`, "Alone", "Last value", "Coverage"], rows);
}

export function edgesTable(table, learner) {
  const rows = Object.entries(learner?.state?.neighbors ?? {}).map(([peer, edge]) => {
    const rate = learner.rates.get(peer) ?? { sent: null, received: null };
    return {
      cells: [
        element("th", { scope: "row" }, peer),
        element("td", { class: `text ${edge.is_open ? "good" : "bad"}` }, edge.is_open ? "✓ open" : "× silent"),
        duration(edge.silent_seconds), String(edge.n_exchanged), `${bytes(rate.received)}/s`, `${bytes(rate.sent)}/s`,
        bytes(edge.received_bytes), bytes(edge.sent_bytes), String(edge.n_asked), String(edge.dropped),
      ],
    };
  });
  fill(table, ["Neighbor", "State", "Heard before", "Exchanges", "In", "Out", "In, all", "Out, all", "Asked again", "Dropped"], rows, ["State"]);
}

export function eventList(list, events) {
  const newest = events.slice(-100).reverse();
  const key = newest.map((each) => `${each.learner}${each.number}`).join();
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...(newest.length ? newest.map((each) => {
    const style = ALARMING.has(each.kind) ? "bad" : PLEASING.has(each.kind) ? "good" : "";
    return element("li", {}, element("time", {}, moment(each.time)), element("span", { class: style }, `${each.kind}: `), `${each.learner}: ${each.text}`);
  }) : [element("li", {}, "nothing in this time")]));
}

// Replaces the cells that differ, so that focus stays where it is.
function fill(table, head, rows, texts = []) {
  if (!table.tHead) table.append(element("thead", {}, element("tr", {})), element("tbody", {}));
  const titles = head.join("|");
  if (table.dataset.head !== titles) {
    table.dataset.head = titles;
    table.tHead.rows[0].replaceChildren(...head.map((text) => element("th", { scope: "col", class: texts.includes(text) ? "text" : null }, text)));
  }
  const body = table.tBodies[0];
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, k) => {
    const line = body.rows[k] ?? body.insertRow();
    if ((line.getAttribute("class") ?? "") !== (row.style ?? "")) line.setAttribute("class", row.style ?? "");
    row.cells.forEach((cell, j) => put(line, j, cell instanceof Node ? cell : element("td", {}, cell)));
  });
}

function put(line, j, cell) {
  const old = line.cells[j];
  if (!old) line.append(cell);
  else if (old.querySelector("button")?.textContent === cell.querySelector("button")?.textContent && cell.querySelector("button")) {
    old.querySelector("button").setAttribute("aria-pressed", cell.querySelector("button").getAttribute("aria-pressed"));
  } else if (!old.isEqualNode(cell)) old.replaceWith(cell);
}
