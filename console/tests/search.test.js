// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { search } from '../logic/search.js';

const heading = (title) => ({ title, anchor: title.toLowerCase().replaceAll(' ', '-') });
const GUIDES = [
  { title: 'Agents', path: '/docs/agents.md', headings: ['All fields', 'Fallback models', 'Rare cases'].map(heading) },
  { title: 'Models', path: '/docs/models.md', headings: ['Prices of models', 'Rare cases'].map(heading) },
  { title: 'Problems', path: '/docs/problems.md', headings: ['session_in_use', 'models_missing'].map(heading) },
];
const hrefs = (query, most = 10) => search(GUIDES, query, most).map(({ href }) => href.replace('/docs/', ''));

test('titles and headings that have all words are found, the best first', () => {
  assert.deepEqual(hrefs('models'), [
    'models.md', 'problems.md#models_missing', 'agents.md#fallback-models', 'models.md#prices-of-models',
  ]);
  assert.deepEqual(hrefs('Session in  use'), ['problems.md#session_in_use']);
  assert.deepEqual(hrefs('ield'), ['agents.md#all-fields']);
  assert.deepEqual(hrefs('models', 2).length, 2);
});

test('the title of a guide may have some of the words of a heading, but not all', () => {
  assert.deepEqual(hrefs('rare models'), ['models.md#rare-cases']);
  assert.deepEqual(search(GUIDES, 'agents', 10), [{ title: 'Agents', guide: '', href: '/docs/agents.md' }]);
});

test('no word finds nothing', () => {
  for (const query of ['', '  ', 'rare nothing']) assert.deepEqual(hrefs(query), []);
});
