// @ts-check
// Threads: names of conversations. One page lists them, and another one shows a thread with its runs.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { useKeys } from '../keys.js';
import { mergePatch, parseDefinition, write } from '../logic/definition.js';
import { number, short } from '../logic/format.js';
import { filterQuery } from '../logic/list.js';
import { firstLine, plain } from '../logic/text.js';
import { Filters, List, useList, useVersion } from '../parts/list.js';
import { NewRun } from '../parts/new_run.js';
import { Page } from '../parts/page.js';
import { JsonValue } from '../parts/payload.js';
import { Removal } from '../parts/removal.js';
import { RunList } from '../parts/run_list.js';
import { Act, Age, Button, Dialog, ProblemBox, Requests, useRead } from '../parts/ui.js';
import { address } from '../router.js';
import { Facts } from './run_inspector.js';
import { nameOf } from './tree_rows.js';

/**
 * @typedef {{ name: string, title: string | null, metadata: Record<string, any>, session_id: string | null,
 *   agent: string | null, message_count: number | null, run_count: number, version: number, created_at: string,
 *   updated_at: string }} Thread
 */

const FIELDS = ['agent', 'metadata'];
const THREADS = {
  keyOf: (thread) => thread.name,
  idOf: (change) => change.data.thread,
  one: (name) => `/v1/threads/${encodeURIComponent(name)}`,
};

/** @param {string | null} id */
const sessionLink = (id) => (id ? html`<a href=${`/console/sessions/${id}`}><code>${short(id)}</code></a>` : '–');

/** @type {import('../parts/list.js').Column[]} */
const COLUMNS = [
  ['Thread', ({ name, title }) => html`<a class="to" href=${`/console/threads/${encodeURIComponent(name)}`}>${name}</a>
    ${title && html`<p class="muted">${firstLine(title)}</p>`}`],
  ['Agent', ({ agent }) => agent ?? '–', 'minor'],
  ['Session', (thread) => sessionLink(thread.session_id), 'minor'],
  ['Messages', (thread) => number(thread.message_count ?? 0), 'number minor'],
  ['Runs', (thread) => number(thread.run_count), 'number'],
  ['Changed', (thread) => html`<${Age} of=${thread.updated_at} />`, 'number'],
];

export function Threads() {
  const filter = filterQuery(address.value.query, FIELDS);
  const path = `/v1/threads${filter && `?${filter}`}`;
  const list = useList(path, THREADS);
  const empty = filter ? html`<p><strong>No thread matches.</strong></p>` : html`<p><strong>No thread yet.</strong></p>
    <p class="muted">A run with <code>"thread": "NAME"</code> makes one: see
      ${' '}<a class="link" href="/docs/threads">Threads</a>.</p>`;
  return html`<${Page} title="Threads"><div class="body wide"><${Filters} names=${FIELDS} path=${path} />
    <${List} list=${list} label="Threads" kind="of-threads" columns=${COLUMNS} empty=${empty} /></div><//>`;
}

/** @param {{ name: string }} properties */
export function ThreadPage({ name }) {
  const [saves, setSaves] = useState(0);
  const [open, setOpen] = useState('');
  const version = useVersion(({ data }) => data.thread === name);
  const path = THREADS.one(name);
  const { value: thread, problem } = useRead(path, `${version}.${saves}`);
  const show = (dialog) => () => setOpen(dialog);
  useKeys([
    { keys: 'c', does: 'Continue the thread', run: show('run') },
    { keys: 'e', does: 'Edit title and metadata', run: show('edit') },
    { keys: 't', does: 'Move the thread', run: show('move') },
  ]);
  const onClose = () => setOpen('');
  const onDone = () => {
    onClose();
    setSaves(saves + 1);
  };
  const actions = thread && html`<${Button} kind="primary" name="run" keys="c" onClick=${show('run')}>Continue<//>
    <${Button} name="pen" keys="e" onClick=${show('edit')}>Edit<//>
    <${Button} name="thread" keys="t" onClick=${show('move')}>Move<//>`;
  const runs = `/v1/runs?thread=${encodeURIComponent(name)}`;
  return html`<${Page} title=${plain(name)} crumbs=${[['Threads', '/console/threads']]} actions=${actions}>
    <div class="body wide"><${ProblemBox} problem=${problem} />
      ${thread && html`<${Facts} facts=${factsOf(thread)} />`}
      ${thread && Object.keys(thread.metadata).length > 0 && html`<section aria-label="Metadata"><h2>Metadata</h2>
        <${JsonValue} value=${thread.metadata} /></section>`}
      <section aria-label="Runs of the thread"><h2>Runs</h2>
        <${RunList} path=${runs} label="Runs of the thread" empty="No run on this thread is stored." /></section></div>
    ${thread && open === 'run' && html`<${NewRun} title="Continue the thread" thread=${name}
      agent=${thread.agent ?? ''} onClose=${onClose} />`}
    ${thread && open === 'edit' && html`<${Edit} thread=${thread} path=${path} onClose=${onClose} onDone=${onDone}
      onRemove=${show('remove')} />`}
    ${thread && open === 'move' && html`<${Move} thread=${thread} path=${path} onClose=${onClose} onDone=${onDone} />`}
    ${open === 'remove' && html`<${Removal} what="thread" name=${name} path=${path} to="/console/threads"
      onClose=${onClose}>So are its title and metadata. The sessions stay.<//>`}<//>`;
}

/** @param {Thread} thread */
const factsOf = (thread) => ({
  Title: thread.title && firstLine(thread.title, 256),
  'Points to': sessionLink(thread.session_id),
  Agent: thread.agent && html`<a href=${`/console/agents/${encodeURIComponent(thread.agent)}`}>${thread.agent}</a>`,
  Messages: number(thread.message_count ?? 0),
  Runs: number(thread.run_count),
  Moves: number(thread.version),
  Changed: html`<${Age} of=${thread.updated_at} /> <small>ago</small>`,
});

/** @typedef {{ thread: Thread, path: string, onClose: () => void, onDone: () => void }} DialogProperties */

/** @param {DialogProperties & { onRemove: () => void }} properties */
function Edit({ thread, path, onClose, onDone, onRemove }) {
  // What the reader edits stays the same when the thread changes meanwhile.
  const [before] = useState(thread);
  const [title, setTitle] = useState(thread.title ?? '');
  const [text, setText] = useState(write(thread.metadata));
  const [problem, setProblem] = useState(null);
  const { value, fault } = parseDefinition(text);
  const body = {
    ...(title !== (before.title ?? '') && { title: title || null }),
    ...(value && write(value) !== write(before.metadata) && { metadata: mergePatch(before.metadata, value) }),
  };
  const call = { method: 'PATCH', path, body };
  const isOff = !!fault || !Object.keys(body).length;
  return html`<${Dialog} title="Title and metadata" onClose=${onClose}>
    <label>Title<input value=${title} maxlength="256"
      onInput=${(event) => setTitle(event.target.value)} /></label>
    <label>Metadata, as JSON<textarea rows="8" spellcheck="false" value=${text} aria-invalid=${!!fault}
      onInput=${(event) => setText(event.target.value)}></textarea></label>
    ${fault && html`<p class="fault" role="alert">Line ${fault.line}: ${fault.message}</p>`}
    <${ProblemBox} problem=${problem} />
    <div class="acts"><${Act} kind="primary" name="check" call=${call} disabled=${isOff} onDone=${onDone}
      onProblem=${setProblem}>Save<//><${Requests} calls=${{ Save: call }} /><span class="grow"></span>
      <${Button} kind="danger" name="x" onClick=${onRemove}>Remove the thread<//></div><//>`;
}

/** @param {DialogProperties} properties */
function Move({ thread, path, onClose, onDone }) {
  const [expected, setExpected] = useState(thread.session_id);
  const [target, setTarget] = useState('');
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const sessions = useRead(`/v1/sessions?thread=${encodeURIComponent(thread.name)}&limit=20`);
  const call = { method: 'PUT', path, body: { session_id: target, expected_session_id: expected } };
  const other = problem?.code === 'thread_moved' ? problem.document.session_id ?? null : undefined;
  const choice = (session) => html`<label key=${session.session_id} class="choice"><input type="radio" name="session"
      value=${session.session_id} checked=${target === session.session_id}
      disabled=${session.session_id === expected} onChange=${() => setTarget(session.session_id)} />
    <span class="words">${nameOf(session)}</span>
    <span class="muted">${session.session_id === expected ? 'now' : html`<${Age} of=${session.created_at} />`}</span>
    </label>`;
  const accept = () => {
    setExpected(other ?? null);
    setProblem(null);
  };
  return html`<${Dialog} title="Move the thread" onClose=${onClose}>
    <p><strong>${plain(thread.name)}</strong> points to <code>${expected ? short(expected) : 'no session'}</code>. Its
      next run continues the session that you choose. No session is removed.</p>
    <fieldset class="choices"><legend>Sessions of its newest runs</legend>
      ${(sessions.value?.data ?? []).map(choice)}</fieldset>
    <label>Session<input class="one" value=${target} placeholder="the id of any session"
      onInput=${(event) => setTarget(event.target.value.trim())} /></label>
    <${ProblemBox} problem=${problem ?? sessions.problem} />
    ${other !== undefined && html`<div class="acts"><p>It points to ${sessionLink(other)} now.</p>
      <${Button} onClick=${accept}>Move it from there<//></div>`}
    <div class="acts"><${Act} kind="primary" name="thread" call=${call} disabled=${!target || target === expected}
      onDone=${onDone} onProblem=${setProblem}>Move<//><${Requests} calls=${{ Move: call }} /></div><//>`;
}
