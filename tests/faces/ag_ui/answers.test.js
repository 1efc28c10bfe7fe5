// Calls in a thread of AG-UI that the page answers: its own tools, approvals, and questions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../threads.js';
import { answersTo, LIMIT, PICK, prepare, resultOf, user } from './agents.js';

const REPORT = { content: '391', path: 'report.md' };
const OTHER = { content: '392', path: 'other.md' };
const COLORS = { colors: ['red', 'blue'] };
/** The calls, as the model reads them. */
const PICKED = `pick_color(${JSON.stringify(COLORS)})`;
const WRITE = `write_file(${JSON.stringify(REPORT)})`;
const DENIED = 'tool: The caller denied this call.';
/** The events of a step that has only words. */
const WORDS = ['STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED'];

const { model, agents } = await prepare();

const openWithTool = (id) => agents.open(id, { tools: [PICK] });

/** Opens a page, sends a message and plays a completion with calls. */
async function openCalling(...calls) {
  const page = await openWithTool();
  await page.send('Do it');
  await model.play('May I?', ...calls);
  return page;
}

test('a tool of the page is called, and its results continue the run', LIMIT, async () => {
  const page = await openWithTool();
  await page.send('Which color?');
  const first = await model.next();
  assert.deepEqual(first.request.tools.at(-1).function.name, 'pick_color');
  first.write('Let me ask.');
  first.call('pick_color', COLORS);
  first.call('pick_color', {});
  first.end();
  const [one, two, ...others] = await page.calls();
  assert.deepEqual(others, []);
  const asked = ['user: Which color?', `assistant: Let me ask. ${PICKED} pick_color({})`];
  await page.checkTalk(asked);
  await page.go({ add: [resultOf(one, 'red'), resultOf(two, 'Closed', { error: 'Closed' })] });
  const talk = await model.play('Red it is.');
  assert.deepEqual(talk, [...asked, 'tool: red', talk[3]]);
  assert.match(talk[3], /Closed/);
  assert.deepEqual(await page.ends(), { type: 'success' });
  assert.deepEqual(await page.types(), ['RUN_STARTED', ...WORDS, 'RUN_FINISHED']);
  await page.checkTalk([...talk, 'assistant: Red it is.']);
  assert.deepEqual(await agents.stored(page.id), [...talk, 'assistant: Red it is.']);
  assert.deepEqual(await agents.statuses(page.id), ['completed', 'answered']);
  // The next run has no tools of the page.
  await page.send('Thanks', { tools: [] });
  const next = await model.next();
  assert(!next.request.tools.some((tool) => tool.function.name === 'pick_color'));
  next.write('Welcome.');
  next.end();
  await page.checkTalk([...talk, 'assistant: Red it is.', 'user: Thanks', 'assistant: Welcome.']);
});

test('a call of the page is answered by a page that opens later, and only once', LIMIT, async () => {
  const first = await openCalling(['pick_color', COLORS]);
  const [call] = await first.calls();
  const second = await openWithTool(first.id);
  assert.deepEqual(await second.calls(), [call]);
  assert.deepEqual(await second.ids(), await first.ids());
  await second.answer(call, 'red');
  assert.deepEqual(await model.play('Red.'), ['user: Do it', `assistant: May I? ${PICKED}`, 'tool: red']);
  await second.checkTalk(['user: Do it', `assistant: May I? ${PICKED}`, 'tool: red', 'assistant: Red.']);
  await first.answer(call, 'blue');
  await first.fails();
  assert.deepEqual(await agents.statuses(first.id), ['completed', 'answered']);
  await first.reload();
  await first.checkTalk(await second.talk());
});

test('an approved call is executed, and the run goes on', LIMIT, async () => {
  const page = await openCalling(['write_file', REPORT]);
  const [interrupt] = await page.asks();
  const { id, toolCallId, reason, message, responseSchema, expiresAt, metadata } = interrupt;
  const [, { toolCalls: [call] }] = (await page.state()).messages;
  assert.deepEqual([id, toolCallId, reason, metadata.arguments], [call.id, call.id, 'tool_call', REPORT]);
  assert.match(message, /write_file/);
  assert.deepEqual(Object.keys(responseSchema.properties).sort(), ['approved', 'editedArgs', 'reason']);
  assert(new Date(expiresAt) > new Date());
  await page.checkTalk(['user: Do it', `assistant: May I? ${WRITE}`]);
  assert.equal(await agents.file(page.id, 'report.md'), 404);
  await page.go({ resume: answersTo([interrupt, { approved: true }]) });
  const talk = await model.play('Done.');
  assert.deepEqual(talk, ['user: Do it', `assistant: May I? ${WRITE}`, talk[2]]);
  assert.deepEqual(await page.ends(), { type: 'success' });
  assert.deepEqual((await page.types()).filter((type) => type.startsWith('TOOL_')), ['TOOL_CALL_RESULT']);
  await page.checkTalk([...talk, 'assistant: Done.']);
  assert.deepEqual(await agents.stored(page.id), [...talk, 'assistant: Done.']);
  assert.equal(await agents.file(page.id, 'report.md'), '391');
  assert.deepEqual(await agents.statuses(page.id), ['completed', 'answered']);
});

test('a call is approved with other arguments', LIMIT, async () => {
  const page = await openCalling(['write_file', REPORT]);
  const interrupts = await page.asks();
  await page.go({ resume: answersTo([interrupts[0], { approved: true, editedArgs: OTHER }]) });
  const talk = await model.play('Done.');
  assert.match(talk.join('\n'), /other\.md/);
  await page.checkTalk();
  assert.deepEqual([await agents.file(page.id, 'report.md'), await agents.file(page.id, 'other.md')], [404, '392']);
});

test('of three calls, one is approved, one denied and one cancelled', LIMIT, async () => {
  const page = await openCalling(...['a', 'b', 'c'].map((path) => ['write_file', { content: path, path }]));
  const [one, two, three] = await page.asks();
  await page.go({ resume: answersTo([three], [one, { approved: true }], [two, { approved: false, reason: 'No!' }]) });
  const talk = await model.play('Half done.');
  assert.match(talk[3], /denied.*No!/);
  await page.checkTalk([...talk, 'assistant: Half done.']);
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map((path) => agents.file(page.id, path))), ['a', 404, 404]);
});

test('an approval is answered in another page that only has the thread', LIMIT, async () => {
  const first = await openCalling(['write_file', REPORT]);
  const interrupts = await first.asks();
  const second = await agents.open(first.id, { no: 'history' });
  assert.deepEqual(await second.asks(), interrupts);
  await second.go({ resume: answersTo([interrupts[0], { approved: true }]) });
  await second.checkTalk([...await model.play('Done.'), 'assistant: Done.']);
  assert.deepEqual((await second.run()).input.messages, []);
  await first.go({ resume: answersTo([interrupts[0]]) });
  await first.fails();
  assert.equal(await agents.file(first.id, 'report.md'), '391');
  assert.deepEqual(await agents.statuses(first.id), ['completed', 'answered']);
  await first.reload();
  await first.checkTalk(await second.talk());
});

test('a call of the page and an approval are answered together', LIMIT, async () => {
  const sum = ['calculator', { expression: '17 * 23' }];
  const page = await openCalling(['pick_color', COLORS], sum, ['write_file', REPORT]);
  const [interrupt, ...others] = await page.asks();
  assert.deepEqual(others, []);
  const calls = `${PICKED} calculator({"expression":"17 * 23"}) ${WRITE}`;
  await page.checkTalk(['user: Do it', `assistant: May I? ${calls}`, 'tool: 391']);
  const [, { toolCalls: [{ id: call }] }] = (await page.state()).messages;
  await page.answer(call, 'red', { resume: answersTo([interrupt, { approved: true }]) });
  const talk = await model.play('Done.');
  assert.deepEqual(talk, ['user: Do it', `assistant: May I? ${calls}`, 'tool: red', 'tool: 391', talk[4]]);
  // The sum was there before.
  await page.checkTalk([...talk.slice(0, 2), talk[3], talk[2], talk[4], 'assistant: Done.']);
  assert.equal(await agents.file(page.id, 'report.md'), '391');
});

test('a tool of the agent that the page lacks asks for its result', LIMIT, async () => {
  const page = await openCalling(['locate', {}]);
  const [interrupt] = await page.asks();
  assert.deepEqual([interrupt.reason, interrupt.responseSchema.required], ['input_required', ['city']]);
  await page.checkTalk(['user: Do it', 'assistant: May I? locate({})']);
  await page.go({ resume: answersTo([interrupt, { city: 'Bern' }]) });
  const talk = await model.play('In Bern.');
  assert.deepEqual(talk, ['user: Do it', 'assistant: May I? locate({})', 'tool: {"city":"Bern"}']);
  await page.checkTalk([...talk, 'assistant: In Bern.']);
  // A page that has the tool calls it. Its result must fit the schema of the agent.
  const tools = [{ name: 'locate', description: 'Says where the page is.' }];
  await page.send('And now?', { tools });
  await model.play('', ['locate', {}]);
  const [call] = await page.calls();
  await page.answer(call, 'Basel', { tools });
  assert.match(await page.fails(), /string|object/);
  await page.answer(call, '{"city":"Basel"}', { tools, first: 6 });
  assert.equal((await model.play('In Basel.')).at(-1), 'tool: {"city":"Basel"}');
  await page.checkTalk([...talk, 'assistant: In Bern.', 'user: And now?', 'assistant: locate({})',
    'tool: {"city":"Basel"}', 'assistant: In Basel.']);
});

test('an approval that nobody has given in time is cancelled, and the run goes on', LIMIT, async () => {
  for (const add of [[], [user('Well?')]]) {
    const page = await openCalling(['write_file', { ...REPORT, path: 'now.md' }]);
    const [interrupt] = await page.asks();
    await until('it has expired', () => new Date(interrupt.expiresAt) < new Date(Date.now() - 100));
    const resume = answersTo([interrupt, { approved: true }]);
    assert.match(await agents.refuse(page.id, { resume }), /expired/);
    await page.go({ add, resume: answersTo([interrupt]) });
    const talk = await model.play('Too late.');
    assert.match(talk[2], /in time/);
    await page.checkTalk([...talk, 'assistant: Too late.']);
    assert.equal(await agents.file(page.id, 'now.md'), 404);
  }
});

test('a message that is sent while a call of the page is open denies the call', LIMIT, async () => {
  const page = await openCalling(['pick_color', COLORS]);
  await page.calls();
  await page.send('Never mind');
  const talk = await model.play('Well.');
  assert.deepEqual(talk, ['user: Do it', `assistant: May I? ${PICKED}`, talk[2], 'user: Never mind']);
  assert.match(talk[2], /denied/);
  await page.checkTalk([...talk.with(2, DENIED), 'assistant: Well.']);
  assert.deepEqual(await agents.stored(page.id), [...talk, 'assistant: Well.']);
});

test('a request that is sent again gets the same run', LIMIT, async () => {
  // A replay may have words in other pieces.
  const isWhole = ({ delta }) => delta === undefined;
  const page = await openCalling(['write_file', REPORT]);
  const [interrupt] = await page.asks();
  const again = async () => {
    const { input, events } = await page.run();
    const replay = await agents.post(page.id, input);
    assert.equal(replay.error, undefined);
    assert.deepEqual(replay.events.filter(isWhole), events.filter(isWhole));
    assert.deepEqual(replay.messages, (await page.state()).messages);
  };
  await again();
  await page.go({ resume: answersTo([interrupt, { approved: true }]) });
  const talk = await model.play('Done.');
  await page.ends();
  await again();
  await page.checkTalk([...talk, 'assistant: Done.']);
  assert.deepEqual(await agents.statuses(page.id), ['completed', 'answered']);
});
