// A learner's rows by time: from its history, and second by second from the stream. Errors are kept
// as sums of squares, so that the error over any window is a quotient of two sums.

const SUMS = ["n", "error", "alone", "last", "covered", "gap", "gaps", "sent_bytes", "received_bytes", "seconds"];

export class Series {
  constructor() {
    this.clear(1);
  }

  clear(step) {
    this.step = step;
    this.rows = [];
    this.until = -Infinity; // the last second that the history holds, perhaps in part
  }

  // The history since some time; what the stream has brought meanwhile is kept.
  load(answer, horizon) {
    const newer = this.rows;
    this.clear(answer.step);
    this.add(answer, horizon);
    this.until = Math.floor(answer.now);
    for (const row of newer) if (row.t > this.until) this.#append(row);
  }

  add(columns, horizon) {
    const by = columns.horizons[horizon];
    if (!by) return;
    for (let k = 0; k < columns.start.length; k += 1) {
      if (columns.start[k] > this.until) this.#append(rowOf(columns, by, k));
    }
  }

  #append(row) {
    row.t = Math.floor(row.t / this.step) * this.step;
    const last = this.rows[this.rows.length - 1];
    if (!last || row.t > last.t) {
      this.rows.push(row);
    } else if (row.t === last.t) {
      const sums = Object.fromEntries(SUMS.map((name) => [name, last[name] + row[name]]));
      Object.assign(last, { ...row, ...sums, queued: Math.max(last.queued, row.queued), n_open: Math.min(last.n_open, row.n_open) });
    }
  }

  drop(before) {
    let k = 0;
    while (k < this.rows.length && this.rows[k].t < before) k += 1;
    if (k) this.rows.splice(0, k);
  }

  // Points [time, root mean square] over windows of so many seconds that end there.
  rms(sum, count, since, width) {
    const points = [];
    let total = 0;
    let n = 0;
    let first = 0;
    this.rows.forEach((row, k) => {
      if (this.#isLate(k)) points.push([row.t - this.step, null]);
      total += row[sum];
      n += row[count];
      while (this.rows[first].t <= row.t - width) {
        total -= this.rows[first][sum];
        n -= this.rows[first][count];
        first += 1;
      }
      if (row.t >= since) points.push([row.t + this.step / 2, n > 0 ? Math.sqrt(Math.max(total, 0) / n) : null]);
    });
    return points;
  }

  values(pick, since) {
    return this.rows.flatMap((row, k) => {
      if (row.t < since) return [];
      const point = [row.t + this.step / 2, pick(row)];
      return this.#isLate(k) ? [[row.t - this.step, null], point] : [point];
    });
  }

  // Whether the learner was away before this row.
  #isLate(k) {
    return k > 0 && this.rows[k].t - this.rows[k - 1].t > Math.max(3 * this.step, 5);
  }
}

// Every column of the history is a property of its rows; errors become sums of squares.
function rowOf(columns, by, k) {
  const n = by.n[k];
  const square = (value) => (value === null || value === undefined ? 0 : value * value * n);
  const gap = columns.disagreement[k];
  const row = { trust: {} };
  for (const [name, values] of Object.entries(columns)) if (Array.isArray(values)) row[name] = values[k];
  for (const [name, values] of Object.entries(columns.trust)) row.trust[name] = values[k];
  return {
    ...row, t: columns.start[k], n, error: square(by.rmse[k]), alone: square(by.rmse_alone[k]),
    last: square(by.rmse_last_value[k]), covered: (by.coverage[k] ?? 0) * n,
    gaps: gap === null ? 0 : 1, gap: gap === null ? 0 : gap * gap,
  };
}
