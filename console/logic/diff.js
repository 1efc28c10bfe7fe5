// @ts-check
// Differences of files as lines: the unified format, edits of exact text, and patches of tools. Pure.

/** @import { DiffLine, FileDiff } from '../types.d.ts' */

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)/;
/** @type {Record<string, 'add' | 'del' | 'same'>} */
const SIGNS = { '+': 'add', '-': 'del', ' ': 'same' };

/** Parses the unified format. Text before the first file is left out. @param {string} text */
export function parseUnified(text) {
  /** @type {FileDiff[]} */
  const files = [];
  const lines = text.replace(/\n$/, '').split('\n');
  let [left, right] = [0, 0];
  for (const [index, line] of lines.entries()) {
    if (line.startsWith('--- ') && lines[index + 1]?.startsWith('+++ ')) {
      const path = lines[index + 1] === '+++ /dev/null' ? line.slice(4) : lines[index + 1].slice(4);
      files.push({ path: path.replace(/^[ab]\//, ''), lines: [] });
    }
    const file = files.at(-1)?.lines;
    const hunk = HUNK.exec(line);
    if (!file || (!file.length && !hunk)) continue;
    if (hunk) {
      [left, right] = [Number(hunk[1]), Number(hunk[2])];
      file.push({ kind: 'hunk', text: line });
    } else if (line.startsWith('\\')) {
      file.push({ kind: 'hunk', text: line });
    } else if (line[0] in SIGNS) {
      const kind = SIGNS[line[0]];
      const numbers = { left: kind === 'add' ? undefined : left++, right: kind === 'del' ? undefined : right++ };
      file.push({ kind, text: line.slice(1), ...numbers });
    }
  }
  return files;
}

/**
 * Shows an edit of exact text: the lines that differ, between those that both have.
 * @param {string} before @param {string} after @returns {DiffLine[]}
 */
export function editLines(before, after) {
  const [a, b] = [before, after].map((text) => text.replace(/\n$/, '').split('\n'));
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  /** @type {(kind: DiffLine['kind'], lines: string[]) => DiffLine[]} */
  const as = (kind, lines) => lines.map((text) => ({ kind, text }));
  return [
    ...as('same', a.slice(0, start)),
    ...as('del', a.slice(start, a.length - end)),
    ...as('add', b.slice(start, b.length - end)),
    ...as('same', end ? a.slice(-end) : []),
  ];
}

/** Parses the argument of `apply_patch`: the unified format, or `*** Begin Patch`. @param {string} patch */
export function parsePatch(patch) {
  if (!/^\*\*\* Begin Patch/.test(patch.trimStart())) return parseUnified(patch);
  /** @type {FileDiff[]} */
  const files = [];
  for (const line of patch.split('\n')) {
    const head = /^\*\*\* (Add|Update|Delete) File: (.*)$/.exec(line);
    if (head) files.push({ path: head[2], lines: head[1] === 'Delete' ? [{ kind: 'hunk', text: 'deleted' }] : [] });
    else if (/^\*\*\* Move to: /.test(line)) files.at(-1)?.lines.push({ kind: 'hunk', text: line.slice(4) });
    else if (line.startsWith('@@')) files.at(-1)?.lines.push({ kind: 'hunk', text: line });
    else if (line[0] in SIGNS) {
      files.at(-1)?.lines.push({ kind: SIGNS[line[0]], text: line.slice(1) });
    }
  }
  return files;
}
