// @ts-check
// The list of a session's messages: any number of them, of any height. Only those in view are in the page.

import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from 'preact/hooks';
import { comebacks } from '../api.js';
import { number } from '../logic/format.js';
import { cut, plain } from '../logic/text.js';
import { changeQuery } from '../logic/urlstate.js';
import { Heights } from '../logic/virtual.js';
import { icon } from '../parts/icons.js';
import { MessageParts } from '../parts/message.js';
import { Button, ProblemBox } from '../parts/ui.js';

/** @import { Message } from '../types.d.ts' */
/** @import { Messages } from './session_data.js' */

/** The height of a message that was not measured, in pixels. */
const ESTIMATE = 110;
const ICONS = { user: 'people', assistant: 'model', tool: 'tool', system: 'agent' };

/**
 * @typedef {{ index: number, delta: number, isEnd: boolean }} Anchor What stays where it is when heights become
 *   known: the row at the upper edge and the pixels of it above the edge, or the end of the list.
 */

/**
 * @param {{ data: Messages, chosen: number, onEdit: (index: number) => void }} properties
 *   `chosen` is the index of a message; -1 if none is chosen.
 */
export function MessageList({ data, chosen, onEdit }) {
  void data.version.value;
  const back = comebacks.value;
  const scroller = useRef(/** @type {any} */ (null));
  const block = useRef(/** @type {any} */ (null));
  const anchor = useRef(/** @type {Anchor} */ ({ index: 0, delta: 0, isEnd: true }));
  const [, redraw] = useReducer((times) => times + 1, 0);
  const total = Math.max(0, data.total);
  const heights = useMemo(() => new Heights(total, ESTIMATE), [total]);
  const view = scroller.current?.clientHeight ?? 800;
  const top = topOf(anchor.current, heights, view);
  const { from, to } = heights.inView(top, view);
  useEffect(() => data.want(from, to), [data, from, to, back]);
  useShown({ chosen, heights, anchor, view, redraw });
  useLayoutEffect(() => {
    if (!block.current) return;
    let change = 0;
    for (const row of block.current.children) {
      change += Math.abs(heights.set(Number(row.dataset.index), row.getBoundingClientRect().height));
    }
    const place = topOf(anchor.current, heights, scroller.current.clientHeight);
    if (Math.abs(scroller.current.scrollTop - place) > 1) scroller.current.scrollTop = place;
    if (change > 1) redraw(undefined);
  });
  useEffect(() => {
    const watcher = new ResizeObserver(() => redraw(undefined));
    for (const element of [scroller.current, block.current]) if (element) watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = scroller.current;
    const index = heights.at(scrollTop);
    const isEnd = scrollTop + clientHeight >= scrollHeight - 2;
    anchor.current = { index, delta: scrollTop - heights.offset(index), isEnd };
    redraw(undefined);
  };
  const rows = [];
  for (let index = from; index < to; index++) {
    rows.push(html`<${Row} key=${index} index=${index} total=${total} message=${data.at(index)}
      isChosen=${index === chosen} onEdit=${onEdit} />`);
  }
  if (data.total === 0) return html`<p class="note empty">The session has no messages.</p>`;
  return html`<${ProblemBox} problem=${data.problem.value} />
    <div class="messages" role="feed" aria-label="Messages" aria-busy=${data.total < 0} tabindex="0"
      ref=${scroller} onScroll=${onScroll}>
    <div class="space" style=${{ height: `${heights.total}px` }}>
      <div class="block" ref=${block} style=${{ top: `${heights.offset(from)}px` }}>${rows}</div></div></div>`;
}

/** Returns the place of the upper edge. @param {Anchor} anchor @param {Heights} heights @param {number} view */
const topOf = ({ index, delta, isEnd }, heights, view) =>
  Math.max(0, isEnd ? heights.total - view : Math.min(heights.offset(index) + delta, heights.total - view));

/** Moves the list to the chosen message, unless it is in view. */
function useShown({ chosen, heights, anchor, view, redraw }) {
  const isFirst = useRef(true);
  useLayoutEffect(() => {
    if (!heights.count || chosen < 0 || chosen >= heights.count) return;
    const [start, end] = [heights.offset(chosen), heights.offset(chosen + 1)];
    const top = topOf(anchor.current, heights, view);
    const isInView = start >= top && Math.min(end, start + view) <= top + view;
    if (isInView && !isFirst.current) return;
    isFirst.current = false;
    anchor.current = { index: chosen, delta: -16, isEnd: false };
    redraw(undefined);
  }, [chosen, heights]);
}

/**
 * @param {{ index: number, total: number, message?: Message & { name?: string }, isChosen: boolean,
 *   onEdit: (index: number) => void }} properties
 */
function Row({ index, total, message, isChosen, onEdit }) {
  const parts = useMemo(() => message && html`<${MessageParts} content=${message.content} />`, [message]);
  const role = plain(message?.role ?? 'unread');
  const place = number(index + 1);
  return html`<article class="message ${role} ${isChosen ? 'selected' : ''}" data-index=${index}
      aria-posinset=${index + 1} aria-setsize=${total} aria-label=${`Message ${place}, ${role}`}
      aria-current=${isChosen ? 'true' : null}>
    <header>${message && icon(ICONS[message.role] ?? 'file')}<h2>${role}</h2>
      ${message?.name && html`<span class="muted">${cut(plain(message.name), 80).shown}</span>`}
      <span class="grow"></span>
      ${message?.role === 'user' && html`<${Button} kind="ghost" name="pen" keys=${isChosen ? 'e' : undefined}
        title="Edit this message, and run from before it" onClick=${() => onEdit(index)}>Edit<//>`}
      <a class="n" href=${changeQuery(location.search, { message: index + 1 })} title="Link to this message">
        <span class="quiet">Message </span>${place}</a></header>
    ${parts ?? html`<p class="muted">…</p>`}</article>`;
}

/**
 * The field that jumps to a message.
 * @param {{ total: number, chosen: number, onJump: (index: number) => void }} properties
 */
export function Jump({ total, chosen, onJump }) {
  const field = useRef(/** @type {any} */ (null));
  const submit = (event) => {
    event.preventDefault();
    onJump(Number(field.current.value) - 1);
  };
  return html`<form class="jump" onSubmit=${submit}><label>Message <input type="number" min="1" max=${total}
      value=${chosen + 1 || ''} ref=${field} /></label><span class="muted">of ${number(total)}</span>
    <${Button} onClick=${() => onJump(0)}>First<//><${Button} onClick=${() => onJump(total - 1)}>Last<//></form>`;
}
