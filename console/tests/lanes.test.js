// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { descendantsOf, drawLines, everyRow, foldRows, layOut, lineOf, treeOf, withRemoved } from '../logic/lanes.js';

/** Makes sessions from `id<parent` and `id<parent+second`, oldest first. @param {string} text */
const sessions = (text) => text.split(' ').map((word, index) => {
  const [, id, parent, second] = /** @type {RegExpExecArray} */ (/^(\w+)(?:<(\w+))?(?:\+(\w+))?$/.exec(word));
  return /** @type {any} */ ({
    session_id: id, parent_session_id: parent ?? null, merged_session_id: second ?? null, environment_session_id: null,
    created_at: new Date(index * 1000).toISOString(),
  });
});
const wanted = (more = {}) => ({ keep: () => false, pinned: new Set(), opened: new Set(), ...more });
const LINE = 'a b<a c<b d<c e<d f<e';
const keys = (rows) => rows.map(({ key }) => key).join(' ');

test('a line is one row, and what is opened, kept or pinned splits it', () => {
  const tree = treeOf(sessions(LINE));
  assert.equal(keys(foldRows(tree, wanted())), 'f :e a');
  assert.equal(keys(foldRows(tree, wanted({ opened: new Set(['c']) }))), 'f e d c b a');
  assert.equal(keys(foldRows(tree, wanted({ pinned: new Set(['e']) }))), 'f e :d a');
  assert.equal(keys(foldRows(tree, wanted({ keep: ({ session_id: id }) => id === 'c' }))), 'f e d c b a');
  assert.equal(keys(foldRows(tree, wanted({ opened: new Set(['c']), pinned: new Set(['b']) }))), 'f e d c b a');
});

test('attempts that nobody continued are one row', () => {
  const tree = treeOf(sessions('a b<a c<a d<a e<a f<e'));
  const rows = foldRows(tree, wanted());
  assert.equal(keys(rows), 'f e :d a');
  assert.deepEqual(rows[2].members.map(({ session_id: id }) => id), ['d', 'c', 'b']);
  assert.equal(keys(foldRows(tree, wanted({ pinned: new Set(['c']) }))), 'f e d c b a');
});

test('the main line has lane 0, a fork its own, and a lane is used again', () => {
  const tree = treeOf(sessions('a b<a x<a c<b y<b d<c'));
  const { laid, width, spans } = layOut(everyRow(tree), lineOf(tree, 'd'), tree);
  assert.equal(laid.map(({ row, lane }) => row.key + lane).join(' '), 'd0 y1 c0 x2 b0 a0');
  assert.equal(width, 3);
  const fork = spans.find(({ from }) => from === 'y');
  assert.deepEqual([fork?.start, fork?.end, fork?.want], [1, 4, 'b']);
});

test('a branch keeps its colour when it grows', () => {
  const colours = (text) => {
    const tree = treeOf(sessions(text));
    const { laid } = layOut(everyRow(tree), lineOf(tree, 'd'), tree);
    return Object.fromEntries(laid.map(({ row, colour }) => [row.key, colour]));
  };
  const before = colours('a b<a x<a z<x c<b y<b d<c');
  const { x2, ...after } = colours('a b<a x<a z<x c<b y<b d<c x2<z');
  assert.deepEqual(after, before);
  assert.equal(x2, before.x);
});

test('a merge has a second line, and the line to the root is drawn apart', () => {
  const tree = treeOf(sessions('a b<a c<a m<b+c'));
  const line = lineOf(tree, 'm');
  const { laid } = layOut(everyRow(tree), line, tree);
  assert.deepEqual([laid[0].merge?.want, laid[1].row.key, laid[1].lane], ['c', 'c', laid[0].merge?.lane]);
  const paths = drawLines(laid, line, { height: 30, x: (lane) => 10 + lane * 14 });
  assert.ok(paths.some(({ kind }) => kind === `merge c${laid[0].merge?.colour}`));
  assert.equal(paths.at(-1)?.kind, 'on c0');
});

test('a removed parent is a row, and a parent above its child opens no line', () => {
  const tree = treeOf(sessions('b<gone c<b d<gone'));
  const rows = withRemoved(everyRow(tree), tree);
  assert.equal(keys(rows), 'd c b gone');
  const late = treeOf([...sessions('b<a'), { ...sessions('x a')[1] }]);
  assert.equal(layOut(everyRow(late), new Set(), late).spans.length, 0);
  assert.deepEqual(descendantsOf(treeOf(sessions(LINE)), 'd'), ['d', 'e', 'f']);
});

test('20,000 sessions with forks are laid out in less than five seconds', () => {
  const parentOf = (i) => Math.max(0, i - 1 - ((i * 7) % 5) * (i % 3));
  const words = Array.from({ length: 20_000 }, (_, i) => (i ? `s${i}<s${parentOf(i)}` : 's0'));
  const many = sessions(words.join(' '));
  const start = performance.now();
  const tree = treeOf(many);
  const { laid } = layOut(foldRows(tree, wanted()), lineOf(tree, 's19999'), tree);
  assert.ok(laid.length > 1000);
  assert.ok(performance.now() - start < 5000);
});
