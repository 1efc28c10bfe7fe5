// @ts-check
// Payloads of tools and models. Everything here is hostile: it reaches the page as text nodes only.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { editsLines, parsePatch, parseUnified } from '../logic/diff.js';
import { bytes } from '../logic/format.js';
import { parseMarkdown } from '../logic/markdown.js';
import { cut, exact, MOST, otherArguments, plain, withoutBase64 } from '../logic/text.js';
import { icon } from './icons.js';
import { CopyButton } from './ui.js';

/** @import { Block, DiffLine, FileChange, Inline, Part } from '../types.d.ts' */

/** The most lines of a difference, and characters of a line, that are shown before the reader asks for all. */
const MOST_LINES = 400;
const MOST_OF_LINE = 4000;
const SIGNS = { add: '+', del: '−', same: ' ', hunk: '' };

/**
 * Cuts a text at 64 KiB, and leaves out base64 unless the text is exact. Returns it with a button that shows all.
 * @param {string} text @returns {[string, any]}
 */
function useCut(text, isExact = false) {
  const [all, setAll] = useState(false);
  const whole = isExact ? exact(text) : plain(text);
  const { shown } = cut(all || isExact ? whole : withoutBase64(whole), all ? Infinity : MOST);
  const more = html`<button type="button" class="more"
    onClick=${() => setAll(true)}>Show all: ${bytes(whole.length - shown.length)} more</button>`;
  return [shown, shown.length < whole.length && more];
}

/**
 * A text as it is. What people approve is exact.
 * @param {{ text: string, label?: string, isExact?: boolean }} properties
 */
export function Code({ text, label = 'Text', isExact }) {
  const [shown, more] = useCut(text, isExact);
  return html`<div class="codebox"><pre class="code" tabindex="0" role="group" aria-label=${label}>${shown}</pre>${more}
    <${CopyButton} text=${text} /></div>`;
}

/** A value as JSON. @param {{ value: unknown, isExact?: boolean }} properties */
export const JsonValue = ({ value, isExact }) =>
  html`<${Code} text=${JSON.stringify(value, null, 2) ?? 'null'} label="JSON" isExact=${isExact} />`;

/** The lines of a difference. @param {{ lines: DiffLine[] }} properties */
function DiffLines({ lines }) {
  const [all, setAll] = useState(false);
  const hasNumbers = lines.some((line) => line.left || line.right);
  const shown = all ? lines : lines.slice(0, MOST_LINES);
  const isCut = !all && (lines.length > MOST_LINES || lines.some(({ text }) => text.length > MOST_OF_LINE));
  /** @param {DiffLine} line */
  const row = ({ kind, text, left, right }, key) => {
    const { shown: start, omitted } = cut(text, all ? Infinity : MOST_OF_LINE);
    const words = `${exact(start)}${omitted ? `⟨${omitted} more characters⟩` : ''}`;
    if (kind === 'hunk') return html`<tr key=${key} class="hunk"><td colspan=${hasNumbers ? 3 : 1}>${words}</td></tr>`;
    return html`<tr key=${key} class=${kind}>
      ${hasNumbers && html`<td class="ln">${left}</td><td class="ln">${right}</td>`}
      <td class="line"><span class="sign">${SIGNS[kind]}</span>${words || ' '}</td></tr>`;
  };
  const more = html`<button type="button" class="more"
    onClick=${() => setAll(true)}>Show all ${lines.length} lines</button>`;
  return html`<table class="diff"><tbody>${shown.map(row)}</tbody></table>${isCut && more}`;
}

/**
 * A file with its difference, or with other content.
 * @param {{ path: string, note?: string, lines?: DiffLine[], children?: any }} properties
 */
export const FileBox = ({ path, note, lines, children }) => html`<div class="file">
  <div class="fhead">${icon('file')}<span>${exact(path)}</span>${note && html`<em>${note}</em>`}</div>
  ${lines && html`<div class="scroll" tabindex="0"><${DiffLines} lines=${lines} /></div>`}${children}</div>`;

const fileBoxes = (files) =>
  files.map(({ path, lines }, key) => html`<${FileBox} key=${key} path=${path} lines=${lines} />`);

/**
 * The arguments of a call, shown as what they are. People approve them, so nothing of them is left out.
 * @param {{ tool: string, args: any, text: string }} properties
 */
export function Arguments({ tool, args, text }) {
  if (!args || typeof args !== 'object') {
    return html`<${Code} text=${text || (args == null ? 'none' : JSON.stringify(args))} isExact />`;
  }
  const others = otherArguments(tool, args);
  if (others) {
    const hasOthers = Object.keys(others).length > 0;
    return html`<${Known} tool=${tool} args=${args} />${hasOthers && html`<${JsonValue} value=${others} isExact />`}`;
  }
  const hasParts = Object.values(args).some((value) => value && typeof value === 'object');
  if (hasParts) return html`<${JsonValue} value=${args} isExact />`;
  // Only names begin at the margin, so that no value looks like another argument.
  const pairs = Object.entries(args).map(([name, value]) => `${name}: ${value}`.replaceAll('\n', '\n  '));
  return html`<${Code} text=${pairs.join('\n') || 'none'} label="Arguments" isExact />`;
}

/** The arguments that a tool has a view for. @param {{ tool: string, args: any }} properties */
function Known({ tool, args }) {
  if (tool === 'shell') return html`<${Code} text=${args.command} label="Command" isExact />`;
  if (tool === 'edit_file') return html`<${FileBox} path=${args.path} lines=${editsLines(args.edits)} />`;
  if (tool === 'write_file') {
    return html`<${FileBox} path=${args.path}><${Code} text=${args.content} isExact /><//>`;
  }
  return html`<${Code} text=${args.patch} label="Patch" isExact />${fileBoxes(parsePatch(args.patch) ?? [])}`;
}

/**
 * The result of a call: text, the difference that follows it, and media by their names.
 * @param {{ content: Part[] }} properties
 */
export function Result({ content }) {
  const text = content.map((part) => part.text ?? `⟨${part.type}⟩`).join('\n');
  const at = text.search(/^--- \S.*\n\+\+\+ /m);
  const files = at < 0 ? null : parseUnified(text.slice(at));
  if (!files) return html`<${Code} text=${text} label="Result" />`;
  const lead = plain(text.slice(0, at).trim());
  return html`${lead && html`<p class="muted lead">${lead}</p>`}${fileBoxes(files)}`;
}

/** The files that differ between two sessions. @param {{ files: FileChange[] }} properties */
export const FileChanges = ({ files }) => files.map((file) => {
  const change = !file.left ? 'added' : file.right ? 'changed' : 'deleted';
  const what = [change, file.binary && 'binary', file.truncated && 'cut'];
  const lines = file.diff && parseUnified(file.diff, file.truncated)?.[0].lines;
  return html`<${FileBox} key=${file.path} path=${file.path} note=${what.filter(Boolean).join(', ')} lines=${lines}>
    ${file.diff && !lines && html`<${Code} text=${file.diff} label="Difference" />`}<//>`;
});

/** Markdown of a model. @param {{ text: string }} properties */
export function Markdown({ text }) {
  const [shown, more] = useCut(text);
  return html`<div class="prose">${parseMarkdown(shown).map(blockView)}${more}</div>`;
}

/** @param {Block} block */
function blockView(block) {
  switch (block.type) {
    case 'heading':
      return html`<p class="heading h${block.level}">${block.inline.map(inlineView)}</p>`;
    case 'paragraph':
      return html`<p>${block.inline.map(inlineView)}</p>`;
    case 'code':
      return html`<${Code} text=${block.text} label="Code" />`;
    case 'quote':
      return html`<blockquote>${block.blocks.map(blockView)}</blockquote>`;
    case 'rule':
      return html`<hr />`;
    case 'list': {
      const items = block.items.map((item) => html`<li>${item.map(blockView)}</li>`);
      return block.start === null ? html`<ul>${items}</ul>` : html`<ol start=${block.start}>${items}</ol>`;
    }
    case 'table': {
      const row = (tag) => (cells) => html`<tr>${cells.map((cell) => html`<${tag}>${cell.map(inlineView)}<//>`)}</tr>`;
      return html`<div class="scroll" tabindex="0"><table><thead>${row('th')(block.head)}</thead>
        <tbody>${block.rows.map(row('td'))}</tbody></table></div>`;
    }
  }
}

/** @param {Inline} node */
function inlineView(node) {
  switch (node.type) {
    case 'text':
      return node.text;
    case 'code':
      return html`<code>${node.text}</code>`;
    case 'break':
      return html`<br />`;
    case 'link':
      return html`<a class="link" href=${node.href} target="_blank"
        rel="noopener noreferrer">${node.inline.map(inlineView)}</a>`;
    default:
      return html`<${node.type}>${node.inline.map(inlineView)}<//>`;
  }
}
