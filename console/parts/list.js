// @ts-check
// Long lists: read in pages, current without a reload, with filters in the address. A row never moves. New ones join at
// the top if the reader is there, and otherwise wait behind a button.

import { html } from 'htm/preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from '../api.js';
import { useKeys } from '../keys.js';
import { onChange } from '../live.js';
import { number } from '../logic/format.js';
import { join } from '../logic/list.js';
import { address, setQuery } from '../router.js';
import { Button, focusNew, ProblemBox, Requests } from './ui.js';

/** @import { Change } from '../live.js' */
/**
 * What a list has. `idOf` returns the row that a change is about, or null if it is about none. `one` is the path of a
 * row.
 * @typedef {{ keyOf: (row) => string, idOf?: (change: Change) => string | null | undefined,
 *   one?: (id: string) => string }} Kind
 */
/** @typedef {[name: string, of: (row) => any, look?: string]} Column Its look is `number`, `minor` or both. */

const LIMIT = 50;
const MAX_LIMIT = 200;
/** The most rows that are read one by one after a change. */
const MAX_SINGLE = 20;
/** How far from the top a reader may be who sees new rows at once, in pixels. */
const TOP = 40;
/** How long changes are collected before something is read. */
const PAUSE = 1000;

/**
 * Collects what changes are about, and calls a function with it once per second while the tab is in view. An empty id
 * stands for changes that were missed.
 * @param {(change: Change) => string | null | undefined} idOf @param {(ids: Set<string>) => unknown} listener
 */
function collect(idOf, listener) {
  const ids = new Set();
  let timer = 0;
  const flush = async () => {
    if (!document.hidden) {
      const taken = new Set(ids);
      ids.clear();
      await listener(taken);
    }
    timer = 0;
    if (!document.hidden) later();
  };
  const later = () => {
    if (ids.size) timer ||= window.setTimeout(flush, PAUSE);
  };
  const forget = onChange((change) => {
    const id = change ? idOf(change) : '';
    if (id == null) return;
    ids.add(id);
    later();
  });
  document.addEventListener('visibilitychange', later);
  return () => {
    ids.clear();
    clearTimeout(timer);
    forget();
    document.removeEventListener('visibilitychange', later);
  };
}

/** Counts changes, as a version for `useRead`. @param {(change: Change) => boolean} concerns */
export function useVersion(concerns = () => true) {
  const [version, setVersion] = useState(0);
  useEffect(() => collect((change) => (concerns(change) ? 'it' : null), () => setVersion((old) => old + 1)), []);
  return version;
}

/** @param {string} path @param {string} query */
const withQuery = (path, query) => path + (path.includes('?') ? '&' : '?') + query;

const BLANK = {
  rows: /** @type {any[]} */ ([]), next: /** @type {string | null} */ (null), problem: null, isReading: true,
  /** A newer first page, with rows that the reader has not asked for yet. */
  newer: /** @type {{ data: any[], next_cursor: string | null } | null} */ (null),
};

/** Reads a list in pages, and again when something in it changes. @param {string} path @param {Kind} kind */
export function useList(path, { keyOf, idOf = () => null, one }) {
  const [state, setState] = useState({ ...BLANK, path });
  const latest = useRef(state);
  const change = (values) => {
    latest.current = { ...latest.current, ...values };
    setState(latest.current);
  };
  const joined = ({ rows, newer, next }) => (rows.length ? join(rows, newer.data, keyOf, next === null) : null);
  const showNewer = () => {
    const { newer, next } = latest.current;
    const rows = joined(latest.current);
    change({ rows: rows ?? newer?.data, next: rows ? next : newer?.next_cursor, newer: null });
  };
  const read = async (ids, stop) => {
    const limit = Math.min(MAX_LIMIT, Math.max(LIMIT, latest.current.rows.length));
    const newer = await get(withQuery(path, `limit=${limit}`), stop);
    /** The rows as they are now; null for a removed one. */
    const fresh = new Map(newer.data.map((row) => [keyOf(row), row]));
    const left = latest.current.rows.map(keyOf).filter((id) => !fresh.has(id) && (ids.has('') || ids.has(id)));
    await Promise.all(one ? left.slice(0, MAX_SINGLE).map((id) => get(one(id), stop).then(
      (row) => fresh.set(id, row), (problem) => problem.status === 404 && fresh.set(id, null))) : []);
    const known = latest.current.rows.filter((row) => fresh.get(keyOf(row)) !== null);
    change({ rows: known.map((row) => fresh.get(keyOf(row)) ?? row), newer, problem: null, isReading: false });
    if (!known.length || (document.querySelector('.body')?.scrollTop ?? 0) < TOP) showNewer();
  };
  const fail = (problem) => change({ problem, isReading: false });
  useEffect(() => {
    const stop = new AbortController();
    const again = (ids) => read(ids, stop.signal).catch((problem) => stop.signal.aborted || fail(problem));
    change({ ...BLANK, path });
    void again(new Set());
    const forget = collect(idOf, again);
    return () => {
      stop.abort();
      forget();
    };
  }, [path]);
  const more = async () => {
    change({ isReading: true });
    const page = await get(withQuery(path, `limit=${LIMIT}&cursor=${latest.current.next}`)).catch(fail);
    if (!page || latest.current.path !== path) return;
    const known = new Set(latest.current.rows.map(keyOf));
    const rows = [...latest.current.rows, ...page.data.filter((row) => !known.has(keyOf(row)))];
    change({ rows, next: page.next_cursor, isReading: false });
  };
  const shown = state.path === path ? state : { ...BLANK, path };
  const { rows, newer } = shown;
  const all = newer && joined(shown);
  const added = all ? all.length - rows.length : newer?.data.length ?? 0;
  return {
    ...shown, keyOf, added, more, showNewer,
    again: () => read(new Set(['']), new AbortController().signal).catch(fail),
  };
}

/**
 * The rows of a list. The link with the class `to` opens a row.
 * @param {{ list: ReturnType<typeof useList>, label: string, kind: string, columns: Column[], empty: any,
 *   toneOf?: (row) => string }} properties
 */
export function List({ list, label, kind, columns, empty, toneOf = () => '' }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const { rows, added, isReading, keyOf } = list;
  const move = (by) => {
    const links = /** @type {HTMLElement[]} */ ([...(box.current?.querySelectorAll('.entry .to') ?? [])]);
    const at = links.findIndex((link) => link.closest('.entry')?.contains(document.activeElement));
    links[at < 0 ? 0 : at + by]?.focus();
  };
  useKeys([
    { keys: 'j', does: 'Next row', run: () => move(1) },
    { keys: 'k', does: 'Previous row', run: () => move(-1) },
    // For the list of keys: the link of the row opens it.
    { keys: 'Enter', does: 'Open the row', run: () => {} },
  ]);
  const onKeyDown = (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by || !event.target.matches('.to')) return;
    event.preventDefault();
    move(by);
  };
  const showNewer = () => {
    list.showNewer();
    document.querySelector('.body')?.scrollTo({ top: 0 });
    setTimeout(() => move(0));
  };
  /** @returns {(column: Column) => any} */
  const cell = (row) => ([name, of, look]) => html`<div key=${name} role="cell" class=${look}>${of(row)}</div>`;
  const line = (row) => html`<div key=${keyOf(row)} role="row" class="entry ${toneOf(row)}">
    ${columns.map(cell(row))}</div>`;
  const heads = columns.map(([name, , look]) => html`<span key=${name} role="columnheader"
    class=${look}>${name}</span>`);
  if (!rows.length && (isReading || !list.problem)) {
    return html`<div class="nothing">${isReading ? html`<p class="muted">Reading…</p>` : empty}</div>`;
  }
  return html`<${ProblemBox} problem=${list.problem} />
    ${added > 0 && html`<button type="button" class="newer primary" onClick=${showNewer}>${added} new</button>`}
    <div class="grid ${kind}" hidden=${!rows.length} role="table" aria-label=${label} ref=${box} onKeyDown=${onKeyDown}>
      <div role="row" class="entry head">${heads}</div>${rows.map(line)}</div>
    <${More} list=${list} />`;
}

/** Reads the next page of a list. @param {{ list: ReturnType<typeof useList> }} properties */
export const More = ({ list: { rows, next, isReading, more } }) => next && html`<div class="acts">
  <${Button} disabled=${isReading} onClick=${more}>Show ${LIMIT} more<//>
  <span class="muted">${number(rows.length)} shown</span></div>`;

const FILTERS = { agent: 'Agent', thread: 'Thread', metadata: 'Metadata: k=v', run_id: 'Id of a run' };

/** The key of a page with a field to search or to filter. */
export const SEARCH = { keys: '/', does: 'Search', run: () => focusNew(document.querySelector('input[type=search]')) };

/**
 * The fields above a list. Their values are in the address.
 * @param {{ names: (keyof typeof FILTERS)[], path: string, children?: any }} properties
 */
export function Filters({ names, path, children }) {
  const { query } = address.value;
  useKeys([SEARCH]);
  const clear = () => setQuery(Object.fromEntries([...query.keys()].map((name) => [name, null])));
  const field = (name) => html`<input key=${name} type="search" aria-label=${FILTERS[name]}
    placeholder=${FILTERS[name]} value=${query.get(name) ?? ''}
    onChange=${(event) => setQuery({ [name]: event.target.value.trim() })} />`;
  return html`<form class="filters" role="search" aria-label="Filters" onSubmit=${(event) => event.preventDefault()}>
    ${children}${names.map(field)}
    ${query.size > 0 && html`<${Button} kind="ghost" onClick=${clear}>Clear<//>`}
    <${Requests} calls=${{ 'This list': { method: 'GET', path } }} /></form>`;
}
