// @ts-check
// The data of the page of a run: its record, its steps from both ends, and its events as they happen.

import { signal } from '@preact/signals';
import { get } from '../api.js';
import { followRun, onChange } from '../live.js';
import { liveStep, LONG, storedStep } from '../logic/timeline.js';

/** @import { FileChange, LiveState, Run, RunEvent, Session, Step, StepRecord } from '../types.d.ts' */

const PAGE = 50;
/** How many events of an ended run are read for the times of its models. */
const MAX_EVENTS = 20_000;

/** @param {Run} run */
export const isActive = (run) => run.status === 'queued' || run.status === 'running';
/** @param {Run} run */
export const hasSession = (run) => !!run.session_id && !isActive(run) && !['failed', 'cancelled'].includes(run.status);

/** The data of a run, as long as its page is open. */
export class RunData {
  run = signal(/** @type {Run | null} */ (null));
  problem = signal(/** @type {unknown} */ (null));
  session = signal(/** @type {Session | null} */ (null));
  /** The files that differ from the base, and whether these are all. */
  changes = signal(/** @type {{ files: FileChange[], complete: boolean } | null} */ (null));
  /** Counts changes of the steps. */
  version = signal(0);
  /** The number of steps, including one that is at work. */
  total = 0;

  #id;
  #stop = new AbortController();
  /** @type {Map<number, StepRecord>} */
  #records = new Map();
  /** @type {Map<number, { of: unknown, end: unknown, step: Step }>} */
  #steps = new Map();
  /** The number of steps that are stored. */
  #stored = 0;
  #isReading = false;
  /** The steps in view. */
  #wanted = { from: 1, to: 0 };
  /** The page to read after the one that is read now; infinity for none. */
  #next = Infinity;
  /** @type {ReturnType<typeof followRun> | null} */
  #events = null;
  #received = 0;
  #isScheduled = false;

  /** @param {string} id */
  constructor(id) {
    this.#id = id;
    const forget = onChange((change) => {
      if (!change || change.data.run_id === id) void this.#readRun();
    });
    this.#stop.signal.addEventListener('abort', forget);
    void this.#start();
  }

  close() {
    this.#stop.abort();
    this.#events?.stop();
  }

  /** Whether the times of the models are only those of the steps. */
  get isCoarse() {
    return !!this.#events?.state.isPartial && this.total <= LONG;
  }

  /** The number of steering messages that the run has read. */
  get applied() {
    return this.#events?.state.applied ?? 0;
  }

  /** The time at the service, as far as events tell it. */
  get now() {
    const run = this.run.value;
    if (run?.completed_at) return Date.parse(run.completed_at);
    return this.#events?.state.now ? this.#events.state.now + performance.now() - this.#received : Date.now();
  }

  /** Returns a step; null if it was not read yet. @param {number} number @returns {Step | null} */
  stepOf(number) {
    const record = this.#records.get(number);
    const live = this.#events?.state.steps.get(number);
    if (!record) return live ? liveStep(live, this.now) : null;
    const known = this.#steps.get(number);
    if (known?.of === record && known.end === live?.end) return known.step;
    const step = storedStep(record, live);
    this.#steps.set(number, { of: record, end: live?.end, step });
    return step;
  }

  /**
   * Reads the steps in view that are missing, one page at a time.
   * @param {number} from @param {number} to The last step.
   */
  async want(from, to) {
    this.#wanted = { from, to };
    if (!this.#isReading) await this.#readWanted();
  }

  async #readWanted() {
    const { from, to } = this.#wanted;
    for (let number = from; number <= Math.min(to, this.#stored); number++) {
      if (!this.#records.has(number)) return this.#readSteps(number - 1);
    }
    return undefined;
  }

  async #start() {
    await this.#readRun();
    const run = this.run.value;
    if (!run) return;
    await this.#readSteps(0);
    if (this.#stored > PAGE) await this.#readSteps(Math.max(PAGE, this.#stored - PAGE));
    if (isActive(run) || this.total <= LONG) this.#follow(this.total > LONG ? Number.MAX_SAFE_INTEGER : 0);
  }

  /** Reads the run, and what exists only after its end. */
  async #readRun() {
    try {
      const run = await get(`/v1/runs/${this.#id}`, this.#stop.signal);
      this.#show(run);
      this.problem.value = null;
    } catch (problem) {
      if (!this.#stop.signal.aborted) this.problem.value = problem;
    }
  }

  /** @param {Run} run */
  #show(run) {
    const hasEnded = !isActive(run) && (!this.run.value || isActive(this.run.value));
    this.run.value = run;
    if (hasEnded && hasSession(run)) void this.#readSession(run);
    if (hasEnded && this.version.value) void this.#readSteps(Math.max(0, this.#stored - 1));
    this.#changed();
  }

  /** @param {Run} run */
  async #readSession(run) {
    const { signal: stop } = this.#stop;
    const path = `/v1/sessions/${run.session_id}`;
    try {
      const session = await get(`${path}?include=`, stop);
      this.session.value = session;
      if (!session.has_files_changed) return;
      if (!run.base_session_id) {
        const page = await get(`${path}/files?recursive=true&limit=50`, stop);
        const files = page.data.filter(({ kind }) => kind !== 'directory');
        const added = files.map((right) => ({ path: right.path, right }));
        this.changes.value = { files: added, complete: !page.next_cursor };
      } else {
        this.changes.value = await get(`/v1/sessions/${run.base_session_id}/diff/${run.session_id}`, stop);
      }
    } catch (problem) {
      if (!stop.aborted) this.problem.value = problem;
    }
  }

  /** @param {number} from The index of the first step of the page. */
  async #readSteps(from) {
    if (this.#isReading) {
      this.#next = Math.min(this.#next, from);
      return;
    }
    this.#isReading = true;
    let hasRead = false;
    try {
      const page = await get(`/v1/runs/${this.#id}/steps?from=${from}&limit=${PAGE}`, this.#stop.signal);
      for (const record of page.data) {
        this.#records.set(record.step_number, record);
        if (page.total > LONG) this.#events?.state.steps.delete(record.step_number);
      }
      hasRead = page.data.length > 0;
      this.#stored = page.total;
      this.total = Math.max(this.total, this.#stored);
    } catch (problem) {
      if (!this.#stop.signal.aborted) this.problem.value = problem;
    } finally {
      this.#isReading = false;
      this.#changed();
    }
    const next = this.#next;
    this.#next = Infinity;
    if (next !== Infinity) await this.#readSteps(next);
    else if (hasRead) await this.#readWanted();
  }

  /** @param {number} after */
  #follow(after) {
    const { state } = (this.#events = followRun(this.#id, after, (event) => {
      this.#received = performance.now();
      const run = this.run.value;
      if (run && isActive(run)) this.#onLive(event, state);
      else if (state.last > MAX_EVENTS) this.#events?.stop();
      this.#changed();
    }));
  }

  /** @param {RunEvent} event @param {LiveState} state */
  #onLive(event, state) {
    if (event.type === 'run.resumed') {
      for (const number of this.#records.keys()) if (number > event.data.step_count) this.#records.delete(number);
      this.#stored = Math.min(this.#stored, event.data.step_count);
      this.total = event.data.step_count;
    }
    this.total = Math.max(this.total, ...state.steps.keys());
    if (event.type === 'run.started' && this.run.value?.status === 'queued') this.run.value = event.data;
    if (event.type === 'step.completed') void this.#readSteps(Math.max(0, event.data.step_number - 1));
    if (state.end) this.#show(state.end);
  }

  /** Shows what has changed with the next frame. A hidden tab has no frames. */
  #changed() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const show = () => {
      this.#isScheduled = false;
      this.version.value++;
    };
    if (document.hidden) setTimeout(show, 250);
    else requestAnimationFrame(show);
  }
}
