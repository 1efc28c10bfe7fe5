// @ts-check
// The messages to webhooks, and those that were given up.

import { html } from 'htm/preact';
import { useEffect, useState } from 'preact/hooks';
import { moment, number, short, span } from '../logic/format.js';
import { filterQuery } from '../logic/list.js';
import { firstLine, plain } from '../logic/text.js';
import { Filters, List, useList } from '../parts/list.js';
import { Page, said } from '../parts/page.js';
import { Act, Age, ProblemBox, useClock, usePost } from '../parts/ui.js';
import { address, setQuery } from '../router.js';

/**
 * @typedef {{ delivery_id: string, run_id: string, event: string, url: string, secret: string | null,
 *   status: 'pending' | 'delivered' | 'dead', attempts: number, response_status: number | null, error: string | null,
 *   created_at: string, next_attempt_at: string | null, delivered_at: string | null }} Delivery
 */

const LISTS = { all: 'All', pending: 'Pending', delivered: 'Delivered', dead: 'Given up' };
const WORDS = { pending: 'pending', delivered: 'delivered', dead: 'given up' };
const TONES = { pending: 'queued', delivered: 'completed', dead: 'failed' };
/** How often messages that are not delivered yet are read again. No change reports them. */
const POLL = 10_000;
const DELIVERIES = {
  keyOf: (delivery) => delivery.delivery_id,
  // A message is made when a run ends.
  idOf: ({ type, data }) => (type === 'run.changed' && !['queued', 'running'].includes(data.status ?? '') ? '' : null),
  one: (id) => `/v1/webhooks/deliveries/${id}`,
};

export function Webhooks() {
  const { query } = address.value;
  const [problem, setProblem] = useState(null);
  const make = usePost();
  const filter = filterQuery(query, ['status', 'run_id']);
  const path = `/v1/webhooks/deliveries${filter && `?${filter}`}`;
  const list = useList(path, DELIVERIES);
  const isPending = list.rows.some(({ status }) => status === 'pending');
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = setInterval(() => document.hidden || void list.again(), POLL);
    return () => clearInterval(timer);
  }, [path, isPending]);
  const onSent = () => {
    void list.again();
    setProblem(null);
    said.value = 'The message is sent again.';
  };
  const shown = query.get('status') ?? 'all';
  const tabs = Object.entries(LISTS).map(([id, name]) => html`<button key=${id} type="button"
    aria-pressed=${shown === id} onClick=${() => setQuery({ status: id === 'all' ? null : id })}>${name}</button>`);
  /** @type {import('../parts/list.js').Column} */
  const again = ['Act', ({ delivery_id: id }) => html`<${Act} name="again" onDone=${onSent} onProblem=${setProblem}
    call=${make(`${DELIVERIES.one(id)}/redeliver`)} help="Sends the message again, with all its attempts.">Resend<//>`];
  const empty = filter ? html`<p><strong>No message matches.</strong></p>`
    : html`<p><strong>No message yet.</strong></p><p class="muted">A run or an agent with a
      ${' '}<a class="link" href="/docs/webhooks">webhook</a> reports its end to your service.</p>`;
  return html`<${Page} title="Webhooks">
    <div class="body wide"><${Filters} names=${['run_id']} path=${path}>
      <div class="seg" role="group" aria-label="Status">${tabs}</div><//><${ProblemBox} problem=${problem} />
      <${List} list=${list} label="Messages to webhooks" kind="of-deliveries" columns=${[...COLUMNS, again]}
        empty=${empty} /></div><//>`;
}

/** @param {{ of: string }} properties */
const In = ({ of }) => html`<time datetime=${of} title=${moment(of)}>in ${span(Date.parse(of) - useClock())}</time>`;

/** @param {Delivery} delivery */
const reply = ({ response_status: status, error }) => html`${status ?? (error ? 'none' : '–')}
  ${error && html`<p class="fault">${firstLine(error, 200)}</p>`}`;

/** @type {import('../parts/list.js').Column[]} */
const COLUMNS = [
  ['Message', ({ event, run_id: id }) => html`<a class="to" href=${`/console/runs/${id}`}>${event}</a>
    <p class="muted"><code>${short(id)}</code></p>`],
  ['Status', ({ status }) => html`<span class="status ${TONES[status]}">${WORDS[status]}</span>`],
  ['Address', ({ url, secret }) => html`<p class="one" title=${plain(url)}>${plain(url)}</p>
    <p class="muted">${secret ? `signed with ${plain(secret)}` : 'not signed'}</p>`, 'minor'],
  ['Last reply', reply],
  ['Attempts', ({ attempts }) => number(attempts), 'number minor'],
  ['Next', ({ next_attempt_at: at }) => (at ? html`<${In} of=${at} />` : '–'), 'number minor'],
  ['Age', (delivery) => html`<${Age} of=${delivery.created_at} />`, 'number'],
];
