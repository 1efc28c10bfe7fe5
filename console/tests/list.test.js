// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changedFields, locate, mergePatch, parseDefinition, write } from '../logic/definition.js';
import { filterQuery, join } from '../logic/list.js';

test('new rows join a list, and no row moves', () => {
  const keyOf = (/** @type {string} */ row) => row[0];
  assert.deepEqual(join(['5', '4', '3'], ['7', '6', '5 ended', '4'], keyOf, false), ['7', '6', '5 ended', '4', '3']);
  assert.deepEqual(join(['a', 'c'], ['a', 'b', 'c', 'd'], keyOf, true), ['a', 'b', 'c', 'd']);
  assert.deepEqual(join(['a', 'c'], ['a', 'b', 'c', 'd'], keyOf, false), ['a', 'b', 'c']);
  assert.equal(join(['2', '1'], ['9', '8'], keyOf, false), null, 'there may be rows between them');
  assert.deepEqual(join([], ['1'], keyOf, true), ['1']);
});

test('filters become a query', () => {
  const query = new URLSearchParams('status=failed,running&metadata=customer = a=b&thread=&at=1');
  assert.equal(filterQuery(query, ['status', 'thread', 'metadata']), 'status=failed,running&metadata.customer=a%3Db');
  assert.equal(filterQuery(new URLSearchParams('metadata={"a":1}'), ['metadata']), 'metadata=%7B%22a%22:1%7D');
});

test('a fault has its line', () => {
  const value = { tools: ['a', 'b'], 'x/y': { z: 1 } };
  const lines = write(value).split('\n');
  const lineOf = (/** @type {string} */ pointer) => lines[locate(value, { pointer, message: '' }).line - 1].trim();
  assert.deepEqual(['/tools/1', '/tools/7', '/x~1y/z', '/no'].map(lineOf), ['"b"', '"tools": [', '"z": 1', '{']);
  assert.equal(parseDefinition('{\n  "a": 1,\n}').fault?.line, 3);
  assert.equal(parseDefinition('[]').fault?.line, 1);
});

test('definitions differ by field, and a text by its lines', () => {
  const changes = changedFields({ a: 'x\ny', b: 1, c: [1] }, { a: 'x\nz', c: [1], d: 2 });
  assert.deepEqual(changes.map(({ path, note, lines }) => [path, note, lines.map(({ kind }) => kind).join()]), [
    ['a', 'changed', 'same,del,add'], ['b', 'removed', 'del'], ['d', 'added', 'add'],
  ]);
  assert.deepEqual(mergePatch({ a: 1, b: 2 }, { b: 3, c: 4 }), { a: null, b: 3, c: 4 });
});
