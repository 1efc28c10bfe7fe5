// @ts-check
// Payloads of tools and models. Everything here is hostile: it reaches the page as text nodes only.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { editLines, parsePatch, parseUnified } from '../logic/diff.js';
import { bytes } from '../logic/format.js';
import { parseMarkdown } from '../logic/markdown.js';
import { cut, json, MOST, plain, withoutBase64 } from '../logic/text.js';
import { icon } from './icons.js';
import { CopyButton } from './ui.js';

/** @import { Block, DiffLine, FileChange, Inline, Part } from '../types.d.ts' */

/** The most lines of a difference that are shown before the reader asks for all. */
const MOST_LINES = 400;
const SIGNS = { add: '+', del: '−', same: ' ', hunk: '' };

/** Cuts a text at 64 KiB. Returns it with a button that shows all. @param {string} text @returns {[string, any]} */
function useCut(text, hasBase64 = false) {
  const [all, setAll] = useState(false);
  const { shown, omitted } = cut(plain(hasBase64 ? text : withoutBase64(text)), all ? Infinity : MOST);
  const more = html`<button type="button" class="more"
    onClick=${() => setAll(true)}>Show all: ${bytes(omitted)} more</button>`;
  return [shown, omitted > 0 && more];
}

/** A text as it is. @param {{ text: string, label?: string, hasBase64?: boolean }} properties */
export function Code({ text, label = 'Text', hasBase64 }) {
  const [shown, more] = useCut(text, hasBase64);
  return html`<div class="codebox"><pre class="code" tabindex="0" role="group" aria-label=${label}>${shown}</pre>${more}
    <${CopyButton} text=${text} /></div>`;
}

/** A value as JSON. @param {{ value: unknown }} properties */
export const JsonValue = ({ value }) => html`<${Code} text=${json(value)} label="JSON" />`;

/** The lines of a difference. @param {{ lines: DiffLine[] }} properties */
function DiffLines({ lines }) {
  const [all, setAll] = useState(false);
  const hasNumbers = lines.some((line) => line.left || line.right);
  const shown = all ? lines : lines.slice(0, MOST_LINES);
  /** @param {DiffLine} line */
  const row = ({ kind, text, left, right }, key) => {
    const words = plain(withoutBase64(cut(text, 4000).shown));
    if (kind === 'hunk') return html`<tr key=${key} class="hunk"><td colspan=${hasNumbers ? 3 : 1}>${words}</td></tr>`;
    return html`<tr key=${key} class=${kind}>
      ${hasNumbers && html`<td class="ln">${left}</td><td class="ln">${right}</td>`}
      <td class="line"><span class="sign">${SIGNS[kind]}</span>${words || ' '}</td></tr>`;
  };
  const more = html`<button type="button" class="more"
    onClick=${() => setAll(true)}>Show all ${lines.length} lines</button>`;
  return html`<table class="diff"><tbody>${shown.map(row)}</tbody></table>${shown.length < lines.length && more}`;
}

/**
 * A file with its difference, or with other content.
 * @param {{ path: string, note?: string, lines?: DiffLine[], children?: any }} properties
 */
export const FileBox = ({ path, note, lines, children }) => html`<div class="file">
  <div class="fhead">${icon('file')}<span>${plain(path)}</span>${note && html`<em>${note}</em>`}</div>
  ${lines && html`<div class="scroll" tabindex="0"><${DiffLines} lines=${lines} /></div>`}${children}</div>`;

const fileBoxes = (files) =>
  files.map(({ path, lines }, key) => html`<${FileBox} key=${key} path=${path} lines=${lines} />`);

/** The arguments of a call, shown as what they are. @param {{ tool: string, args: any, text: string }} properties */
export function Arguments({ tool, args, text }) {
  if (!args || typeof args !== 'object') return html`<${Code} text=${text || 'none'} />`;
  const { command, ...rest } = args;
  if (tool === 'shell' && typeof command === 'string') {
    const hasRest = Object.keys(rest).length > 0;
    // People approve commands, so they see all of them.
    return html`<${Code} text=${command} label="Command" hasBase64 />${hasRest && html`<${JsonValue}
      value=${rest} />`}`;
  }
  if (tool === 'edit_file' && Array.isArray(args.edits)) {
    const lines = args.edits.flatMap((edit) => editLines(String(edit?.old ?? ''), String(edit?.new ?? '')));
    return html`<${FileBox} path=${String(args.path)} lines=${lines} />`;
  }
  const patched = tool === 'apply_patch' && typeof args.patch === 'string' ? parsePatch(args.patch) : [];
  if (patched.length) return fileBoxes(patched);
  if (tool === 'write_file' && typeof args.content === 'string') {
    const note = args.executable && 'executable';
    return html`<${FileBox} path=${String(args.path)} note=${note}><${Code} text=${args.content} /><//>`;
  }
  const hasParts = Object.values(args).some((value) => value && typeof value === 'object');
  if (hasParts) return html`<${JsonValue} value=${args} />`;
  const pairs = Object.entries(args).map(([name, value]) => `${name}: ${value}`);
  return html`<${Code} text=${pairs.join('\n') || 'none'} label="Arguments" />`;
}

/**
 * The result of a call: text, the difference that follows it, and media by their names.
 * @param {{ content: Part[] }} properties
 */
export function Result({ content }) {
  const text = content.map((part) => part.text ?? `⟨${part.type}⟩`).join('\n');
  const at = text.search(/^--- \S.*\n\+\+\+ /m);
  if (at < 0) return html`<${Code} text=${text} label="Result" />`;
  const lead = plain(text.slice(0, at).trim());
  return html`${lead && html`<p class="muted lead">${lead}</p>`}${fileBoxes(parseUnified(text.slice(at)))}`;
}

/** The files that differ between two sessions. @param {{ files: FileChange[] }} properties */
export const FileChanges = ({ files }) => files.map((file) => {
  const change = !file.left ? 'added' : file.right ? 'changed' : 'deleted';
  const what = [change, file.binary && 'binary', file.truncated && 'cut'];
  const lines = file.diff && parseUnified(file.diff)[0]?.lines;
  return html`<${FileBox} key=${file.path} path=${file.path} note=${what.filter(Boolean).join(', ')} lines=${lines} />`;
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
