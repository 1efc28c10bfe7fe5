// @ts-check
// The address of the page. Links are plain links, so they open in new tabs, too.

import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';
import { changeQuery } from './logic/urlstate.js';

const read = () => ({ path: location.pathname, search: location.search, query: new URLSearchParams(location.search) });

/** The current address. */
export const address = signal(read());
/** Whether this page is not the first one, so that its heading takes the focus. */
export const hasMoved = signal(false);
/** Whether the page has a text that is lost when it is left. */
let hasText = false;

/** Asks before the page is left, as long as a text on it was changed. @param {boolean} isChanged */
export function useUnsaved(isChanged) {
  useLayoutEffect(() => {
    hasText = isChanged;
    return () => void (hasText = false);
  }, [isChanged]);
}

/** @param {string} path */
const mayGo = (path) =>
  !hasText || path === address.value.path || confirm('Leave the page? What you have changed is not stored.');

function move() {
  const isSamePage = address.value.path === location.pathname;
  hasMoved.value ||= !isSamePage;
  // The link that had the focus belongs to the page before.
  if (!isSamePage && document.activeElement instanceof HTMLElement) document.activeElement.blur();
  address.value = read();
}

/** Goes to an address of the console. @param {string} url */
export function go(url, replace = false) {
  if (!mayGo(new URL(url, location.href).pathname)) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', url);
  move();
}

/** Changes parameters of the current address, without a step in the history. @param {Record<string, any>} changes */
export const setQuery = (changes) => go(location.pathname + changeQuery(location.search, changes), true);

/** Follows links of the console without loading the page again. */
export function startRouter() {
  addEventListener('popstate', () => {
    if (mayGo(location.pathname)) move();
    else history.pushState(null, '', address.value.path + address.value.search);
  });
  addEventListener('beforeunload', (event) => hasText && event.preventDefault());
  addEventListener('click', (event) => {
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    const hasModifier = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
    if (event.defaultPrevented || event.button || hasModifier) return;
    if (!/^\/console(\/|$)/.test(link.pathname) || link.getAttribute('href')?.startsWith('#')) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
