// Requests, with the token where there is one. It is in memory and in this tab's session storage,
// and leaves them in a header only.

const KEY = "domkl-token";
const SILENT = 4000; // milliseconds without a line, after which the stream is opened anew
let token = read();

export class Unauthorized extends Error {}

function read() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export function setToken(value) {
  token = value;
  try {
    value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY);
  } catch {
    // without storage the token lasts as long as the page
  }
}

export const hasToken = () => token !== "";

async function ask(path, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, signal, cache: "no-store", credentials: "omit", redirect: "error" });
  if (answer.status === 401) throw new Unauthorized();
  if (!answer.ok) throw new Error(`${answer.status}`);
  return answer;
}

export async function get(path, given = {}) {
  const query = new URLSearchParams(given).toString();
  return (await ask(query ? `${path}?${query}` : path)).json();
}

// Calls onLine for each line, until the stream ends, fails or falls silent; then it throws.
export async function follow(path, onLine) {
  const control = new AbortController();
  let timer = setTimeout(() => control.abort(), SILENT);
  try {
    const answer = await ask(path, control.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      clearTimeout(timer);
      if (done) throw new Error("the stream has ended");
      timer = setTimeout(() => control.abort(), SILENT);
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line) onLine(JSON.parse(line));
    }
  } finally {
    clearTimeout(timer);
    control.abort();
  }
}
