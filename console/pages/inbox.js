// @ts-check
// The inbox: calls that wait for a person, next deadline first, with what their run did before.

import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { useKeys } from '../keys.js';
import { onCallsChange } from '../live.js';
import { count, short, span, usd } from '../logic/format.js';
import { firstLine, json, plain } from '../logic/text.js';
import { storedStep } from '../logic/timeline.js';
import { Answers } from '../parts/answers.js';
import { icon } from '../parts/icons.js';
import { Page, said } from '../parts/page.js';
import { Age, ProblemBox, Requests, useClock, useRead } from '../parts/ui.js';
import { address, go, setQuery } from '../router.js';

/** @import { Approval, Run } from '../types.d.ts' */
/** @typedef {{ id: string, run: any, title: string, line: string, at: string, note: any, isOpen: boolean }} Item */

const LISTS = {
  open: { name: 'Open', path: '/v1/approvals?limit=100', words: 'waiting' },
  programs: { name: 'For programs', path: '/v1/approvals?kind=client&limit=100', words: 'waiting' },
  answered: { name: 'Answered', path: '/v1/runs?status=answered&limit=50', words: 'answered' },
};
/** How many of the last steps of a run are shown before its call. */
const BEFORE = 20;

export function Inbox() {
  const [version, setVersion] = useState(0);
  useEffect(() => onCallsChange(() => setVersion((old) => old + 1)), []);
  const { query } = address.value;
  const show = LISTS[query.get('show') ?? 'open'] ?? LISTS.open;
  const list = useRead(show.path, version);
  /** @type {Item[]} */
  const items = (list.value?.data ?? []).map(show === LISTS.answered ? answeredItem : openItem).sort(byDeadline);
  const selected = items.find((item) => item.id === query.get('at')) ?? items[0];
  const at = items.indexOf(selected);
  const move = (to) => items[to] && setQuery({ at: items[to].id });
  useKeys([
    { keys: 'j', does: 'Next row', run: () => move(at + 1) },
    { keys: 'k', does: 'Previous row', run: () => move(at - 1) },
  ]);
  const onKeyDown = (event) => {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(to);
  };
  const tabs = Object.entries(LISTS).map(([id, { name }]) => html`<button key=${id} type="button"
    aria-pressed=${LISTS[id] === show}
    onClick=${() => setQuery({ show: id === 'open' ? null : id, at: null })}>${name}</button>`);
  const total = list.value?.total ?? items.length;
  const status = list.value && html`<span class="muted">${total}${total === 1000 && ' or more'} ${show.words}</span>`;
  const actions = html`<${Requests} calls=${{ 'This list': { method: 'GET', path: show.path } }} />
    <div class="seg" role="group" aria-label="Show">${tabs}</div>`;
  const row = ({ id, title, run, line, note, at: since }) => html`<div key=${id} id=${`call-${id}`} role="option"
    class="item ${id === selected.id ? 'selected' : ''}" aria-selected=${id === selected.id}
    onClick=${() => setQuery({ at: id })}>
    ${icon('shield')}
    <div><strong>${plain(title)}</strong><span class="muted"> · ${run.agent}</span>
      <p class="one">${line}</p><p class="muted">${note}</p></div>
    <span class="muted"><${Age} of=${since} /></span></div>`;
  return html`<${Page} title="Inbox" status=${status} actions=${actions}><div class="inbox">
    <div class="list" role="listbox" tabindex="0" aria-label="Calls" onKeyDown=${onKeyDown}
      aria-activedescendant=${selected ? `call-${selected.id}` : null}>${items.map(row)}</div>
    <div class="body"><${ProblemBox} problem=${list.problem} />
      ${selected && html`<${Selected} key=${selected.id} item=${selected} />`}
      ${!selected && !list.isReading && html`<${Nothing} />`}</div></div><//>`;
}

/** @param {Approval} run @returns {Item} */
function openItem(run) {
  const { calls, omitted_calls: omitted = 0 } = run.required_action;
  const { tool, arguments: args } = /** @type {any} */ (calls[0]);
  const more = calls.length - 1 + omitted;
  const line = typeof args?.command === 'string' ? args.command : json(args).replace(/\s+/g, ' ');
  const note = html`${run.thread && `${run.thread} · `}<${Deadline} of=${run.expires_at} />`;
  const title = more > 0 ? `${tool} and ${more} more` : tool;
  return { id: run.run_id, run, title, line: firstLine(line, 200), at: run.asked_at, note, isOpen: true };
}

/** @param {Run} run @returns {Item} */
function answeredItem(run) {
  const title = typeof run.metadata.title === 'string' ? firstLine(run.metadata.title, 80) : short(run.run_id);
  const at = run.completed_at ?? run.created_at;
  const line = `answered by ${short(run.answer_run_id ?? '')}`;
  return { id: run.run_id, run, title, line, at, note: '', isOpen: false };
}

/** The order of the answered ones stays. @param {Item} a @param {Item} b */
const byDeadline = (a, b) => (a.isOpen ? Date.parse(a.run.expires_at) - Date.parse(b.run.expires_at) : 0);

/** @param {{ of: string }} properties */
const Deadline = ({ of }) => html`expires in ${span(Date.parse(of) - useClock())}`;

/** @param {{ item: Item }} properties */
function Selected({ item: { run, isOpen } }) {
  const link = html`<a class="link" href=${`/console/runs/${run.run_id}`}>Open the run</a>`;
  const onAnswered = (next) => {
    said.value = 'Answered. A new run goes on.';
    go(`/console/runs/${next.run_id}`);
  };
  const omitted = isOpen && run.required_action.omitted_calls;
  const card = omitted ? html`<p class="note">The same request must answer ${count(omitted, 'more call')}. ${link}</p>`
    : isOpen ? html`<${Answers} run=${run} calls=${run.required_action.calls} before="${run.agent} wants to run "
      aside=${link} onAnswered=${onAnswered} />`
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
    href="/docs/guides/approvals">rules for approvals</a> ask here before they act.</p></div>`;
