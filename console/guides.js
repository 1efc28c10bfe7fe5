// @ts-check
// What scripts add to the guides: the search, the buttons that copy code, and the theme of the console. Without
// scripts, all else works.

import { search } from './logic/search.js';

/** @import { Guide } from './logic/search.js' */

const MOST = 30;
const SCROLLERS = document.querySelectorAll('.scrolls, pre.code');

/** What a screen reader reads aloud, politely. */
const said = make('div', { className: 'quiet', role: 'status' });

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {object} properties @param {(Node | string)[]} children @returns {HTMLElementTagNameMap[T]}
 */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
}

/** Adds a button to a box of code. @param {Element} box */
function addCopy(box) {
  const code = /** @type {HTMLElement} */ (box.querySelector('pre'));
  const button = make('button', { type: 'button', textContent: 'Copy' });
  button.addEventListener('click', async () => {
    await copy(code);
    button.textContent = said.textContent = 'Copied';
    setTimeout(() => {
      button.textContent = 'Copy';
      said.textContent = '';
    }, 1500);
  });
  box.append(button);
}

/** Copies a text. The clipboard exists only on https and on loopback. @param {HTMLElement} code */
async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent ?? '');
  getSelection()?.selectAllChildren(code);
  document.execCommand('copy');
}

/** Takes boxes that show everything out of the order of the keyboard. */
function skipWhole() {
  for (const box of SCROLLERS) {
    if (box.scrollWidth > box.clientWidth) box.setAttribute('tabindex', '0');
    else box.removeAttribute('tabindex');
  }
}

/** @param {number} count */
function resultsOf(count) {
  if (count === MOST) return `First ${MOST} results`;
  return `${count || 'No'} result${count === 1 ? '' : 's'}`;
}

/** Makes the search: a field, and the titles and headings that match it. */
function makeSearch() {
  /** @type {Promise<Guide[]> | undefined} */
  let guides;
  const field = make('input', { type: 'search', placeholder: 'Search titles and headings', autocomplete: 'off' });
  field.setAttribute('aria-label', 'Search the guides');
  field.setAttribute('aria-keyshortcuts', 'Control+K Meta+K');
  const note = make('p', { role: 'status' });
  const list = make('ul');
  const results = make('div', { className: 'results', hidden: true }, note, list);
  const shortcut = make('kbd', { textContent: 'Ctrl K' });
  const form = make('form', { className: 'find', role: 'search' }, field, shortcut, results);

  const links = () => [...list.querySelectorAll('a')];
  const read = () => (guides ??= fetch('/docs/assets/search.json')
    .then((response) => (response.ok ? response.json() : Promise.reject(response))));
  const show = async () => {
    const query = field.value.trim();
    results.hidden = !query;
    const [all, problem] = await read().then((value) => [value, null], () => [[], 'The search can\'t be read.']);
    if (problem) guides = undefined;
    if (query !== field.value.trim()) return;
    const hits = search(all, query, MOST);
    list.replaceChildren(...hits.map(({ title, guide, href }) =>
      make('li', {}, make('a', { href }, title, make('small', { textContent: guide })))));
    note.textContent = problem ?? resultsOf(hits.length);
  };
  const close = () => {
    results.hidden = true;
  };
  const move = (by) => {
    const stops = [field, ...links()];
    const to = stops.findIndex((stop) => stop === document.activeElement) + by;
    stops[Math.max(0, Math.min(stops.length - 1, to))].focus();
  };
  field.addEventListener('input', show);
  field.addEventListener('focus', () => field.value.trim() && void show());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    links()[0]?.click();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Escape' && !results.hidden) {
      field.focus();
      close();
    } else return;
    event.preventDefault();
  });
  form.addEventListener('focusout', ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && form.contains(relatedTarget))) close();
  });
  // Safari focuses no clicked link, so the field would lose the focus, and the list would close before the click.
  results.addEventListener('mousedown', (event) => event.preventDefault());
  list.addEventListener('click', close);
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
  return form;
}

document.querySelector('.top .grow')?.after(makeSearch());
document.querySelector('main')?.append(said);
document.querySelectorAll('.codebox').forEach(addCopy);
skipWhole();
addEventListener('resize', skipWhole);
document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest' });
// A link to a heading closes the popover that it is in.
addEventListener('hashchange', () => {
  for (const popover of document.querySelectorAll(':popover-open')) /** @type {HTMLElement} */ (popover).hidePopover();
});
// Last, since a browser may refuse its storage with an error.
const theme = localStorage.getItem('console.theme');
if (theme) document.documentElement.dataset.theme = theme;
