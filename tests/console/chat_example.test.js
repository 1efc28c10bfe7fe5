// What people do in the page of examples/chat, with the program, a played model and a browser.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { checkAccess } from './browser.js';
import { open, start } from './chat_example.js';

const LIMIT = { timeout: 180_000 };
const NOTE = { path: 'a.md', content: '# A\n' };
const HOSTILE = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>';

/** The completions for messages that begin with a word. */
const TALK = {
  Count: ({ step, results }) => (step ? { say: `It is ${results[0]}.` }
    : { think: 'A sum, so the calculator.', say: 'I calculate.', calls: [['calculator', { expression: '17 * 23' }]] }),
  Choose: ({ step, results }) => (step ? { say: `You chose ${results[0]}.` }
    : { calls: [['ask_user', { question: 'Which colour?', choices: ['red', 'blue'] }]] }),
  Clock: ({ step, results }) => (step ? { say: `It is ${results[0]}.` } : { calls: [['local_time', {}]] }),
  Write: ({ step, results }) => (step ? { say: `The tool said: ${results.at(-1)}` }
    : { say: 'May I?', calls: [['calculator', { expression: '6 * 7' }], ['write_file', NOTE]] }),
  Read: ({ step, results }) => (step ? { say: `It has: ${results[0]}` }
    : { calls: [['read_file', { path: 'note.txt' }]] }),
  Hold: () => ({ say: 'One, two, three.', hold: true }),
  Fail: () => ({ fails: true }),
};
const script = (turn) => TALK[turn.task.split(' ')[0]]?.(turn) ?? { say: `Done: ${turn.task}` };

const all = await start(script);
const { model, service, end } = all;
const findings = [];
after(end);
afterEach(() => assert.deepEqual(findings.splice(0), []));

/** Opens the page, and sends a message in a new chat. */
async function chat(text) {
  const page = await open(all, findings);
  if (text) await say(page, text);
  return page;
}

async function say(page, text) {
  await button(page, 'Send').waitFor();
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
}

const button = (page, name) => page.getByRole('button', { name, exact: true });
const words = (page, text) => page.locator('#log .words', { hasText: text });
/** Waits until no run is active, and the texts of user and agent are these, each once. */
async function shows(page, ...texts) {
  await words(page, texts.at(-1)).last().waitFor();
  await button(page, 'Send').waitFor();
  await page.waitForFunction((wanted) => {
    const shown = [...document.querySelectorAll('#log :is(.user, .assistant)')].map((one) => one.textContent);
    return JSON.stringify(shown) === JSON.stringify(wanted);
  }, texts);
}
/** Records each text of the agent that the page shows, even for a moment, and after a reload. */
async function record(page) {
  const begin = () => {
    window.recorded = new Set();
    new MutationObserver(() => {
      recorded.add([...document.querySelectorAll('.assistant')].map((one) => one.textContent).join('|'));
    }).observe(document, { childList: true, characterData: true, subtree: true });
  };
  await page.addInitScript(begin);
  await page.evaluate(begin);
}
/** Checks that the page has shown nothing but the beginnings of a text. */
async function checkRecord(page, text) {
  const others = await page.evaluate((whole) => [...recorded].filter((one) => !whole.startsWith(one)), text);
  assert.deepEqual(others, []);
}
const threadOf = (page) => decodeURIComponent(new URL(page.url()).hash.slice(1));

test('a message is sent, and the words stream in', LIMIT, async () => {
  const page = await chat('Hold the line');
  await words(page, 'One, two, three.').waitFor();
  await button(page, 'Stop').waitFor();
  await checkAccess(page);
  assert.equal(await page.locator('#threads [aria-current]').textContent(), 'Hold the line');
  assert.deepEqual(await page.locator('#spoken p').allTextContents(), []);
  model.release('Hold the line');
  await shows(page, 'Hold the line', 'One, two, three.');
  await page.getByText(/[\d,]+ tokens in, \d+ out, \d+\.\d s/).waitFor();
  assert.deepEqual(await page.locator('#spoken p').allTextContents(), ['One, two, three.']);
  await say(page, 'Thanks');
  await shows(page, 'Hold the line', 'One, two, three.', 'Thanks', 'Done: Thanks');
});

test('a call of a tool has its arguments and its result, and reasoning is folded', LIMIT, async () => {
  const page = await chat('Count it');
  await shows(page, 'Count it', 'I calculate.', 'It is 391.');
  const reasoning = page.getByText('A sum, so the calculator.');
  assert.equal(await reasoning.isVisible(), false);
  await page.getByText('Reasoning').click();
  await reasoning.waitFor();
  const call = page.locator('.call', { hasText: 'calculator' });
  await call.locator('summary').click();
  assert.deepEqual(await call.locator('pre').allTextContents(), ['{\n  "expression": "17 * 23"\n}', '391']);
  await checkAccess(page);
});

test('text of others is text', LIMIT, async () => {
  const page = await chat(HOSTILE);
  await shows(page, HOSTILE, `Done: ${HOSTILE}`);
  assert.equal(await page.evaluate(() => 'attacked' in window || document.querySelectorAll('img').length > 0), false);
});

test('the page executes the tools of the client', LIMIT, async () => {
  const page = await chat('Choose one');
  await page.getByRole('heading', { name: 'Which colour?' }).waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Which colour?' }).waitFor();
  await checkAccess(page);
  await button(page, 'blue').click();
  await shows(page, 'Choose one', 'You chose blue.');
  await say(page, 'Choose another');
  await page.getByLabel('Your answer').fill('green');
  await page.keyboard.press('Enter');
  await words(page, 'You chose green.').waitFor();
  await say(page, 'Clock please');
  await words(page, /It is .*"time_zone"/).waitFor();
});

test('a call is approved, and the agent writes the file', LIMIT, async () => {
  const page = await chat('Write it');
  await button(page, 'Approve').waitFor();
  // The step with the call is shown once, also after a reload.
  await shows(page, 'Write it', 'May I?');
  await page.reload();
  await button(page, 'Approve').waitFor();
  await shows(page, 'Write it', 'May I?');
  assert.deepEqual(await page.locator('.call .state').allTextContents(), ['done', 'open']);
  await checkAccess(page);
  await button(page, 'Approve').click();
  await shows(page, 'Write it', 'May I?', 'The tool said: Wrote a.md: 1 line, 4 bytes. The file is new.');
  assert.deepEqual(await page.locator('.call .state').allTextContents(), ['done', 'done']);
  await button(page, 'a.md').waitFor();
});

test('a call is denied, and the agent reads the reason', LIMIT, async () => {
  const page = await chat('Write it');
  await page.getByLabel('Reason, if you deny').fill('Not today');
  await button(page, 'Deny').click();
  await words(page, /The tool said: .*Not today/).waitFor();
  // A message in place of an answer denies the call, too.
  await say(page, 'Write again');
  await button(page, 'Approve').waitFor();
  await say(page, 'Never mind');
  await words(page, 'Done: Never mind').waitFor();
  await page.locator('.call', { hasText: 'write_file' }).nth(1).getByText('failed').waitFor();
  assert.equal((await service.send('GET', `/v1/threads/${threadOf(page)}/files`)).data.length, 0);
});

test('an edited message begins a branch, and the versions can be switched', LIMIT, async () => {
  const page = await chat('First');
  await shows(page, 'First', 'Done: First');
  await say(page, 'Second');
  await shows(page, 'First', 'Done: First', 'Second', 'Done: Second');
  await say(page, 'Third');
  await words(page, 'Done: Third').waitFor();
  await button(page, 'Edit').nth(1).click();
  await page.getByLabel('Edited message').fill('Other');
  await checkAccess(page);
  await page.locator('.edit').getByRole('button', { name: 'Send' }).click();
  await shows(page, 'First', 'Done: First', 'Other', 'Done: Other');
  await page.getByText('2/2').waitFor();
  await button(page, 'Previous version').focus();
  await page.keyboard.press('Enter');
  await shows(page, 'First', 'Done: First', 'Second', 'Done: Second', 'Third', 'Done: Third');
  await page.getByText('1/2').waitFor();
  // The focus stays on the button, so it can be pressed again.
  await page.keyboard.press('Enter');
  await shows(page, 'First', 'Done: First', 'Other', 'Done: Other');
  await say(page, 'More');
  await shows(page, 'First', 'Done: First', 'Other', 'Done: Other', 'More', 'Done: More');
  // The first message has no session before it.
  await button(page, 'Edit').first().click();
  await page.getByLabel('Edited message').fill('Begin');
  await page.locator('.edit').getByRole('button', { name: 'Send' }).click();
  await shows(page, 'Begin', 'Done: Begin');
  await page.reload();
  await shows(page, 'Begin', 'Done: Begin');
  await button(page, 'Next version').click();
  await shows(page, 'First', 'Done: First', 'Other', 'Done: Other', 'More', 'Done: More');
  await checkAccess(page);
});

test('an answer is generated again', LIMIT, async () => {
  const page = await chat('Hello');
  await shows(page, 'Hello', 'Done: Hello');
  await button(page, 'Try again').click();
  await page.getByText('2/2').waitFor();
  await shows(page, 'Hello', 'Done: Hello');
  const { data } = await service.send('GET', `/v1/sessions?thread=${threadOf(page)}`);
  assert.deepEqual(data.map((session) => session.parent_session_id), [null, null]);
});

test('a page that is loaded in a stream shows each word once', LIMIT, async () => {
  const page = await chat('Hello');
  await shows(page, 'Hello', 'Done: Hello');
  await say(page, 'Hold it');
  await words(page, 'One, two, three.').waitFor();
  await page.reload();
  await words(page, 'One, two, three.').waitFor();
  await button(page, 'Stop').waitFor();
  const texts = ['Hello', 'Done: Hello', 'Hold it', 'One, two, three.'];
  assert.deepEqual(await page.locator('#log .words').allTextContents(), texts);
  // Another chat does not show the run, and the run goes on.
  await page.getByRole('link', { name: 'New chat' }).click();
  await page.locator('#log:empty').waitFor();
  model.release('Hold it');
  await page.goBack();
  await shows(page, ...texts);
});

test('a run that ends while a page is loaded is shown once', LIMIT, async () => {
  const page = await chat('Hold for a moment');
  await words(page, 'One, two, three.').waitFor();
  await record(page);
  const { data: [run] } = await service.send('GET', `/v1/runs?thread=${threadOf(page)}`);
  // The page knows of the run, and has not read the history.
  await page.route('**/messages?*', async (route) => {
    model.release('Hold for a moment');
    const { status } = await service.send('GET', `/v1/runs/${run.run_id}?wait=60s`);
    assert.equal(status, 'completed');
    await route.continue();
  }, { times: 1 });
  await page.reload();
  await shows(page, 'Hold for a moment', 'One, two, three.');
  await page.getByText('tokens in').waitFor();
  await checkRecord(page, 'One, two, three.');
});

test('a page that is loaded in a run from an earlier session shows that branch', LIMIT, async () => {
  const page = await chat('Hello');
  await shows(page, 'Hello', 'Done: Hello');
  await button(page, 'Edit').click();
  await page.getByLabel('Edited message').fill('Hold this');
  await page.locator('.edit').getByRole('button', { name: 'Send' }).click();
  await words(page, 'One, two, three.').waitFor();
  await page.reload();
  await words(page, 'One, two, three.').waitFor();
  assert.deepEqual(await page.locator('#log .words').allTextContents(), ['Hold this', 'One, two, three.']);
  model.release('Hold this');
  await shows(page, 'Hold this', 'One, two, three.');
  await page.getByText('2/2').waitFor();
});

test('the service is killed in a stream, and each word is shown once', LIMIT, async () => {
  const page = await chat('Hold on');
  await words(page, 'One, two, three.').waitFor();
  await record(page);
  await service.kill();
  await service.begin();
  model.release('Hold on');
  await shows(page, 'Hold on', 'One, two, three.');
  await checkRecord(page, 'One, two, three.');
  await page.locator('#problem').waitFor({ state: 'hidden' });
});

test('a run is stopped, and what it has written stays', LIMIT, async () => {
  const page = await chat('Hold for ever');
  await words(page, 'One, two, three.').waitFor();
  await button(page, 'Stop').click();
  await page.getByText('Stopped', { exact: true }).waitFor();
  await shows(page, 'Hold for ever', 'One, two, three.');
});

test('errors are shown in words, and no text is lost', LIMIT, async () => {
  const page = await chat('Fail now');
  const message = page.getByLabel('Message', { exact: true });
  await page.locator('#log').getByText('The model refuses.').waitFor();
  assert.equal(await message.inputValue(), 'Fail now');
  await page.reload();
  await page.locator('#log').getByText('The model refuses.').waitFor();
  await checkAccess(page);

  await say(page, 'Hello');
  await shows(page, 'Hello', 'Done: Hello');
  const thread = threadOf(page);
  const other = await service.send('POST', '/v1/runs', { thread, input: 'Hold elsewhere', mode: 'async' });
  const response = page.waitForResponse((one) => one.url() === `${service.url}/v1/runs` && one.status() === 409);
  await say(page, 'Am I late?');
  const problem = await (await response).json();
  assert.deepEqual([problem.code, problem.run_id], ['thread_busy', other.run_id]);
  await page.getByRole('alert').filter({ hasText: problem.detail }).waitFor();
  assert.equal(await message.inputValue(), 'Am I late?');
  model.release('Hold elsewhere');
  await words(page, 'One, two, three.').waitFor();
  await button(page, 'Send').waitFor();
});

test('a file is uploaded, shown, and read by the agent', LIMIT, async () => {
  const page = await chat();
  const file = { name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('Buy milk. Grüße!') };
  await page.getByLabel('Upload a file').setInputFiles(file);
  await button(page, 'note.txt').click();
  await page.getByRole('dialog').getByText('Buy milk. Grüße!').waitFor();
  await checkAccess(page);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download' }).click();
  assert.equal((await download).suggestedFilename(), 'note.txt');
  await button(page, 'Close').click();
  await say(page, 'Read it');
  await words(page, /It has: .*Buy milk/).waitFor();
  await button(page, 'Send').waitFor();
  await page.getByLabel('Upload a file').setInputFiles({ ...file, buffer: Buffer.from('Buy bread.') });
  await page.getByText('10 B').waitFor();
  await words(page, /It has: .*Buy milk/).waitFor();
});

test('the tour needs no model, and everything works on a phone', LIMIT, async () => {
  const page = await open(all, findings, { viewport: { width: 390, height: 844 } });
  await checkAccess(page);
  await page.getByLabel('Agent').selectOption('tour');
  await say(page, 'Show me');
  await button(page, 'Short').click();
  await checkAccess(page);
  await button(page, 'Approve').click();
  await words(page, 'That was all.').waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  await button(page, 'Files').click();
  await button(page, 'report.md').waitFor();
  await checkAccess(page);
  await button(page, 'Chats').click();
  await checkAccess(page);
  await page.getByRole('link', { name: 'Show me' }).click();
  await page.locator('#chats').waitFor({ state: 'hidden' });
  await words(page, 'That was all.').waitFor();
});

test('a key is asked for, and stored for the tab only', LIMIT, async () => {
  const page = await chat();
  const { stdout } = await service.command('keys', 'create', '--tenant', 'acme');
  const key = stdout.trim();
  const field = page.getByLabel(/^API key/);
  // The service knows the first key after a moment.
  while (!await field.isVisible()) await page.reload();
  await checkAccess(page);
  await field.fill(key);
  await page.keyboard.press('Enter');
  // The page loads again.
  await page.locator('#agent option').first().waitFor({ state: 'attached' });
  await say(page, 'Hello');
  await shows(page, 'Hello', 'Done: Hello');
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes('ark_')), false);
  assert.equal(await page.evaluate(() => sessionStorage.getItem('key')), key);
});
