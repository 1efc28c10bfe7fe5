// @ts-check
// Which rows of a long list are in view, for rows of one height and for rows with measured heights. Pure.

/** @typedef {{ from: number, to: number }} Range The rows from `from` up to, but not including, `to`. */

/**
 * Returns the rows in view, and some around them.
 * @param {{ count: number, height: number, scroll: number, view: number, around?: number }} list
 * @returns {Range}
 */
export function rowsInView({ count, height, scroll, view, around = 8 }) {
  const from = Math.max(0, Math.floor(scroll / height) - around);
  return { from: Math.min(from, count), to: Math.min(count, Math.ceil((scroll + view) / height) + around) };
}

/**
 * Orders rows by slot, so that a row that scrolls into view reuses the element of one that left it.
 * @param {Range} range @returns {{ index: number, slot: number }[]}
 */
export function slots({ from, to }) {
  const size = Math.max(1, Math.ceil((to - from) / 16) * 16);
  const rows = [];
  for (let index = from; index < to; index++) rows.push({ index, slot: index % size });
  return rows.sort((a, b) => a.slot - b.slot);
}

/** The heights of rows as they become known: a Fenwick tree of differences from the estimate. */
export class Heights {
  #tree;
  #known;

  /** @param {number} count @param {number} estimate The height of a row that was not measured. */
  constructor(count, estimate) {
    this.count = count;
    this.estimate = estimate;
    this.#tree = new Float64Array(count + 1);
    this.#known = new Float64Array(count).fill(estimate);
  }

  /** Sets the height of a row. Returns by how much it changed. @param {number} index @param {number} height */
  set(index, height) {
    const change = height - this.#known[index];
    if (!change) return 0;
    this.#known[index] = height;
    for (let i = index + 1; i <= this.count; i += i & -i) this.#tree[i] += change;
    return change;
  }

  /** Returns the height of all rows before one. @param {number} index */
  offset(index) {
    let sum = index * this.estimate;
    for (let i = index; i > 0; i -= i & -i) sum += this.#tree[i];
    return sum;
  }

  get total() {
    return this.offset(this.count);
  }

  /** Returns the row at a height: the last one that begins there or above. @param {number} y */
  at(y) {
    let index = 0;
    let rest = y;
    for (let step = 1 << Math.floor(Math.log2(this.count || 1)); step; step >>= 1) {
      const next = index + step;
      if (next > this.count) continue;
      const height = step * this.estimate + this.#tree[next];
      if (height > rest) continue;
      index = next;
      rest -= height;
    }
    return Math.max(0, Math.min(index, this.count - 1));
  }

  /** Returns the rows in view, and some around them. @param {number} scroll @param {number} view @returns {Range} */
  inView(scroll, view, around = 4) {
    if (!this.count) return { from: 0, to: 0 };
    return {
      from: Math.max(0, this.at(scroll) - around),
      to: Math.min(this.count, this.at(scroll + view) + 1 + around),
    };
  }
}
