// @ts-check
// The page of a tree: its sessions as lanes of git, what is selected, and the comparison of any two.

import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useKeys } from '../keys.js';
import { count, number, short } from '../logic/format.js';
import { everyRow, foldRows, layOut, lineOf, withRemoved } from '../logic/lanes.js';
import { icon } from '../parts/icons.js';
import { SEARCH } from '../parts/list.js';
import { Page, said } from '../parts/page.js';
import { Button, ProblemBox, Requests, useRead } from '../parts/ui.js';
import { address, setQuery } from '../router.js';
import { Comparison } from './compare.js';
import { MergeDialog } from './merge.js';
import { ContinueDialog, RemoveDialog, ThreadDialog } from './tree_acts.js';
import { TreeData } from './tree_data.js';
import { FoldView, RemovedView, SessionView } from './tree_inspector.js';
import { isWaiting, madeBy, nameOf, ROW, TreeRows } from './tree_rows.js';

/** @import { Tree } from '../types.d.ts' */

const CRUMBS = [['Sessions', '/console/trees']];
const DIALOGS = { continue: ContinueDialog, thread: ThreadDialog, remove: RemoveDialog, merge: MergeDialog };

/** Whether the inspector is a sheet over the rows, as in the sheet of styles. */
const isSheet = () => matchMedia('(max-width: 1100px)').matches;

/** @param {{ root: string }} properties */
export function TreePage({ root }) {
  const data = useMemo(() => new TreeData(root), [root]);
  useEffect(() => () => data.close(), [data]);
  const record = useRead(`/v1/sessions/${root}?include=`).value;
  const { tree, names, rows, layout, hits, at, other, isFolded } = useTree(data);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [dialog, setDialog] = useState('');
  const [isPaneOpen, setPaneOpen] = useState(/** @type {boolean | undefined} */ (undefined));

  const selectedAt = Math.max(0, rows.findIndex((row) => row.key === at));
  const selected = rows[selectedAt];
  const session = selected?.kind === 'session' ? selected.session : undefined;
  const second = other === session?.session_id ? undefined : tree.byId.get(other);
  const line = useMemo(() => lineOf(tree, selected?.session.session_id), [tree, selected?.session]);
  const select = (key) => setQuery({ at: key });
  const move = (to) => rows.length && select(rows[Math.max(0, Math.min(rows.length - 1, to))].key);
  const openPane = (withFocus) => {
    setPaneOpen(true);
    if (withFocus || isSheet()) setTimeout(() => /** @type {any} */ (document.querySelector('.pane'))?.focus());
  };
  const unfold = (row) => {
    const opened = [address.value.query.get('open'), row.members.at(-1).session_id].filter(Boolean).join(',');
    setQuery({ open: opened, at: row.session.session_id });
  };
  const mark = (id) => {
    setQuery({ with: id === other ? null : id });
    said.value = id === other ? 'No comparison.' : 'Marked. Select another session to compare them.';
  };
  const onSelect = (row, isSecond) => {
    if (isSecond && row.kind === 'session') return mark(row.key);
    if (row.kind === 'line' || row.kind === 'attempts') return unfold(row);
    select(row.key);
    return openPane(false);
  };
  const setFolded = (folded) => setQuery({ fold: folded ? null : 0, open: null, at: selected?.session.session_id });
  const nextHit = (back) => {
    const isHit = (row) => row.kind === 'session' && hits.has(row.key);
    const next = back ? rows.findLastIndex((row, i) => i < selectedAt && isHit(row))
      : rows.findIndex((row, i) => i > selectedAt && isHit(row));
    const first = rows.findIndex(isHit);
    if (first >= 0) move(next < 0 ? first : next);
  };
  const ask = (name) => session && (name !== 'merge' || second) && setDialog(name);
  const top = () => {
    data.release();
    box.current?.scrollTo({ top: 0 });
  };
  const leave = () => (other && !(isPaneOpen && isSheet()) ? setQuery({ with: null }) : setPaneOpen(false));
  const open = () => {
    if (selected?.key.startsWith(':')) unfold(selected);
    else if (selected) openPane(true);
  };
  useKeys([
    { keys: 'j', does: 'Next row', run: () => move(selectedAt + 1) },
    { keys: 'k', does: 'Previous row', run: () => move(selectedAt - 1) },
    { keys: 'p', does: 'Parent', run: () => selected?.parent && select(selected.parent) },
    { keys: 'f', does: 'Fold, or show every session', run: () => setFolded(!isFolded) },
    { keys: 'd', does: 'Mark, to compare with the next', run: () => session && mark(session.session_id) },
    { keys: 'm', does: 'Merge the marked session', run: () => ask('merge') },
    { keys: 'c', does: 'Continue', run: () => ask('continue') },
    { keys: 't', does: 'Point a thread here', run: () => ask('thread') },
    { keys: 'Enter', does: 'Show the folded sessions, or open the inspector', run: open },
    { keys: 'Escape', does: 'End the comparison, or close the inspector', run: leave },
    SEARCH,
  ]);
  const onKeyDown = (event) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 0) / ROW) - 1);
    const targets = {
      ArrowDown: selectedAt + 1, ArrowUp: selectedAt - 1, Home: 0, End: rows.length - 1,
      PageDown: selectedAt + page, PageUp: selectedAt - page,
    };
    if (!(event.key in targets)) return;
    move(targets[event.key]);
    event.preventDefault();
  };
  const onSearchKey = (event) => {
    if (event.key === 'Enter') nextHit(event.shiftKey);
    else if (event.key !== 'Escape') return;
    else {
      setQuery({ q: null });
      box.current?.focus();
    }
    event.preventDefault();
  };
  // A selection that comes from the address is shown as soon as it was read.
  useEffect(() => {
    const { current } = box;
    if (!current || (selectedAt === 0 && !at)) return;
    const [from, to] = [selectedAt * ROW, (selectedAt + 1) * ROW];
    const isFar = from < current.scrollTop - 4 * ROW || to > current.scrollTop + current.clientHeight + 4 * ROW;
    if (isFar) current.scrollTop = from - current.clientHeight / 2;
    else current.scrollTop = Math.min(from, Math.max(current.scrollTop, to - current.clientHeight));
  }, [selected?.key, isFolded]);

  const state = data.state.value;
  const held = data.held.value.length;
  const threads = [...names.values()].flat().length;
  const marks = { tree, names, line, hits, at: selectedAt, other };
  const acts = { onSelect: select, onMark: () => mark(session?.session_id), onAsk: ask };
  const { colour } = layout.laid[selectedAt] ?? {};
  const known = { tree, names, colour, other: second, isMarked: !!session && other === session.session_id };
  const pane = !selected ? html`<p class="muted">Nothing is selected.</p>`
    : selected.kind === 'removed' ? html`<${RemovedView} row=${selected} />`
    : !session ? html`<${FoldView} row=${selected} onOpen=${() => unfold(selected)} />`
    : html`<${SessionView} key=${session.session_id} session=${session} ...${known} ...${acts} />
      ${second && html`<${Comparison} key=${other} left=${second} right=${session} tree=${tree}
        onSelect=${select} />`}`;
  const title = record ? nameOf(record) : short(root);
  const path = { method: 'GET', path: `/v1/sessions?root=${root}&limit=200` };
  const finish = (id) => {
    setDialog('');
    if (id) setQuery({ at: id, with: null });
  };
  return html`<${Page} title=${title} crumbs=${CRUMBS} actions=${html`<${Requests} calls=${{ 'This tree': path }} />`}
    pane=${pane} paneLabel="Selected session" isPaneOpen=${isPaneOpen} onClosePane=${() => setPaneOpen(false)}>
    <div class="tree">
      <div class="treebar"><label class="find">${icon('search')}<input type="search" aria-label="Find"
          placeholder="Find by text, id, name, agent" value=${address.value.query.get('q')} onKeyDown=${onSearchKey}
          onInput=${(event) => setQuery({ q: event.target.value })} /></label>
        <div class="seg" role="group" aria-label="Rows">
          <button type="button" aria-pressed=${isFolded} onClick=${() => setFolded(true)}>Forks and names</button>
          <button type="button" aria-pressed=${!isFolded} onClick=${() => setFolded(false)}>Every session</button></div>
        <span class="grow"></span><span class="muted">
          ${address.value.query.get('q') && `${count(hits.size, 'hit')} · `}
          ${count(tree.list.length, 'session')}${state === 'all' ? '' : ' so far'} · ${count(rows.length, 'row')}
          ${threads > 0 && ` · ${count(threads, 'thread')}`}</span>
        ${state === 'more' && html`<${Button} onClick=${() => data.readMore()}>Read older ones<//>`}</div>
      <${ProblemBox} problem=${data.problem.value} />
      ${rows.length > 0 && html`<${TreeRows} box=${box} layout=${layout} marks=${marks} onKeyDown=${onKeyDown}
        onSelect=${onSelect} onTop=${(isAtTop) => {
          data.isAtTop = isAtTop;
          if (isAtTop) data.release();
        }}>${held > 0 && html`<button type="button" class="pill" onClick=${top}>${number(held)} new</button>`}<//>`}
      ${!rows.length && html`<p class="nothing muted">${state === 'reading' ? 'Reading the tree…'
        : 'This tree has no sessions.'}</p>`}
    </div>
    ${dialog && session && html`<${DIALOGS[dialog]} session=${session} other=${second} tree=${tree} data=${data}
      onDone=${finish} onClose=${() => setDialog('')} />`}<//>`;
}

/** Lays the tree out as the address wants it. @param {TreeData} data */
function useTree(data) {
  const { query } = address.value;
  const [at, other, words, open] = ['at', 'with', 'q', 'open'].map((name) => query.get(name) ?? '');
  const isFolded = query.get('fold') !== '0';
  const [tree, names, state] = [data.tree.value, data.names.value, data.state.value];
  const hits = useMemo(() => hitsOf(tree, names, words.trim().toLowerCase()), [tree, names, words]);
  const main = useMemo(() => {
    const [first] = [...names].sort(([, [a]], [, [b]]) => a.localeCompare(b));
    return lineOf(tree, first?.[0] ?? tree.list[0]?.session_id);
  }, [tree, names]);
  const { rows, layout } = useMemo(() => {
    const sources = new Set(tree.list.map((session) => session.merged_session_id));
    const [tip] = main;
    const keep = (session) => {
      const id = session.session_id;
      return id === tip || names.has(id) || sources.has(id) || !!session.merged_session_id || isWaiting(session, tree);
    };
    const wanted = { keep, pinned: new Set([at, other, ...hits]), opened: new Set(open.split(',')) };
    const some = isFolded ? foldRows(tree, wanted) : everyRow(tree);
    const made = state === 'all' ? withRemoved(some, tree) : some;
    return { rows: made, layout: layOut(made, main, tree) };
  }, [tree, names, main, hits, at, other, open, isFolded, state === 'all']);
  return { tree, names, rows, layout, hits, at, other, isFolded };
}

/** @param {Tree} tree @param {Map<string, string[]>} names @param {string} words */
function hitsOf({ list }, names, words) {
  const has = (text) => !!text?.toLowerCase().includes(words);
  const isHit = (session) => has(session.preview) || has(session.title) || session.session_id.startsWith(words)
    || has(madeBy(session)) || names.get(session.session_id)?.some(has);
  return new Set(words ? list.filter(isHit).map((session) => session.session_id) : []);
}
