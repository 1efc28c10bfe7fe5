// @ts-check
// The comparison of two sessions: the common ancestor, the messages after it, and what differs in files and variables.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { count, number, short } from '../logic/format.js';
import { firstLine, plain, withoutBase64 } from '../logic/text.js';
import { MessageParts } from '../parts/message.js';
import { Page } from '../parts/page.js';
import { FileChanges } from '../parts/payload.js';
import { Button, ProblemBox, Requests, useRead } from '../parts/ui.js';
import { go } from '../router.js';
import { MergeDialog } from './merge.js';
import { Facts } from './run_inspector.js';
import { nameOf } from './tree_rows.js';

/** @import { Message, Session, Tree } from '../types.d.ts' */
/** @typedef {{ path: string, left?: unknown, right?: unknown }} ValueChange */

/** How many messages of a side are shown at first, and how many values. */
const MOST = 8;
const MOST_VALUES = 40;

/** The page of a comparison. @param {{ left: string, right: string }} properties */
export function ComparePage({ left, right }) {
  const [one, other] = [left, right].map((id) => useRead(`/v1/sessions/${id}?include=`));
  const [isMerging, setMerging] = useState(false);
  const both = one.value && other.value;
  const root = other.value?.root_session_id;
  const crumbs = [['Sessions', '/console/trees'], ...(root ? [['Tree', `/console/trees/${root}?at=${right}`]] : [])];
  const done = (id) => (id ? go(`/console/trees/${root}?at=${id}`) : setMerging(false));
  const merge = both && html`<${Button} name="merge" onClick=${() => setMerging(true)}>Merge<//>`;
  return html`<${Page} title="Compare ${short(left)} with ${short(right)}" crumbs=${crumbs} actions=${merge}>
    <div class="body"><${ProblemBox} problem=${one.problem ?? other.problem} />
      ${both && html`<${Comparison} left=${one.value} right=${other.value} />`}
      ${isMerging && html`<${MergeDialog} session=${other.value} other=${one.value} onDone=${done}
        onClose=${() => setMerging(false)} />`}</div><//>`;
}

/** @param {{ left: Session, right: Session, tree?: Tree, onSelect?: (id: string) => void }} properties */
export function Comparison({ left, right, tree, onSelect }) {
  const [a, b] = [left.session_id, right.session_id];
  const [ancestorPath, path] = [`/v1/sessions/${a}/ancestor/${b}`, `/v1/sessions/${a}/diff/${b}`];
  const ancestor = useRead(ancestorPath);
  const { value: diff, problem, isReading } = useRead(path);
  const id = ancestor.value?.session_id;
  const facts = diff && {
    'Common ancestor': !id ? ancestor.problem && 'none' : onSelect
      ? html`<button type="button" class="text" onClick=${() => onSelect(id)}><code>${short(id)}</code></button>`
      : html`<a class="link" href=${`/console/sessions/${id}`}><code>${short(id)}</code></a>`,
    'Messages of both': number(diff.shared_messages),
    Files: number(diff.files.length),
    Variables: number(diff.environment.length),
  };
  const side = (session, messages) => html`<section><h3>Only in “${nameOf(session, tree)}”
      ${' '}<code>${short(session.session_id)}</code> <small>${count(messages.length, 'message')}</small></h3>
    <${Messages} messages=${messages} /></section>`;
  const calls = { Difference: { method: 'GET', path }, 'Common ancestor': { method: 'GET', path: ancestorPath } };
  return html`<section class="compare" aria-label="Comparison">
    <header><h2>Compared: “${nameOf(left, tree)}” <code>${short(a)}</code> with
        ${' '}“${nameOf(right, tree)}” <code>${short(b)}</code></h2>
      <span class="grow"></span><${Requests} calls=${calls} /></header>
    ${isReading && html`<p class="muted">Comparing…</p>`}<${ProblemBox} problem=${problem} />
    ${diff && html`<${Facts} facts=${facts} />
      ${!diff.complete && html`<p class="note">There is more: these lists are cut at 1 MiB.</p>`}
      ${diff.files.length > 0 && html`<section><h3>Files</h3><${FileChanges} files=${diff.files} /></section>`}
      <${Values} title="Variables" changes=${diff.environment} /><${Values} title="Context" changes=${diff.context} />
      <div class="sides">${side(left, diff.left_messages)}${side(right, diff.right_messages)}</div>`}</section>`;
}

/** @param {{ title: string, changes: ValueChange[] }} properties */
function Values({ title, changes }) {
  if (!changes.length) return null;
  const words = (value) => (value === undefined ? '–' : firstLine(withoutBase64(JSON.stringify(value)), 400));
  const more = changes.length - MOST_VALUES;
  return html`<section><h3>${title}</h3><table class="changes"><thead><tr><th scope="col">Pointer</th>
      <th scope="col">Left</th><th scope="col">Right</th></tr></thead>
    <tbody>${changes.slice(0, MOST_VALUES).map(({ path, left, right }) => html`<tr key=${path}><th scope="row">
      <code>${plain(path)}</code></th><td>${words(left)}</td><td>${words(right)}</td></tr>`)}</tbody></table>
    ${more > 0 && html`<p class="muted">and ${number(more)} more</p>`}</section>`;
}

/** Messages, at first only some. @param {{ messages: Message[] }} properties */
export function Messages({ messages }) {
  const [all, setAll] = useState(false);
  const shown = all ? messages : messages.slice(0, MOST);
  return html`${shown.map(({ role, content }, key) => html`<div key=${key} class="said">
      <span class="muted">${role}</span><${MessageParts} content=${content} /></div>`)}
    ${shown.length < messages.length && html`<button type="button" class="more" onClick=${() => setAll(true)}>
      Show all ${number(messages.length)} messages</button>`}`;
}
