// @ts-check
// The inbox: calls that wait for a person, next deadline first, with what their run did before.

import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { get } from '../api.js';
import { useKeys } from '../keys.js';
import { onCallsChange } from '../live.js';
import { count, short, span, usd } from '../logic/format.js';
import { firstLine, isShort, json, plain } from '../logic/text.js';
import { storedStep } from '../logic/timeline.js';
import { Answers, Several } from '../parts/answers.js';
import { icon } from '../parts/icons.js';
import { Page, said } from '../parts/page.js';
import { Age, ProblemBox, Requests, useClock, useRead } from '../parts/ui.js';
import { address, go, setQuery } from '../router.js';

/** @import { Approval, Run } from '../types.d.ts' */
/**
 * A row. Those of the same kind may be answered together; an empty kind may not.
 * @typedef {{ id: string, run: any, title: string, line: string, at: string, note: any, isOpen: boolean,
 *   kind: string }} Item
 */

const LISTS = {
  open: { name: 'Open', path: '/v1/approvals?limit=100', words: 'waiting', read: readCalls },
  programs: { name: 'For programs', path: '/v1/approvals?kind=client&limit=100', words: 'waiting', read: readCalls },
  answered: { name: 'Answered', path: '/v1/runs?status=answered&limit=50', words: 'answered' },
};
/** How many of the last steps of a run are shown before its call. */
const BEFORE = 20;
/** The most pages of open calls that are read. */
const PAGES = 10;

/**
 * Reads open calls. The list is newest first, but the oldest of them may be the next to expire.
 * @param {string} path @param {AbortSignal} [stop]
 */
async function readCalls(path, stop) {
  const list = await get(path, stop);
  for (let pages = 1; list.next_cursor && pages < PAGES; pages++) {
    const { data, next_cursor: next } = await get(`${path}&cursor=${list.next_cursor}`, stop);
    Object.assign(list, { data: [...list.data, ...data], next_cursor: next });
  }
  return list;
}

/** Reads a list, and again when it may have changed, but not before the read at work has ended. */
function useCalls({ path, read = get }) {
  const [version, setVersion] = useState(0);
  const reads = useRef({ atWork: 0, isStale: false }).current;
  const readAgain = () => {
    reads.isStale = reads.atWork > 0;
    if (!reads.isStale) setVersion((old) => old + 1);
  };
  useEffect(() => onCallsChange(readAgain), []);
  return useRead(path, version, async (...request) => {
    reads.atWork += 1;
    return read(...request).finally(() => {
      reads.atWork -= 1;
      if (reads.isStale) readAgain();
    });
  });
}

export function Inbox() {
  const { query } = address.value;
  const show = LISTS[query.get('show') ?? 'open'] ?? LISTS.open;
  const list = useCalls(show);
  /** @type {Item[]} */
  const items = (list.value?.data ?? []).map(show === LISTS.answered ? answeredItem : openItem).sort(byDeadline);
  const id = query.get('at');
  const at = items.findIndex((item) => item.id === id);
  // What is shown stays until the reader moves, or a click might answer another call.
  const held = useRef(/** @type {Item | undefined} */ (items[at]));
  if (at >= 0) held.current = items[at];
  /** The call that was open when it was answered with others: it has its result above. */
  const [hidden, setHidden] = useState('');
  const selected = held.current?.id === id && hidden !== id ? held.current : null;
  const isAbsent = id && at < 0 && hidden !== id && list.value;
  const isGone = isAbsent && show.read && !list.value.next_cursor;
  useLayoutEffect(() => {
    if (!id && items.length) setQuery({ at: items[0].id });
  });
  const open = (item) => {
    setHidden('');
    setQuery({ at: item.id });
  };
  const move = (to) => items[to] && open(items[to]);
  const [marked, setMarked] = useState(/** @type {Item[]} */ ([]));
  const isMarked = (item) => marked.some(({ id }) => id === item.id);
  const mayMark = ({ kind }) => kind && (!marked.length || marked[0].kind === kind);
  /** Whether an item is marked; null if it can't be. */
  const markOf = (item) => isMarked(item) || (mayMark(item) ? false : null);
  const mark = (item) => {
    if (isMarked(item)) setMarked(marked.filter(({ id }) => id !== item.id));
    else if (mayMark(item)) setMarked([...marked, item]);
  };
  useKeys([
    { keys: 'j', does: 'Next row', run: () => move(at + 1) },
    { keys: 'k', does: 'Previous row', run: () => move(at - 1) },
    { keys: 'Space', does: 'Mark the call, to answer it with others', run: () => at >= 0 && mark(items[at]) },
  ]);
  const onKeyDown = (event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    move(to);
    event.preventDefault();
  };
  const onEnd = ({ run_id: run }) => {
    setMarked((old) => old.filter((item) => item.id !== run));
    if (run === id) setHidden(run);
  };
  const onClose = () => {
    setMarked([]);
    setHidden('');
    if (hidden === id) held.current = undefined;
  };
  const tabs = Object.entries(LISTS).map(([id, { name }]) => html`<button key=${id} type="button"
    aria-pressed=${LISTS[id] === show}
    onClick=${() => (setMarked([]), setQuery({ show: id === 'open' ? null : id, at: null }))}>${name}</button>`);
  const status = list.value && html`<span class="muted">${items.length} ${show.words}
    ${list.value.next_cursor && '; there are more, older ones'}</span>`;
  const actions = html`<${Requests} calls=${{ 'This list': { method: 'GET', path: show.path } }} />
    <div class="seg" role="group" aria-label="Show">${tabs}</div>`;
  const sign = (item) => (markOf(item) === null ? icon('shield') : html`<span class="box"
    title="Answer it with others: Space" onClick=${(event) => (event.stopPropagation(), mark(item))}>
      ${isMarked(item) && icon('check')}</span>`);
  const row = (item) => html`<div key=${item.id} id=${`call-${item.id}`} role="option"
    class="item ${item === selected ? 'selected' : ''}" aria-selected=${item === selected}
    aria-checked=${markOf(item)} onClick=${() => open(item)}>
    ${sign(item)}
    <div><strong>${plain(item.title)}</strong><span class="muted"> · ${item.run.agent}</span>
      <p class="one">${item.line}</p><p class="muted">${item.note}</p></div>
    <span class="muted"><${Age} of=${item.at} /></span></div>`;
  return html`<${Page} title="Inbox" status=${status} actions=${actions}><div class="inbox">
    <div class="list" role="listbox" tabindex="0" aria-label="Calls" onKeyDown=${onKeyDown}
      aria-activedescendant=${at >= 0 ? `call-${id}` : null}>${items.map(row)}</div>
    <div class="body"><${ProblemBox} problem=${list.problem} />
      <${Several} key=${show.path} runs=${marked.map(({ run }) => run)} onClose=${onClose} onEnd=${onEnd} />
      ${isAbsent && html`<${Absent} key=${id} run=${id} />`}
      ${selected && !isMarked(selected) && html`<${Selected} key=${selected.id} item=${selected} isGone=${isGone} />`}
      ${!id && !list.isReading && html`<${Nothing} />`}</div></div><//>`;
}

/** @param {Approval} run @returns {Item} */
function openItem(run) {
  const { calls, omitted_calls: omitted = 0 } = run.required_action;
  const { tool, arguments: args, kind: asks } = /** @type {any} */ (calls[0]);
  const more = calls.length - 1 + omitted;
  const kind = !more && asks === 'approval' && isShort(args) ? `${run.agent} ${tool}` : '';
  const line = typeof args?.command === 'string' ? args.command : json(args).replace(/\s+/g, ' ');
  const note = html`${run.thread && `${run.thread} · `}<${Deadline} of=${run.expires_at} />`;
  const title = more > 0 ? `${tool} and ${more} more` : tool;
  return { id: run.run_id, run, title, line: firstLine(line, 200), at: run.asked_at, note, isOpen: true, kind };
}

/** @param {Run} run @returns {Item} */
function answeredItem(run) {
  const title = typeof run.metadata.title === 'string' ? firstLine(run.metadata.title, 80) : short(run.run_id);
  const at = run.completed_at ?? run.created_at;
  const line = `answered by ${short(run.answer_run_id ?? '')}`;
  return { id: run.run_id, run, title, line, at, note: '', isOpen: false, kind: '' };
}

/** The order of the answered ones stays. @param {Item} a @param {Item} b */
const byDeadline = (a, b) => (a.isOpen ? Date.parse(a.run.expires_at) - Date.parse(b.run.expires_at) : 0);

/** @param {{ of: string }} properties */
const Deadline = ({ of }) => html`expires in ${span(Date.parse(of) - useClock())}`;

/** Says why a call is not in the list. @param {{ run: string }} properties */
function Absent({ run }) {
  const { value: record, problem } = useRead(`/v1/runs/${run}`);
  if (!record) return html`<${ProblemBox} problem=${problem} />`;
  const next = record.answer_run_id;
  const why = record.status === 'waiting' ? 'This call is not in this list.' : 'This call is no longer open.';
  return html`<p class="note" role="status">${why} ${next && 'It was answered. '}
    <a class="link" href=${`/console/runs/${next ?? run}`}>Open the run${next && ' that goes on'}</a></p>`;
}

/** @param {{ item: Item, isGone: boolean }} properties */
function Selected({ item: { run, isOpen }, isGone }) {
  const link = html`<a class="link" href=${`/console/runs/${run.run_id}`}>Open the run</a>`;
  const onAnswered = (next) => {
    said.value = 'Answered. A new run goes on.';
    go(`/console/runs/${next.run_id}`);
  };
  const omitted = isOpen && run.required_action.omitted_calls;
  const card = omitted ? html`<p class="note">The same request must answer ${count(omitted, 'more call')}. ${link}</p>`
    : isOpen ? html`<${Answers} run=${run} calls=${run.required_action.calls} hasAgent
      aside=${link} isGone=${isGone} onAnswered=${onAnswered} />`
    : html`<p>${link}, or <a class="link" href=${`/console/runs/${run.answer_run_id}`}>the run that goes on</a>.</p>`;
  return html`${card}<${Before} run=${run.run_id} />`;
}

/** What a run did before, one line a step. @param {{ run: string }} properties */
function Before({ run }) {
  const { value: record, problem } = useRead(`/v1/runs/${run}`);
  const from = Math.max(0, (record?.step_count ?? 0) - BEFORE);
  const steps = useRead(record && `/v1/runs/${run}/steps?from=${from}&limit=${BEFORE}`).value?.data ?? [];
  if (!record) return html`<${ProblemBox} problem=${problem} />`;
  const row = ({ number, text, calls }) => html`<li key=${number}><span class="n">${number}</span>
    <div>${text && html`<p>${firstLine(text, 400)}</p>`}<p class="tools">
      ${calls.map(({ name, isError }) => html`<code class=${isError && 'failed'}>${firstLine(name)}</code>`)}</p></div>
        </li>`;
  return html`<section class="card" aria-label="What happened before"><header><h2>What happened before</h2>
    <span class="muted">${count(record.step_count, 'step')} · ${usd(record.usage.cost)}</span></header>
    <ol class="story">${steps.map((step) => row(storedStep(step)))}</ol></section>`;
}

const Nothing = () => html`<div class="nothing"><p><strong>Nothing waits for you.</strong></p>
  <p class="muted">Agents with <a class="link"
    href="/docs/approvals">rules for approvals</a> ask here before they act.</p></div>`;
