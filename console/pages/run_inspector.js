// @ts-check
// The inspector of a run: the selected step, request to a model or call of a tool.

import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { count, duration, number, usd } from '../logic/format.js';
import { json, parseJson, plain } from '../logic/text.js';
import { icon } from '../parts/icons.js';
import { said } from '../parts/page.js';
import { Arguments, Code, JsonValue, Markdown, Result } from '../parts/payload.js';
import { CopyButton, Requests } from '../parts/ui.js';
import { hasSession } from './run_data.js';

/** @import { Call, Row, Run, Step } from '../types.d.ts' */

/** @param {{ row: Row, run: Run }} properties */
export function Inspector({ row, run }) {
  const [tab, setTab] = useState('shown');
  const { call, step } = row;
  const name = row.kind === 'model' ? 'model' : call?.agent ? 'people' : call ? 'tool' : 'run';
  const read = { method: 'GET', path: `/v1/runs/${run.run_id}/steps?from=${row.number - 1}&limit=1` };
  const tabs = Object.entries({ shown: call ? 'Call' : 'Content', json: 'JSON' });
  return html`<header><h2>${icon(name)}<span>${row.kind === 'step' ? `Step ${row.number}` : plain(row.label)}</span>
      ${row.isFailed && html`<span class="status failed">failed</span>`}
      ${row.isOpen && html`<span class="status waiting">open</span>`}</h2>
      <${Requests} calls=${{ 'This step': read }} /></header>
    <div class="tabs" role="tablist">${tabs.map(([id, words]) => html`<button key=${id} type="button" role="tab"
      aria-selected=${tab === id} onClick=${() => setTab(id)}>${words}</button>`)}</div>
    ${!step && html`<p class="muted">This step is being read.</p>`}
    ${tab === 'json' && html`<${JsonValue} value=${call?.raw ?? step?.raw} />`}
    ${tab === 'shown' && call && html`<${CallView} row=${row} call=${call} />`}
    ${tab === 'shown' && step && !call && html`<${ModelView} step=${step} run=${run} />`}`;
}

/** @param {{ facts: Record<string, any> }} properties */
export const Facts = ({ facts }) => html`<dl class="facts">
  ${Object.entries(facts).map(([name, value]) => value != null && html`<div key=${name}><dt>${name}</dt>
    <dd>${value}</dd></div>`)}</dl>`;

/** @param {{ row: Row, call: Call }} properties */
function CallView({ row, call }) {
  const { verdict, subagent } = call.raw?.execution ?? {};
  const facts = {
    Took: row.isOpen ? '–' : duration(row.end - row.start),
    Call: html`<code>${plain(call.id)}</code>`,
    Subagent: call.agent,
    Verdict: verdict === 'executed' ? null : verdict,
  };
  return html`<${Facts} facts=${facts} />
    <section><h3>Arguments</h3><${Arguments} tool=${call.name} args=${parseJson(call.arguments)}
      text=${call.arguments} /></section>
    ${call.isLive && call.output && html`<section><h3>Output so far</h3><${LiveText} text=${call.output} /></section>`}
    ${call.content && html`<section><h3>Result</h3><${Result} content=${call.content} /></section>`}
    ${subagent && html`<p><a class="link" href=${`/console/sessions/${subagent}`}>Session of the subagent</a></p>`}`;
}

/** @param {{ step: Step, run: Run }} properties */
function ModelView({ step, run }) {
  const { usage } = step;
  const facts = {
    Took: duration(step.end - step.start),
    ...(usage && {
      In: number(usage.input_tokens), Cached: number(usage.cache_read_tokens ?? 0), Out: number(usage.output_tokens),
      Cost: usd(usage.cost),
    }),
  };
  // The error of the step is shown once.
  const isNew = (error) => error && step.errors.every(({ message }) => message !== error);
  const tries = step.requests.map((request) => ({ ...request, error: isNew(request.error) && request.error }))
    .filter(({ attempts, error }) => attempts > 1 || error);
  const words = (text) => (step.isLive ? html`<${LiveText} text=${text} />` : html`<${Markdown} text=${text} />`);
  return html`<${Facts} facts=${facts} />
    ${step.errors.map((error) => html`<div class="problem"><p>${plain(error.message)}</p>
      <p class="muted"><code>${error.code}</code> ${error.source_name}</p></div>`)}
    ${tries.map(({ model, attempts, error }) =>
      html`<p class="note">${model}: ${count(attempts, 'attempt')}${error && `, ${plain(error)}`}</p>`)}
    ${step.reasoning && html`<section><h3>Reasoning</h3><div class="think">${words(step.reasoning)}</div></section>`}
    ${step.text && html`<section><h3>Text<${CopyButton} text=${step.text} /></h3>${words(step.text)}</section>`}
    ${step.calls.map(({ id, name, arguments: text }) => html`<section key=${id}><h3>${plain(name)}</h3>
      <${Arguments} tool=${name} args=${parseJson(text)} text=${text} /></section>`)}
    ${!step.isLive && hasSession(run) && html`<p>
      <a class="link" href=${`/console/sessions/${run.session_id}`}>Messages of the session</a></p>`}`;
}

/** Text that grows. A screen reader reads it only when asked. @param {{ text: string }} properties */
function LiveText({ text }) {
  const read = useRef(0);
  const onClick = () => {
    said.value = text.slice(read.current);
    read.current = text.length;
  };
  return html`<div aria-live="off"><${Code} text=${text} label="Text so far" /></div>
    <button type="button" class="more" onClick=${onClick}>Read new text aloud</button>`;
}

/** The ids and the metadata of a run. @param {{ run: Run }} properties */
export function Details({ run }) {
  const facts = {
    Run: run.run_id, Session: hasSession(run) ? run.session_id : null, 'Base session': run.base_session_id,
    Thread: run.thread,
    Mode: `${run.mode}, durability ${run.durability}`, 'Stop reason': run.stop_reason,
    // The error is shown above.
    'Stopped by': run.error ? null : run.stop_signal?.message,
  };
  const fact = ([name, value]) => value != null && html`<div><dt>${plain(name)}</dt>
    <dd><code>${plain(typeof value === 'string' ? value : json(value))}</code></dd></div>`;
  const all = [...Object.entries(facts), ...Object.entries(run.metadata)];
  return html`<section class="card" aria-label="Details"><header><h2>Details</h2></header>
    <dl class="details">${all.map(fact)}</dl></section>`;
}
