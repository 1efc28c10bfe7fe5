// @ts-check
// The acts on a run: steer, stop and cancel it while it works, and run it again.

import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { get, newId, post, Problem, send } from '../api.js';
import { useKeys } from '../keys.js';
import { plain } from '../logic/text.js';
import { ModelField } from '../parts/new_run.js';
import { Code, JsonValue } from '../parts/payload.js';
import { Act, Button, Dialog, ProblemBox, Requests, usePost } from '../parts/ui.js';
import { go } from '../router.js';
import { hasSession, isActive } from './run_data.js';

/** @import { Run } from '../types.d.ts' */

/** The status of a steering message, in words. */
const STEERED = {
  received: 'waits for the next step', applied: 'read by the model', too_late: 'came too late: the run had ended',
};

/** The buttons of the header. @param {{ run: Run, onProblem: (problem) => void }} properties */
export function RunActs({ run, onProblem }) {
  const [isAsking, setAsking] = useState(false);
  const ask = () => setAsking(true);
  const onClose = () => setAsking(false);
  const path = `/v1/runs/${run.run_id}`;
  const make = usePost();
  const calls = { Stop: make(`${path}/stop`), Cancel: make(`${path}/cancel`) };
  useKeys(isActive(run) ? [] : [{ keys: 'r', does: 'Run again', run: ask }]);
  if (!isActive(run)) {
    return html`<${Button} name="again" keys="r" onClick=${ask}>Run again<//>
      ${isAsking && html`<${RunAgain} run=${run} onClose=${onClose} />`}`;
  }
  const cancel = html`<${Act} name="x" kind="danger" call=${calls.Cancel} onProblem=${onProblem}
    onDone=${onClose}>Cancel the run<//>`;
  return html`<${Act} name="stop" call=${calls.Stop} onProblem=${onProblem}
    help="Ends the run. Its messages become a session.">Stop<//>
    <${Button} name="x" kind="danger" title="Ends the run at once. It publishes nothing." onClick=${ask}>Cancel<//>
    <${Requests} calls=${calls} />
    ${isAsking && html`<${Dialog} title="Cancel the run?" onClose=${onClose}>
      <p>The run of <strong>${run.agent}</strong> ends at once, and its messages are lost. Stop keeps them.</p>
      <div class="acts">${cancel}</div><//>`}`;
}

const NO_INPUT = 'The input of this run is not kept: it answered calls, its agent has hooks, or it was lost.';

/** Reads the input of a run: kept with it, or the first messages that it has added to its base. @param {Run} run */
async function readInput(run) {
  const refuse = (detail) => Promise.reject(new Problem(0, { detail }));
  const sent = ({ role, name, content }) => ({ role, name, content });
  if (run.input) return run.input.map(sent);
  if (!hasSession(run)) {
    return refuse(run.session_id ? NO_INPUT : 'The run publishes nothing, so its input is not kept.');
  }
  const base = run.base_session_id ? await get(`/v1/sessions/${run.base_session_id}?include=`) : null;
  const page = await get(`/v1/sessions/${run.session_id}/messages?from=${base?.message_count ?? 0}&limit=50`);
  const end = page.data.findIndex(({ role }) => role !== 'user' && role !== 'system');
  const messages = page.data.slice(0, end < 0 ? undefined : end);
  const input = messages.map(sent);
  return input.length ? input : refuse(NO_INPUT);
}

/** @param {{ run: Run, onClose: () => void }} properties */
function RunAgain({ run, onClose }) {
  const [input, setInput] = useState(/** @type {any} */ (null));
  const [model, setModel] = useState('');
  const [problem, setProblem] = useState(null);
  useEffect(() => void readInput(run).then(setInput, setProblem), [run.run_id]);
  const { agent, base_session_id, durability, metadata } = run;
  const again = usePost();
  const call = input && again('/v1/runs', {
    agent, base_session_id, input, model: model || undefined, mode: 'async', durability, metadata,
  });
  const text = input?.flatMap(({ content }) => content.map((part) => part.text ?? '')).join('\n');
  const act = call && html`<${Act} name="again" kind="primary" call=${call}
    onDone=${({ run_id: next }) => go(`/console/runs/${next}`)}
    onProblem=${setProblem}>Run again<//><${Requests} calls=${{ 'Run again': call }} />`;
  if (problem && !input) {
    return html`<${Dialog} title="Run again?" onClose=${onClose}><${ProblemBox} problem=${problem} /><//>`;
  }
  return html`<${Dialog} title="Run again?" onClose=${onClose}>
    <p>A new run of <strong>${agent}</strong> starts from the same session with the same input.</p>
    ${text ? html`<${Code} text=${text} label="Input" />` : input && html`<${JsonValue} value=${input} />`}
    <div class="newrun"><${ModelField} value=${model} onInput=${(event) => setModel(event.target.value.trim())} /></div>
    <${ProblemBox} problem=${problem} /><div class="acts">${act}</div><//>`;
}

/**
 * The field under a run at work. The status of each message is shown with it.
 * @param {{ run: Run, applied: number }} properties
 */
export function Steer({ run, applied }) {
  const [sent, setSent] = useState(/** @type {{ id: string, input: string, status: string }[]} */ ([]));
  const [input, setInput] = useState('');
  const [problem, setProblem] = useState(null);
  const path = `/v1/runs/${run.run_id}/steer`;
  const call = useMemo(() => post(path, { id: newId(), input }), [path, input]);
  const note = (message) => setSent((old) => [...old.filter(({ id }) => id !== message.id), message]);
  useEffect(() => {
    // The same message again is not added. Its response is the status of the first.
    for (const { id, input: words } of sent.filter(({ status }) => status === 'received')) {
      const again = { method: 'POST', path, body: { id, input: words } };
      send(again).then((reply) => note({ ...reply, input: words }), setProblem);
    }
  }, [applied, run.status]);
  if (!isActive(run) && !sent.length) return null;
  const onDone = (reply) => {
    note({ ...reply, input });
    setInput('');
  };
  return html`<section class="card steer" aria-label="Steer the run">
    ${sent.map((one) => html`<p key=${one.id}><span>${plain(one.input)}</span>
      <small class=${one.status}>${STEERED[one.status]}</small></p>`)}
    ${isActive(run) && html`<form onSubmit=${(event) => event.preventDefault()}>
      <input aria-label="A message to the run" placeholder="A message that the model reads at its next step"
        value=${input} onInput=${(event) => setInput(event.target.value)} />
      <${Act} name="run" call=${call} disabled=${!input.trim()} onDone=${onDone} onProblem=${setProblem}>Steer<//>
      <${Requests} calls=${{ Steer: call }} /></form>`}
    <${ProblemBox} problem=${problem} /></section>`;
}
