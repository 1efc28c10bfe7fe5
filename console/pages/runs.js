// @ts-check
// All runs, newest first. The filters are in the address.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { useKeys } from '../keys.js';
import { filterQuery } from '../logic/list.js';
import { Filters } from '../parts/list.js';
import { NewRun } from '../parts/new_run.js';
import { Page } from '../parts/page.js';
import { RunList } from '../parts/run_list.js';
import { Button } from '../parts/ui.js';
import { address, setQuery } from '../router.js';

const STATUSES = ['running', 'queued', 'waiting', 'failed', 'completed', 'stopped', 'cancelled', 'answered'];
const FIELDS = ['agent', 'thread', 'metadata'];

export function Runs() {
  const [isStarting, setStarting] = useState(false);
  const { query } = address.value;
  const wanted = new Set((query.get('status') ?? '').split(',').filter(Boolean));
  const filter = filterQuery(query, ['status', ...FIELDS]);
  const path = `/v1/runs${filter && `?${filter}`}`;
  const toggle = (status) => {
    if (!wanted.delete(status)) wanted.add(status);
    setQuery({ status: [...wanted].join(',') });
  };
  useKeys([
    { keys: '!', does: 'Only failed runs', run: () => toggle('failed') },
    { keys: 'n', does: 'New run', run: () => setStarting(true) },
  ]);
  const chips = STATUSES.map((status) => html`<button key=${status} type="button" aria-pressed=${wanted.has(status)}
    onClick=${() => toggle(status)}>${status}</button>`);
  const empty = query.size ? html`<p><strong>No run matches.</strong></p>`
    : html`<p><strong>No run yet.</strong></p><p class="muted">Start one, or see the
      ${' '}<a class="link" href="/console">first requests</a>.</p>`;
  return html`<${Page} title="Runs" actions=${html`<${Button} kind="primary" name="run" keys="n"
      onClick=${() => setStarting(true)}>New run<//>`}>
    <div class="body wide"><${Filters} names=${FIELDS} path=${path}>
      <div class="chips" role="group" aria-label="Status">${chips}</div><//>
      <${RunList} path=${path} empty=${empty} /></div>
    ${isStarting && html`<${NewRun} onClose=${() => setStarting(false)} />`}<//>`;
}
