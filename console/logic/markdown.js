// @ts-check
// Parses the Markdown of models into plain nodes. It knows no HTML and no images: hostile text stays text. Pure.

/** @import { Block, Inline } from '../types.d.ts' */

/** Deeper quotes, lists and emphasis stay text. */
const MAX_DEPTH = 8;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)/;
const TABLE_RULE = /^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$/;
/** Backtracking takes long in a line of a megabyte, which is no rule. */
const isTableRule = (line) => line.length < 1000 && TABLE_RULE.test(line);
const BLOCK_START = /^ {0,3}(#{1,6} |>|`{3,}|~{3,}|([-*_] *){3,}$)/;

/** Parses a text. @param {string} text @returns {Block[]} */
export const parseMarkdown = (text) => blocks(text.replaceAll('\r\n', '\n').split('\n'), 0);

/** @param {string[]} lines @param {number} depth @returns {Block[]} */
function blocks(lines, depth) {
  /** @type {Block[]} */
  const out = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = /^ {0,3}(#{1,6}) +(.*)$/.exec(line);
    if (!line.trim()) at++;
    else if (fence) at = code(lines, at, fence, out);
    else if (heading) {
      out.push({ type: 'heading', level: heading[1].length, inline: inline(heading[2].replace(/ #+$/, '')) });
      at++;
    } else if (/^ {0,3}([-*_])( *\1){2,} *$/.test(line)) {
      out.push({ type: 'rule' });
      at++;
    } else if (/^ {0,3}>/.test(line) && depth < MAX_DEPTH) at = quote(lines, at, depth, out);
    else if (ITEM.test(line) && depth < MAX_DEPTH) at = list(lines, at, depth, out);
    else if (line.includes('|') && isTableRule(lines[at + 1] ?? '')) at = table(lines, at, out);
    else at = paragraph(lines, at, out);
  }
  return out;
}

/** @param {string[]} lines @param {RegExpExecArray} fence @param {Block[]} out */
function code(lines, at, fence, out) {
  const [, mark, language] = fence;
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(mark) && /^(`+|~+)$/.test(lines[end].trim()))) end++;
  out.push({ type: 'code', language, text: lines.slice(at + 1, end).join('\n') });
  return end + 1;
}

/** @param {string[]} lines @param {Block[]} out @returns {number} */
function quote(lines, at, depth, out) {
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end])) end++;
  const inner = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ''));
  out.push({ type: 'quote', blocks: blocks(inner, depth + 1) });
  return end;
}

/** @param {string[]} lines @param {Block[]} out @returns {number} */
function list(lines, at, depth, out) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(lines[at]));
  const isOrdered = /\d/.test(first[2]);
  /** @type {string[][]} */
  const items = [];
  let indent = 0;
  for (; at < lines.length; at++) {
    const line = lines[at];
    const item = ITEM.exec(line);
    const isNested = line.search(/\S/) >= indent && items.length > 0;
    if (item && !isNested && /\d/.test(item[2]) === isOrdered) {
      indent = item[1].length + item[2].length + 1;
      items.push([line.slice(item[0].length)]);
    } else if (!line.trim() && (lines[at + 1] ?? '').search(/\S/) >= indent) items.at(-1)?.push('');
    else if (isNested && line.trim()) items.at(-1)?.push(line.slice(indent));
    else if (line.trim() && !item && lines[at - 1].trim() && !BLOCK_START.test(line)) items.at(-1)?.push(line.trim());
    else if (line.trim() || !ITEM.test(lines[at + 1] ?? '')) break;
  }
  const start = isOrdered ? parseInt(first[2], 10) : null;
  out.push({ type: 'list', start, items: items.map((item) => blocks(item, depth + 1)) });
  return at;
}

/** @param {string[]} lines @param {Block[]} out @returns {number} */
function table(lines, at, out) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|')) end++;
  const [head, ...rows] = [lines[at], ...lines.slice(at + 2, end)].map(cells);
  out.push({ type: 'table', head, rows });
  return end;
}

/** @param {string} line @returns {Inline[][]} */
function cells(line) {
  return line.trim().replace(/^\||\|$/g, '').split('|').map((cell) => inline(cell.trim()));
}

/** @param {string[]} lines @param {Block[]} out @returns {number} */
function paragraph(lines, at, out) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !BLOCK_START.test(lines[end]) && !ITEM.test(lines[end])) end++;
  out.push({ type: 'paragraph', inline: inline(lines.slice(at, end).join('\n')) });
  return end;
}

/** The end of each kind of emphasis, and its type. */
const MARKS = /** @type {const} */ ([['**', 'strong'], ['__', 'strong'], ['~~', 'del'], ['*', 'em'], ['_', 'em']]);

/** Parses the text of a block. @param {string} text @returns {Inline[]} */
function inline(text, depth = 0) {
  /** @type {Inline[]} */
  const out = [];
  /** @type {Set<string>} The marks that have no end in the rest of the text. */
  const unclosed = new Set();
  let from = 0;
  let at = 0;
  /** @param {Inline} node @param {number} end */
  const add = (node, end) => {
    if (at > from) out.push({ type: 'text', text: unescape(text.slice(from, at)) });
    out.push(node);
    from = at = end;
  };
  while (at < text.length) {
    const char = text[at];
    if (char === '\\') at += 2;
    else if (char === '\n' && text.slice(Math.max(0, at - 2), at) === '  ') add({ type: 'break' }, at + 1);
    else if (char === '`') {
      const mark = /^`+/.exec(text.slice(at, at + 32))?.[0] ?? '`';
      const end = unclosed.has(mark) ? -1 : text.indexOf(mark, at + mark.length);
      if (end < 0) unclosed.add(mark);
      if (end > 0) add({ type: 'code', text: text.slice(at + mark.length, end).trim() }, end + mark.length);
      else at += mark.length;
    } else if (char === '[' || char === '<' || char === 'h') {
      const link = linkAt(text, at);
      if (link) add({ type: 'link', href: link.href, inline: link.label }, link.end);
      else at++;
    } else if ('*_~'.includes(char) && depth < MAX_DEPTH) {
      const mark = MARKS.find(([one]) => text.startsWith(one, at));
      const isInWord = char === '_' && /\w/.test(text[at - 1] ?? '');
      const opens = mark && !isInWord && /\S/.test(text[at + mark[0].length] ?? ' ');
      const end = opens && !unclosed.has(mark[0]) ? text.indexOf(mark[0], at + mark[0].length + 1) : -1;
      if (opens && end < 0) unclosed.add(mark[0]);
      if (mark && end > 0 && /\S/.test(text[end - 1])) {
        add({ type: mark[1], inline: inline(text.slice(at + mark[0].length, end), depth + 1) }, end + mark[0].length);
      } else at += mark?.[0].length ?? 1;
    } else at++;
  }
  if (from < text.length) out.push({ type: 'text', text: unescape(text.slice(from)) });
  return out;
}

/** @param {string} text */
const unescape = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, '$1');

/** Reads a link: `[label](address)`, `<address>` or a bare address. Only http, https and mailto are links. */
function linkAt(text, at) {
  const rest = text.slice(at, at + 2048);
  const named = /^\[([^[\]\n]{1,500})\]\(([^\s()<>]{1,1500})(?: +"[^"\n]*")?\)/.exec(rest);
  const bare = named ? null : /^<((?:https?:\/\/|mailto:)[^\s<>]+)>|^https?:\/\/[^\s<>"')\]]+/.exec(rest);
  const address = named?.[2] ?? bare?.[1] ?? bare?.[0].replace(/[.,;:!?*_]+$/, '');
  if (!address || !/^(https?:\/\/|mailto:)/i.test(address)) return null;
  const length = named?.[0].length ?? (bare?.[1] ? bare[0].length : address.length);
  /** @type {Inline[]} */
  const label = named ? inline(named[1], MAX_DEPTH) : [{ type: 'text', text: address }];
  return { href: address, label, end: at + length };
}
