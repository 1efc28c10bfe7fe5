// Streams of AG-UI that break: pages that reload or close, runs that are stopped, killed services.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutReplicas, withReplicas } from '../threads.js';
import { answersTo, LIMIT, PICK, prepare, talkIn, user } from './agents.js';

const { model, browser, service, agents, makeAgents } = await prepare();

/** Sends a message, and waits until the page shows the first words of the completion. */
async function begin(page, question, words) {
  await page.send(question);
  const reply = await model.next();
  reply.write(words);
  await page.shows(`assistant: ${words}`);
  return reply;
}

/** Opens a page of a thread that has one turn. */
async function openWithTurn(options) {
  const page = await agents.open(undefined, options);
  (await begin(page, 'Zero?', 'Zero.')).end();
  await page.ends();
  return page;
}

test('a page that is opened again in a stream shows each word once', LIMIT, async () => {
  const page = await openWithTurn();
  const reply = await begin(page, 'Count', 'One, ');
  const ids = await page.ids();
  await page.reload();
  await page.shows('assistant: One, ');
  assert.deepEqual(await page.ids(), ids);
  assert.deepEqual((await page.types()).slice(0, 3), ['RUN_STARTED', 'MESSAGES_SNAPSHOT', 'STEP_STARTED']);
  reply.write('two, ');
  await page.shows('assistant: One, two, ');
  await page.reload();
  await page.shows('assistant: One, two, ');
  reply.write('three.');
  reply.end();
  assert.deepEqual(await page.ends(), { type: 'success' });
  assert.deepEqual(await page.ids(), ids);
  await page.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One, two, three.']);
  assert.deepEqual(await agents.stored(page.id), await page.talk());
});

test('a page that is opened again while an approved call goes on shows all messages', LIMIT, async () => {
  const page = await agents.open();
  const first = await begin(page, 'Write it', 'May I?');
  first.call('write_file', { content: '391', path: 'report.md' });
  first.end();
  const [interrupt] = await page.asks();
  await page.go({ resume: answersTo([interrupt, { approved: true }]) });
  const reply = await model.next();
  reply.write('Done, ');
  await page.shows('assistant: Done, ');
  const before = await page.state();
  await page.reload();
  await page.shows('assistant: Done, ');
  assert.deepEqual((await page.state()).messages, before.messages);
  reply.write('as you said.');
  reply.end();
  await page.checkTalk([...reply.talk, 'assistant: Done, as you said.']);
});

test('a request that is sent several times at once has one run', LIMIT, async () => {
  const id = agents.newId();
  const input = { runId: 'run-1', messages: [user('Count')] };
  const posts = [1, 2, 3].map(() => agents.post(id, input));
  const reply = await model.next();
  reply.write('One, ');
  posts.push(agents.post(id, input));
  reply.write('two.');
  reply.end();
  const talks = (await Promise.all(posts)).map(({ messages }) => talkIn(messages));
  assert.deepEqual(talks, Array(4).fill(['user: Count', 'assistant: One, two.']));
  assert.deepEqual(await agents.statuses(id), ['completed']);
});

test('a request that is refused does not stop the run at work', LIMIT, async () => {
  const page = await openWithTurn();
  const before = (await page.state()).messages;
  const reply = await begin(page, 'Count', 'One, ');
  const messages = [...before, user('Hello?')];
  const sound = { type: 'audio', source: { type: 'data', value: 'AA==', mimeType: 'audio/wav' } };
  for (const more of [
    { messages: [...before, { id: 'forged', role: 'assistant', content: 'Forged' }, user('Hello?')] },
    { messages: [...before, user([sound])] }, { resume: answersTo([{ id: 'call_none' }]) },
    { tools: [{ ...PICK, name: 'calculator' }] },
  ]) await agents.refuse(page.id, { messages, ...more });
  reply.write('two.');
  reply.end();
  await page.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One, two.']);
});

test('a stopped run is cancelled for the page, and the next turn has its words', LIMIT, async () => {
  const page = await agents.open();
  const reply = await begin(page, 'Count', 'One,');
  const [{ id: run }] = await agents.runs(page.id);
  await agents.send('POST', `/v1/runs/${run}/stop`);
  assert.deepEqual(await page.ends(), { type: 'cancelled' });
  await reply.closed;
  await page.checkTalk(['user: Count', 'assistant: One,']);
  assert.deepEqual(await agents.stored(page.id), ['user: Count', 'assistant: One,']);
  const next = await begin(page, 'Go on', 'Two.');
  assert.deepEqual(next.talk, ['user: Count', 'assistant: One,', 'user: Go on']);
  next.end();
  await page.checkTalk(['user: Count', 'assistant: One,', 'user: Go on', 'assistant: Two.']);
});

test('a message after an abort of the page interrupts the run', LIMIT, async () => {
  const page = await openWithTurn();
  const reply = await begin(page, 'Count', 'One,');
  await page.abort();
  await page.ends();
  const next = await begin(page, 'Go on', 'Two.');
  await reply.closed;
  const talk = ['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One,', 'user: Go on'];
  assert.deepEqual(next.talk, talk);
  next.end();
  await page.checkTalk([...talk, 'assistant: Two.']);
  assert.deepEqual(await agents.statuses(page.id), ['completed', 'stopped', 'completed']);
});

test('the run of an aborted or closed page ends after the grace, or goes on', LIMIT, async () => {
  const query = '?grace_seconds=1';
  const ends = ['', '', '&on_disconnect=cancel', '&on_disconnect=continue'];
  const pages = await Promise.all(ends.map((end) => agents.open(undefined, { query: query + end })));
  const replies = [];
  for (const page of pages) replies.push(await begin(page, 'Count', 'One,'));
  const [aborted, closed, cancelled, lasting] = pages;
  await aborted.abort();
  await Promise.all([closed, cancelled, lasting].map((page) => page.close()));
  await Promise.all(replies.slice(0, 3).map((reply) => reply.closed));
  for (const page of [aborted, closed]) await agents.until(page.id, 'stopped');
  await aborted.checkTalk(['user: Count', 'assistant: One,']);
  assert.deepEqual(await agents.stored(closed.id), ['user: Count', 'assistant: One,']);
  await agents.until(cancelled.id, 'cancelled');
  assert.deepEqual(talkIn((await agents.hydrate(cancelled.id)).messages), ['user: Count']);
  await agents.until(lasting.id, 'running');
  replies[3].write(' two.');
  replies[3].end();
  await agents.until(lasting.id, 'completed');
  await (await agents.open(lasting.id)).checkTalk(['user: Count', 'assistant: One, two.']);
});

test('a page that comes back within the grace lets the run go on', LIMIT, async () => {
  const query = '?grace_seconds=1';
  const [back, away] = [await openWithTurn({ query }), await agents.open(undefined, { query })];
  const reply = await begin(back, 'Count', 'One,');
  await back.reload();
  await back.shows('assistant: One,');
  // The grace of this run begins later.
  const ended = await begin(away, 'Count', 'One,');
  await away.close();
  await ended.closed;
  reply.write(' two.');
  reply.end();
  await back.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One, two.']);
});

test('a page that knows an older state interrupts the run of another page, and the thread forks', LIMIT, async () => {
  const first = await openWithTurn();
  const second = await agents.open(first.id);
  const interrupted = await begin(first, 'One?', 'On');
  const reply = await begin(second, 'Two?', 'Two');
  await interrupted.closed;
  assert.deepEqual(reply.talk, ['user: Zero?', 'assistant: Zero.', 'user: Two?']);
  assert.deepEqual(await first.ends(), { type: 'cancelled' });
  reply.write('.');
  reply.end();
  await second.checkTalk([...reply.talk, 'assistant: Two.']);
  await first.reload();
  await first.ends();
  assert.deepEqual(await first.ids(), await second.ids());
  await first.checkTalk([...reply.talk, 'assistant: Two.']);
});

test('the service is killed and started in a stream, and the page loads the thread again', LIMIT, async () => {
  const page = await openWithTurn();
  await begin(page, 'Count', 'One, ');
  const ids = await page.ids();
  await service.kill();
  await page.fails();
  await service.begin();
  await page.go({ first: 0 });
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Zero?', 'assistant: Zero.', 'user: Count']);
  reply.write('Uno, due.');
  reply.end();
  await page.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: Uno, due.']);
  assert.deepEqual((await page.ids()).slice(0, 3), ids.slice(0, 3));
  assert.deepEqual(await agents.stored(page.id), await page.talk());
});

const withPostgres = { ...LIMIT, skip: withoutReplicas };

// The service takes lost words back from a page whose messages it knows.
for (const [what, no, left] of [
  ['all messages shows no lost words', '', []],
  ['only new messages has lost words until it is opened again', 'history', ['reasoning: Hm.', 'assistant: One, ']],
]) {
  test(`the worker is killed, and a page that sends ${what}`, withPostgres, async () => {
    await withReplicas(model, browser, async (api, worker) => {
      const replicated = await makeAgents(undefined, api);
      const page = await replicated.open(undefined, { no, tools: [PICK] });
      await page.send('Which color?');
      await model.play('Which?', ['pick_color', {}]);
      const [call] = await page.calls();
      await page.answer(call, 'red');
      const lost = await model.next();
      lost.reason('Hm.');
      lost.write('One, ');
      await page.shows('assistant: One, ');
      await worker.kill();
      await worker.begin();
      const reply = await model.next();
      const talk = ['user: Which color?', 'assistant: Which? pick_color({})', 'tool: red'];
      assert.deepEqual(reply.talk, talk);
      reply.write('Uno, ');
      await page.shows('assistant: Uno, ');
      assert.equal((await page.types()).includes('MESSAGES_SNAPSHOT'), !no);
      assert.deepEqual(await page.talk(), [...talk, ...left, 'assistant: Uno, ']);
      await page.reload();
      await page.shows('assistant: Uno, ');
      reply.write('due.');
      reply.end();
      await page.checkTalk([...talk, 'assistant: Uno, due.']);
      assert.deepEqual(await replicated.stored(page.id), await page.talk());
      assert.equal((await replicated.runs(page.id)).length, 2);
    });
  });
}
