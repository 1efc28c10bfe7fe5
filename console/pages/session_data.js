// @ts-check
// The messages of a session, as far as somebody looks at them. A session never changes, so no page is read twice
// unless it was far away for long.

import { signal } from '@preact/signals';
import { get } from '../api.js';

/** @import { Message } from '../types.d.ts' */

const PAGE = 50;
/** The most messages that are held, and how far from the view the others may be. */
const MOST = 1000;
const NEAR = 250;
/** An index beyond the end of every session. */
const END = 4294967295;

export class Messages {
  version = signal(0);
  problem = signal(/** @type {any} */ (null));
  /** The number of messages; -1 until the first page is read. */
  total = -1;
  /** @type {Map<number, Message>} */
  #known = new Map();
  #wanted = { from: 0, to: 0 };
  #isReading = false;
  #stop = new AbortController();

  /** @param {string} path The session's. @param {number} first The index to begin at; negative: the last page. */
  constructor(path, first) {
    this.path = `${path}/messages`;
    this.first = first < 0 ? `before=${END}` : `from=${Math.max(0, first - PAGE / 2)}`;
    this.want(0, 0);
  }

  /** @param {number} index */
  at(index) {
    return this.#known.get(index);
  }

  /** Reads what is not known yet in a range. @param {number} from @param {number} to */
  want(from, to) {
    this.#wanted = { from, to };
    void this.#readWanted();
  }

  close() {
    this.#stop.abort();
  }

  /** Reads page after page. While one is read, the range may move: pages that a fling has passed are not read. */
  async #readWanted() {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      if (this.total < 0) await this.#read(this.first);
      for (let gap = this.#gap(); gap; gap = this.#gap()) await this.#read(gap);
      this.problem.value = null;
    } catch (problem) {
      if (!this.#stop.signal.aborted) this.problem.value = problem;
    } finally {
      this.#isReading = false;
    }
  }

  /** Finds the first page of the range with unknown messages. @returns {string | null} */
  #gap() {
    const { from, to } = this.#wanted;
    for (let index = from; index < Math.min(to, this.total); index++) {
      if (this.#known.has(index)) continue;
      let start = index - (index % PAGE);
      while (this.#known.has(start)) start++;
      return `from=${start}`;
    }
    return null;
  }

  /** Reads a page, which may end early. @param {string} range */
  async #read(range) {
    const page = await get(`${this.path}?${range}&limit=${PAGE}`, this.#stop.signal);
    if (!page.data.length && page.total > page.from) throw new Error('an empty page');
    this.total = page.total;
    for (const [place, message] of page.data.entries()) this.#known.set(page.from + place, message);
    this.#forget();
    this.version.value++;
  }

  #forget() {
    const { from, to } = this.#wanted;
    if (this.#known.size <= MOST) return;
    for (const index of this.#known.keys()) {
      if (index < from - NEAR || index > to + NEAR) this.#known.delete(index);
    }
  }
}
