// @ts-check
// Definitions in JSON: the line of a field, the fields that differ, and the patch from one to another. Pure.

import { editLines } from './diff.js';

/** @import { DiffLine } from '../types.d.ts' */
/** @typedef {{ message: string, pointer: string, line: number }} Fault */

/** Writes a definition for the editor. @param {any} value */
export const write = (value) => JSON.stringify(value, null, 2);

/**
 * Finds the line of the field that a pointer names, or of the nearest one around it, in the text of `write`.
 * @param {any} value @param {{ pointer: string, message: string }} error @returns {Fault}
 */
export function locate(value, { pointer, message }) {
  const mark = '\u0000here\u0000';
  const root = { value: structuredClone(value) };
  let [holder, name] = [/** @type {any} */ (root), 'value'];
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!holder[name] || typeof holder[name] !== 'object' || !Object.hasOwn(holder[name], key)) break;
    [holder, name] = [holder[name], key];
  }
  holder[name] = mark;
  const text = write(root.value);
  return { message, pointer, line: text.slice(0, text.indexOf(write(mark))).split('\n').length };
}

/** Parses a definition. @param {string} text @returns {{ value: any, fault: Fault | null }} */
export function parseDefinition(text) {
  try {
    const value = JSON.parse(text);
    if (value && typeof value === 'object' && !Array.isArray(value)) return { value, fault: null };
    throw new SyntaxError('not an object');
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const at = Number(/position (\d+)/.exec(message)?.[1] ?? text.length);
    return { value: null, fault: { message, pointer: '', line: text.slice(0, at).split('\n').length } };
  }
}

/** The fields that the service adds to a definition. @param {any} agent */
export const definitionOf = ({ version, created_at: createdAt, configured, ...definition }) => definition;

/**
 * The fields of two definitions that differ, as lines.
 * @param {any} before @param {any} after @returns {{ path: string, note: string, lines: DiffLine[] }[]}
 */
export function changedFields(before, after) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const differs = (name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]);
  return names.filter(differs).map((name) => {
    const [left, right] = [before[name], after[name]].map(linesOf);
    const note = left === null ? 'added' : right === null ? 'removed' : 'changed';
    if (left !== null && right !== null) return { path: name, note, lines: editLines(left, right) };
    const kind = left === null ? /** @type {const} */ ('add') : 'del';
    return { path: name, note, lines: (left ?? right ?? '').split('\n').map((text) => ({ kind, text })) };
  });
}

/** A text stays a text, so that a prompt has its own lines. @param {unknown} value */
const linesOf = (value) =>
  value === undefined ? null : typeof value === 'string' ? value : write(value);

/**
 * Makes the merge patch that turns pairs into others.
 * @param {Record<string, any>} before @param {Record<string, any>} after
 */
export const mergePatch = (before, after) =>
  ({ ...Object.fromEntries(Object.keys(before).map((key) => [key, null])), ...after });
