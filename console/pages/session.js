// @ts-check
// The page of a session: its messages, its files or its state, and beside them what it is and where it stands.

import { html } from 'htm/preact';
import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import { get } from '../api.js';
import { useKeys } from '../keys.js';
import { onChange } from '../live.js';
import { number, short } from '../logic/format.js';
import { plain } from '../logic/text.js';
import { changeQuery } from '../logic/urlstate.js';
import { icon } from '../parts/icons.js';
import { NewRun } from '../parts/new_run.js';
import { Page, said } from '../parts/page.js';
import { Button, Dialog, ProblemBox, useRead } from '../parts/ui.js';
import { address, setQuery } from '../router.js';
import { About } from './session_about.js';
import { Messages } from './session_data.js';
import { Files } from './session_files.js';
import { Jump, MessageList } from './session_messages.js';
import { State } from './session_state.js';
import { nameOf } from './tree_rows.js';

/** @import { Message } from '../types.d.ts' */
/** @typedef {{ index: number, message: Message }} Edited */

const VIEWS = { messages: 'Messages', files: 'Files', state: 'Variables and context' };
/** How long changes are gathered before the page reads again, in milliseconds. */
const GATHER = 2000;

/** @param {{ id: string }} properties */
export function SessionPage({ id }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const version = useChanges();
  const { value: session, problem } = useRead(`${path}?include=`, version);
  if (session) return html`<${KnownSession} session=${session} path=${path} problem=${problem} version=${version} />`;
  const run = problem?.code === 'session_not_committed' && problem.document.run_id;
  return html`<${Page} title=${short(id)} crumbs=${[['Sessions', '/console/trees']]}><div class="body">
    ${problem ? html`<${ProblemBox} problem=${problem} />` : html`<p class="muted">Reading the session…</p>`}
    ${run && html`<p><a class="link" href=${`/console/runs/${run}`}>Open its run</a></p>`}</div><//>`;
}

/** Counts changes of sessions, but many at once as one. */
function useChanges() {
  const [version, next] = useReducer((times) => times + 1, 0);
  useEffect(() => {
    let timer = 0;
    const later = () => {
      timer = 0;
      next(undefined);
    };
    const forget = onChange((change) => {
      if (!change || change.type.startsWith('session.')) timer ||= window.setTimeout(later, GATHER);
    });
    return () => {
      clearTimeout(timer);
      forget();
    };
  }, []);
  return version;
}

/** @param {{ session: any, path: string, problem: any, version: number }} properties */
function KnownSession({ session, path, problem, version }) {
  const { query, search } = address.value;
  const view = query.get('view') ?? 'messages';
  const asked = Number(query.get('message'));
  const chosen = Number.isInteger(asked) && asked > 0 ? asked - 1 : -1;
  const data = useMemo(() => new Messages(path, chosen), [path]);
  useEffect(() => () => data.close(), [data]);
  const [dialog, setDialog] = useState(/** @type {'continue' | Edited | null} */ (null));
  const [isPaneOpen, setPaneOpen] = useState(/** @type {boolean | undefined} */ (undefined));
  const onClose = () => setDialog(null);
  const total = session.message_count;
  const jump = (index) => {
    const place = Math.max(0, Math.min(total - 1, index || 0));
    setQuery({ message: place + 1 });
    said.value = `Message ${place + 1}, ${data.at(place)?.role ?? ''}`;
  };
  const edit = (index) => {
    const message = data.at(index);
    if (message?.role === 'user') setDialog({ index, message });
    else said.value = 'Choose a message of the user first.';
  };
  const isList = view === 'messages';
  useKeys([
    { keys: 'c', does: 'Continue the session', run: () => setDialog('continue') },
    ...(isList ? [
      { keys: 'j', does: 'Next message', run: () => jump(chosen + 1) },
      { keys: 'k', does: 'Message before', run: () => jump(chosen < 0 ? total - 1 : chosen - 1) },
      { keys: 'e', does: 'Edit the chosen message', run: () => edit(chosen) },
    ] : []),
  ]);
  const tree = `/console/trees/${session.root_session_id}?at=${session.session_id}`;
  const link = ([id, name]) => html`<a key=${id} href=${changeQuery(search, { view: id === 'messages' ? null : id })}
    aria-current=${view === id ? 'page' : null}>${name}</a>`;
  return html`<${Page} title=${nameOf(session)} crumbs=${[['Sessions', '/console/trees']]}
    actions=${html`<a class="button" href=${tree}>${icon('tree')}Tree</a>
      <span class=${isPaneOpen === false ? '' : 'narrow'}><${Button} name="file"
        onClick=${() => setPaneOpen(true)}>About<//></span>
      <${Button} kind="primary" name="run" keys="c" onClick=${() => setDialog('continue')}>Continue<//>`}
    pane=${html`<${About} session=${session} path=${path} version=${version} />`} paneLabel="About the session"
    isPaneOpen=${isPaneOpen} onClosePane=${() => setPaneOpen(false)}>
    <div class="session">
      <div class="bar2"><nav class="views" aria-label="Parts of the session">${Object.entries(VIEWS).map(link)}</nav>
        <span class="grow"></span>${isList && total > 0
          && html`<${Jump} total=${total} chosen=${chosen} onJump=${jump} />`}</div>
      <${ProblemBox} problem=${problem} />
      ${session.run_status === 'waiting' && html`<p class="waits">${icon('shield')}The session waits for an answer.
        ${' '}<a class="link" href=${`/console/runs/${session.run_id}`}>Answer it in its run</a></p>`}
      ${isList && html`<${MessageList} data=${data} chosen=${chosen} onEdit=${edit} />`}
      ${view === 'files' && html`<${Files} session=${session} path=${path} />`}
      ${view === 'state' && html`<${State} path=${path} />`}
    </div>
    ${dialog === 'continue' && html`<${NewRun} title="Continue the session" base=${session.session_id}
      onClose=${onClose} note=${session.thread && `Name the thread ${plain(session.thread)} to move it, too.`} />`}
    ${dialog && dialog !== 'continue' && html`<${EditMessage} ...${dialog} session=${session} path=${path}
      onClose=${onClose} />`}<//>`;
}

/** Finds the session before a message, and how many messages are between both. */
async function readBefore(path, index) {
  const added = await get(`${path}/messages/${index}/session`);
  const base = added.parent_session_id;
  const before = base ? await get(`/v1/sessions/${base}?include=`) : null;
  return { base, agent: added.agent, between: index - (before?.message_count ?? 0) };
}

/** @param {Edited & { session: any, path: string, onClose: () => void }} properties */
function EditMessage({ index, message, session, path, onClose }) {
  const [before, setBefore] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  useEffect(() => void readBefore(path, index).then(setBefore, setProblem), []);
  const title = `Edit message ${number(index + 1)}`;
  if (problem) {
    return html`<${Dialog} title=${title} onClose=${onClose}><p>The session before this message can't be read.</p>
      <${ProblemBox} problem=${problem} /><//>`;
  }
  if (!before) return null;
  const note = html`The run starts before this message. What followed it stays in its own branch.
    ${before.between > 0 && html` <strong>Messages before it in the same session are left out:
      ${` ${before.between}`}.</strong>`}`;
  const text = message.content.filter(({ type }) => type === 'text').map((part) => part.text).join('\n');
  return html`<${NewRun} title=${title} note=${note} base=${before.base} agent=${before.agent ?? session.agent}
    input=${text} kept=${message.content.filter(({ type }) => type !== 'text')} onClose=${onClose} />`;
}
