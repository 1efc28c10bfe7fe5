// @ts-check
// The rows of a tree: lanes on the left, a line of text for each session, and a small map of the whole on the right.

import { html } from 'htm/preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { count, number, short, span } from '../logic/format.js';
import { drawLines } from '../logic/lanes.js';
import { firstLine } from '../logic/text.js';
import { rowsInView, slots } from '../logic/virtual.js';
import { icon } from '../parts/icons.js';
import { useClock } from '../parts/ui.js';

/** @import { LaidRow, LaneSpan, Session, Tree, TreeRow } from '../types.d.ts' */
/** @typedef {{ laid: LaidRow[], width: number, spans: LaneSpan[] }} Layout */
/**
 * What is marked: threads, the line to the root, hits, the selected row, the second session.
 * @typedef {{ tree: Tree, names: Map<string, string[]>, line: Set<string>, hits: Set<string>, at: number,
 *   other: string }} Marks
 */

/** The height of a row, as in the sheet. */
export const ROW = 30;
const PAD = 14;
/** The most pixels between two lanes, and of all lanes. */
const STEP = 14;
const MOST = 240;
const MAP = 44;

/** Whether a person made the session, without a run. @param {Session} session */
const isByHand = (session) => !session.run_id && !session.merged_session_id;
/** @param {Session} session */
export const madeBy = (session) => (session.merged_session_id ? 'merge' : isByHand(session) ? 'person' : session.agent);
/** Whether it waits for an answer. @param {Session} session @param {Tree} tree */
export const isWaiting = (session, { children }) =>
  session.run_status === 'waiting' && !children.has(session.session_id);

/** What a session says. Only the title of the root is surely its own. @param {Session} session */
const wordsOf = ({ session_id: id, parent_session_id: parent, title, preview }) =>
  firstLine((parent ? preview ?? title : title ?? preview) ?? '') || short(id);

/** Names what is new in a session. @param {Session} session @param {Tree} [tree] */
export function nameOf(session, tree) {
  if (session.merged_session_id) {
    const source = tree?.byId.get(session.merged_session_id);
    return `Files of “${source ? wordsOf(source) : short(session.merged_session_id)}” merged in`;
  }
  if (!isByHand(session) || !session.parent_session_id) return wordsOf(session);
  return session.has_files_changed ? 'Files changed by hand' : 'Messages changed by hand';
}

/**
 * @param {{ box: { current: HTMLElement | null }, layout: Layout, marks: Marks, onKeyDown: (event) => void,
 *   onSelect: (row: TreeRow, isSecond: boolean) => void, onTop: (isAtTop: boolean) => void,
 *   children?: any }} properties
 */
export function TreeRows({ box, layout, marks, onKeyDown, onSelect, onTop, children }) {
  const { laid, width } = layout;
  const now = useClock(30_000);
  const [{ scroll, view }, setState] = useState({ scroll: 0, view: 800 });
  const look = () => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {};
    onTop(scrollTop < ROW);
    setState({ scroll: scrollTop, view: clientHeight });
  };
  useEffect(() => {
    const { current } = box;
    if (!current) return undefined;
    const observer = new ResizeObserver(look);
    observer.observe(current);
    // A fling coalesces the events of scrolling, so the wheel counts, too.
    for (const name of ['scroll', 'wheel']) current.addEventListener(name, look, { passive: true });
    return () => observer.disconnect();
  }, []);
  const step = Math.max(5, Math.min(STEP, (MOST - 2 * PAD) / width));
  const x = (lane) => Math.round(Math.min(PAD + lane * step, MOST - PAD));
  const gutter = x(width - 1) + PAD;
  const range = rowsInView({ count: laid.length, height: ROW, scroll, view });
  const drawn = laid.slice(range.from, range.to);
  const paths = drawLines(drawn, marks.line, { height: ROW, x });
  const dots = drawn.map((row, i) => dotOf(row, x(row.lane), (i + 0.5) * ROW, marks, range.from + i === marks.at));
  const selected = marks.at >= range.from && marks.at < range.to ? `session-${laid[marks.at].row.key}` : null;
  return html`<div class="graph" style=${{ '--gutter': `${gutter}px` }}>
    <div class="thead" aria-hidden="true"><span class="what">Session</span><span>Made by</span>
      <span class="num">Messages</span><span class="num">Age</span></div>
    <div class="trows" ref=${box} role="listbox" tabindex="0" aria-label="Sessions, newest first"
      aria-activedescendant=${selected} onKeyDown=${onKeyDown}>
      <div class="space" role="presentation" style=${{ height: `${laid.length * ROW}px` }}>
        <svg class="lanes" aria-hidden="true" width=${gutter} height=${drawn.length * ROW}
          style=${{ top: `${range.from * ROW}px` }}>
          ${paths.map(({ kind, d }) => html`<path key=${kind} class="lane ${kind}" d=${d} />`)}${dots}</svg>
        ${slots(range).map(({ index, slot }) => html`<${RowView} key=${slot} laid=${laid[index]} index=${index}
          total=${laid.length} marks=${marks} now=${now} onSelect=${onSelect} />`)}
      </div></div>
    ${children}
    <${Minimap} layout=${layout} names=${marks.names} scroll=${scroll} view=${view}
      onGo=${(top) => box.current?.scrollTo({ top })} /></div>`;
}

/**
 * The mark of a row: its shape tells what made the session.
 * @param {LaidRow} laid @param {number} x @param {number} y @param {Marks} marks @param {boolean} isSelected
 */
function dotOf({ row, colour }, x, y, { tree, names, line }, isSelected) {
  const { session, kind } = row;
  const isOn = kind !== 'removed' && line.has(session.session_id);
  const look = `node c${colour} ${isOn ? 'on' : ''}`;
  if (kind === 'line') return null;
  if (kind === 'attempts') {
    return html`<path key=${row.key} class="${look} few" d=${`M${x} ${y - 5}h0M${x} ${y}h0M${x} ${y + 5}h0`} />`;
  }
  if (kind === 'removed') return html`<circle key=${row.key} class="node removed" cx=${x} cy=${y} r="4" />`;
  if (isWaiting(session, tree)) {
    return html`<g key=${row.key} class="node waits"><circle class="ring" cx=${x} cy=${y} r="6.5" />
      <circle cx=${x} cy=${y} r="3" /></g>`;
  }
  if (session.merged_session_id) {
    return html`<path key=${row.key} class=${look} d=${`M${x} ${y - 6.5}l6.5 6.5l-6.5 6.5l-6.5-6.5z`} />`;
  }
  if (isByHand(session)) {
    const size = { x: x - 4.5, y: y - 4.5, width: 9, height: 9, rx: 1.5 };
    return html`<rect key=${row.key} class="${look} hollow" ...${size} />`;
  }
  const radius = isSelected || names.has(session.session_id) ? 5 : 4;
  return html`<circle key=${row.key} class="${look} ${isSelected ? 'halo' : ''}" cx=${x} cy=${y} r=${radius} />`;
}

/**
 * @param {{ laid: LaidRow, index: number, total: number, marks: Marks, now: number, onSelect }} properties
 */
function RowView({ laid: { row, colour }, index, total, marks, now, onSelect }) {
  const { session, kind, members } = row;
  const { tree, names, line, hits, other } = marks;
  const id = session.session_id;
  const isSession = kind === 'session';
  const isQuiet = isSession && madeBy(session) !== session.agent && !!session.parent_session_id;
  const classes = [
    kind, index === marks.at && 'selected', isSession && id === other && 'second', !line.has(id) && 'off',
    isSession && hits.has(id) && 'hit', isQuiet && 'quieter',
  ];
  const age = span(now - Date.parse(session.created_at));
  const children = isSession ? tree.children.get(id)?.length ?? 0 : 0;
  const what = kind === 'line' ? html`<span class="title">${number(members.length)} sessions in a line
      ${' '}<small>“${nameOf(/** @type {Session} */ (members.at(-1)), tree)}” …
      ${' '}“${nameOf(session, tree)}”</small></span>`
    : kind === 'attempts' ? html`<span class="title">${number(members.length)} attempts that nobody continued
      ${' '}<small>“${nameOf(session, tree)}”</small></span>`
    : kind === 'removed' ? html`<span class="title">A removed session</span>`
    : html`${names.get(id)?.slice(0, 3).map((name) => html`<b class="chip c${colour}">${name}</b>`)}
      ${isWaiting(session, tree) && html`<b class="chip wait">waits for an answer</b>`}
      ${session.run_status === 'stopped' && html`<b class="chip wait">stopped</b>`}
      <span class="title">${nameOf(session, tree)}</span>
      ${id === other && html`<small>compared</small>`}
      ${session.has_files_changed && session.run_id && icon('file')}
      ${children > 1 && html`<small class="forks">${icon('split')}${children}</small>`}`;
  return html`<div id=${`session-${row.key}`} class="trow ${classes.filter(Boolean).join(' ')}" role="option"
    aria-selected=${index === marks.at} aria-setsize=${total} aria-posinset=${index + 1}
    style=${{ translate: `0 ${index * ROW}px` }} onClick=${(event) => onSelect(row, event.shiftKey)}>
    <span class="what">${what}</span><span>${isSession && madeBy(session)}</span>
    <span class="num">${isSession && number(session.message_count)}</span>
    <span class="num">${kind !== 'removed' && age}</span></div>`;
}

/** All lanes in a narrow column, with ticks for threads. A click goes there. */
function Minimap({ layout: { laid, width, spans }, names, scroll, view, onGo }) {
  const rows = Math.max(1, laid.length);
  const paths = useMemo(() => {
    const x = (lane) => (8 + (lane * (MAP - 14)) / Math.max(8, width - 1)).toFixed(1);
    const [lines, dots] = [/** @type {string[]} */ ([]), /** @type {string[]} */ ([])];
    const add = (list, colour, d) => (list[colour] = (list[colour] ?? '') + d);
    for (const { lane, colour, start, end } of spans) add(lines, colour, `M${x(lane)} ${start}V${end}`);
    for (const [index, { lane, colour }] of laid.entries()) add(dots, colour, `M${x(lane)} ${index}h2.5`);
    const ticks = laid.flatMap(({ row }, index) => (names.has(row.key) ? [`M0 ${index}h5`] : []));
    const draw = (kind) => (d, colour) => html`<path key=${kind + colour} class="${kind} c${colour}" d=${d} />`;
    return html`${lines.map(draw('lane'))}${dots.map(draw('spot'))}<path class="tick" d=${ticks.join('')} />`;
  }, [laid, names]);
  const onClick = ({ currentTarget, clientY }) => {
    const { top, height } = currentTarget.getBoundingClientRect();
    onGo(((clientY - top) / height) * rows * ROW - view / 2);
  };
  const percent = (part) => `${Math.min(100, (100 * part) / (rows * ROW))}%`;
  return html`<div class="map" aria-hidden="true" title=${count(rows, 'row')}>
    <div style=${{ height: `min(100%, ${rows * 3}px)` }} onClick=${onClick}>
      <svg viewBox="0 0 ${MAP} ${rows}" preserveAspectRatio="none">${paths}</svg>
      <i style=${{ top: percent(scroll), height: percent(view) }}></i></div></div>`;
}
