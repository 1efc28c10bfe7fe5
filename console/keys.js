// @ts-check
// The keyboard. Single letters can be turned off, as WCAG 2.1.4 wants it.

import { signal } from '@preact/signals';
import { useLayoutEffect } from 'preact/hooks';

/** @typedef {{ keys: string, does: string, run: (event: KeyboardEvent) => void }} Binding */

const STORED = 'console.letters';
/** Whether keys without a modifier act. */
export const letters = signal(localStorage.getItem(STORED) !== 'off');
/** The bindings of the page and of the shell, for the list of keys. */
export const bindings = signal(/** @type {Binding[]} */ ([]));
/** The first key of a sequence such as `g r`. */
let first = '';

/** @param {boolean} on */
export function setLetters(on) {
  letters.value = on;
  localStorage.setItem(STORED, on ? 'on' : 'off');
}

/** Binds keys as long as a component is shown. @param {Binding[]} own */
export function useKeys(own) {
  // Before the next key, or a quick second key would act on an old row.
  useLayoutEffect(() => {
    bindings.value = [...bindings.peek(), ...own];
    return () => {
      bindings.value = bindings.peek().filter((one) => !own.includes(one));
    };
  });
}

/** What takes a key for itself, wherever the focus is in it. */
const FIELDS = 'input, textarea, select, dialog';
const PRESSED = 'a, button, summary';
const SCROLLED = '[tabindex="0"]:not([role="tree"], [role="listbox"])';
const OWN = { Enter: PRESSED, Space: `${PRESSED}, ${SCROLLED}`, Left: SCROLLED, Right: SCROLLED };

/** Whether an element takes a key for itself. @param {EventTarget | null} target @param {string} key */
const isTaken = (target, key) =>
  target instanceof Element && !!target.closest(OWN[key] ? `${FIELDS}, ${OWN[key]}` : FIELDS);

/** Listens to the keys of the page. */
export function startKeys() {
  addEventListener('keydown', (event) => {
    const key = event.key.replace(/^Arrow/, '').replace(' ', 'Space');
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target, key)) return;
    if (key.length === 1 && !letters.value) return;
    const keys = first ? `${first} ${key}` : key;
    const binding = bindings.value.findLast((one) => one.keys === keys);
    first = !binding && bindings.value.some((one) => one.keys.startsWith(`${keys} `)) ? keys : '';
    if (!binding) return;
    event.preventDefault();
    binding.run(event);
  });
}
