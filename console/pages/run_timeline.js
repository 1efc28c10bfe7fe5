// @ts-check
// The timeline of a run: rows of steps, models, tools and subagents over one axis. Only rows in view are in the page.

import { html } from 'htm/preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useKeys } from '../keys.js';
import { duration, number, usd } from '../logic/format.js';
import { LONG, scaleOf } from '../logic/timeline.js';
import { plain } from '../logic/text.js';
import { rowsInView, slots } from '../logic/virtual.js';
import { icon } from '../parts/icons.js';

/** @import { Row, Scale } from '../types.d.ts' */

/** The height of a row, as in the sheet. */
const ROW = 28;
/** Fewer rows than these scroll with the page. More have a scroller of their own. */
const UNBOUNDED = 60;
const LEGEND = {
  wait: 'waits for the model', think: 'reasons', write: 'writes', tool: 'tool', sub: 'subagent', open: 'open',
};

/**
 * @param {{ rows: Row[], steps: number, selected?: Row, isChosen: boolean, isLive: boolean, origin: number,
 *   note: string, onSelect: (key: string) => void, onOpen: (withFocus: boolean) => void,
 *   onToggle: (step: number) => void, onView: (from: number, to: number) => void }} properties
 */
export function Timeline({ rows, steps, selected, isChosen, isLive, origin, note, onView, ...acts }) {
  const { onSelect, onOpen, onToggle } = acts;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const isBounded = rows.length > UNBOUNDED;
  const { scroll, view } = useScroll(box, isBounded, isLive && rows.length);
  const at = selected ? rows.indexOf(selected) : -1;
  const list = { count: rows.length, height: ROW, scroll, view };
  const [seen, drawn] = [rowsInView({ ...list, around: 0 }), rowsInView(list)];
  const inView = rows.slice(seen.from, seen.to);
  const [first, last] = [inView[0]?.number ?? 1, inView.at(-1)?.number ?? 1];
  const isLong = steps > LONG;
  const scale = scaleOf((isLong ? inView : rows).flatMap((row) => row.bars), origin);
  const reveal = (index) => {
    const { current } = box;
    if (!current || index < 0) return;
    if (!isBounded) document.getElementById(idOf(rows[index]))?.scrollIntoView({ block: 'nearest' });
    else if (index * ROW < current.scrollTop) current.scrollTop = index * ROW;
    else current.scrollTop = Math.max(current.scrollTop, (index + 1) * ROW - current.clientHeight);
  };
  const move = (to) => {
    const index = Math.max(0, Math.min(rows.length - 1, to));
    onSelect(rows[index].key);
    reveal(index);
  };
  useEffect(() => onView(Math.max(1, first - 8), last + 8), [first, last, steps]);
  useEffect(() => {
    if (isChosen) reveal(at);
  }, [isChosen && selected?.key]);
  const nextFailed = () => {
    const failed = rows.findIndex((row, index) => index > at && row.isFailed);
    const next = failed < 0 ? rows.findIndex((row) => row.isFailed) : failed;
    if (next >= 0) move(next);
  };
  const row = rows[at];
  const fold = () => {
    if (row?.hasRows) onToggle(row.number);
    else if (row) move(rows.findLastIndex((one, i) => i < at && one.depth < row.depth));
  };
  const unfold = () => {
    if (row?.hasRows) move(at + 1);
    else if (row?.kind === 'step') onToggle(row.number);
  };
  useKeys([
    { keys: 'j', does: 'Next row', run: () => move(at + 1) },
    { keys: 'k', does: 'Previous row', run: () => move(at - 1) },
    { keys: '!', does: 'Next failed row', run: nextFailed },
    { keys: 'Left', does: 'Fold the step, or go to what is around the row', run: fold },
    { keys: 'Right', does: 'Unfold the step, or go into it', run: unfold },
    { keys: 'Enter', does: 'Open the inspector', run: () => onOpen(true) },
  ]);
  const onKeyDown = (event) => {
    const page = Math.max(1, Math.floor(view / ROW) - 1);
    const targets = {
      ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1, PageDown: at + page, PageUp: at - page,
    };
    if (!(event.key in targets)) return;
    move(targets[event.key]);
    event.preventDefault();
  };
  const goTo = (step) => {
    if (box.current) box.current.scrollTop = ROW * rows.findIndex((row) => row.number === step);
  };
  const legend = Object.entries(LEGEND).filter(([kind]) => kind !== 'open' || rows.some((row) => row.isOpen));
  const ticks = (tag, hasText) => scale.ticks.map(({ at: left, label }) =>
    html`<${tag} key=${left} style=${{ left: percent(left) }}>${hasText && label}<//>`);
  return html`<section class="card" aria-label="Timeline">
    <header><h2>Timeline</h2><span class="muted">${note}</span><span class="grow"></span>
      <div class="legend">${legend.map(([kind, name]) => html`<span key=${kind}>
        <i class="bar ${kind}"></i>${name}</span>`)}</div>
    </header>
    ${isLong && html`<${Brush} rows=${rows} steps=${steps} from=${first} to=${last} onGo=${goTo} />`}
    <div class="axis ${isBounded ? 'scrolls' : ''}" aria-hidden="true">
      <span class="label">Step</span><div class="track">${ticks('span', true)}</div>
      <span class="money">Cost</span></div>
    <div class="rows ${isBounded ? 'scrolls' : ''}" ref=${box} role="tree" tabindex="0" aria-label="Steps"
      aria-activedescendant=${selected && at >= drawn.from && at < drawn.to ? idOf(selected) : null}
      onKeyDown=${onKeyDown}>
      <div class="space" style=${{ height: `${rows.length * ROW}px` }}>
        <div class="lines" aria-hidden="true">${ticks('i', false)}
          ${scale.breaks.map(({ at: left, label }) => html`<b key=${left} style=${{ left: percent(left) }}>
            <span>${label}</span></b>`)}</div>
        ${slots(drawn).map(({ index, slot }) => html`<${RowView} key=${slot} row=${rows[index]} index=${index}
          steps=${steps} scale=${scale} isSelected=${index === at} ...${acts} />`)}
      </div></div></section>`;
}

/**
 * Follows the scroller of the rows, and stays at the end of a live run as long as the reader is there.
 * @param {{ current: HTMLElement | null }} box @param {boolean} isBounded @param {number | false} live Its rows.
 */
function useScroll(box, isBounded, live) {
  const [state, setState] = useState({ scroll: 0, view: 600 });
  const isAtEnd = useRef(true);
  const scroller = () => (isBounded ? box.current : box.current?.closest('.body')) ?? null;
  /** Returns how many pixels below the last row of the view the rows go on. */
  const hidden = () => {
    const { current } = box;
    if (!current) return 0;
    const { top } = current.getBoundingClientRect();
    return top + current.scrollHeight - current.scrollTop - (scroller()?.getBoundingClientRect().bottom ?? 0);
  };
  const look = () => {
    const { scrollTop: scroll = 0, clientHeight: view = 0 } = box.current ?? {};
    isAtEnd.current = hidden() < 2 * ROW;
    setState((old) => (old.scroll === scroll && old.view === view ? old : { scroll, view }));
  };
  useEffect(() => {
    const target = scroller();
    const observer = new ResizeObserver(look);
    if (box.current) observer.observe(box.current);
    // A fling coalesces the events of scrolling, so the wheel counts, too.
    for (const name of ['scroll', 'wheel']) target?.addEventListener(name, look, { passive: true });
    return () => {
      observer.disconnect();
      for (const name of ['scroll', 'wheel']) target?.removeEventListener(name, look);
    };
  }, [isBounded]);
  useLayoutEffect(() => {
    const target = scroller();
    if (target && live && isAtEnd.current && hidden() > 0) target.scrollTop += hidden() + (isBounded ? 0 : 3 * ROW);
  }, [live]);
  return state;
}

const percent = (position) => `${(100 * position).toFixed(3)}%`;
/** @param {Row} row */
const idOf = (row) => `row-${row.key.replace(/\W/g, '_')}`;

/** @param {{ row: Row, index: number, steps: number, scale: Scale, isSelected: boolean } & Record<string, any>} row */
function RowView({ row, index, steps, scale, isSelected, onSelect, onOpen, onToggle }) {
  const isStep = row.kind === 'step' || row.kind === 'unread';
  const name = row.kind === 'model' ? 'model' : row.isOpen ? 'shield' : row.call?.agent ? 'people' : 'tool';
  const select = () => {
    onSelect(row.key);
    onOpen(false);
  };
  const toggle = (event) => {
    event.stopPropagation();
    onToggle(row.number);
  };
  const classes = [isStep && 'step', row.hasRows && 'wide', isSelected && 'selected', row.isFailed && 'failed'];
  const took = Number.isNaN(row.start) ? '' : duration(row.end - row.start);
  return html`<div id=${idOf(row)} class="row ${classes.filter(Boolean).join(' ')}" role="treeitem"
    aria-level=${row.depth + 1} aria-posinset=${isStep ? row.number : null} aria-setsize=${isStep ? steps : null}
    aria-selected=${isSelected} aria-expanded=${row.kind === 'step' ? row.hasRows : null}
    style=${{ translate: `0 ${index * ROW}px` }} onClick=${select}>
    <div class="label depth${Math.min(row.depth, 4)}">
      ${!isStep && icon(name)}
      ${isStep && html`<span class="fold" aria-hidden="true" onClick=${toggle}>${row.step && icon('chevron')}</span>
        <span class="n">${row.number}</span>`}
      <span class="title">${row.kind === 'unread' ? '…' : plain(row.label)}</span>
      ${row.kind === 'step' && row.isLive && html`<span class="pulse" title="at work"></span>`}
      ${row.hasRows && html`<small>${took}</small>`}</div>
    ${!row.hasRows && html`<${Track} row=${row} scale=${scale} took=${took} />`}
    <span class="money">${row.cost ? usd(row.cost) : ''}</span></div>`;
}

/** The bars of a row, its retries, and its duration. @param {{ row: Row, scale: Scale, took: string }} properties */
function Track({ row, scale, took }) {
  const retries = row.retries.length;
  const end = scale.position(row.end);
  // The duration stands behind the bars, and on their end only if there is no room.
  const place = { left: `min(${percent(end)} + ${row.isOpen ? 14 : 6}px, 100% - ${retries ? 92 : 58}px)` };
  const bar = ({ kind, start: from, end: to }, key) => {
    const left = scale.position(from);
    return html`<i key=${key} class="bar ${kind}"
      style=${{ left: percent(left), width: percent(scale.position(to) - left) }}></i>`;
  };
  return html`<div class="track">${row.bars.map(bar)}
    ${row.retries.map((time, key) => html`<i key=${`r${key}`} class="retry"
      style=${{ left: percent(scale.position(time)) }}></i>`)}
    ${took && html`<span class="took" style=${place}>${row.isOpen ? 'waits' : took}
      ${retries > 0 && html`<b> ${retries} ${retries > 1 ? 'retries' : 'retry'}</b>`}</span>`}</div>`;
}

/**
 * The whole of a long run, with the steps in view.
 * @param {{ rows: Row[], steps: number, from: number, to: number, onGo }} properties
 */
function Brush({ rows, steps, from, to, onGo }) {
  const marks = rows.filter((row) => row.kind === 'step' && (row.isFailed || row.isOpen)).slice(0, 200);
  const onClick = ({ currentTarget, clientX }) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    onGo(Math.max(1, Math.ceil(((clientX - left) / width) * steps)));
  };
  const left = `min(${percent((from - 1) / steps)}, 100% - 8px)`;
  return html`<div class="brush"><div class="whole" aria-hidden="true" onClick=${onClick}>
      <i class="window" style=${{ left, width: percent((to - from + 1) / steps) }}></i>
      ${marks.map((row) => html`<i key=${row.key} class=${row.isOpen ? 'open' : 'fail'}
        style=${{ left: percent(row.number / steps) }}></i>`)}
    </div><span class="muted">Steps ${number(from)}–${number(to)} of ${number(steps)}</span></div>`;
}
