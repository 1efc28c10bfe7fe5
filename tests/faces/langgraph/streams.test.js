// Streams of LangGraph that break: pages that reload, stop or close, several pages, and services
// that are killed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until, withoutReplicas, withReplicas } from '../threads.js';
import { LIMIT, prepare } from './graphs.js';

const ZERO = ['user: Zero?', 'assistant: Zero.'];

const { model, browser, service, graphs, client, makeGraphs } = await prepare();

/** Sends a message, and waits until the page shows the first words of the completion. */
async function begin(page, question, words, options) {
  await page.act('send', question, options);
  return show(page, words);
}

/** Writes the first words of a completion, and waits until the page shows them. */
async function show(page, words) {
  const reply = await model.next();
  reply.write(words);
  await page.shows(`assistant: ${words}`);
  return reply;
}

/** Opens a page of a thread that has one turn. */
const openWithTurn = (options) => graphs.openWith(model, [['Zero?', 'Zero.']], options);

test('a page that is opened again in a stream shows each word once, and what came before', LIMIT, async () => {
  const { page, id } = await openWithTurn();
  const first = await begin(page, 'Write it', 'May ');
  await page.reload();
  await page.shows('assistant: May ');
  first.write('I?');
  first.call('write_file', { content: '391', path: 'report.md' });
  first.end();
  await page.asks();
  await page.act('resume', { decisions: [{ type: 'approve' }] });
  const reply = await show(page, 'One, ');
  const ids = await page.ids();
  for (const words of ['One, ', 'One, two, ']) {
    await page.reload();
    await page.shows(`assistant: ${words}`);
    assert.deepEqual([await page.ids(), (await page.state()).interrupts], [ids, []]);
    reply.write('two, ');
    await page.shows(`assistant: ${words}two, `);
  }
  reply.end();
  await page.checkTalk([...reply.talk, 'assistant: One, two, two, ']);
  assert.deepEqual([await page.ids(), await graphs.stored(id)], [ids, await page.talk()]);
  assert.deepEqual(await graphs.statuses(id), ['completed', 'answered', 'completed']);
});

test('a stopped run keeps its words, and the next turn has them', LIMIT, async () => {
  const { page, id } = await openWithTurn();
  const reply = await begin(page, 'Count', 'One,');
  await page.act('stop');
  await reply.closed;
  await page.checkTalk([...ZERO, 'user: Count', 'assistant: One,']);
  await graphs.until(id, 'stopped');
  assert.equal((await client.threads.get(id)).status, 'idle');
  const next = await begin(page, 'Go on', 'Two.');
  assert.deepEqual(next.talk, [...ZERO, 'user: Count', 'assistant: One,', 'user: Go on']);
  next.end();
  await page.checkTalk([...next.talk, 'assistant: Two.']);
});

test('the run of a page that joins no streams ends or goes on, as the page has asked', LIMIT, async () => {
  const [ending, lasting] = [await openWithTurn({ no: 'rejoin' }), await openWithTurn({ no: 'rejoin' })];
  const ended = await begin(ending.page, 'Count', 'One,', { streamResumable: false });
  const reply = await begin(lasting.page, 'Count', 'One,');
  await Promise.all([ending.page.tab.close(), lasting.page.reload()]);
  await ended.closed;
  await graphs.until(ending.id, 'stopped');
  assert.equal((await client.threads.get(lasting.id)).status, 'busy');
  await lasting.page.ends();
  const { interrupts } = await lasting.page.state();
  assert.deepEqual([(await lasting.page.talk()).slice(0, 3), interrupts], [[...ZERO, 'user: Count'], []]);
  reply.write(' two.');
  reply.end();
  await graphs.until(lasting.id, 'completed');
  await lasting.page.reload();
  await lasting.page.checkTalk([...ZERO, 'user: Count', 'assistant: One, two.']);
});

test('a page is refused while another page has a run, or waits for its end, or takes it back', LIMIT, async () => {
  const { page: first, id } = await openWithTurn();
  const second = await graphs.open(id);
  const reply = await begin(first, 'One?', 'One.');
  await second.act('send', 'Two?', { multitaskStrategy: 'reject' });
  assert.match(await second.fails(), /^HTTP 409: [^{]/);
  assert.equal((await graphs.runs(id)).length, 2);
  await second.act('send', 'Two?');
  await until('the run waits', async () => (await graphs.statuses(id))[0] === 'queued');
  reply.end();
  const lost = await show(second, 'Two');
  assert.deepEqual(lost.talk, [...ZERO, 'user: One?', 'assistant: One.', 'user: Two?']);
  await first.ends();
  const last = await begin(first, 'Three?', 'Three.', { multitaskStrategy: 'rollback' });
  await lost.closed;
  assert.deepEqual(last.talk, [...lost.talk.slice(0, 4), 'user: Three?']);
  last.end();
  await first.checkTalk([...last.talk, 'assistant: Three.']);
  await second.reload();
  await second.checkTalk([...last.talk, 'assistant: Three.']);
});

test('a page interrupts the run of another page or its own, and continues from its words', LIMIT, async () => {
  const { page: first, id } = await openWithTurn();
  const interrupted = await begin(first, 'One?', 'On');
  const second = await graphs.open(id);
  const own = await begin(second, 'Two?', 'Two', { multitaskStrategy: 'interrupt' });
  await interrupted.closed;
  assert.deepEqual(own.talk, [...ZERO, 'user: One?', 'assistant: On', 'user: Two?']);
  const last = await begin(second, 'Three?', 'Three.', { multitaskStrategy: 'interrupt' });
  await own.closed;
  assert.deepEqual(last.talk, [...own.talk, 'assistant: Two', 'user: Three?']);
  last.end();
  await graphs.until(id, 'completed');
  await first.ends();
  await Promise.all([first.reload(), second.reload()]);
  await first.checkTalk([...last.talk, 'assistant: Three.']);
  await second.checkTalk([...last.talk, 'assistant: Three.']);
  assert.deepEqual(await graphs.statuses(id), ['completed', 'stopped', 'stopped', 'completed']);
});

test('the service is killed and started in a stream, and the page resumes by itself', LIMIT, async () => {
  const { page } = await openWithTurn();
  await begin(page, 'Count', 'One, ');
  await service.kill();
  await service.begin();
  await finish(page, graphs, ZERO);
});

const withPostgres = { ...LIMIT, skip: withoutReplicas };

test('the worker is killed in a stream, and the words of the lost attempt disappear', withPostgres, async () => {
  await withReplicas(model, browser, async (api, worker) => {
    const replicated = await makeGraphs(undefined, api);
    const page = await replicated.open();
    await begin(page, 'Count', 'One, ');
    await worker.kill();
    await worker.begin();
    await finish(page, replicated, []);
  });
});

/** Plays the second attempt of a run. The page must forget the first one. */
async function finish(page, at, before) {
  const reply = await show(page, 'Uno, ');
  assert.deepEqual(reply.talk, [...before, 'user: Count']);
  await page.reload();
  await page.shows('assistant: Uno, ');
  reply.write('due.');
  reply.end();
  await page.checkTalk([...before, 'user: Count', 'assistant: Uno, due.']);
  const id = await page.id();
  assert.deepEqual([await at.stored(id), (await at.runs(id)).length], [await page.talk(), 1 + before.length / 2]);
}
