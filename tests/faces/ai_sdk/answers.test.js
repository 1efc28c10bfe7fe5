// Calls in a chat of the AI SDK that the page answers: tools of the browser, and approvals.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { start } from './chats.js';

const LIMIT = { timeout: 60_000 };
const REPORT = { content: '391', path: 'report.md' };
const OTHER = { content: '392', path: 'other.md' };
/** The calls, as the model reads them. */
const LOCATE = 'locate({})';
const WRITE = `write_file(${JSON.stringify(REPORT)})`;
const WRITE_OTHER = `write_file(${JSON.stringify(OTHER)})`;
/** The result of a call in the browser. */
const CITY = '{"city":"Bern"}';

const { model, chats, check, end } = await start();
await chats.makeAgent();
after(end);
afterEach(check);
afterEach(() => chats.rest());

/** Opens a chat in which calls need approvals. */
async function openAsking(...calls) {
  const chat = await chats.open();
  await chat.send('Write it');
  await model.play('May I?', ...calls);
  await chat.asks(calls.length);
  return chat;
}

/** Returns the result of the last call. */
const resultOf = (talk) => talk.findLast((line) => line.startsWith('tool: ')).slice('tool: '.length);

test('the browser answers calls, and the answers continue the message', LIMIT, async () => {
  const chat = await chats.open();
  await chat.send('Where am I?');
  await model.play('Let me see.', ['locate', {}]);
  // The page sends the result by itself.
  const reply = await model.next();
  const ids = await chat.ids();
  assert.deepEqual(reply.talk, ['user: Where am I?', `assistant: Let me see. ${LOCATE}`, `tool: ${CITY}`]);
  reply.call('locate', { indoors: true });
  reply.end();
  const talk = await model.play('In Bern.');
  assert.deepEqual(talk, [...reply.talk, 'assistant: locate({"indoors":true})', talk.at(-1)]);
  assert.match(resultOf(talk), /No signal/);
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  assert.equal(ids.length, 2);
  await chat.checkTalk(['user: Where am I?', `assistant: Let me see. | ${LOCATE} output-available ${CITY}`
    + ' | locate({"indoors":true}) output-error "No signal" | In Bern.']);
  assert.deepEqual(await chats.stored(chat.id), [...talk, 'assistant: In Bern.']);
  assert.deepEqual((await chats.runs(chat.id)).map(({ status }) => status), ['completed', 'answered', 'answered']);
  // The finished message is not sent again. The model does not read calls of earlier turns.
  await chat.send('Thanks');
  assert.deepEqual(await model.play('Welcome.'), ['user: Where am I?', 'assistant: In Bern.', 'user: Thanks']);
  await chat.ends();
  assert.deepEqual((await chat.talk()).slice(2), ['user: Thanks', 'assistant: Welcome.']);
});

test('a call that is open is answered by a page that opens later', LIMIT, async () => {
  const first = await chats.open(undefined, { no: 'answers' });
  await first.send('Where am I?');
  await model.play('', ['locate', {}]);
  await first.ends();
  await first.checkTalk(['user: Where am I?', `assistant: ${LOCATE} input-available`]);
  const second = await chats.open(first.id, { no: 'answers' });
  const ids = await second.ids();
  assert.deepEqual(await first.ids(), ids);
  await second.press('Locate');
  assert.deepEqual(await model.play('In Bern.'), ['user: Where am I?', `assistant: ${LOCATE}`, `tool: ${CITY}`]);
  await second.ends();
  assert.deepEqual(await second.ids(), ids);
  await second.checkTalk(['user: Where am I?', `assistant: ${LOCATE} output-available ${CITY} | In Bern.`]);
  // The other page comes too late. It reads why, and the answer changes nothing.
  await first.press('Locate');
  await first.is('error');
  assert.match((await first.state()).error, /^[^{]+$/);
  assert.equal((await chats.runs(first.id)).length, 2);
  await first.reload();
  assert.deepEqual(await first.talk(), await second.talk());
});

test('an approved call is executed, and the message goes on', LIMIT, async () => {
  const chat = await openAsking(['write_file', REPORT]);
  const ids = await chat.ids();
  assert.deepEqual(await chat.talk(), ['user: Write it', `assistant: May I? | ${WRITE} approval-requested`]);
  assert.equal(await chats.file(chat.id, 'report.md'), 404);
  await chat.press('Approve');
  const talk = await model.play('Done.');
  assert.deepEqual(talk, ['user: Write it', `assistant: May I? ${WRITE}`, talk.at(-1)]);
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  const result = JSON.stringify(resultOf(talk));
  await chat.checkTalk(['user: Write it', `assistant: May I? | ${WRITE} output-available ${result} | Done.`]);
  assert.equal(await chats.file(chat.id, 'report.md'), '391');
  assert.deepEqual(await chats.stored(chat.id), [...talk, 'assistant: Done.']);
  assert.deepEqual((await chats.runs(chat.id)).map(({ status }) => status), ['completed', 'answered']);
});

test('a call is denied in a page that was opened again, and the model reads the reason', LIMIT, async () => {
  const chat = await openAsking(['write_file', REPORT]);
  const ids = await chat.ids();
  assert.equal(await chat.reload(), 204);
  await chat.checkTalk(['user: Write it', `assistant: May I? | ${WRITE} approval-requested`]);
  await chat.press('Deny');
  const talk = await model.play('A pity.');
  assert.deepEqual(talk, ['user: Write it', `assistant: May I? ${WRITE}`, talk.at(-1)]);
  assert.match(resultOf(talk), /Not today/);
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  await chat.checkTalk(['user: Write it', `assistant: May I? | ${WRITE} output-denied | A pity.`]);
  assert.deepEqual(await chats.stored(chat.id), [...talk, 'assistant: A pity.']);
  assert.equal(await chats.file(chat.id, 'report.md'), 404);
});

test('calls of the browser and approvals of one message are answered together', LIMIT, async () => {
  const chat = await chats.open();
  await chat.send('Write where I am');
  await model.play('', ['locate', {}], ['calculator', { expression: '17 * 23' }], ['write_file', REPORT]);
  await chat.asks(1);
  const calls = `${LOCATE} output-available ${CITY} | calculator({"expression":"17 * 23"}) output-available "391"`;
  assert.deepEqual((await chat.talk()).at(-1), `assistant: ${calls} | ${WRITE} approval-requested`);
  const ids = await chat.ids();
  await chat.press('Approve');
  const talk = await model.play('Done.');
  assert.deepEqual(talk, ['user: Write where I am',
    `assistant: ${LOCATE} calculator({"expression":"17 * 23"}) ${WRITE}`, `tool: ${CITY}`, 'tool: 391', talk.at(-1)]);
  await chat.ends();
  assert.deepEqual(await chat.ids(), ids);
  const result = JSON.stringify(resultOf(talk));
  await chat.checkTalk(['user: Write where I am', `assistant: ${calls} | ${WRITE} output-available ${result} | Done.`]);
  assert.equal(await chats.file(chat.id, 'report.md'), '391');
});

test('of two calls, one is approved and one is denied', LIMIT, async () => {
  const chat = await openAsking(['write_file', REPORT], ['write_file', OTHER]);
  await chat.page.getByRole('button', { name: 'Deny' }).last().click();
  await chat.asks(1);
  assert.equal((await chats.runs(chat.id)).length, 1);
  await chat.press('Approve');
  const talk = await model.play('Half done.');
  assert.match(resultOf(talk), /Not today/);
  await chat.ends();
  const result = JSON.stringify(talk[2].slice('tool: '.length));
  await chat.checkTalk(['user: Write it',
    `assistant: May I? | ${WRITE} output-available ${result} | ${WRITE_OTHER} output-denied | Half done.`]);
  assert.deepEqual([await chats.file(chat.id, 'report.md'), await chats.file(chat.id, 'other.md')], ['391', 404]);
});

test('a message that is typed while a call is open denies the call, and the chat goes on', LIMIT, async () => {
  const chat = await openAsking(['write_file', REPORT]);
  await chat.send('Never mind');
  const talk = await model.play('Well.');
  assert.deepEqual(talk, ['user: Write it', `assistant: May I? ${WRITE}`, talk[2], 'user: Never mind']);
  assert.match(talk[2], /^tool: /);
  await chat.ends();
  assert.deepEqual((await chat.talk()).slice(2), ['user: Never mind', 'assistant: Well.']);
  const ids = await chat.ids();
  await chat.reload();
  await chat.checkTalk(['user: Write it', `assistant: May I? | ${WRITE} output-denied`, 'user: Never mind',
    'assistant: Well.']);
  assert.deepEqual(await chat.ids(), ids);
  assert.deepEqual(await chats.stored(chat.id), [...talk, 'assistant: Well.']);
  assert.equal(await chats.file(chat.id, 'report.md'), 404);
  await chat.send('And now?');
  assert.deepEqual(await model.play('Nothing.'),
    ['user: Write it\n\nNever mind', 'assistant: Well.', 'user: And now?']);
  await chat.ends();
});

test('the question of an open call is edited, and the call is never executed', LIMIT, async () => {
  const chat = await openAsking(['write_file', REPORT]);
  const { session_id: waiting } = await chats.session(chat.id);
  await chat.edit(0, 'Wait');
  assert.deepEqual(await model.play('I wait.'), ['user: Wait']);
  await chat.ends();
  await chat.checkTalk(['user: Wait', 'assistant: I wait.']);
  assert.equal(await chats.file(chat.id, 'report.md'), 404);
  const { context_state: context } = await chats.read(`/v1/sessions/${waiting}?include=context_state`);
  assert(context.waiting);
});
