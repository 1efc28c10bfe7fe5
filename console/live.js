// @ts-check
// What changes while the page is open. HTTP/1.1 allows six connections for all tabs together, so one tab reads the
// changes of the tenant for all of them, and only tabs in view read the events of their runs. If more of them are in
// view than there are places, they take turns.

import { signal } from '@preact/signals';
import { pause, Problem, stream } from './api.js';
import { emptyState, fold } from './logic/events.js';

/**
 * @typedef {{ type: string, data: { run_id?: string, session_id?: string, thread?: string, status?: string } }} Change
 */

/** How long a tab may be hidden before it closes the stream of its run. */
const HIDDEN = 30_000;
/** How many tabs read events at the same time. The other connections are for the changes and for requests. */
const STREAMS = 3;
/** How long a tab reads events while others wait for a place. */
const TURN = 2000;
const PLACE = 'agent-runtime-console-events-';
const MAX_PAUSE = 10_000;

/** @type {Set<(change: Change | null) => void>} */
const listeners = new Set();
const channel = new BroadcastChannel('agent-runtime-console');
channel.addEventListener('message', ({ data }) => 'reload' in data && location.reload());

/** Why the service refuses the stream of changes; empty while it does not. */
export const refusal = signal('');

/** Reloads all other tabs, since the browser has another login now. */
export const reloadOthers = () => channel.postMessage({ reload: true });

/**
 * Calls a function with each change; with null if changes were missed.
 * @param {(change: Change | null) => void} listener
 */
export function onChange(listener) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Calls a function when other calls may be open, at most once per second: after a change, and each minute, since calls
 * expire without one.
 * @param {() => void} listener
 */
export function onCallsChange(listener) {
  let timer = 0;
  const later = () => {
    timer = 0;
    listener();
  };
  const minutes = setInterval(() => document.hidden || later(), 60_000);
  const forget = onChange((change) => {
    const isOfCalls = ['waiting', 'answered'].includes(change?.data.status ?? '');
    const isOther = change && change.type !== 'session.removed' && !isOfCalls;
    if (!isOther) timer ||= window.setTimeout(later, 1000);
  });
  return () => {
    clearTimeout(timer);
    clearInterval(minutes);
    forget();
  };
}

/** @param {Change | null} change */
function emit(change) {
  refusal.value = '';
  listeners.forEach((listener) => listener(change));
}

/** Reads the changes of the tenant in one tab for all tabs. */
export function startChanges() {
  channel.addEventListener('message', ({ data }) => {
    if ('change' in data) emit(data.change);
    if ('refusal' in data) refusal.value = data.refusal;
  });
  // Without Web Locks, which need https or loopback, each tab reads them while it is in view.
  if (navigator.locks) void navigator.locks.request('agent-runtime-console-changes', () => readChanges(() => true));
  else void readChanges(() => !document.hidden);
}

/** @param {() => boolean} isWanted */
async function readChanges(isWanted) {
  const share = (change) => {
    channel.postMessage({ change });
    emit(change);
  };
  for (let wait = 1000; ; wait = Math.min(2 * wait, MAX_PAUSE)) {
    while (!isWanted()) await pause(1000);
    try {
      await stream('/v1/changes', new AbortController().signal, (change) => {
        wait = 1000;
        // What has changed before is unknown, so pages read their data again.
        if (change.type === 'changes.opened') share(null);
        else if (change.type !== 'stream.dropped') share(change);
      });
    } catch (problem) {
      // The shell reports a service that is silent.
      if (problem instanceof Problem) {
        refusal.value = problem.message;
        channel.postMessage({ refusal: problem.message });
      }
    }
    await pause(wait);
  }
}

/**
 * Follows the events of a run until its end. Returns its state, and how to stop.
 * @param {string} run @param {number} after The number of the last event that is not wanted.
 * @param {(event: import('./types.d.ts').RunEvent) => void} onEvent The state has the event already.
 */
export function followRun(run, after, onEvent) {
  const state = emptyState();
  const end = new AbortController();
  /** @type {AbortController | null} */
  let open = null;
  let timer = 0;
  const close = () => open?.abort();
  const onMessage = ({ data }) => {
    if ('opened' in data && document.hidden) close();
  };
  const onVisibility = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(close, HIDDEN);
  };
  const stop = () => {
    end.abort();
    close();
    clearTimeout(timer);
    channel.removeEventListener('message', onMessage);
    document.removeEventListener('visibilitychange', onVisibility);
  };
  const read = async () => {
    for (let wait = 500; !end.signal.aborted && !state.end; wait = Math.min(2 * wait, MAX_PAUSE)) {
      await visible(end.signal);
      channel.postMessage({ opened: run });
      await takeTurn(end.signal, async (over) => {
        if (document.hidden || end.signal.aborted) return;
        open = new AbortController();
        const either = AbortSignal.any([open.signal, over]);
        await stream(`/v1/runs/${run}/events?after=${state.last || after}`, either, (event) => {
          fold(state, event);
          onEvent(event);
          wait = 500;
        }).catch(() => {});
        if (over.aborted) wait = 250;
      });
      if (!state.end) await pause(wait, end.signal);
    }
  };
  channel.addEventListener('message', onMessage);
  document.addEventListener('visibilitychange', onVisibility);
  read().catch(() => {}).finally(stop);
  return { state, stop };
}

/**
 * Waits for a place among the tabs that read events, and reads. When other tabs wait, the turn is soon over.
 * @param {AbortSignal} stop Ends the wait. @param {(over: AbortSignal) => Promise<void>} read
 */
async function takeTurn(stop, read) {
  const over = new AbortController();
  // Web Locks need https or loopback.
  if (!navigator.locks) return read(over.signal);
  const taken = new AbortController();
  const hold = async () => {
    // Two places may become free at the same time.
    if (taken.signal.aborted) return;
    taken.abort();
    const timer = setInterval(async () => {
      const { pending = [] } = await navigator.locks.query();
      if (pending.some(({ name }) => name?.startsWith(PLACE))) over.abort();
    }, TURN);
    await read(over.signal).finally(() => clearInterval(timer));
  };
  const signal = AbortSignal.any([stop, taken.signal]);
  const places = Array.from({ length: STREAMS }, (_, place) => PLACE + place);
  await Promise.allSettled(places.map((name) => navigator.locks.request(name, { signal }, hold)));
  return undefined;
}

/** Waits until the tab is in view. @param {AbortSignal} stop */
function visible(stop) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve, reject) => {
    document.addEventListener('visibilitychange', resolve, { once: true, signal: stop });
    stop.addEventListener('abort', () => reject(stop.reason), { once: true });
  });
}
