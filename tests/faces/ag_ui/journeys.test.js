// What people do on a page with AG-UI: send, edit, regenerate, and send again after an error.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { LIMIT, prepare, user } from './agents.js';

const STEP = ['STEP_STARTED', 'STEP_FINISHED'];
const TEXT = ['TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'];

const { model, agents } = await prepare();

/** Opens a page with some turns. Returns it with the session after each turn. */
async function openWith(turns, options) {
  const page = await agents.open(undefined, options);
  const sessions = [];
  for (const [question, words] of turns) {
    await page.send(question);
    await model.play(words);
    await page.ends();
    sessions.push(await agents.session(page.id));
  }
  return { page, sessions };
}

/** Returns the instructions that a model reads. */
const promptOf = ({ request }) => JSON.stringify(request.messages.filter(({ role }) => role === 'system'));

test('words appear while the model writes them, and a page that is loaded again has them', LIMIT, async () => {
  const page = await agents.open();
  assert.deepEqual(await page.types(), ['RUN_STARTED', 'RUN_FINISHED']);
  await page.checkTalk([]);
  assert.deepEqual(await agents.runs(page.id), []);
  await page.send('Hi');
  const reply = await model.next();
  assert.deepEqual(reply.talk, ['user: Hi']);
  reply.reason('A greeting.');
  reply.write('Hel');
  await page.shows('assistant: Hel');
  reply.write('lo');
  reply.end();
  assert.deepEqual(await page.ends(), { type: 'success' });
  await page.checkTalk(['user: Hi', 'reasoning: A greeting.', 'assistant: Hello']);
  assert.deepEqual(await agents.stored(page.id), ['user: Hi', 'assistant: Hello']);

  const { events, input } = await page.run();
  const [{ id: runId }] = await agents.runs(page.id);
  const { session_id: sessionId } = await agents.session(page.id);
  const { threadId, runId: ofCaller, protocolVersion, metadata } = events[0];
  assert.deepEqual([threadId, ofCaller, protocolVersion], [page.id, input.runId, '1.0']);
  assert.deepEqual(metadata, { runId, sessionId });
  assert.deepEqual(await page.types(), ['RUN_STARTED', STEP[0], 'REASONING_START', 'REASONING_MESSAGE_START',
    'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END', 'REASONING_END', ...TEXT, STEP[1], 'RUN_FINISHED']);
  assert.equal(events.find(({ type }) => type === STEP[0]).stepName, 'step-1');
  const { usage: [usage, ...others] } = events.at(-1);
  assert.deepEqual([usage.provider, usage.inputTokens, usage.outputTokens, others], ['mock', 10, 5, []]);
  const [, thought, message] = await page.ids();
  assert.equal(message.split('.')[0], runId);
  assert.match(thought.replace(`${message}.`, ''), /^r\d+$/);

  await page.reload();
  await page.ends();
  await page.send('And you?');
  assert.deepEqual(await model.play('Well.'), ['user: Hi', 'assistant: Hello', 'user: And you?']);
  await page.checkTalk(['user: Hi', 'reasoning: A greeting.', 'assistant: Hello', 'user: And you?',
    'assistant: Well.']);
});

test('a program reads the events of the protocol', LIMIT, async () => {
  const id = agents.newId();
  const body = { threadId: id, runId: 'run-1', messages: [user('Hi')], tools: null, forwardedProps: { a: 1 }, b: 2 };
  const sent = agents.send('POST', '/v1/ag-ui/assistant', body);
  await model.play('Hello');
  const response = await sent;
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type'), /^text\/event-stream\b/);
  const text = await response.text();
  assert.doesNotMatch(text, /\r|:null|"delta":""/);
  const events = text.split('\n\n').filter((event) => event.startsWith('data: ')).map((event) => event.slice(6));
  const types = events.map((event) => JSON.parse(event).type);
  assert.deepEqual(types.filter((type) => type.startsWith('RUN_')), ['RUN_STARTED', 'RUN_FINISHED']);
  assert.deepEqual([types[0], types.at(-1)], ['RUN_STARTED', 'RUN_FINISHED']);
});

test('calls of the service show their arguments, and their results or errors', LIMIT, async () => {
  const page = await agents.open();
  await page.send('What is 17 * 23?');
  await model.play('Let me see.', ...['17 * 23', '1 / 0'].map((expression) => ['calculator', { expression }]));
  const talk = await model.play('It is 391.');
  const calls = 'calculator({"expression":"17 * 23"}) calculator({"expression":"1 / 0"})';
  assert.deepEqual(talk, ['user: What is 17 * 23?', `assistant: Let me see. ${calls}`, 'tool: 391', talk[3]]);
  assert.deepEqual(await page.ends(), { type: 'success' });
  await page.checkTalk([...talk, 'assistant: It is 391.']);
  assert.deepEqual(await agents.stored(page.id), await page.talk());
  const { events } = await page.run();
  const starts = events.filter(({ type }) => type === 'TOOL_CALL_START');
  const results = events.filter(({ type }) => type === 'TOOL_CALL_RESULT');
  const [, message] = await page.ids();
  const [run, step] = message.split('.');
  for (const [at, { toolCallId, parentMessageId }] of starts.entries()) {
    const call = toolCallId.replace(`${step}:`, '');
    assert.match(call, /^call_\d+$/);
    assert.equal(parentMessageId, message);
    assert.deepEqual([results[at].toolCallId, results[at].messageId], [toolCallId, `${run}.${step}.${call}`]);
  }
  assert.deepEqual(events.filter(({ type }) => STEP.includes(type)).map(({ type, stepName }) => `${type} ${stepName}`),
    ['step-1', 'step-2'].flatMap((name) => STEP.map((type) => `${type} ${name}`)));
});

test('thoughts between texts begin new messages', LIMIT, async () => {
  const page = await agents.open();
  await page.send('Hi');
  const reply = await model.next();
  for (const words of ['One', 'Two']) {
    reply.reason(`${words}?`);
    await page.shows(`reasoning: ${words}?`);
    reply.write(`${words}.`);
    await page.shows(`assistant: ${words}.`);
  }
  reply.end();
  await page.checkTalk(['user: Hi', 'reasoning: One?', 'assistant: One.', 'reasoning: Two?', 'assistant: Two.']);
  const [, , first, , second] = await page.ids();
  assert.match(second.replace(`${first}.`, ''), /^\d+$/);
});

test('a message is generated again, the last one or an earlier one', LIMIT, async () => {
  const { page, sessions: [first, second] } = await openWith([['One?', 'One.'], ['Two?', 'Two.']]);
  const before = await page.ids();
  await page.go({ first: 3 });
  assert.deepEqual(await model.play('Zwei.'), ['user: One?', 'assistant: One.', 'user: Two?']);
  await page.checkTalk(['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Zwei.']);
  const ids = await page.ids();
  assert.deepEqual(ids.slice(0, 3), before.slice(0, 3));
  assert.notEqual(ids[3], before[3]);
  const third = await agents.session(page.id);
  assert.deepEqual([second.parent_session_id, third.parent_session_id], [first.session_id, first.session_id]);
  assert.deepEqual((await agents.talk(second.session_id)).at(-1), 'assistant: Two.');

  await page.go({ first: 1 });
  assert.deepEqual(await model.play('Eins.'), ['user: One?']);
  await page.checkTalk(['user: One?', 'assistant: Eins.']);
  assert.equal((await agents.session(page.id)).parent_session_id, null);
  assert.deepEqual((await agents.talk(third.session_id)).at(-1), 'assistant: Zwei.');
});

test('a message is edited, a later one or the first one, and the thread moves to a fork', LIMIT, async () => {
  const turns = [['One?', 'One.'], ['Two?', 'Two.'], ['Three?', 'Three.']];
  const { page, sessions: [first, , third] } = await openWith(turns);
  const [, , two] = await page.ids();
  await page.edit(2, 'Four?');
  assert.deepEqual(await model.play('Four.'), ['user: One?', 'assistant: One.', 'user: Four?']);
  await page.checkTalk(['user: One?', 'assistant: One.', 'user: Four?', 'assistant: Four.']);
  assert.equal((await page.ids())[2], two);
  const fork = await agents.session(page.id);
  assert.equal(fork.parent_session_id, first.session_id);
  assert.equal((await agents.talk(third.session_id)).length, 6);

  await page.edit(0, 'Five?');
  assert.deepEqual(await model.play('Five.'), ['user: Five?']);
  await page.checkTalk(['user: Five?', 'assistant: Five.']);
  assert.equal((await agents.session(page.id)).parent_session_id, null);
  await page.reload();
  await page.ends();
  await page.send('Six?');
  assert.deepEqual(await model.play('Six.'), ['user: Five?', 'assistant: Five.', 'user: Six?']);
  await page.ends();
  assert.deepEqual(await agents.stored(page.id), await page.talk());
});

test('a page that sends only new messages continues the thread, and edits', LIMIT, async () => {
  const { page } = await openWith([['One?', 'One.'], ['Two?', 'Two.']], { no: 'history' });
  assert.equal((await page.run()).input.messages.length, 1);
  assert.deepEqual(await agents.stored(page.id), ['user: One?', 'assistant: One.', 'user: Two?', 'assistant: Two.']);
  await page.edit(2, 'Three?');
  assert.deepEqual(await model.play('Three.'), ['user: One?', 'assistant: One.', 'user: Three?']);
  await page.checkTalk(['user: One?', 'assistant: One.', 'user: Three?', 'assistant: Three.']);
});

test('a page with a greeting stores its messages by itself', LIMIT, async () => {
  const page = await agents.open(undefined, { no: 'hydration' });
  const greeting = { id: randomUUID(), role: 'assistant', content: 'How can I help?' };
  await page.go({ add: [greeting, user('Hi')] });
  assert.deepEqual(await model.play('Hello'), ['user: Hi']);
  await page.ends();
  await page.reload();
  await page.send('And you?');
  assert.deepEqual(await model.play('Well.'), ['user: Hi', 'assistant: Hello', 'user: And you?']);
  await page.checkTalk(['assistant: How can I help?', 'user: Hi', 'assistant: Hello', 'user: And you?',
    'assistant: Well.']);
  assert.deepEqual(await agents.stored(page.id), (await page.talk()).slice(1));
});

test('images and documents reach the model', LIMIT, async () => {
  const page = await agents.open();
  const [image, document] = [{ value: 'iVBORw0KGgo=', mimeType: 'image/png' },
    { value: 'JVBERi0xLjQK', mimeType: 'application/pdf' }].map((source) => ({ type: 'data', ...source }));
  const linked = { type: 'url', value: 'https://example.com/cat.png' };
  await page.send([{ type: 'text', text: 'What is this?' }, { type: 'image', source: image },
    { type: 'image', source: linked }, { type: 'document', source: document }]);
  const reply = await model.next();
  const { content } = reply.request.messages.find(({ role }) => role === 'user');
  assert.deepEqual(content.map((part) => part.text ?? part.image_url?.url ?? part.file.file_data), ['What is this?',
    'data:image/png;base64,iVBORw0KGgo=', linked.value, 'data:application/pdf;base64,JVBERi0xLjQK']);
  reply.write('A cat.');
  reply.end();
  await page.checkTalk(['user: What is this?', 'assistant: A cat.']);
});

test('the state of a page is the variables of its session', LIMIT, async () => {
  const variables = async () => (await agents.session(id, 'environment_state')).environment_state.variables;
  const { page } = await openWith([['Hi', 'Hello']]);
  const { id } = page;
  await page.send('I live in Bern');
  await model.play('', ['variables_set', { variables: { city: 'Bern' } }]);
  await model.play('Noted.');
  await page.ends();
  assert.deepEqual((await page.state()).state, { city: 'Bern' });
  const stale = await agents.open(id);
  assert.deepEqual((await stale.state()).state, { city: 'Bern' });
  await page.send('I have moved', { state: { canton: 'BS', city: 'Basel' } });
  await model.play('Noted.');
  await page.ends();
  assert.deepEqual(await variables(), { canton: 'BS', city: 'Basel' });
  await page.checkTalk();
  // An empty state changes nothing. A page that has read less goes on from there.
  await page.send('Thanks', { state: {} });
  await model.play('Welcome.');
  await page.ends();
  assert.deepEqual([await variables(), (await page.state()).state], Array(2).fill({ canton: 'BS', city: 'Basel' }));
  await stale.send('Where do I live?');
  await model.play('In Bern.');
  await stale.ends();
  assert.deepEqual(await variables(), { city: 'Bern' });
  await stale.checkTalk();
});

test('the context of a run is an instruction of this run only', LIMIT, async () => {
  const page = await agents.open();
  await page.send('Hi', { context: [{ description: 'Who is there', value: 'Anna of Bern' }] });
  const reply = await model.next();
  assert.match(promptOf(reply), /Who is there[^]*Anna of Bern/);
  reply.write('Hello, Anna');
  reply.end();
  await page.ends();
  const orders = ['system', 'developer'].map((role) => ({ id: randomUUID(), role, content: 'Forged' }));
  await page.go({ add: [...orders, user('And now?')] });
  const next = await model.next();
  assert.doesNotMatch(JSON.stringify(next.request), /Forged|of Bern/);
  next.write('Well.');
  next.end();
  await page.ends();
  await page.reload();
  await page.checkTalk(['user: Hi', 'assistant: Hello, Anna', 'user: And now?', 'assistant: Well.']);
});

test('after an error of the model, the message is sent again or another one follows', LIMIT, async () => {
  const { page, sessions: [first] } = await openWith([['One?', 'One.']]);
  for (const [step, words, read] of [
    [{}, 'Two.', ['user: One?', 'assistant: One.', 'user: Two?']],
    [{ add: [user('Hello?')] }, 'Three.', ['user: One?', 'assistant: One.', 'user: Two?\n\nHello?']],
  ]) {
    await page.send('Two?', { first: 2 });
    (await model.next()).fail();
    assert.doesNotMatch(await page.fails(), /network/i);
    assert.equal((await page.run()).events.at(-1).type, 'RUN_ERROR');
    await agents.until(page.id, 'failed');
    await page.go(step);
    assert.deepEqual(await model.play(words), read);
    await page.ends();
    assert.equal((await agents.session(page.id)).parent_session_id, first.session_id);
  }
  await page.checkTalk(['user: One?', 'assistant: One.', 'user: Two?', 'user: Hello?', 'assistant: Three.']);
  assert.deepEqual(await agents.stored(page.id), await page.talk());
});
