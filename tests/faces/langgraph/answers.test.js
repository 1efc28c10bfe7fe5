// Calls in a thread of LangGraph that the page answers: tools of the browser, and approvals.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LIMIT, prepare, talkIn } from './graphs.js';

const REPORT = { content: '391', path: 'report.md' };
const OTHER = { content: '392', path: 'other.md' };
const APPROVE = { decisions: [{ type: 'approve' }] };
/** Conversations until a call, as the model reads them, and the result of a call in the browser. */
const LOCATE = ['user: Do it', 'assistant: May I? locate({})'];
const WRITE = ['user: Do it', `assistant: May I? write_file(${JSON.stringify(REPORT)})`];
const CITY = 'tool: {"city":"Bern"}';

const { model, graphs, client } = await prepare();

/** Opens a page, sends a message and plays a completion with calls. */
async function openCalling(options, ...calls) {
  const page = await graphs.open(undefined, options);
  await page.act('send', 'Do it');
  await model.play('May I?', ...calls);
  return page;
}

const openAsking = (...paths) => openCalling({}, ...paths.map((path) => ['write_file', { ...REPORT, path }]));

test('the browser executes calls, and the results continue the run', LIMIT, async () => {
  const page = await openCalling({}, ['locate', {}], ['locate', { indoors: true }]);
  // The page sends the results by itself.
  const reply = await model.next();
  const [, , , error] = reply.talk;
  assert.deepEqual(reply.talk, [LOCATE[0], `${LOCATE[1]} locate({"indoors":true})`, CITY, error]);
  assert.match(error, /No signal/);
  reply.call('locate', {});
  reply.end();
  const talk = await model.play('In Bern.');
  assert.deepEqual(talk, [...reply.talk, 'assistant: locate({})', CITY]);
  await page.checkTalk([...talk, 'assistant: In Bern.']);
  const id = await page.id();
  assert.deepEqual(await graphs.stored(id), await page.talk());
  assert.deepEqual(await graphs.statuses(id), ['completed', 'answered', 'answered']);
});

test('a call that is open is executed by a page that opens later, and only once', LIMIT, async () => {
  const first = await openCalling({ no: 'tools' }, ['locate', {}]);
  await first.checkTalk(LOCATE);
  const id = await first.id();
  assert.equal((await client.threads.get(id)).status, 'interrupted');
  const second = await graphs.open(id);
  assert.deepEqual(await model.play('In Bern.'), [...LOCATE, CITY]);
  await second.checkTalk([...LOCATE, CITY, 'assistant: In Bern.']);
  assert.equal((await client.threads.get(id)).status, 'idle');
  await first.act('resume', { city: 'Basel' });
  assert.match(await first.fails(), /^HTTP 4\d\d: [^{]/);
  assert.deepEqual(await graphs.statuses(id), ['completed', 'answered']);
});

test('a result comes as a value, or under the id of the call or of the interrupt', LIMIT, async () => {
  for (const form of [
    (value) => value, (value, interrupt, call) => ({ [call]: value }), (value, interrupt) => ({ [interrupt]: value }),
    (value, interrupt, call) => ({ [interrupt]: { [call]: value } }),
  ]) {
    const { id, interrupts: [interrupt, ...others] } = await graphs.ask(model, ['locate', {}]);
    const { type, toolCall } = interrupt.value;
    assert.deepEqual([type, toolCall.name, toolCall.args, others], ['tool', 'locate', {}, []]);
    assert.match(interrupt.id, /^[0-9a-f]{32}$/);
    const resume = form({ city: 'Bern' }, interrupt.id, toolCall.id);
    const [values, talk] = await Promise.all([graphs.wait(id, { command: { resume } }), model.play('In Bern.')]);
    assert.deepEqual(talk, [...LOCATE, CITY]);
    assert.deepEqual([talkIn(values.messages), values.__interrupt__], [[...talk, 'assistant: In Bern.'], undefined]);
  }
});

test('an approved call is executed, and the run goes on', LIMIT, async () => {
  const page = await openAsking('report.md');
  const { value: { action_requests: [request], review_configs: [config] } } = await page.asks();
  assert.deepEqual([request.name, request.args, typeof request.description], ['write_file', REPORT, 'string']);
  assert.equal(config.action_name, 'write_file');
  assert.deepEqual(config.allowed_decisions.toSorted(), ['approve', 'edit', 'reject']);
  await page.checkTalk(WRITE);
  const id = await page.id();
  assert.deepEqual(await graphs.files(id), []);
  await page.act('resume', APPROVE);
  const reply = await model.next();
  assert.deepEqual((await page.state()).interrupts, []);
  const { talk } = reply;
  assert.deepEqual(talk, [...WRITE, talk[2]]);
  reply.write('Done.');
  reply.end();
  await page.checkTalk([...talk, 'assistant: Done.']);
  assert.deepEqual([await graphs.file(id, 'report.md'), await graphs.stored(id)], ['391', await page.talk()]);
  assert.deepEqual(await graphs.statuses(id), ['completed', 'answered']);
});

test('in a page that is opened again, one call is approved, one rejected and one edited', LIMIT, async () => {
  const page = await openAsking('a.md', 'b.md', 'c.md');
  const interrupt = await page.asks();
  await page.reload();
  assert.deepEqual(await page.asks(), interrupt);
  assert.deepEqual(interrupt.value.action_requests.map(({ args }) => args.path), ['a.md', 'b.md', 'c.md']);
  const edit = { type: 'edit', edited_action: { name: 'write_file', args: OTHER } };
  await page.act('resume', { decisions: [{ type: 'approve' }, { type: 'reject', message: 'No!' }, edit] });
  const talk = await model.play('Done.');
  assert.match(talk.slice(3).join('\n'), /No!\n.*other\.md/);
  await page.checkTalk();
  const { messages, thread: id } = await page.state();
  assert.deepEqual(messages.slice(2, 5).map(({ status }) => status), ['success', 'error', 'success']);
  assert.deepEqual((await graphs.files(id)).toSorted(), ['a.md', 'other.md']);
  assert.equal(await graphs.file(id, 'other.md'), '392');
});

test('the browser executes its call at once, and another call of the step waits for its approval', LIMIT, async () => {
  const page = await openCalling({}, ['locate', {}], ['calculator', { expression: '17 * 23' }], ['write_file', REPORT]);
  await page.asks();
  await page.act('resume', APPROVE);
  const talk = await model.play('Done.');
  assert.deepEqual(talk, [...talk.slice(0, 2), CITY, 'tool: 391', talk[4]]);
  await page.ends();
  assert.deepEqual((await page.talk()).toSorted(), [...talk, 'assistant: Done.'].toSorted());
  assert.equal(await graphs.file(await page.id(), 'report.md'), '391');
});

test('a thread is marked as resolved, or gets another message, and the call is never executed', LIMIT, async () => {
  const [resolved, other] = [await openAsking('report.md'), await openAsking('report.md')];
  await Promise.all([resolved.asks(), other.asks()]);
  await resolved.act('resolve');
  await resolved.ends();
  assert.deepEqual((await resolved.state()).interrupts, []);
  const id = await resolved.id();
  assert.equal((await client.threads.get(id)).status, 'idle');
  await resolved.act('send', 'And now?');
  assert.match((await model.play('Nothing.')).at(-1), /And now\?$/);
  await resolved.checkTalk();
  await other.act('send', 'Never mind');
  const talk = await model.play('Well.');
  assert.deepEqual(talk, [...WRITE, talk[2], 'user: Never mind']);
  await other.checkTalk([...talk, 'assistant: Well.']);
  assert.deepEqual([await graphs.files(id), await graphs.files(await other.id())], [[], []]);
  assert.doesNotMatch(JSON.stringify([await resolved.state(), talk]), /Successfully handled/);
});

test('the question of an open call is edited, and the call is answered in its own branch', LIMIT, async () => {
  const page = await openAsking('report.md');
  const interrupt = await page.asks();
  await page.act('edit', 0, 'Wait');
  assert.deepEqual(await model.play('I wait.'), ['user: Wait']);
  await page.checkTalk(['user: Wait', 'assistant: I wait.']);
  await page.act('switch', 0, 0);
  assert.deepEqual([await page.asks(), await graphs.files(await page.id())], [interrupt, []]);
  await page.act('resume', APPROVE);
  const talk = await model.play('Done.');
  await page.checkTalk([...WRITE, talk[2], 'assistant: Done.']);
  assert.deepEqual(await graphs.files(await page.id()), ['report.md']);
});
