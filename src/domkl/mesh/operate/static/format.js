// Numbers, times and elements. Text is only ever set as text: nothing here makes markup of it.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.map((each) => (each instanceof Node ? each : String(each))));
  return made;
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(size >= 10 ** digits ? Math.ceil(Math.log10(size)) : digits)));
}

export function percent(share) {
  return share === null || !Number.isFinite(share) ? "–" : `${(100 * share).toFixed(1)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let k = 0;
  while (value >= 999.5 && k < units.length - 1) {
    value /= 1000;
    k += 1;
  }
  return `${k && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[k]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
    if (seconds >= 2 * length) return `${Math.round(seconds / length)} ${unit}`;
  }
  return `${Math.max(0, Math.round(seconds))} s`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const MINUTES = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const DAYS = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const EXACT = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export function clock(seconds, span = 0) {
  const when = new Date(1000 * seconds);
  return (span > 2 * 86400 ? DAYS : span > 1200 ? MINUTES : CLOCK).format(when);
}

export function moment(seconds) {
  return EXACT.format(new Date(1000 * seconds));
}

// How serious a verdict is: class and sign, so that color is never the only difference.
export function grade(verdict) {
  const word = verdict?.word ?? "unknown";
  if (word === "worth it" || word === "learning") return { word, level: "good", sign: "✓" };
  if (word === "exchanging") return { word, level: "fair", sign: "…" };
  if (word === "unknown") return { word, level: "", sign: "?" };
  return { word, level: "bad", sign: word === "up" ? "!" : "×" };
}

export const ALARMING = new Set(["down", "refused", "mismatch", "checkpoint", "history", "reload refused", "failed", "link lost"]);
export const PLEASING = new Set(["up", "ready", "reloaded", "link up"]);
