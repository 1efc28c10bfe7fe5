// @ts-check
// The acts on a session of a tree: continue it, point a thread to it, and remove it.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { count, short } from '../logic/format.js';
import { descendantsOf } from '../logic/lanes.js';
import { plain } from '../logic/text.js';
import { NewRun } from '../parts/new_run.js';
import { Act, Dialog, focusNew, ProblemBox, Requests, usePost } from '../parts/ui.js';
import { nameOf } from './tree_rows.js';

/** @import { Session, Tree } from '../types.d.ts' */
/** @import { TreeData } from './tree_data.js' */
/**
 * @typedef {{ session: Session, tree: Tree, data: TreeData, onDone: (id?: string) => void, onClose: () => void }} Ask
 */

/** Continues a session, and moves the thread that points here. @param {Ask} properties */
export function ContinueDialog({ session, tree, data, onClose }) {
  const [thread] = data.names.value.get(session.session_id) ?? [];
  return html`<${NewRun} title="Continue “${nameOf(session, tree)}”" base=${session.session_id} thread=${thread}
    agent=${session.agent} onClose=${onClose} />`;
}

/** Moves a thread to a session, or creates one there. @param {Ask} properties */
export function ThreadDialog({ session, tree, data, onDone, onClose }) {
  const { session_id: id } = session;
  const [name, setName] = useState('');
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const known = [...data.names.value.values()].flat().sort();
  const from = data.sessionOf(name);
  const path = `/v1/threads/${encodeURIComponent(name)}`;
  const made = usePost()('/v1/threads', { name, session_id: id });
  const call = from === undefined ? made
    : { method: 'PUT', path, body: { session_id: id, expected_session_id: from } };
  const hint = !name ? '' : from === undefined ? 'A new thread.' : from === id ? 'It points here already.'
    : from ? `It points to ${short(from)} now.` : 'It points to no session yet.';
  return html`<${Dialog} title="Point a thread to “${nameOf(session, tree)}”" onClose=${onClose}>
    <label>Thread<input list="thread-names" autocomplete="off" maxlength="128" value=${name} ref=${focusNew}
      onInput=${(event) => setName(event.target.value.trim())} /></label>
    <datalist id="thread-names">${known.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
    <p class="muted" role="status">${hint}</p>
    <${ProblemBox} problem=${problem} />
    ${problem?.code === 'thread_moved' && html`<p>Close this dialog, and look at where it points now.</p>`}
    <div class="acts"><${Act} name="thread" kind="primary" call=${call} disabled=${!name || from === id}
      onDone=${() => onDone()} onProblem=${setProblem}>${from === undefined ? 'Create' : 'Move'} the thread<//>
      <${Requests} calls=${{ Thread: call }} /></div><//>`;
}

/** Removes a session, with those that continue it. @param {Ask} properties */
export function RemoveDialog({ session, tree, data, onDone, onClose }) {
  const { session_id: id } = session;
  const [problem, setProblem] = useState(null);
  const gone = descendantsOf(tree, id);
  const others = gone.length - 1;
  const threads = gone.flatMap((one) => data.names.value.get(one) ?? []);
  const call = { method: 'DELETE', path: `/v1/sessions/${id}${others ? '?descendants=true' : ''}` };
  const onRemoved = () => {
    data.remove(id);
    onDone(session.parent_session_id ?? undefined);
  };
  return html`<${Dialog} title="Remove “${nameOf(session, tree)}”?" onClose=${onClose}>
    <p>The session <code>${short(id)}</code> is removed for good, with its run${others > 0 && html` and
      ${' '}<strong>${count(others, 'session')}</strong> that ${others > 1 ? 'continue' : 'continues'} it`}.</p>
    ${threads.length > 0 && html`<p class="note">Move or delete the threads first: ${plain(threads.join(', '))}</p>`}
    <${ProblemBox} problem=${problem} />
    <div class="acts"><${Act} name="x" kind="danger" call=${call} scope=${others ? 'admin' : 'runs:write'}
      onDone=${onRemoved} onProblem=${setProblem}>Remove ${count(gone.length, 'session')}<//>
      <${Requests} calls=${{ Remove: call }} /></div><//>`;
}
