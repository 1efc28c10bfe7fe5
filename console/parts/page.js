// @ts-check
// The frame of every page.

import { html } from 'htm/preact';
import { useEffect } from 'preact/hooks';
import { signal } from '@preact/signals';
import { useKeys } from '../keys.js';
import { hasMoved } from '../router.js';
import { icon } from './icons.js';
import { useFocusReturn } from './ui.js';

/** What a screen reader reads aloud, politely. */
export const said = signal('');

/**
 * A page: a header with breadcrumb, status and at most three actions, the content, and the inspector on the right.
 * Below 1,100 pixels the inspector is a sheet, which `isPaneOpen` shows. In wider windows only `false` hides it.
 * @param {{ title: string, crumbs?: [string, string][], status?, actions?, pane?, paneLabel?: string,
 *   isPaneOpen?: boolean, onClosePane?: () => void, children? }} properties
 */
export function Page({ title, crumbs = [], status, actions, children, ...inspector }) {
  const { pane, paneLabel, isPaneOpen, onClosePane } = inspector;
  useEffect(() => {
    document.title = `${title} · agent-runtime`;
  }, [title]);
  useFocusReturn(!!isPaneOpen);
  useKeys(pane ? [{ keys: 'Escape', does: 'Close the inspector', run: () => onClosePane?.() }] : []);
  useEffect(() => {
    if (hasMoved.value && document.activeElement === document.body) document.querySelector('h1')?.focus();
  }, []);
  const links = crumbs.map(([name, to]) => html`<a key=${to} href=${to}>${name}</a><span aria-hidden="true">/</span>`);
  return html`<div class="page">
    <header class="top"><div class="crumbs">${links}<h1 tabindex="-1">${title}</h1>${status}</div>
      <span class="grow"></span>${actions}</header>
    <div class=${!pane ? 'column' : isPaneOpen === false ? 'columns closed' : 'columns'}>${children}
      ${pane && html`<aside class="pane ${isPaneOpen ? 'open' : ''}" aria-label=${paneLabel} tabindex="-1">
        <button type="button" class="ghost close" aria-label="Close" onClick=${onClosePane}>${icon('x')}</button>
        ${pane}</aside>`}
    </div></div>`;
}
