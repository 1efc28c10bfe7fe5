// Streams of a chat that break: pages that reload, stop or close, and services that are killed.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { withoutReplicas, withReplicas } from '../threads.js';
import { Chats, start } from './chats.js';

const LIMIT = { timeout: 60_000 };

const { model, browser, service, chats, check, end } = await start();
await chats.makeAgent();
after(end);
afterEach(check);
afterEach(() => chats.rest());

/** Sends a message, and waits until the page shows the first words of the completion. */
async function begin(chat, question, words) {
  await chat.send(question);
  const reply = await model.next();
  reply.write(words);
  await chat.shows(`assistant: ${words}`);
  return reply;
}

/** Opens a chat that has one turn. */
async function openWithTurn(options) {
  const chat = await chats.open(undefined, options);
  (await begin(chat, 'Zero?', 'Zero.')).end();
  await chat.ends();
  return chat;
}

test('a page that is opened again in a stream shows each word once', LIMIT, async () => {
  const chat = await openWithTurn();
  const reply = await begin(chat, 'Count', 'One, ');
  const ids = await chat.ids();
  await chat.reload();
  await chat.shows('assistant: One, ');
  await chat.is('streaming');
  assert.deepEqual(await chat.ids(), ids);
  reply.write('two, ');
  await chat.shows('assistant: One, two, ');
  await chat.reload();
  await chat.shows('assistant: One, two, ');
  reply.write('three.');
  reply.end();
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  await chat.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One, two, three.']);
  assert.deepEqual(await chats.stored(chat.id), await chat.talk());
});

test('a page that is opened again while an approved call goes on shows the whole message', LIMIT, async () => {
  const chat = await chats.open();
  const first = await begin(chat, 'Write it', 'May I?');
  first.call('write_file', { content: '391', path: 'report.md' });
  first.end();
  await chat.asks(1);
  const ids = await chat.ids();
  await chat.press('Approve');
  const reply = await model.next();
  reply.write('Done, ');
  const call = 'write_file({"content":"391","path":"report.md"})';
  const line = `assistant: May I? | ${call} output-available ${JSON.stringify(reply.talk.at(-1).slice(6))} | Done, `;
  await chat.shows(line);
  await chat.reload();
  await chat.shows(line);
  assert.deepEqual(await chat.ids(), ids);
  reply.write('as you said.');
  reply.end();
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  await chat.checkTalk(['user: Write it', `${line}as you said.`]);
});

test('a stopped run keeps its words, and the next turn has them', LIMIT, async () => {
  const chat = await chats.open();
  const reply = await begin(chat, 'Count', 'One,');
  await chat.press('Stop');
  await chat.ends();
  await reply.closed;
  await chats.until(chat.id, 'stopped');
  await chat.checkTalk(['user: Count', 'assistant: One,']);
  assert.deepEqual(await chats.stored(chat.id), ['user: Count', 'assistant: One,']);
  const next = await begin(chat, 'Go on', 'Two.');
  assert.deepEqual(next.talk, ['user: Count', 'assistant: One,', 'user: Go on']);
  next.end();
  await chat.ends();
  await chat.checkTalk(['user: Count', 'assistant: One,', 'user: Go on', 'assistant: Two.']);
});

test('a message after a stop of the page alone interrupts the run', LIMIT, async () => {
  const chat = await chats.open();
  const reply = await begin(chat, 'Count', 'One,');
  await chat.press('Disconnect');
  await chat.is('ready');
  const next = await begin(chat, 'Go on', 'Two.');
  await reply.closed;
  assert.deepEqual(next.talk, ['user: Count', 'assistant: One,', 'user: Go on']);
  next.end();
  await chat.ends();
  await chat.checkTalk(['user: Count', 'assistant: One,', 'user: Go on', 'assistant: Two.']);
  assert.deepEqual((await chats.runs(chat.id)).map(({ status }) => status), ['completed', 'stopped']);
});

test('the run of a closed page ends after the grace, or goes on', LIMIT, async () => {
  const ending = await chats.open(undefined, { query: '?grace_seconds=1' });
  const ended = await begin(ending, 'Count', 'One,');
  const lasting = await chats.open(undefined, { query: '?grace_seconds=1&on_disconnect=continue' });
  const reply = await begin(lasting, 'Count', 'One,');
  await Promise.all([ending, lasting].map(({ page }) => page.close()));
  await ended.closed;
  await chats.until(ending.id, 'stopped');
  assert.deepEqual(await chats.stored(ending.id), ['user: Count', 'assistant: One,']);
  await chats.until(lasting.id, 'running');
  reply.write(' two.');
  reply.end();
  await chats.until(lasting.id, 'completed');
  assert.deepEqual(await chats.stored(lasting.id), ['user: Count', 'assistant: One, two.']);
  const later = await chats.open(lasting.id);
  await later.checkTalk(['user: Count', 'assistant: One, two.']);
});

test('a page that comes back within the grace lets the run go on', LIMIT, async () => {
  const query = '?grace_seconds=1';
  const [back, away] = [await openWithTurn({ query }), await chats.open(undefined, { query })];
  const reply = await begin(back, 'Count', 'One,');
  await back.reload();
  await back.shows('assistant: One,');
  // The grace of this run begins later.
  const ended = await begin(away, 'Count', 'One,');
  await away.page.close();
  await ended.closed;
  reply.write(' two.');
  reply.end();
  await back.ends();
  await back.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: One, two.']);
});

test('a second page that knows an older state interrupts the first, and both get the same chat', LIMIT, async () => {
  const first = await openWithTurn();
  const second = await chats.open(first.id, { no: 'resume' });
  const interrupted = await begin(first, 'One?', 'On');
  const reply = await begin(second, 'Two?', 'Two');
  await interrupted.closed;
  assert.deepEqual(reply.talk, ['user: Zero?', 'assistant: Zero.', 'user: Two?']);
  await first.ends();
  reply.write('.');
  reply.end();
  await second.ends();
  const talk = ['user: Zero?', 'assistant: Zero.', 'user: Two?', 'assistant: Two.'];
  assert.deepEqual(await second.talk(), talk);
  await first.reload();
  assert.deepEqual(await first.ids(), await second.ids());
  await first.checkTalk(talk);
  assert.deepEqual(await chats.stored(first.id), talk);
});

test('a second page that watches the stream interrupts it, and continues from its words', LIMIT, async () => {
  const first = await openWithTurn();
  const interrupted = await begin(first, 'One?', 'On');
  const second = await chats.open(first.id);
  await second.shows('assistant: On');
  assert.deepEqual(await second.ids(), await first.ids());
  await second.press('Disconnect');
  await second.is('ready');
  const reply = await begin(second, 'Two?', 'Two.');
  await interrupted.closed;
  assert.deepEqual(reply.talk, ['user: Zero?', 'assistant: Zero.', 'user: One?', 'assistant: On', 'user: Two?']);
  reply.end();
  await Promise.all([first.ends(), second.ends()]);
  await second.checkTalk([...reply.talk, 'assistant: Two.']);
  await first.reload();
  assert.deepEqual(await first.ids(), await second.ids());
  assert.deepEqual(await first.talk(), await second.talk());
});

test('the service is killed and started in a stream, and the page resumes', LIMIT, async () => {
  const chat = await openWithTurn();
  await begin(chat, 'Count', 'One, ');
  const ids = await chat.ids();
  await service.kill();
  await chat.is('error');
  await service.begin();
  await chat.press('Resume');
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Zero?', 'assistant: Zero.', 'user: Count']);
  reply.write('Uno, due.');
  reply.end();
  await chat.ends();
  await chat.checkTalk(['user: Zero?', 'assistant: Zero.', 'user: Count', 'assistant: Uno, due.']);
  assert.deepEqual(await chat.ids(), ids);
  assert.deepEqual(await chats.stored(chat.id), await chat.talk());
});

const withPostgres = { ...LIMIT, skip: withoutReplicas };

test('the worker is killed in a stream, and the words of the lost attempt disappear', withPostgres, async () => {
  await withReplicas(model, browser, (api, worker) => takeOver(new Chats(api, browser), worker));
});

/** Kills the worker of a run that streams. */
async function takeOver(replicated, worker) {
  await replicated.makeAgent();
  const chat = await replicated.open();
  await begin(chat, 'Count', 'One, ');
  const ids = await chat.ids();
  await worker.kill();
  await worker.begin();
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Count']);
  reply.write('Uno, ');
  await chat.shows('assistant: Uno, ');
  await chat.reload();
  await chat.shows('assistant: Uno, ');
  reply.write('due.');
  reply.end();
  await chat.ends();
  await chat.checkTalk(['user: Count', 'assistant: Uno, due.']);
  assert.deepEqual(await chat.ids(), ids);
  assert.deepEqual(await replicated.stored(chat.id), ['user: Count', 'assistant: Uno, due.']);
  assert.equal((await replicated.runs(chat.id)).length, 1);
}
