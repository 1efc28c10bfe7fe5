// What people do on a page with `useStream`: send, edit, regenerate, switch branches, and send
// again after an error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMIT, prepare } from './graphs.js';

const SUM = { expression: '17 * 23' };
const SUMS = `calculator(${JSON.stringify(SUM)}) calculator({"expression":"1 / 0"})`;

const { model, graphs, client } = await prepare();

const sessionOf = async (page) => (await graphs.session(await page.id())).session_id;
const parentOf = async (session) => (await graphs.read(`/v1/sessions/${session}?include=`)).parent_session_id;

test('words appear while the model writes them, and a page that is loaded again has them', LIMIT, async () => {
  const page = await graphs.open();
  await page.act('send', 'Hi');
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Hi']);
  const [question] = await page.ids();
  reply.reason('A gree');
  reply.reason('ting.');
  reply.write('Hel');
  await page.shows('assistant: Hel');
  const ids = await page.ids();
  assert.equal(ids[0], question);
  reply.write('lo');
  reply.end();
  await page.checkTalk(['user: Hi', 'assistant: Hello']);
  const { messages, runs, thread } = await page.state();
  assert.deepEqual(await page.ids(), ids);
  assert.match(JSON.stringify(messages[1]), /"A greeting\."/);
  assert.deepEqual(await graphs.runs(thread), [{ id: runs[0], status: 'completed' }]);
  assert.deepEqual(await graphs.stored(thread), ['user: Hi', 'assistant: Hello']);
  await page.reload();
  assert.deepEqual((await page.state()).messages, messages);
  assert.deepEqual(await page.branches(), [null, null]);
});

test('calls of the service show their arguments, and their results or errors', LIMIT, async () => {
  const page = await graphs.open();
  await page.act('send', 'What is 17 * 23?');
  const reply = await model.next();
  reply.write('Let me see.');
  reply.call('calculator', SUM);
  reply.call('calculator', { expression: '1 / 0' });
  await page.shows(`assistant: Let me see. ${SUMS}`);
  reply.end();
  const next = await model.next();
  const [, , , error] = next.talk;
  assert.deepEqual(next.talk, ['user: What is 17 * 23?', `assistant: Let me see. ${SUMS}`, 'tool: 391', error]);
  await page.shows(error);
  next.write('It is 391.');
  next.end();
  await page.checkTalk([...next.talk, 'assistant: It is 391.']);
  const { messages: [, { tool_calls: [one, two] }, ...results] } = await page.state();
  assert.deepEqual(results.slice(0, 2).map(({ name, status, tool_call_id: call }) => [name, status, call]),
    [['calculator', 'success', one.id], ['calculator', 'error', two.id]]);
  assert.deepEqual(await graphs.stored(await page.id()), await page.talk());
});

test('an answer is regenerated, and the page switches between its branches', LIMIT, async () => {
  const { page, id, sessions: [first, second] } = await graphs.openWith(model, [['One?', 'One.'], ['Two?', 'Two.']]);
  const before = await page.ids();
  await page.act('regenerate', 3);
  assert.deepEqual(await model.play('Zwei.'), ['user: One?', 'assistant: One.', 'user: Two?']);
  await page.checkTalk(['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Zwei.']);
  const ids = await page.ids();
  assert.deepEqual([ids.slice(0, 3), ids[3] === before[3]], [before.slice(0, 3), false]);
  assert.deepEqual([await parentOf(second), await parentOf(await sessionOf(page))], [first, first]);
  assert.deepEqual(await page.branches(), [null, null, null, '2 / 2']);
  await page.act('switch', 3, 0);
  await page.shows('assistant: Two.');
  assert.deepEqual([await page.ids(), await page.branches()], [before, [null, null, null, '1 / 2']]);
  await page.act('send', 'Three?');
  const talk = ['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Two.', 'user: Three?'];
  assert.deepEqual(await model.play('Three.'), talk);
  await page.checkTalk([...talk, 'assistant: Three.']);
  assert.equal(await parentOf(await sessionOf(page)), second);
  await page.reload();
  await page.checkTalk([...talk, 'assistant: Three.']);
  await page.act('regenerate', 1);
  assert.deepEqual(await model.play('Eins.'), ['user: One?']);
  await page.checkTalk(['user: One?', 'assistant: Eins.']);
  assert.deepEqual([await page.branches(), await graphs.stored(id)], [[null, '2 / 2'], await page.talk()]);
});

test('messages of a long thread are edited, a later one and the first one, and the branches stay', LIMIT, async () => {
  const turns = [1, 2, 3, 4, 5, 6, 7].map((number) => [`${number}?`, `${number}.`]);
  const { page, sessions: [first, ...others] } = await graphs.openWith(model, turns);
  await page.reload();
  await page.act('edit', 2, 'Two?');
  assert.deepEqual(await model.play('Two.'), ['user: 1?', 'assistant: 1.', 'user: Two?']);
  await page.checkTalk(['user: 1?', 'assistant: 1.', 'user: Two?', 'assistant: Two.']);
  assert.deepEqual(await page.branches(), [null, null, '2 / 2', null]);
  assert.equal(await parentOf(await sessionOf(page)), first);
  await page.act('edit', 0, 'One?');
  assert.deepEqual(await model.play('One.'), ['user: One?']);
  await page.checkTalk(['user: One?', 'assistant: One.']);
  assert.deepEqual(await page.branches(), ['2 / 2', null]);
  assert.equal(await parentOf(await sessionOf(page)), null);
  await page.act('switch', 0, 0);
  await page.shows('assistant: Two.');
  await page.act('switch', 2, 0);
  await page.shows('assistant: 7.');
  assert.deepEqual(await page.talk(), await graphs.talk(others.at(-1)));
  await page.act('regenerate', 13);
  assert.deepEqual((await model.play('Seven.')).slice(-2), ['assistant: 6.', 'user: 7?']);
  await page.checkTalk();
  assert.deepEqual([(await page.talk()).at(-1), (await page.branches()).at(-1)], ['assistant: Seven.', '2 / 2']);
});

test('an error of the model is shown, after a load too, and the turn is tried again', LIMIT, async () => {
  for (const turns of [[], [['One?', 'One.']]]) {
    const { page, sessions } = await graphs.openWith(model, turns);
    const before = await page.talk();
    await page.act('send', 'Two?');
    (await model.next()).fail();
    const error = await page.fails();
    assert.match(error, /^[^{]+$/);
    const id = await page.id();
    await graphs.until(id, 'failed');
    await page.reload();
    for (const one of [page, await graphs.open(id)]) {
      assert.equal(await one.fails(), error);
      assert.deepEqual([await one.talk(), (await one.state()).interrupts], [[...before, 'user: Two?'], []]);
    }
    assert.equal((await client.threads.get(id)).status, 'error');
    const more = turns.length ? [] : ['Hello?'];
    await page.act(...turns.length ? ['goOn'] : ['send', 'Hello?']);
    // One message for the model: providers refuse two of a user in a row.
    assert.deepEqual(await model.play('Two.'), [...before, ['user: Two?', ...more].join('\n\n')]);
    await page.checkTalk([...before, 'user: Two?', ...more.map((words) => `user: ${words}`), 'assistant: Two.']);
    assert.equal(await parentOf(await sessionOf(page)), sessions.at(-1) ?? null);
    await page.reload();
    await page.checkTalk(await graphs.stored(id));
  }
});
