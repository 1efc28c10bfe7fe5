// @ts-check
// The cards of open calls: approve, edit, deny with a reason, or answer for the caller. The answers start a new run.

import { html } from 'htm/preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { lacks } from '../identity.js';
import { letters, useKeys } from '../keys.js';
import { moment, short, span } from '../logic/format.js';
import { exact, exactJson, parseJson, plain } from '../logic/text.js';
import { icon } from './icons.js';
import { Arguments, JsonValue } from './payload.js';
import { Act, Button, focusNew, ProblemBox, Requests, sendOnce, useClock, usePost, useRead } from './ui.js';

/** @import { Call } from '../api.js' */
/** @import { Approval, OpenCall } from '../types.d.ts' */
/** @typedef {{ decision?: string, remember?: boolean, reason?: string, arguments?: any, result?: any }} Decision */
/** @typedef {{ run_id: string, session_id: string | null, agent: string }} Waiting */
/** @typedef {{ run: Approval, next?: any, problem?: any }} Result */

/** What an agent wants from a person. @param {OpenCall} call */
export const asks = ({ kind }) => (kind === 'approval' ? 'wants to run' : 'needs your answer to');

/**
 * Makes the request that answers open calls.
 * @param {Waiting} run @param {[OpenCall, Decision?][]} answers @param {(path: string, body: unknown) => Call} make
 */
function answer(run, answers, make) {
  const filled = answers.map(([{ call_id, arguments_hash }, decision]) => ({ call_id, arguments_hash, ...decision }));
  return make(`/v1/runs/${run.run_id}/answers`, { mode: 'async', answers: filled });
}

/**
 * All open calls of a run. One call is answered at once; several are answered together.
 * @param {{ run: Waiting, calls: OpenCall[], onAnswered: (run) => void, hasAgent?: boolean, aside?: any,
 *   isGone?: boolean }} properties Calls that are gone can't be answered, but a text that was typed stays.
 */
export function Answers({ run, calls, onAnswered, hasAgent, aside, isGone }) {
  const now = useClock();
  const [decisions, setDecisions] = useState(/** @type {Record<string, Decision>} */ ({}));
  const [problem, setProblem] = useState(/** @type {unknown} */ (null));
  const [isBusy, setBusy] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const focus = () => box.current?.querySelector('section')?.focus();
  const acts = { a: 'approve', e: 'edit the arguments', x: 'deny' };
  useKeys(Object.entries(acts).map(([keys, act]) =>
    ({ keys, does: `Go to the open call, and there: ${act}`, run: focus })));
  const [postOne, postAll] = [usePost(), usePost()];
  const open = calls.filter((call) => Date.parse(call.expires_at) > now);
  /** Returns whether the form may close: it keeps its text until an answer is accepted. */
  const decide = async (call, decision) => {
    if (open.length > 1) {
      setDecisions({ ...decisions, [call.call_id]: decision });
      return true;
    }
    setBusy(true);
    return sendOnce(answer(run, [[call, decision]], postOne)).then(onAnswered, setProblem)
      .finally(() => setBusy(false));
  };
  const all = answer(run, open.map((call) => [call, decisions[call.call_id]]), postAll);
  const count = open.filter((call) => decisions[call.call_id]).length;
  const note = open.length > 1 ? '' : aside ?? `The answer starts a new run from ${short(run.session_id ?? '')}.`;
  return html`<div class="asks" ref=${box}>
    ${calls.map((call) => html`<${Ask} key=${call.call_id} run=${run} call=${call} hasAgent=${hasAgent} note=${note}
      now=${now} isBusy=${isBusy || isGone} decision=${decisions[call.call_id]}
      onDecide=${(decision) => decide(call, decision)} />`)}
    ${open.length > 1 && html`<div class="acts">
      <${Act} kind="primary" name="check" disabled=${isGone || count < open.length} call=${all} onDone=${onAnswered}
        onProblem=${setProblem}>Send ${count} of ${open.length} answers<//>
      <${Requests} calls=${{ 'Answer all': all }} /></div>`}
    <${Refusal} problem=${problem} /></div>`;
}

/** Returns the run that has answered before, if a problem says so. @param {any} problem */
const winnerOf = (problem) =>
  (['base_session_conflict', 'run_not_waiting'].includes(problem?.code) ? problem.document.run_id : null);

/** @param {number} left In milliseconds. */
const deadline = (left) => (left > 0 ? `expires in ${span(left)}` : 'expired');

/** Why answers were refused. @param {{ problem: any }} properties */
function Refusal({ problem }) {
  const winner = winnerOf(problem);
  if (!winner) return html`<${ProblemBox} problem=${problem} />`;
  return html`<p class="problem" role="alert">Somebody else has answered.
    ${' '}<a class="link" href=${`/console/runs/${winner}`}>Open that run</a></p>`;
}

/**
 * Calls of the same tool, one of each run, that a person answers together. Each has a request and a result of its own.
 * The results stay until they are closed, but their runs may be answered anew.
 * @param {{ runs: Approval[], onEnd: (run: Approval) => void, onClose: () => void }} properties
 */
export function Several({ runs, onEnd, onClose }) {
  const now = useClock();
  const [ended, setEnded] = useState(/** @type {Result[]} */ ([]));
  const [problems, setProblems] = useState(/** @type {Record<string, any>} */ ({}));
  const [isBusy, setBusy] = useState(false);
  const [form, setForm] = useState('');
  const [make, show] = [usePost(), usePost()];
  const callOf = (run) => run.required_action.calls[0];
  const leftOf = (run) => Date.parse(run.expires_at) - now;
  const open = runs.filter((run) => leftOf(run) > 0);
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const current = useRef(runs);
  useLayoutEffect(() => {
    current.current = runs;
    return () => void (current.current = []);
  });
  const decide = async (decision) => {
    section.current?.focus();
    setBusy(true);
    let hasFailed = false;
    for (const run of open) {
      // The reader may have unmarked it, or have left the page.
      if (!current.current.some(({ run_id: id }) => id === run.run_id)) continue;
      const call = answer(run, [[callOf(run), decision]], make);
      const result = await sendOnce(call).then((next) => ({ run, next }), (problem) => ({ run, problem }));
      const isEnd = 'next' in result || winnerOf(result.problem);
      hasFailed ||= !isEnd;
      if (isEnd) setEnded((old) => [...old, result]);
      else setProblems((old) => ({ ...old, [run.run_id]: result.problem }));
      if (isEnd) onEnd(run);
    }
    if (!hasFailed) setForm('');
    setBusy(false);
  };
  /** @type {Result[]} */
  const rows = [...ended, ...runs.map((run) => ({ run, problem: problems[run.run_id] }))];
  if (!rows.length) return null;
  const first = runs[0] ?? rows[0].run;
  /** @param {Result} result */
  const card = ({ run, next, problem }, key) => {
    const { tool, arguments: args, reason } = callOf(run);
    const isOpen = !next && !winnerOf(problem);
    return html`<section key=${key} class="what" aria-label=${`The call of ${short(run.run_id)}`}>
      <h3><a class="link" href=${`/console/runs/${run.run_id}`}>${plain(run.thread ?? short(run.run_id))}</a>
        ${isOpen && html`<small title=${moment(run.expires_at)}> ${deadline(leftOf(run))}</small>`}</h3>
      ${reason && html`<p class="why">${plain(reason)}</p>`}<${Arguments} tool=${tool} args=${args} text="" />
      <div role="status">${next && html`<p class="ok">Answered. <a class="link"
        href=${`/console/runs/${next.run_id}`}>Open the run that goes on</a></p>`}</div>
      <${Refusal} problem=${problem} /></section>`;
  };
  const approve = { decision: 'approve' };
  const calls = Object.fromEntries(open.map((run) =>
    [`Approve ${short(run.run_id)}`, answer(run, [[callOf(run), approve]], show)]));
  const disabled = isBusy || lacks('runs:write');
  const close = html`<${Button} onClick=${() => (setEnded([]), setProblems({}), setForm(''), onClose())}
    disabled=${isBusy}>${open.length ? 'Clear' : 'Done'}<//>`;
  const acts = html`<${Requests} calls=${calls} /><span class="grow"></span>
    <span class="muted">${lacks('runs:write') && 'Your key lacks the scope runs:write.'}</span>${close}`;
  const properties = { call: callOf(first), form, disabled, of: open.length, onForm: setForm, onDecide: decide };
  return html`<section class="ask several" tabindex="-1" aria-label="Calls to answer together"
      ref=${section}><header>${icon('shield')}
      <h2>${first.agent} wants to run <code>${plain(callOf(first).tool)}</code></h2></header>
    ${rows.map(card)}
    ${!open.length ? html`<div class="acts">${close}</div>`
      : form ? html`<${Form} ...${properties}>${acts}<//>` : html`<div class="acts">
      <${Button} kind="primary" name="check" disabled=${disabled}
        onClick=${() => decide(approve)}>Approve ${open.length}<//>
      <${Button} kind="danger" name="x" disabled=${disabled}
        onClick=${() => setForm('deny')}>Deny ${open.length} with a reason<//>${acts}</div>`}</section>`;
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
 * @param {{ run: Waiting, call: OpenCall, hasAgent?: boolean, note: any, now: number, isBusy: boolean,
 *   decision?: Decision, onDecide: (decision: Decision) => Promise<unknown> }} properties
 */
function Ask({ run, call, hasAgent, note, now, isBusy, decision, onDecide }) {
  const isApproval = call.kind === 'approval';
  // Only the definition of a client tool says what it is for.
  const agent = useRead(call.kind === 'client' ? `/v1/agents/${encodeURIComponent(run.agent)}` : null).value;
  const about = agent?.client_tools?.find(({ name }) => name === call.tool)?.description;
  const [form, setForm] = useState(isApproval ? '' : 'result');
  const left = Date.parse(call.expires_at) - now;
  const isRefused = lacks('runs:write');
  const section = useRef(/** @type {HTMLElement | null} */ (null));
  const decide = async (made) => {
    section.current?.focus();
    if (await onDecide(made) && isApproval) setForm('');
  };
  const properties = { call, form, decision, disabled: isBusy || isRefused, onForm: setForm, onDecide: decide };
  const requests = {
    Approve: answer(run, [[call, { decision: 'approve' }]], usePost()),
    Deny: answer(run, [[call, { decision: 'deny', reason: '…' }]], usePost()),
  };
  const tool = html`<code>${plain(call.tool)}</code>`;
  const title = hasAgent ? html`${run.agent} ${asks(call)} ${tool}`
    : html`${tool} needs your ${isApproval ? 'approval' : 'answer'}`;
  return html`<section class="ask" tabindex="-1" ref=${section} onKeyDown=${onKeyDown}
      aria-label=${`${call.tool} needs an answer`}>
    <header>${icon('shield')}<h2>${title}</h2>
      <small title=${moment(call.expires_at)}>${deadline(left)}</small></header>
    ${about && html`<p class="why">${plain(about)}</p>`}
    ${call.reason && html`<p class="why">${plain(call.reason)}</p>`}
    <div class="what"><${Arguments} tool=${call.tool} args=${call.arguments} text="" /></div>
    ${left > 0 && html`<${form ? Form : Choices} key=${form} ...${properties}><${Requests} calls=${requests} />
      <span class="grow"></span>
      <span class="muted">${isRefused ? 'Your key lacks the scope runs:write, which answers need.' : note}</span><//>`}
  </section>`;
}

/** @typedef {{ call: OpenCall, form: string, decision?: Decision, disabled: boolean, onForm: (form: string) => void,
 *   onDecide: (decision: Decision) => void, of?: number, children?: any }} AskProperties */

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

/** The field of an edit, of a reason for `of` calls, or of a result. @param {AskProperties} properties */
function Form({ call, form, decision, disabled, onForm, onDecide, of, children }) {
  const args = /** @type {any} */ (call.arguments);
  // A field shows no marks, but JSON has escapes.
  const isShell = call.tool === 'shell' && typeof args?.command === 'string' && exact(args.command) === args.command;
  const [text, setText] = useState(form !== 'edit' ? '' : isShell ? args.command : exactJson(args));
  const [isWrong, setWrong] = useState(false);
  // Any result fits the schema `true`: a text, too.
  const schema = form === 'result' && call.response_schema !== true && call.response_schema;
  /** Makes the decision; null if the text is not JSON. @returns {Decision | null} */
  const made = () => {
    if (form === 'deny') return { decision: 'deny', ...(text.trim() && { reason: text.trim() }) };
    if (form === 'edit' && isShell) return { decision: 'edit', arguments: { ...args, command: text } };
    const value = form === 'result' && !schema ? text : parseJson(text);
    if (value === null && text.trim() !== 'null') return null;
    return form === 'edit' ? { decision: 'edit', arguments: value } : { result: value };
  };
  const decide = () => {
    const decision = made();
    setWrong(!decision);
    if (decision) onDecide(decision);
  };
  const onInput = (event) => {
    setText(event.target.value);
    setWrong(false);
  };
  const [label, act, look] = {
    edit: [isShell ? 'The command to run instead' : 'The arguments to use, as JSON', 'Run it as edited', 'primary'],
    deny: ['Reason: the model reads it', 'Deny', 'danger'],
    result: [schema ? 'The answer, as JSON' : 'The answer', 'Answer', 'primary'],
  }[form];
  const home = call.kind === 'approval' ? '' : 'result';
  return html`${schema && html`<details class="field"><summary>What the answer must fit</summary>
      <${JsonValue} value=${schema} /></details>`}
    <label class="field">${label}<textarea rows=${form === 'edit' ? 6 : 2} value=${text} aria-invalid=${isWrong}
      maxlength=${form === 'deny' ? 4000 : null} ref=${form === 'result' ? null : focusNew}
      onInput=${onInput}></textarea>
      ${isWrong && html`<span class="bad" role="alert">This is not valid JSON.</span>`}</label>
    <div class="acts"><${Button} kind=${look} name=${form === 'deny' ? 'x' : 'check'} disabled=${disabled}
        isChosen=${form === 'result' && 'result' in (decision ?? {})} onClick=${decide}>${act} ${of}<//>
      ${form === 'result' ? html`<${Button} disabled=${disabled} onClick=${() => onForm('deny')}>Deny with a reason<//>`
        : html`<${Button} onClick=${() => onForm(home)}>Back<//>`}${children}</div>`;
}
