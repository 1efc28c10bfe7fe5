// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canSettle, choicesOf } from '../logic/merge.js';

const version = (hash) => ({ kind: 'file', hash });
const conflict = (name, kind = 'both_changed', part = 'files') => /** @type {any} */ ({ part, name, kind });
const files = new Map(Object.entries({
  a: { path: 'a', left: version('2'), right: version('1') },
  b: { path: 'b', right: version('3') },
  c: { path: 'c', right: version('4') },
  link: { path: 'link', left: version('5'), right: { kind: 'symlink' } },
}));

test('theirs is written into mine, and mine into theirs', () => {
  const list = [conflict('a'), conflict('b', 'changed_and_deleted'), conflict('c', 'file_and_directory')];
  assert.deepEqual(choicesOf(list, files, { a: 'theirs', b: 'theirs' }), {
    onMine: [{ path: 'a', content: { blob: '2' }, executable: false }, { path: 'b', delete: true }], onTheirs: [],
  });
  assert.deepEqual(choicesOf(list, files, { a: 'mine', c: 'mine' }).onTheirs, [
    { path: 'a', content: { blob: '1' }, executable: false },
    { path: 'c', delete: true }, { path: 'c', content: { blob: '4' }, executable: false },
  ]);
});

test('variables, symlinks and files that the comparison left out are not settled here', () => {
  assert.equal(canSettle(conflict('a'), files), true);
  for (const one of [conflict('zone', 'both_changed', 'variables'), conflict('link'), conflict('unknown')]) {
    assert.equal(canSettle(one, files), false);
  }
});
