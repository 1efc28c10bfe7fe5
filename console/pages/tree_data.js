// @ts-check
// The data of the page of a tree: its sessions page by page, the threads that point into it, and what is new.

import { signal } from '@preact/signals';
import { get } from '../api.js';
import { onChange } from '../live.js';
import { descendantsOf, treeOf } from '../logic/lanes.js';

/** @import { Session, Tree } from '../types.d.ts' */

const PAGE = 200;
/** How many sessions are read before the reader asks for more. */
const MOST = 5000;
/** How many pages of threads are read. */
const MAX_PAGES = 10;
/** How far the clocks of two replicas may differ. */
const SKEW = 60_000;

/** The data of a tree, as long as its page is open. */
export class TreeData {
  /** @type {import('@preact/signals').Signal<Tree>} */
  tree = signal(treeOf([]));
  /** The threads that point to a session of the tree: the names by their session. */
  names = signal(/** @type {Map<string, string[]>} */ (new Map()));
  /** New sessions that are not shown yet. */
  held = signal(/** @type {Session[]} */ ([]));
  /** Whether older sessions are being read, are left, or are all here. */
  state = signal(/** @type {'reading' | 'more' | 'all'} */ ('reading'));
  problem = signal(/** @type {unknown} */ (null));
  /** Whether new sessions are shown at once. */
  isAtTop = true;

  #root;
  #stop = new AbortController();
  /** @type {Map<string, Session>} */
  #sessions = new Map();
  /** @type {Map<string, string | null>} The sessions of the threads of the tenant. */
  #threads = new Map();
  #most = MOST;
  /** @type {string | null} */
  #cursor = '';
  #isReading = false;
  #timer = 0;

  /** @param {string} root */
  constructor(root) {
    this.#root = root;
    const forget = onChange((change) => this.#onChange(change));
    this.#stop.signal.addEventListener('abort', () => {
      forget();
      clearTimeout(this.#timer);
    });
    void this.#read();
    void this.#readThreads();
  }

  close() {
    this.#stop.abort();
  }

  /** Reads older sessions. */
  readMore() {
    this.#most += MOST;
    void this.#read();
  }

  /** Shows the new sessions. */
  release() {
    if (this.held.value.length) this.#add(this.held.value);
    this.held.value = [];
  }

  /** Adds a session that the reader has just made. @param {Session} session */
  add(session) {
    if (session.root_session_id === this.#root) this.#add([session]);
  }

  /** Takes a session away, with those that continue it. @param {string} id */
  remove(id) {
    if (!this.#sessions.has(id)) return;
    for (const one of descendantsOf(this.tree.value, id)) this.#sessions.delete(one);
    this.tree.value = treeOf(this.#sessions.values());
  }

  /** The session that a thread points to, as far as known. @param {string} thread */
  sessionOf = (thread) => this.#threads.get(thread);

  /** @param {Session[]} sessions */
  #add(sessions) {
    for (const session of sessions) this.#sessions.set(session.session_id, session);
    this.tree.value = treeOf(this.#sessions.values());
    this.#name();
  }

  /** Reads the sessions from the newest to the oldest. */
  async #read() {
    if (this.#isReading) return;
    this.#isReading = true;
    /** @type {Session[]} */
    let fresh = [];
    try {
      while (this.#cursor !== null && this.#sessions.size + fresh.length < this.#most) {
        this.state.value = 'reading';
        const after = this.#cursor && `&cursor=${encodeURIComponent(this.#cursor)}`;
        const page = await get(`/v1/sessions?root=${this.#root}&limit=${PAGE}${after}`, this.#stop.signal);
        this.#cursor = page.next_cursor;
        this.problem.value = null;
        fresh.push(...page.data);
        // A large tree is not laid out again for each page.
        if (fresh.length < this.#sessions.size / 4) continue;
        this.#add(fresh);
        fresh = [];
      }
    } catch (problem) {
      if (!this.#stop.signal.aborted) this.problem.value = problem;
    } finally {
      this.#isReading = false;
      if (fresh.length) this.#add(fresh);
      this.state.value = this.#cursor === null ? 'all' : 'more';
    }
  }

  async #readThreads() {
    const { signal: stop } = this.#stop;
    let after = '';
    for (let page = 0; page < MAX_PAGES; page++) {
      const read = get(`/v1/threads?limit=${PAGE}${after}`, stop).catch(() => ({ data: [] }));
      const { data, next_cursor: next } = await read;
      for (const { name, session_id: id } of data) this.#threads.set(name, id);
      this.#name();
      if (!next) return;
      after = `&cursor=${encodeURIComponent(next)}`;
    }
  }

  #name() {
    const names = new Map();
    for (const [name, id] of this.#threads) {
      if (id && this.#sessions.has(id)) names.set(id, [...(names.get(id) ?? []), name]);
    }
    this.names.value = names;
  }

  /** @param {import('../live.js').Change | null} change */
  #onChange(change) {
    if (change?.type === 'session.removed') this.remove(change.data.session_id ?? '');
    const { thread, session_id: session } = change?.data ?? {};
    if (thread && (session || !change?.type.startsWith('run.'))) void this.#readThread(thread);
    const isHint = !change || (session && change.type !== 'session.removed' && !this.#sessions.has(session));
    if (isHint) this.#timer ||= window.setTimeout(() => void this.#readNew(), 1000);
    if (!change && this.#cursor !== null && this.problem.value) void this.#read();
  }

  /** @param {string} name */
  async #readThread(name) {
    try {
      const thread = await get(`/v1/threads/${encodeURIComponent(name)}`, this.#stop.signal);
      this.#threads.set(name, thread.session_id);
    } catch (problem) {
      if (/** @type {any} */ (problem).status === 404) this.#threads.delete(name);
    }
    this.#name();
  }

  /** Reads the sessions that were made since the newest one. */
  async #readNew() {
    this.#timer = 0;
    const newest = this.tree.value.list[0];
    if (!newest) return;
    const from = encodeURIComponent(new Date(Date.parse(newest.created_at) - SKEW).toISOString());
    const path = `/v1/sessions?root=${this.#root}&created_from=${from}&limit=${PAGE}`;
    const page = await get(path, this.#stop.signal).catch(() => ({ data: [] }));
    const known = new Set(this.held.value.map((session) => session.session_id));
    const isNew = ({ session_id: id }) => !this.#sessions.has(id) && !known.has(id);
    const found = page.data.filter(isNew);
    if (!found.length) return;
    this.held.value = [...found, ...this.held.value];
    if (this.isAtTop) this.release();
  }
}
