// @ts-check
// Merges the files of one session into another, and lets a person decide about conflicts.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { send } from '../api.js';
import { lacks } from '../identity.js';
import { count, short } from '../logic/format.js';
import { canSettle, choicesOf } from '../logic/merge.js';
import { plain } from '../logic/text.js';
import { FileChanges } from '../parts/payload.js';
import { Act, Button, Dialog, ProblemBox, Requests, usePost, useRead } from '../parts/ui.js';
import { nameOf } from './tree_rows.js';

/** @import { Conflict, FileChange, Session, Tree } from '../types.d.ts' */

const KINDS = {
  both_changed: 'both changed it', changed_and_deleted: 'one changed it, the other deleted it',
  both_added: 'both added it', file_and_directory: 'a file here, a directory there',
};

/**
 * Takes the changes of `other` since the common ancestor into a session that continues `session`.
 * @param {{ session: Session, other: Session, onDone: (id?: string) => void, onClose: () => void,
 *   tree?: Tree, data?: { add: (session: Session) => void } }} properties
 */
export function MergeDialog({ session, other, tree, data, onDone, onClose }) {
  const [mine, theirs] = [session.session_id, other.session_id];
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const ancestor = useRead(`/v1/sessions/${mine}/ancestor/${theirs}`);
  const base = ancestor.value?.session_id;
  const taken = useRead(base && `/v1/sessions/${base}/diff/${theirs}`);
  const call = usePost()(`/v1/sessions/${mine}/merge`, { with: theirs });
  const done = (merged) => {
    data?.add(merged);
    onDone(merged.session_id);
  };
  const conflicts = problem?.code === 'merge_conflict' ? problem.document.conflicts : null;
  const files = taken.value?.files;
  const named = (one) => html`“${nameOf(one, tree)}” <code>${short(one.session_id)}</code>`;
  return html`<${Dialog} title="Merge ${short(theirs)} into ${short(mine)}?" onClose=${onClose}>
    <p>The result continues mine, ${named(session)}, with its messages, and takes over what theirs,
      ${' '}${named(other)}, has changed since the common ancestor
      ${base && html` <code>${short(base)}</code>`}.</p>
    <${ProblemBox} problem=${ancestor.problem ?? taken.problem} />
    ${conflicts ? html`<${Conflicts} mine=${mine} theirs=${theirs} conflicts=${conflicts} onDone=${done} />`
      : html`${files && html`<p class="muted">${count(files.length, 'file')} and
          ${` ${count(taken.value.environment.length, 'variable')}`}</p>
          <div class="previews"><${FileChanges} files=${files} /></div>`}
        <${ProblemBox} problem=${problem} />
        <div class="acts"><${Act} name="merge" kind="primary" call=${call} onDone=${done}
          onProblem=${setProblem}>Merge<//><${Requests} calls=${{ Merge: call }} /></div>`}<//>`;
}

/** @param {{ mine: string, theirs: string, conflicts: Conflict[], onDone: (session: Session) => void }} properties */
function Conflicts({ mine, theirs, conflicts, onDone }) {
  const [chosen, setChosen] = useState(/** @type {Record<string, 'mine' | 'theirs'>} */ ({}));
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  // As in the comparison behind the dialog.
  const diff = useRead(`/v1/sessions/${theirs}/diff/${mine}`);
  /** @type {Map<string, FileChange>} */
  const files = new Map(diff.value?.files.map((file) => [file.path, file]));
  const open = conflicts.filter((conflict) => !canSettle(conflict, files));
  const undecided = conflicts.filter(({ name }) => !chosen[name]).length;
  const changes = choicesOf(conflicts, files, chosen);
  // The same choices have the same keys, so a second attempt changes nothing twice.
  const [make, show] = [usePost(), usePost()];
  const write = (id, list) => (list.length ? make(`/v1/sessions/${id}/files`, { changes: list }) : null);
  const [onMine, onTheirs] = [write(mine, changes.onMine), write(theirs, changes.onTheirs)];
  const run = async () => {
    const left = onMine ? (await send(onMine)).session_id : mine;
    const right = onTheirs ? (await send(onTheirs)).session_id : theirs;
    onDone(await send(make(`/v1/sessions/${left}/merge`, { with: right })));
  };
  const start = () => {
    setBusy(true);
    run().catch(setProblem).finally(() => setBusy(false));
  };
  const calls = {
    ...(onMine && { 'Take theirs': onMine }), ...(onTheirs && { 'Keep mine': onTheirs }),
    'Merge again': show(`/v1/sessions/${onMine ? 'SESSION_1' : mine}/merge`, { with: onTheirs ? 'SESSION_2' : theirs }),
  };
  const choice = (name) => (side, words) => html`<button type="button" aria-pressed=${chosen[name] === side}
    onClick=${() => setChosen({ ...chosen, [name]: side })}>${words}</button>`;
  const row = (conflict) => {
    const { part, name, kind } = conflict;
    const file = part === 'files' && files.get(name);
    return html`<section key=${`${part}/${name}`} class="conflict"><header><code>${plain(name)}</code>
        <span class="muted">${part === 'files' ? '' : `${part}: `}${KINDS[kind] ?? kind}</span>
        <span class="grow"></span>
        ${canSettle(conflict, files) && html`<div class="seg" role="group" aria-label=${`Take for ${name}`}>
          ${choice(name)('mine', 'Mine')}${choice(name)('theirs', 'Theirs')}</div>`}</header>
      ${file && html`<${FileChanges} files=${[file]} />`}</section>`;
  };
  return html`<p class="problem" role="alert">${count(conflicts.length, 'change')} can't be combined. Nothing was
      written. Below, <strong>−</strong> is theirs and <strong>+</strong> is mine.</p>
    <div class="previews">${conflicts.map(row)}</div>
    <${ProblemBox} problem=${problem ?? diff.problem} />
    ${open.length > 0 && diff.value && html`<p class="note">${count(open.length, 'conflict')} can't be settled here:
      continue one of the sessions with a run that does it.</p>`}
    <div class="acts"><${Button} name="merge" kind="primary" onClick=${start}
      disabled=${isBusy || lacks('runs:write') || open.length > 0 || undecided > 0}>
      ${undecided ? `Decide ${count(undecided, 'more conflict')}` : 'Merge with these choices'}<//>
      <${Requests} calls=${calls} /></div>`;
}
