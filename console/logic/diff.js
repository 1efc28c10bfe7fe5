// @ts-check
// Differences of files as lines: the unified format, edits of exact text, and patches of tools. Pure.

/** @import { DiffLine, FileDiff } from '../types.d.ts' */

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
/** @type {Record<string, 'add' | 'del' | 'same'>} */
const SIGNS = { '+': 'add', '-': 'del', ' ': 'same' };

/**
 * Parses the unified format, if all lines are lines of it: what is left out could be what matters.
 * @param {string} text @param {boolean} [isCut] Whether the last hunk may have fewer lines than it counts.
 * @returns {FileDiff[] | null}
 */
export function parseUnified(text, isCut = false) {
  /** @type {FileDiff[]} */
  const files = [];
  const lines = text.replace(/\n$/, '').split('\n');
  let [left, right, leftEnd, rightEnd] = [0, 0, 0, 0];
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index];
    const file = files.at(-1)?.lines;
    const kind = SIGNS[line[0] ?? ' '];
    const hunk = HUNK.exec(line);
    if (file?.length && line.startsWith('\\')) {
      file.push({ kind: 'hunk', text: line });
    } else if (file && (left < leftEnd || right < rightEnd)) {
      if (!kind) return null;
      const numbers = { left: kind === 'add' ? undefined : left++, right: kind === 'del' ? undefined : right++ };
      if (left > leftEnd || right > rightEnd) return null;
      file.push({ kind, text: line.slice(1), ...numbers });
    } else if (line.startsWith('--- ') && lines[index + 1]?.startsWith('+++ ')) {
      files.push({ path: pathOf(line, lines[++index]), lines: [] });
    } else if (file && hunk) {
      [left, right] = [Number(hunk[1]), Number(hunk[3])];
      [leftEnd, rightEnd] = [left + Number(hunk[2] ?? 1), right + Number(hunk[4] ?? 1)];
      file.push({ kind: 'hunk', text: line });
    } else if (line || !file) return null;
  }
  const isWhole = left === leftEnd && right === rightEnd;
  return files.length && files.every((file) => file.lines.length) && (isWhole || isCut) ? files : null;
}

/** Returns the path of two lines of names. Only both prefixes together are those of git. */
function pathOf(before, after) {
  const [from, to] = [before, after].map((line) => line.slice(4).split('\t')[0].trim());
  const path = to === '/dev/null' ? from : to;
  return /^(a\/|\/dev\/null$)/.test(from) && /^(b\/|\/dev\/null$)/.test(to) ? path.slice(2) : path;
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
  const [hadEnd, hasEnd] = [before, after].map((text) => text.endsWith('\n'));
  const note = `\\ Only the ${hadEnd ? 'old' : 'new'} text ends with a line feed`;
  return [
    ...as('same', a.slice(0, start)),
    ...as('del', a.slice(start, a.length - end)),
    ...as('add', b.slice(start, b.length - end)),
    ...as('same', end ? a.slice(-end) : []),
    ...as('hunk', hadEnd === hasEnd ? [] : [note]),
  ];
}

/**
 * Shows edits of a file one after another, with all that they say.
 * @param {{ old: string, new: string }[]} edits @returns {DiffLine[]}
 */
export const editsLines = (edits) =>
  edits.flatMap(({ old, new: text, ...rest }, index) => {
    const more = Object.keys(rest).length ? ` ${JSON.stringify(rest)}` : '';
    /** @type {DiffLine[]} */
    const head = edits.length > 1 || more ? [{ kind: 'hunk', text: `Edit ${index + 1}${more}` }] : [];
    return [...head, ...editLines(old, text)];
  });

/**
 * Parses the argument of `apply_patch`, if all of its lines are lines of its format.
 * @param {string} patch @returns {FileDiff[] | null}
 */
export function parsePatch(patch) {
  // The tool takes this format if any line begins it.
  if (!patch.includes('*** Begin Patch')) return parseUnified(patch);
  const lines = patch.trimEnd().split('\n');
  if (lines[0] !== '*** Begin Patch' || lines.pop() !== '*** End Patch') return null;
  /** @type {FileDiff[]} */
  const files = [];
  for (const line of lines.slice(1)) {
    const head = /^\*\*\* (Add|Update|Delete) File:(.*)$/.exec(line);
    const file = files.at(-1)?.lines;
    const kind = SIGNS[line[0] ?? ' '];
    if (head) {
      const isDeleted = head[1] === 'Delete';
      files.push({ path: head[2].trim(), lines: isDeleted ? [{ kind: 'hunk', text: 'deleted' }] : [] });
    } else if (file && /^(@@|\*\*\* (Move to:|End of File$))/.test(line)) {
      file.push({ kind: 'hunk', text: line.replace(/^\*{3} /, '') });
    } else if (file && kind) {
      file.push({ kind, text: line.slice(1) });
    } else if (line) return null;
  }
  return files.length ? files : null;
}
