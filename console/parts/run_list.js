// @ts-check
// Runs as rows, on the page of all runs and on those of a thread and of an agent.

import { html } from 'htm/preact';
import { duration, number, short, usd } from '../logic/format.js';
import { firstLine } from '../logic/text.js';
import { List, useList } from './list.js';
import { Age, Status } from './ui.js';

/** @import { Run } from '../types.d.ts' */
/** @import { Column } from './list.js' */

const RUNS = {
  keyOf: (run) => run.run_id,
  // The run of a session is removed with it.
  idOf: ({ type, data }) => (type === 'session.removed' ? '' : data.run_id),
  one: (id) => `/v1/runs/${id}`,
};

/** The words that stand for a run: its title, or its id. @param {Run} run */
export const runTitle = ({ metadata, run_id: id }) =>
  typeof metadata.title === 'string' && metadata.title.trim() ? firstLine(metadata.title, 120) : short(id);

/** @param {Run} run */
function took({ status, duration_ms: ms, started_at: started }) {
  if (ms != null) return duration(ms);
  return status === 'running' && started ? html`<${Age} of=${started} />` : '–';
}

/** @type {Column[]} */
const COLUMNS = [
  ['Run', (run) => html`<a class="to" href=${`/console/runs/${run.run_id}`}>${runTitle(run)}</a>
    ${run.error && html`<p class="fault">${firstLine(run.error.message, 200)}</p>`}`],
  ['Status', (run) => html`<${Status} of=${run.status} />`],
  ['Agent', ({ agent }) => html`<a href=${`/console/agents/${encodeURIComponent(agent)}`}>${agent}</a>`, 'minor'],
  ['Thread', ({ thread }) => thread
    && html`<a href=${`/console/threads/${encodeURIComponent(thread)}`}>${thread}</a>`, 'minor'],
  ['Steps', (run) => number(run.step_count), 'number minor'],
  ['Cost', (run) => usd(run.usage.cost), 'number minor'],
  ['Took', took, 'number'],
  ['Age', (run) => html`<${Age} of=${run.created_at} />`, 'number'],
];

/** @param {{ path: string, empty: any, label?: string }} properties */
export function RunList({ path, empty, label = 'Runs' }) {
  const list = useList(path, RUNS);
  const toneOf = (run) => (run.status === 'failed' ? 'failed' : '');
  return html`<${List} list=${list} label=${label} kind="of-runs" columns=${COLUMNS} empty=${empty}
    toneOf=${toneOf} />`;
}
