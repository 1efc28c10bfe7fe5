// @ts-check
// The inspector of a tree: the selected session with its acts, a folded stretch, or a removed session.

import { html } from 'htm/preact';
import { count, moment, number, short, usd } from '../logic/format.js';
import { plain } from '../logic/text.js';
import { icon } from '../parts/icons.js';
import { FileChanges } from '../parts/payload.js';
import { Age, Button, CopyButton, ProblemBox, Requests, Status, useRead } from '../parts/ui.js';
import { Messages } from './compare.js';
import { Facts } from './run_inspector.js';
import { isWaiting, nameOf } from './tree_rows.js';

/** @import { Session, Tree, TreeRow } from '../types.d.ts' */

/** How many of the last messages are shown. */
const LAST = 4;

/**
 * @param {{ session: Session, tree: Tree, names: Map<string, string[]>, colour: number, other?: Session,
 *   isMarked: boolean, onSelect: (id: string) => void, onMark: () => void,
 *   onAsk: (dialog: string) => void }} properties
 */
export function SessionView({ session, tree, names, colour, other, isMarked, onSelect, onMark, onAsk }) {
  const { session_id: id, run_id: run, parent_session_id: parent } = session;
  const path = `/v1/sessions/${id}`;
  const cost = useRead(run && `/v1/runs/${run}`).value?.usage.cost;
  const before = tree.byId.get(parent ?? '')?.message_count;
  const facts = {
    Agent: plain(session.agent),
    Messages: html`${number(session.message_count)}${before !== undefined
      && html` <small>${number(session.message_count - before)} new</small>`}`,
    Depth: number(session.depth),
    Made: html`<${Age} of=${session.created_at} /> <small>ago</small>`,
    'Cost of its run': run && usd(cost),
    'Files from': session.environment_session_id && html`<code>${short(session.environment_session_id)}</code>`,
  };
  const children = tree.children.get(id) ?? [];
  const button = (name, keys, words, onClick, more = {}) =>
    html`<${Button} name=${name} keys=${keys} onClick=${onClick} ...${more}>${words}<//>`;
  const kind = session.run_status === 'waiting' && !isWaiting(session, tree) ? 'answered' : session.run_status;
  return html`<header><h2>${nameOf(session, tree)}</h2>${kind && html`<${Status} of=${kind} />`}</header>
    <p class="naming"><code>${short(id)}</code><${CopyButton} text=${id} label="Copy the id" />
      ${names.get(id)?.map((name) => html`<b key=${name} class="chip c${colour}">${name}</b>`)}
      <span class="grow"></span>
      <a class="link" href=${`/console/sessions/${id}`}>Messages and files</a>
      ${run && html` <a class="link" href=${`/console/runs/${run}`}>Run</a>`}</p>
    <${Facts} facts=${facts} />
    <div class="acts">
      ${button('next', 'c', 'Continue', () => onAsk('continue'), { kind: 'primary' })}
      ${button('diff', 'd', isMarked ? 'Marked' : 'Compare', onMark, { isChosen: isMarked })}
      ${button('merge', 'm', 'Merge', () => onAsk('merge'), other ? {} : { disabled: true, title: 'Mark one first' })}
      ${button('thread', 't', 'Point a thread here', () => onAsk('thread'))}
      ${button('x', undefined, 'Remove', () => onAsk('remove'), { kind: 'danger' })}</div>
    ${isMarked && html`<p class="note">Select another session: both are compared.</p>`}
    ${!other && html`<${Changed} session=${session} /><${Last} path=${path} />
      ${children.length > 0 && html`<section><h3>Continued by</h3><ul class="links">${children.map((child) => html`<li
        key=${child.session_id}><button type="button" class="text" onClick=${() => onSelect(child.session_id)}>
          ${nameOf(child, tree)}</button><span class="muted"><${Age} of=${child.created_at} /></span></li>`)}</ul>
        </section>`}`}`;
}

/** The files that differ from the parent. @param {{ session: Session }} properties */
function Changed({ session: { session_id: id, parent_session_id: parent, has_files_changed: has } }) {
  const path = has && parent ? `/v1/sessions/${parent}/diff/${id}` : null;
  const { value, problem, isReading } = useRead(path);
  if (!path) return null;
  const files = value?.files ?? [];
  return html`<section><h3>Files changed<small>${value && number(files.length)}</small><span class="grow"></span>
      <${Requests} calls=${{ 'Since its parent': { method: 'GET', path } }} /></h3>
    ${isReading && html`<p class="muted">Comparing…</p>`}<${ProblemBox} problem=${problem} />
    <${FileChanges} files=${files} /></section>`;
}

/** The last messages of a session. @param {{ path: string }} properties */
function Last({ path }) {
  const { value, problem } = useRead(`${path}/messages?before=4294967295&limit=${LAST}`);
  return html`<section><h3>Last messages</h3><${ProblemBox} problem=${problem} />
    <${Messages} messages=${value?.data ?? []} /></section>`;
}

/** @param {{ row: TreeRow, onOpen: () => void }} properties */
export const FoldView = ({ row, onOpen }) => html`<header><h2>
    ${count(row.members.length, row.kind === 'line' ? 'session' : 'attempt')}
    ${row.kind === 'line' ? ' in a line' : ' that nobody continued'}</h2></header>
  <p class="muted">From ${moment(/** @type {any} */ (row.members.at(-1)).created_at)} to
    ${' '}${moment(row.session.created_at)}.</p>
  <div class="acts"><${Button} kind="primary" keys="Enter" onClick=${onOpen}>Show them<//></div>
  <ul class="links">${row.members.slice(0, 20).map((member) => html`<li key=${member.session_id}>
    <span>${nameOf(member)}</span></li>`)}</ul>`;

/** @param {{ row: TreeRow }} properties */
export function RemovedView({ row }) {
  const { value, problem } = useRead(`/v1/sessions/${row.session.session_id}/lineage?limit=2`);
  const removed = value?.data.find((one) => one.session_id === row.key);
  return html`<header><h2>${icon('x')}A removed session</h2></header>
    <p class="naming"><code>${short(row.key)}</code><${CopyButton} text=${row.key} label="Copy the id" /></p>
    <${ProblemBox} problem=${problem} />
    <p>${removed?.removed_at ? `It was removed on ${moment(removed.removed_at)}. ` : ''}Its messages stay in the
      sessions that continue it.</p>`;
}
