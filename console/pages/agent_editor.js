// @ts-check
// The definition of an agent as JSON. A problem is shown at its field, and a new version as its difference.

import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { lacks } from '../identity.js';
import { changedFields, definitionOf, locate, parseDefinition, write } from '../logic/definition.js';
import { plain } from '../logic/text.js';
import { FileBox } from '../parts/payload.js';
import { Act, Button, Dialog, ProblemBox, Requests, useRead } from '../parts/ui.js';
import { useUnsaved } from '../router.js';

/** @import { Fault } from '../logic/definition.js' */

/** The height of a line of the field, as in the style sheet. */
const LINE = 19;

/**
 * @param {{ path: string, definition: any, version: string | null, onStored: () => void }} properties
 *   `version` is that of the definition; null for a new agent.
 */
export function Editor({ path, definition, version, onStored }) {
  const [start] = useState(() => write(definition));
  const [text, setText] = useState(start);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const [isStoring, setStoring] = useState(false);
  const { value, fault } = parseDefinition(text);
  useUnsaved(text !== start);
  const refused = value ? (problem?.document?.errors ?? []).map((error) => locate(value, error)) : [];
  const onInput = (event) => {
    setText(event.target.value);
    setProblem(null);
  };
  const onProblem = (found) => {
    // The lines of the faults are those of this form.
    setText(write(value));
    setProblem(found);
    setStoring(false);
  };
  const onDone = () => {
    setStoring(false);
    onStored();
  };
  const isChanged = text !== start || version === null;
  return html`<section class="card" aria-label="Definition"><header><h2>Definition</h2>
      <a class="link" href="/docs/agents#all-fields">All fields</a><span class="grow"></span>
      ${text !== start && html`<${Button} onClick=${() => onInput({ target: { value: start } })}>Undo<//>`}
      <${Button} kind="primary" name="check" disabled=${!value || !isChanged || lacks('admin')}
        title=${lacks('admin') ? 'Your key lacks the scope admin' : ''}
        onClick=${() => setStoring(true)}>Store…<//></header>
    ${lacks('admin') && html`<p class="note pad">Your key lacks the scope admin, which a change needs.</p>`}
    <${JsonField} text=${text} faults=${fault ? [fault] : refused} isReadOnly=${lacks('admin')} onInput=${onInput} />
    ${problem && html`<div class="pad"><${ProblemBox} problem=${problem} /></div>`}
    ${isStoring && value && html`<${Store} path=${path} definition=${value} version=${version} onDone=${onDone}
      onProblem=${onProblem} onClose=${() => setStoring(false)} />`}</section>`;
}

/**
 * A field for JSON with numbered lines. A list under it leads to each fault.
 * @param {{ text: string, faults: Fault[], isReadOnly: boolean, onInput: (event) => void }} properties
 */
function JsonField({ text, faults, isReadOnly, onInput }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const lines = text.split('\n').length;
  const numbers = Array.from({ length: lines }, (_, index) => index + 1).join('\n');
  const show = ({ line }) => {
    const before = text.split('\n').slice(0, line);
    const to = before.join('\n').length;
    field.current?.focus({ preventScroll: true });
    field.current?.setSelectionRange(to - (before.at(-1) ?? '').trimStart().length, to);
    const box = field.current?.parentElement;
    box?.scrollTo({ top: line * LINE - box.clientHeight / 2 });
  };
  const marks = faults.map(({ line }, key) => html`<i key=${key} style=${{ top: `${(line - 1) * LINE + 10}px` }}></i>`);
  const item = (fault, key) => html`<li key=${key}><button type="button" class="fault" onClick=${() => show(fault)}>
    <span>Line ${fault.line}${fault.pointer && html` <code>${plain(fault.pointer)}</code>`}: ${
      plain(fault.message)}</span></button></li>`;
  return html`<div class="jsonfield">${marks}<pre aria-hidden="true">${numbers}</pre>
      <textarea ref=${field} rows=${lines} wrap="off" spellcheck="false" aria-label="Definition as JSON" value=${text}
        readonly=${isReadOnly} aria-invalid=${faults.length > 0} aria-describedby="faults"
        onInput=${onInput}></textarea></div>
    <div id="faults" class="faults" role="status">${faults.length > 0 && html`<ul>${faults.map(item)}</ul>`}</div>`;
}

/**
 * Shows what a new version changes of the one that is stored now, and stores it.
 * @param {{ path: string, definition: any, version: string | null, onDone: () => void, onProblem: (problem) => void,
 *   onClose: () => void }} properties
 */
function Store({ path, definition, version, onDone, onProblem, onClose }) {
  const { value: stored, problem, isReading } = useRead(path);
  const call = { method: 'PUT', path, body: definition };
  const isFree = problem?.code === 'agent_not_found';
  const changes = changedFields(stored ? definitionOf(stored) : {}, definition);
  const other = stored && stored.version !== version;
  return html`<${Dialog} title=${version ? 'Store a new version?' : 'Store the agent?'} onClose=${onClose}>
    ${!isFree && html`<${ProblemBox} problem=${problem} />`}
    ${other && html`<p class="problem">Somebody else has stored version <code>${stored.version.slice(0, 7)}</code>
      ${' '}meanwhile. The difference is to that one.</p>`}
    ${stored && !changes.length && html`<p>Nothing differs from the stored version.</p>`}
    ${!isReading && stored && changes.map((change) => html`<${FileBox} key=${change.path} ...${change} />`)}
    ${stored && html`<p class="muted">Runs that begin later use the new version. A field that you left out gets its
      default.</p>`}
    <div class="acts"><${Act} kind="primary" name="check" scope="admin" call=${call} disabled=${isReading}
      onDone=${onDone} onProblem=${onProblem}>Store<//><${Requests} calls=${{ Store: call }} /></div><//>`;
}
