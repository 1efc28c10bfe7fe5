// @ts-check
// What all pages are made of: buttons that show their request, problems, ages, and reads that stay current.

import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { comebacks, curl, get, newId, post, Problem, send } from '../api.js';
import { authorization, lacks } from '../identity.js';
import { span } from '../logic/format.js';
import { plain } from '../logic/text.js';
import { icon } from './icons.js';

/** @import { Call } from '../api.js' */

/**
 * Reads a path, and again after silence or with a new version. The last value stays while a newer one is read.
 * @param {string | null} path Null reads nothing. @param {unknown} [version] @param {typeof get} [read]
 */
export function useRead(path, version, read = get) {
  const [state, setState] = useState(
    { path, value: /** @type {any} */ (null), problem: /** @type {any} */ (null), isReading: true });
  const back = comebacks.value;
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    read(path, stop.signal).then(
      (value) => setState({ path, value, problem: null, isReading: false }),
      (problem) => stop.signal.aborted || setState((old) => ({ ...old, path, problem, isReading: false })),
    );
    return () => stop.abort();
  }, [path, version, back]);
  return state.path === path ? state : { value: null, problem: null, isReading: path !== null };
}

/**
 * Makes requests that change something. A request with the same body as the last one to its path keeps its key: if the
 * response was lost, a second press does not act twice.
 */
export function usePost() {
  const last = useRef(/** @type {Map<string, { text: string, call: Call }>} */ (new Map()));
  /** @param {string} path @param {unknown} [body] @returns {Call} */
  return (path, body) => {
    const text = JSON.stringify([body]);
    const known = last.current.get(path);
    if (known?.text === text) return known.call;
    const call = post(path, body);
    last.current.set(path, { text, call });
    return call;
  };
}

/** Sends a request, and gives it another key after a success: the next press acts once more. @param {Call} call */
export async function sendOnce(call) {
  const result = await send(call);
  if (call.key) call.key = newId();
  return result;
}

/** Counts time, so that ages stay right. */
export function useClock(ms = 15_000) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return now;
}

/** The age of a time. @param {{ of: string }} properties */
export function Age({ of }) {
  const at = Date.parse(of);
  // Seconds count by the second.
  const now = useClock(Date.now() - at < 60_000 ? 1000 : undefined);
  return html`<time datetime=${of} title=${new Date(of).toLocaleString('en')}>${span(now - at)}</time>`;
}

/** The status of a run. @param {{ of: string }} properties */
export const Status = ({ of }) => html`<span class="status ${of}">${of}</span>`;

/** A problem in words, with its guide and the id of the request. @param {{ problem: any }} properties */
export function ProblemBox({ problem }) {
  if (!problem) return null;
  const isAnswer = problem instanceof Problem;
  const text = isAnswer ? problem.message : 'The service does not respond.';
  return html`<div class="problem" role="alert"><p>${plain(text)}</p>
    ${isAnswer && html`<p class="muted">${problem.code && html`<${Guide} code=${problem.code} />`}
      ${problem.requestId && html` · request <code>${problem.requestId}</code>`}</p>`}</div>`;
}

/** A link to the section of the guide that explains a code. @param {{ code: string, section?: string }} properties */
export const Guide = ({ code, section = code }) =>
  html`<a class="link" href=${`/docs/problems#${encodeURIComponent(section)}`}>What ${plain(code)} means</a>`;

/** Copies a text. The clipboard exists only on https and on loopback. @param {string} text */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = Object.assign(document.createElement('textarea'), { value: text });
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** @param {{ text: string, label?: string }} properties */
export function CopyButton({ text, label = 'Copy' }) {
  const [isDone, setDone] = useState(false);
  const onClick = async () => {
    await copy(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<button class="ghost" type="button" title=${label} aria-label=${label} onClick=${onClick}>
    ${icon(isDone ? 'check' : 'copy')}</button>`;
}

/**
 * A button with an icon and its key.
 * @param {{ name?: string, keys?: string, kind?: string, title?: string, isChosen?: boolean, disabled?: boolean,
 *   onClick: () => void, children?: any }} properties
 */
export function Button({ name, keys, kind = '', title, isChosen, disabled, onClick, children }) {
  return html`<button type="button" class="${kind} ${isChosen ? 'chosen' : ''}" title=${title} data-keys=${keys}
    aria-pressed=${isChosen ? true : null} disabled=${disabled} onClick=${onClick}>
    ${name && icon(name)}${children}${keys && html`<kbd aria-hidden="true">${keys}</kbd>`}</button>`;
}

/**
 * A button that sends a request. Its title is the request, or the scope that the key lacks.
 * @param {{ call: Call, onDone?: (result) => void, onProblem?: (problem) => void, scope?: string, help?: string,
 *   disabled?: boolean, name?: string, keys?: string, kind?: string, children?: any }} properties
 */
export function Act({ call, onDone, onProblem, scope = 'runs:write', help, disabled, ...look }) {
  const [isBusy, setBusy] = useState(false);
  const onClick = async () => {
    setBusy(true);
    await sendOnce(call).then(onDone, onProblem).finally(() => setBusy(false));
  };
  const request = [help, `${call.method} ${call.path}`].filter(Boolean).join('\n');
  const title = lacks(scope) ? `Your key lacks the scope ${scope}` : request;
  const isOff = disabled || isBusy || lacks(scope);
  return html`<${Button} ...${look} title=${title} disabled=${isOff} onClick=${onClick} />`;
}

/**
 * A dialog over the page. Ctrl and Enter press its main button, and so does Enter in its only field.
 * @param {{ title: string, onClose: () => void, children?: any }} properties
 */
export function Dialog({ title, onClose, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    dialog.current?.showModal();
    // The browser has focused the first button, which closes it.
    /** @type {HTMLElement | null | undefined} */ (dialog.current?.querySelector('input, textarea'))?.focus();
  }, []);
  const onKeyDown = (event) => {
    const { key, target, currentTarget } = event;
    if (key !== 'Enter' || event.isComposing || target.closest('dialog') !== currentTarget) return;
    const isOnly = target.matches('input') && currentTarget.querySelectorAll('input, textarea, select').length === 1;
    if (!isOnly && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    currentTarget.querySelector('button.primary')?.click();
  };
  return html`<dialog ref=${dialog} aria-label=${title} onClose=${onClose} onKeyDown=${onKeyDown}>
    <header><h2>${title}</h2>
    <button class="ghost" type="button" aria-label="Close"
      onClick=${() => dialog.current?.close()}>${icon('x')}</button></header>
    ${children}</dialog>`;
}

/** A button that shows requests as curl. @param {{ calls: Record<string, Call> }} properties */
export function Requests({ calls }) {
  const [isOpen, setOpen] = useState(false);
  const show = ([name, call]) => {
    const text = curl(call, authorization());
    return html`<section key=${name}><h3>${name}<${CopyButton} text=${text} label="Copy as curl" /></h3>
      <pre class="code" tabindex="0" role="group" aria-label="Request">${text}</pre></section>`;
  };
  return html`<button class="ghost" type="button" title="Show the requests" aria-label="Show the requests"
      onClick=${() => setOpen(true)}>${icon('request')}</button>
    ${isOpen && html`<${Dialog} title="Requests" onClose=${() => setOpen(false)}>
      ${Object.entries(calls).map(show)}<//>`}`;
}

/** Focuses a field when it appears. @param {HTMLElement | null} field */
export const focusNew = (field) => field?.focus({ preventScroll: true });

/** Moves focus to where it was when a part of the page closes. @param {boolean} isOpen */
export function useFocusReturn(isOpen) {
  const before = useRef(/** @type {any} */ (null));
  // An effect after the paint would find the focus already moved.
  useLayoutEffect(() => {
    if (isOpen) before.current = document.activeElement;
    else before.current?.focus();
  }, [isOpen]);
}
