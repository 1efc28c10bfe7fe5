// @ts-check
// The cards of open calls: approve, edit, deny with a reason, or answer for the caller. The answers start a new run.

import { html } from 'htm/preact';
import { useRef, useState } from 'preact/hooks';
import { post, Problem, send } from '../api.js';
import { lacks } from '../identity.js';
import { letters, useKeys } from '../keys.js';
import { moment, short, span } from '../logic/format.js';
import { parseJson, plain } from '../logic/text.js';
import { icon } from './icons.js';
import { Arguments } from './payload.js';
import { Act, Button, focusNew, ProblemBox, Requests, useClock, usePost } from './ui.js';

/** @import { Call } from '../api.js' */
/** @import { OpenCall } from '../types.d.ts' */
/** @typedef {{ decision?: string, remember?: boolean, reason?: string, arguments?: any, result?: any }} Decision */
/** @typedef {{ run_id: string, session_id: string | null }} Waiting */

/**
 * Makes the request that answers open calls.
 * @param {Waiting} run @param {[OpenCall, Decision?][]} answers @param {(path: string, body: unknown) => Call} make
 */
function answer(run, answers, make = post) {
  const filled = answers.map(([{ call_id, arguments_hash }, decision]) => ({ call_id, arguments_hash, ...decision }));
  return make(`/v1/runs/${run.run_id}/answers`, { mode: 'async', answers: filled });
}

/**
 * All open calls of a run. One call is answered at once; several are answered together.
 * @param {{ run: Waiting, calls: OpenCall[], onAnswered: (run) => void, before?: string, aside?: any }} properties
 */
export function Answers({ run, calls, onAnswered, before, aside }) {
  const now = useClock();
  const [decisions, setDecisions] = useState(/** @type {Record<string, Decision>} */ ({}));
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const [isBusy, setBusy] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const focus = () => box.current?.querySelector('section')?.focus();
  useKeys([{ keys: 'a', does: 'Go to the open call, and there: approve', run: focus }]);
  const [postOne, postAll] = [usePost(), usePost()];
  const open = calls.filter((call) => Date.parse(call.expires_at) > now);
  const decide = async (call, decision) => {
    if (!decision) return setProblem(new Problem(0, { detail: 'This is not valid JSON.' }));
    if (open.length > 1) return setDecisions({ ...decisions, [call.call_id]: decision });
    setBusy(true);
    return send(answer(run, [[call, decision]], postOne)).then(onAnswered, setProblem).finally(() => setBusy(false));
  };
  const all = answer(run, open.map((call) => [call, decisions[call.call_id]]), postAll);
  const count = open.filter((call) => decisions[call.call_id]).length;
  const winner = problem instanceof Problem && problem.status === 409 ? problem.document.run_id : null;
  const note = open.length > 1 ? '' : aside ?? `The answer starts a new run from ${short(run.session_id ?? '')}.`;
  return html`<div class="asks" ref=${box}>
    ${calls.map((call) => html`<${Ask} key=${call.call_id} run=${run} call=${call} before=${before} note=${note}
      now=${now} isBusy=${isBusy} decision=${decisions[call.call_id]}
      onDecide=${(decision) => decide(call, decision)} />`)}
    ${open.length > 1 && html`<div class="acts">
      <${Act} kind="primary" name="check" disabled=${count < open.length} call=${all} onDone=${onAnswered}
        onProblem=${setProblem}>Send ${count} of ${open.length} answers<//>
      <${Requests} calls=${{ 'Answer all': all }} /></div>`}
    ${!winner && html`<${ProblemBox} problem=${problem} />`}
    ${winner && html`<p class="problem" role="alert">Somebody else has answered.
      <a class="link" href=${`/console/runs/${winner}`}>Open that run</a></p>`}
  </div>`;
}

/** Clicks the button of a pressed letter. Letters act only in the card, since an approval can't be undone. */
function onKeyDown(event) {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  if (!letters.value || hasModifier || event.target.closest('textarea, dialog')) return;
  const button = /^[aex]$/.test(event.key) && event.currentTarget.querySelector(`[data-keys="${event.key}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
}

/**
 * @param {{ run: Waiting, call: OpenCall, before?: string, note: any, now: number, isBusy: boolean,
 *   decision?: Decision, onDecide: (decision: Decision | null) => void }} properties
 */
function Ask({ run, call, before, note, now, isBusy, decision, onDecide }) {
  const isApproval = call.kind === 'approval';
  const [form, setForm] = useState(isApproval ? '' : 'result');
  const left = Date.parse(call.expires_at) - now;
  const isRefused = lacks('runs:write');
  const decide = (made) => {
    onDecide(made);
    if (made && isApproval) setForm('');
  };
  const properties = { call, form, decision, disabled: isBusy || isRefused, onForm: setForm, onDecide: decide };
  const requests = {
    Approve: answer(run, [[call, { decision: 'approve' }]]),
    Deny: answer(run, [[call, { decision: 'deny', reason: '…' }]]),
  };
  const needs = isApproval ? !before && ' needs your approval' : ' needs your answer';
  return html`<section class="ask" tabindex="-1" aria-label=${`${call.tool} needs an answer`} onKeyDown=${onKeyDown}>
    <header>${icon('shield')}<h2>${before}<code>${plain(call.tool)}</code>${needs}</h2>
      <small title=${moment(call.expires_at)}>${left > 0 ? `expires in ${span(left)}` : 'expired'}</small></header>
    ${call.reason && html`<p class="why">${plain(call.reason)}</p>`}
    <div class="what"><${Arguments} tool=${call.tool} args=${call.arguments} text="" /></div>
    ${left > 0 && html`<${form ? Form : Choices} key=${form} ...${properties}><${Requests} calls=${requests} />
      <span class="grow"></span>
      <span class="muted">${isRefused ? 'Your key lacks the scope runs:write, which answers need.' : note}</span><//>`}
  </section>`;
}

/** @typedef {{ call: OpenCall, form: string, decision?: Decision, disabled: boolean, onForm: (form: string) => void,
 *   onDecide: (decision: Decision | null) => void, children?: any }} AskProperties */

/** The choices of an approval. @param {AskProperties} properties */
function Choices({ call, decision, disabled, onForm, onDecide, children }) {
  const isChosen = (name, remember) => decision?.decision === name && !!decision?.remember === remember;
  const button = (name, words, look, onClick, remember = false) =>
    html`<${Button} ...${look} isChosen=${isChosen(name, remember)} disabled=${disabled}
      onClick=${onClick}>${words}<//>`;
  const approve = (remember) => () => onDecide({ decision: 'approve', ...(remember && { remember }) });
  return html`<div class="acts">
    ${button('approve', 'Approve', { kind: 'primary', name: 'check', keys: 'a' }, approve(false))}
    ${call.may_remember && button('approve', 'Approve later ones, too', { name: 'check' }, approve(true), true)}
    ${button('edit', 'Edit', { name: 'pen', keys: 'e' }, () => onForm('edit'))}
    ${button('deny', 'Deny with a reason', { kind: 'danger', name: 'x', keys: 'x' }, () => onForm('deny'))}
    ${children}</div>`;
}

/** The field of an edit, of a reason or of a result. @param {AskProperties} properties */
function Form({ call, form, decision, disabled, onForm, onDecide, children }) {
  const args = /** @type {any} */ (call.arguments);
  const isShell = call.tool === 'shell' && typeof args?.command === 'string';
  const [text, setText] = useState(form !== 'edit' ? '' : isShell ? args.command : JSON.stringify(args, null, 2));
  /** Makes the decision; null if the text is not JSON. @returns {Decision | null} */
  const made = () => {
    if (form === 'deny') return { decision: 'deny', ...(text.trim() && { reason: text.trim() }) };
    if (form === 'edit' && isShell) return { decision: 'edit', arguments: { ...args, command: text } };
    const value = form === 'result' && !call.response_schema ? text : parseJson(text);
    if (value === null && text.trim() !== 'null') return null;
    return form === 'edit' ? { decision: 'edit', arguments: value } : { result: value };
  };
  const [label, act, look] = {
    edit: [isShell ? 'The command to run instead' : 'The arguments to use, as JSON', 'Run it as edited', 'primary'],
    deny: ['Reason: the model reads it', 'Deny', 'danger'],
    result: [call.response_schema ? 'The answer, as JSON' : 'The answer', 'Answer', 'primary'],
  }[form];
  const home = call.kind === 'approval' ? '' : 'result';
  return html`<label class="field">${label}<textarea rows=${form === 'edit' ? 6 : 2} value=${text}
      maxlength=${form === 'deny' ? 4000 : null} ref=${form === 'result' ? null : focusNew}
      onInput=${(event) => setText(event.target.value)}></textarea></label>
    <div class="acts"><${Button} kind=${look} name=${form === 'deny' ? 'x' : 'check'} disabled=${disabled}
        isChosen=${form === 'result' && 'result' in (decision ?? {})} onClick=${() => onDecide(made())}>${act}<//>
      ${form === 'result' ? html`<${Button} disabled=${disabled} onClick=${() => onForm('deny')}>Deny with a reason<//>`
        : html`<${Button} onClick=${() => onForm(home)}>Back<//>`}${children}</div>`;
}
