// @ts-check
// The list of trees, newest root first.

import { html } from 'htm/preact';
import { number } from '../logic/format.js';
import { List, useList } from '../parts/list.js';
import { Page } from '../parts/page.js';
import { Age, Requests } from '../parts/ui.js';
import { nameOf } from './tree_rows.js';

const PATH = '/v1/sessions?roots=true';
/** How many sessions of a tree the service counts. */
const COUNTED = 1000;

const TREES = {
  keyOf: (session) => session.root_session_id,
  // A change does not tell the root, so it reads the first page again.
  idOf: ({ type, data }) => (type.startsWith('session.') || data.session_id ? '' : null),
};

/** @type {import('../parts/list.js').Column[]} */
const COLUMNS = [
  ['Tree', (session) => html`<a class="to" href=${`/console/trees/${session.root_session_id}`}>
      ${nameOf(session)}</a>
    ${session.tree.threads.slice(0, 4).map((name) => html` <b key=${name} class="chip c0">${name}</b>`)}`],
  ['Agent', (session) => session.agent, 'minor'],
  ['Sessions', ({ tree: { session_count: sessions } }) =>
    `${number(sessions)}${sessions === COUNTED ? ' or more' : ''}`, 'number'],
  ['Last activity', ({ tree }) => html`<${Age} of=${tree.last_activity_at} /> ago`, 'number'],
];

export function Trees() {
  const list = useList(PATH, TREES);
  const empty = html`<p><strong>There is no session yet.</strong></p>
    <p class="muted">Each run makes one: see <a class="link" href="/docs/sessions">Sessions</a>.</p>`;
  const actions = html`<${Requests} calls=${{ Trees: { method: 'GET', path: PATH } }} />`;
  return html`<${Page} title="Sessions" actions=${actions}>
    <div class="body wide"><${List} list=${list} label="Trees of sessions" kind="of-trees" columns=${COLUMNS}
      empty=${empty} /></div><//>`;
}
