// What people do in a chat of the AI SDK: send, regenerate, edit, and send again after an error.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { start, user } from './chats.js';

const LIMIT = { timeout: 60_000 };

const { model, chats, check, end } = await start();
await chats.makeAgent();
after(end);
afterEach(check);
afterEach(() => chats.rest());

/** Plays a completion that has only words. Returns the conversation that the model has read. */
async function answer(words) {
  const reply = await model.next();
  reply.write(words);
  reply.end();
  return reply.talk;
}

/** Opens a chat that has some turns. Returns it with the session after each turn. */
async function openWith(turns) {
  const chat = await chats.open();
  const sessions = [];
  for (const [question, words] of turns) {
    await chat.send(question);
    await answer(words);
    await chat.ends();
    sessions.push(await chats.session(chat.id));
  }
  return { chat, sessions };
}

test('words appear while the model writes them, and the service stores the message', LIMIT, async () => {
  const chat = await chats.open();
  await chat.send('Hi');
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Hi']);
  reply.reason('A greeting.');
  reply.write('Hel');
  await chat.shows('assistant: (A greeting.) | Hel');
  await chat.is('streaming');
  const ids = await chat.ids();
  reply.write('lo');
  reply.end();
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  await chat.checkTalk(['user: Hi', 'assistant: (A greeting.) | Hello']);
  assert.deepEqual(await chats.stored(chat.id), ['user: Hi', 'assistant: Hello']);

  assert.equal(await chat.reload(), 204);
  await chat.checkTalk(['user: Hi', 'assistant: (A greeting.) | Hello']);
  await chat.send('And you?');
  assert.deepEqual(await answer('Well.'), ['user: Hi', 'assistant: Hello', 'user: And you?']);
  await chat.ends();
  await chat.checkTalk(['user: Hi', 'assistant: (A greeting.) | Hello', 'user: And you?', 'assistant: Well.']);
});

test('a program reads the chunks of the protocol', LIMIT, async () => {
  const id = chats.newId();
  const sent = chats.post(id, [user('Hi', 'u-1')]);
  await answer('Hello');
  const response = await sent;
  const headers = Object.fromEntries(response.headers);
  assert.equal(response.status, 200);
  assert.match(headers['content-type'], /^text\/event-stream\b/);
  assert.equal(headers['x-vercel-ai-ui-message-stream'], 'v1');
  const events = (await response.text()).split('\n\n').filter((event) => event.startsWith('data: '));
  assert.equal(events.pop(), 'data: [DONE]');
  const chunks = events.map((event) => JSON.parse(event.slice('data: '.length)));
  const types = chunks.map(({ type }) => type).filter((type) => !/^(data-|message-metadata)/.test(type));
  const collapsed = types.filter((type, at) => type !== types[at - 1]);
  assert.deepEqual(collapsed, ['start', 'start-step', 'text-start', 'text-delta', 'text-end', 'finish-step', 'finish']);
  assert.equal(chunks.findLast(({ type }) => type === 'finish').finishReason, 'stop');
  const [question, message] = await chats.history(id);
  assert.deepEqual([question.id, message.id], ['u-1', chunks.find(({ type }) => type === 'start').messageId]);
});

test('a chat that nobody has begun is empty', LIMIT, async () => {
  const id = chats.newId();
  const path = `/v1/ai-sdk/assistant/chat/${id}`;
  assert.deepEqual(await chats.history(id), []);
  assert.equal((await chats.send('GET', `${path}/stream`)).status, 204);
  assert.equal((await chats.send('POST', `${path}/stop`)).status, 204);
  const chat = await chats.open(id);
  await chat.is('ready');
  assert.deepEqual(await chat.talk(), []);
});

test('calls of the service show their arguments, and their results or errors', LIMIT, async () => {
  const chat = await chats.open();
  await chat.send('What is 17 * 23?');
  const reply = await model.next();
  reply.write('Let me see.');
  reply.call('calculator', { expression: '17 * 23' });
  reply.call('calculator', { expression: '1 / 0' });
  reply.end();
  const next = await model.next();
  const [, , , error] = next.talk;
  const calls = 'calculator({"expression":"17 * 23"}) calculator({"expression":"1 / 0"})';
  assert.deepEqual(next.talk, ['user: What is 17 * 23?', `assistant: Let me see. ${calls}`, 'tool: 391', error]);
  next.write('It is 391.');
  next.end();
  await chat.ends();
  await chat.checkTalk(['user: What is 17 * 23?',
    'assistant: Let me see. | calculator({"expression":"17 * 23"}) output-available "391"'
    + ` | calculator({"expression":"1 / 0"}) output-error ${JSON.stringify(error.slice(6))} | It is 391.`]);
  assert.deepEqual(await chats.stored(chat.id), [...next.talk, 'assistant: It is 391.']);
});

test('a message is regenerated, the last one or an earlier one', LIMIT, async () => {
  const { chat, sessions: [first, second] } = await openWith([['One?', 'One.'], ['Two?', 'Two.']]);
  const before = await chat.ids();
  await chat.press('Regenerate', 3);
  assert.deepEqual(await answer('Zwei.'), ['user: One?', 'assistant: One.', 'user: Two?']);
  await chat.ends();
  await chat.checkTalk(['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Zwei.']);
  const ids = await chat.ids();
  assert.deepEqual(ids.slice(0, 3), before.slice(0, 3));
  assert.notEqual(ids[3], before[3]);
  const third = await chats.session(chat.id);
  assert.deepEqual([second.parent_session_id, third.parent_session_id], [first.session_id, first.session_id]);
  assert.deepEqual((await chats.talk(second.session_id)).at(-1), 'assistant: Two.');

  await chat.press('Regenerate', 1);
  assert.deepEqual(await answer('Eins.'), ['user: One?']);
  await chat.ends();
  await chat.checkTalk(['user: One?', 'assistant: Eins.']);
  assert.equal((await chats.session(chat.id)).parent_session_id, null);
  assert.deepEqual((await chats.talk(third.session_id)).at(-1), 'assistant: Zwei.');
  assert.deepEqual(await chats.stored(chat.id), ['user: One?', 'assistant: Eins.']);
});

test('a message is edited, a later one or the first one, and the thread moves to a fork', LIMIT, async () => {
  const turns = [['One?', 'One.'], ['Two?', 'Two.'], ['Three?', 'Three.']];
  const { chat, sessions: [first, , third] } = await openWith(turns);
  const [one, , two] = await chat.ids();
  await chat.edit(2, 'Four?');
  assert.deepEqual(await answer('Four.'), ['user: One?', 'assistant: One.', 'user: Four?']);
  await chat.ends();
  await chat.checkTalk(['user: One?', 'assistant: One.', 'user: Four?', 'assistant: Four.']);
  assert.equal((await chat.ids())[2], two);
  const fork = await chats.session(chat.id);
  assert.equal(fork.parent_session_id, first.session_id);
  assert.equal((await chats.talk(third.session_id)).length, 6);

  await chat.edit(0, 'Five?');
  assert.deepEqual(await answer('Five.'), ['user: Five?']);
  await chat.ends();
  await chat.checkTalk(['user: Five?', 'assistant: Five.']);
  assert.equal((await chat.ids())[0], one);
  assert.equal((await chats.session(chat.id)).parent_session_id, null);
  assert.deepEqual(await chats.talk(fork.session_id),
    ['user: One?', 'assistant: One.', 'user: Four?', 'assistant: Four.']);

  await chat.reload();
  await chat.send('Six?');
  assert.deepEqual(await answer('Six.'), ['user: Five?', 'assistant: Five.', 'user: Six?']);
  await chat.ends();
  assert.deepEqual(await chats.stored(chat.id), await chat.talk());
});

test('an error of the model is shown, and the next message sends the failed one again', LIMIT, async () => {
  for (const turns of [[], [['One?', 'One.']]]) {
    const { chat, sessions } = await openWith(turns);
    const before = await chat.talk();
    await chat.send('Two?');
    (await model.next()).fail();
    await chat.is('error');
    const shown = await chat.page.getByRole('alert').innerText();
    assert.match(shown, /^[^{]+$/);
    assert.deepEqual(await chat.talk(), [...before, 'user: Two?']);
    await chats.until(chat.id, 'failed');

    await chat.send('Hello?');
    // One message for the model: providers refuse two of a user in a row.
    assert.deepEqual(await answer('Two.'), [...before, 'user: Two?\n\nHello?']);
    await chat.ends();
    assert.equal(await chat.page.getByRole('alert').count(), 0);
    await chat.checkTalk([...before, 'user: Two?', 'user: Hello?', 'assistant: Two.']);
    assert.deepEqual(await chats.stored(chat.id), await chat.talk());
    const { parent_session_id: parent } = await chats.session(chat.id);
    assert.equal(parent, sessions.at(-1)?.session_id ?? null);
  }
});

test('a failed message is generated again', LIMIT, async () => {
  const { chat } = await openWith([['One?', 'One.']]);
  await chat.send('Two?');
  (await model.next()).fail();
  await chat.is('error');
  await chats.until(chat.id, 'failed');
  await chat.press('Again');
  assert.deepEqual(await answer('Two.'), ['user: One?', 'assistant: One.', 'user: Two?']);
  await chat.ends();
  await chat.checkTalk(['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Two.']);
});
