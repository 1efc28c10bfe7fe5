// @ts-check
// The dialog that starts a run: of a new conversation, of one that goes on, or of an edited message.

import { html } from 'htm/preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { plain } from '../logic/text.js';
import { go } from '../router.js';
import { Act, Dialog, ProblemBox, Requests, usePost, useRead } from './ui.js';

/** @import { Part } from '../types.d.ts' */
/**
 * @typedef {{ agent: string, base: string, thread: string, input: string, model: string, environment: string,
 *   title: string, busy: string }} Draft
 */

/** What a run does when its thread is busy. */
const BUSY = { reject: 'do not run', queue: 'wait for it', interrupt: 'interrupt it', fork: 'fork' };

/** What was typed and not sent yet, by what its dialog was opened with. @type {Map<string, Draft>} */
const drafts = new Map();

/**
 * The dialog for a new run. It shows its request, sends it, and goes to the page of the run. Everything but `onClose`
 * may be absent, and the reader can change all that is given.
 * @param {{ title?: string, note?: any, agent?: string, base?: string | null, thread?: string | null, input?: string,
 *   kept?: Part[], onClose: () => void }} properties
 *   `title` and `note` head the dialog. `agent`: its name; by default that of the base. `base`: the id of the session
 *   to continue. `thread`: the name of the thread to continue; with a base, the run starts there and moves the thread.
 *   `input`: the first text of the field. `kept`: parts of the input that are no text, such as images.
 */
export function NewRun({ title = 'New run', note, agent = '', base, thread, input = '', kept = [], onClose }) {
  const key = JSON.stringify([title, agent, base, thread, input]);
  const [draft, setDraft] = useState(/** @returns {Draft} */ () => drafts.get(key) ?? ({
    agent, base: base ?? '', thread: thread ?? '', input, model: '', environment: '', title: '', busy: 'reject',
  }));
  useLayoutEffect(() => void drafts.set(key, draft), [draft]);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const body = bodyOf(draft, kept);
  const call = usePost()('/v1/runs', body);
  const onDone = ({ run_id: run }) => {
    drafts.delete(key);
    onClose();
    go(`/console/runs/${run}`);
  };
  const set = (name) => (event) => setDraft((old) => ({ ...old, [name]: event.target.value }));
  const trimmed = (name) => (event) => setDraft((old) => ({ ...old, [name]: event.target.value.trim() }));
  return html`<${Dialog} title=${title} onClose=${onClose}>
    <form class="newrun" onSubmit=${(event) => event.preventDefault()}>
      ${note && html`<p class="muted">${note}</p>`}
      <label>Input<textarea rows="5" value=${draft.input} onInput=${set('input')} autofocus></textarea></label>
      ${kept.length > 0 && html`<p class="muted">With it go: ${kept.map(({ type }) => plain(type)).join(', ')}.</p>`}
      <div class="pair"><${AgentField} draft=${draft} onChange=${set('agent')} />
        <label>Thread<input value=${draft.thread} placeholder="none" onInput=${trimmed('thread')} /></label></div>
      <label>Session to continue<input class="one" value=${draft.base} placeholder="none: a new conversation"
        onInput=${trimmed('base')} /></label>
      <details><summary>Settings</summary><${Settings} draft=${draft} set=${set} trimmed=${trimmed} /></details>
      <${ProblemBox} problem=${problem} />
      <${WayOut} problem=${problem} body=${body} onDone=${onDone} onProblem=${setProblem} />
      <div class="acts"><${Act} kind="primary" name="run" call=${call} disabled=${!draft.input.trim()} onDone=${onDone}
          onProblem=${setProblem}>Run<//><${Requests} calls=${{ Run: call }} />
        <span class="grow"></span><span class="muted"><kbd>Ctrl</kbd> <kbd>Enter</kbd> runs it</span></div>
    </form><//>`;
}

/** @param {{ draft: Draft, onChange: (event) => void }} properties */
function AgentField({ draft, onChange }) {
  const agents = useRead('/v1/agents?limit=200').value?.data.map(({ name }) => name) ?? [];
  const names = draft.agent && !agents.includes(draft.agent) ? [draft.agent, ...agents] : agents;
  const standard = draft.base ? 'the session\'s' : draft.thread ? 'the thread\'s' : 'the default';
  return html`<label>Agent<select onChange=${onChange}>
    <option value="" selected=${!draft.agent}>${standard}</option>
    ${names.map((name) => html`<option key=${name} value=${name}
      selected=${name === draft.agent}>${plain(name)}</option>`)}</select></label>`;
}

/** The model of a run. @param {{ value: string, onInput: (event) => void }} properties */
export function ModelField({ value, onInput }) {
  const models = useRead('/v1/models').value?.data.map(({ id }) => id).filter((id) => id.includes('/')) ?? [];
  return html`<label>Model<input list="models" value=${value} placeholder="the agent's" onInput=${onInput} /></label>
    <datalist id="models">${models.map((id) => html`<option key=${id} value=${id}></option>`)}</datalist>`;
}

/** @param {{ draft: Draft, set: (name: string) => any, trimmed: (name: string) => any }} properties */
function Settings({ draft, set, trimmed }) {
  return html`<div class="newrun">
    <${ModelField} value=${draft.model} onInput=${trimmed('model')} />
    <label>Files and variables of another session<input class="one" value=${draft.environment}
      placeholder="those of the session to continue" onInput=${trimmed('environment')} /></label>
    <div class="pair">
      <label>Title<input value=${draft.title} maxlength="160" onInput=${set('title')} /></label>
      <label>If the thread is busy<select disabled=${!draft.thread} onChange=${set('busy')}>
        ${Object.entries(BUSY).map(([id, name]) => html`<option key=${id} value=${id}
          selected=${id === draft.busy}>${name}</option>`)}</select></label></div></div>`;
}

/**
 * What to do about a problem that people meet often.
 * @param {{ problem: any, body: any, onDone: (run) => void, onProblem: (problem) => void }} properties
 */
function WayOut({ problem, body, onDone, onProblem }) {
  const posts = { queue: usePost(), interrupt: usePost(), fork: usePost() };
  const link = (to, words) => html`<p><a class="link" href=${to}>${words}</a></p>`;
  if (problem?.code === 'answers_required') {
    return link(`/console/sessions/${problem.document.session_id}`, 'Open the session that waits for answers');
  }
  if (problem?.code !== 'thread_busy') return null;
  const act = (busy, words) => html`<${Act} call=${posts[busy]('/v1/runs', { ...body, if_busy: busy })} onDone=${onDone}
    onProblem=${onProblem}>${words}<//>`;
  return html`<div class="acts">${act('queue', 'Wait for it')}${act('interrupt', 'Interrupt it')}${act('fork', 'Fork')}
    </div>${problem.document.run_id && link(`/console/runs/${problem.document.run_id}`, 'Open the run on the thread')}`;
}

/** Makes the body of the request. @param {Draft} draft @param {Part[]} kept */
function bodyOf({ agent, base, thread, input, model, environment, title, busy }, kept) {
  return {
    agent: agent || undefined,
    base_session_id: (!thread && base) || undefined,
    thread: thread || undefined,
    thread_from: thread && base ? { session_id: base } : undefined,
    if_busy: thread && busy !== 'reject' ? busy : undefined,
    environment_from: environment || undefined,
    model: model || undefined,
    input: kept.length ? [{ role: 'user', content: [{ type: 'text', text: input }, ...kept] }] : input,
    metadata: title.trim() ? { title: title.trim() } : undefined,
    mode: 'async',
  };
}
