// @ts-check
// What is around every page: the navigation, the login, the bar of a silent service, the list of keys.

import { html } from 'htm/preact';
import { useErrorBoundary, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import { needsKey, silence } from './api.js';
import { logIn, logOut, me, service } from './identity.js';
import { bindings, letters, setLetters, useKeys } from './keys.js';
import { refusal } from './live.js';
import { span } from './logic/format.js';
import { plain } from './logic/text.js';
import { icon } from './parts/icons.js';
import { openCalls } from './parts/open_calls.js';
import { Page, said } from './parts/page.js';
import { Dialog, focusNew, ProblemBox, useClock } from './parts/ui.js';
import { address, go } from './router.js';
import { routeOf, SECTIONS } from './routes.js';

const showsKeys = signal(false);
const THEMES = { auto: 'System', light: 'Light', dark: 'Dark' };
const theme = signal(localStorage.getItem('console.theme') ?? 'auto');

/** @param {string} name */
export function setTheme(name = theme.value) {
  theme.value = name;
  document.documentElement.dataset.theme = name;
  localStorage.setItem('console.theme', name);
}

export function Shell() {
  const path = address.value.path;
  const route = routeOf(path);
  useKeys([
    { keys: '?', does: 'Show the keys', run: () => (showsKeys.value = true) },
    ...SECTIONS.map(({ key, name, path: to }) => ({ keys: `g ${key}`, does: `Go to ${name}`, run: () => go(to) })),
  ]);
  if (needsKey.value) return html`<${Login} />`;
  return html`<a class="skip" href="#main">Skip to content</a>
    <${Navigation} current=${route?.section} />
    <main id="main" tabindex="-1" class=${silence.value ? 'stale' : ''}>
      <${SilenceBar} /><${RefusalBar} />
      <${Guarded} key=${path}>${route ? html`<${route.page} ...${route.parameters} />` : html`<${Lost} />`}<//>
    </main>
    <div class="quiet" role="status" aria-live="polite">${said.value}</div>
    ${showsKeys.value && html`<${KeyList} />`}`;
}

/** @param {{ current: string | undefined }} properties */
function Navigation({ current }) {
  const who = me.value;
  const what = who?.key ? who.key.label || who.scopes.join(' · ') : 'no key';
  const link = ({ id, name, path, icon: image }) => html`<li key=${id}>
    <a href=${path} title=${name} aria-current=${current === id ? 'page' : null}>
      ${icon(image)}<span class="name">${name}</span>
      ${id === 'inbox' && openCalls.value > 0
        && html`<span class="count">${openCalls.value}<span class="quiet"> open</span></span>`}</a></li>`;
  return html`<nav class="side" aria-label="Console">
    <a class="brand" href="/console"><span class="mark">${icon('mark')}</span>
      <span class="name">agent-runtime</span></a>
    ${who && html`<div class="tenant">
      <span class="who" aria-hidden="true">${who.tenant.slice(0, 1).toUpperCase()}</span>
      <span class="name">${who.tenant}<small>${what}</small></span>
      ${who.key && html`<button class="ghost" type="button" title="Log out" aria-label="Log out"
        onClick=${logOut}>${icon('out')}</button>`}</div>`}
    ${who && !who.key && html`<p class="nokeys">${icon('shield')}
      <span>No keys: everybody on this machine may use this.</span></p>`}
    <ul>${SECTIONS.map(link)}</ul>
    <div class="foot"><span class="dot ${silence.value ? 'bad' : 'ok'}"></span>
      <span class="name">${silence.value ? 'no answer' : service.value?.version ?? 'ready'}</span>
      <span class="grow"></span>
      <button class="ghost" type="button" title="Keys and theme" aria-label="Keys and theme ?"
        onClick=${() => (showsKeys.value = true)}><kbd>?</kbd></button></div>
  </nav>`;
}

/** Reports a service that is silent, and how old the data on the page are. */
function SilenceBar() {
  const now = useClock(1000);
  if (!silence.value) return null;
  const { since, at } = silence.value;
  const clock = new Date(at).toLocaleTimeString('en', { hour12: false });
  return html`<p class="silence" role="alert">No answer from the service for ${span(now - since)}.
    What you see is from ${clock}, ${span(now - at)} ago.</p>`;
}

/** Reports that the page does not change by itself, and why. */
const RefusalBar = () => html`<div role="status">${refusal.value && !silence.value
  && html`<p class="waits">Not live: ${plain(refusal.value)}</p>`}</div>`;

/** Shows the error of a page in its stead, so that the navigation still works. @param {{ children? }} properties */
function Guarded({ children }) {
  const [error] = useErrorBoundary((problem) => console.error(problem));
  if (!error) return children;
  return html`<${Page} title="This page has failed"><div class="body">
    <p class="problem" role="alert">${String(error)}</p></div><//>`;
}

const Lost = () => html`<${Page} title="There is no such page"><div class="body">
  <p>Go to the <a class="link" href="/console/inbox">inbox</a>.</p></div><//>`;

function Login() {
  const [problem, setProblem] = useState(null);
  const submit = (event) => {
    event.preventDefault();
    logIn(String(new FormData(event.currentTarget).get('key')).trim()).catch(setProblem);
  };
  return html`<main id="main" class="login"><form onSubmit=${submit}>
    <h1><span class="mark">${icon('mark')}</span>agent-runtime</h1>
    <label>API key
      <input name="key" type="password" placeholder="ark_…" autocomplete="off" required ref=${focusNew} /></label>
    <button class="primary" type="submit">Log in</button>
    <${ProblemBox} problem=${problem} />
    <p class="muted">A cookie holds the session for 12 hours. The browser does not store the key.</p></form></main>`;
}

function KeyList() {
  const shown = [...new Map(bindings.value.map((one) => [one.keys, one])).values()];
  const caps = (keys) => keys.split(' ').map((key) => html`<kbd>${key}</kbd>`);
  const themes = Object.entries(THEMES).map(([id, name]) => html`<button key=${id} type="button"
    aria-pressed=${theme.value === id} onClick=${() => setTheme(id)}>${name}</button>`);
  return html`<${Dialog} title="Keys and theme" onClose=${() => (showsKeys.value = false)}>
    <dl class="keys">${shown.map(({ keys, does }) => html`<div key=${keys}>
      <dt>${caps(keys)}</dt><dd>${does}</dd></div>`)}</dl>
    <label class="check"><input type="checkbox" checked=${letters.value}
      onChange=${({ target }) => setLetters(target.checked)} />Single letters act</label>
    <fieldset class="seg"><legend>Theme</legend>${themes}</fieldset><//>`;
}
