// What people do in the console, with the program, a played model and browsers.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { duration, number, usd } from '../../console/logic/format.js';
import { checkAccess, start } from './browser.js';
import { makeAgents } from './seed.js';

const LIMIT = { timeout: 180_000 };

const { model, service, browser, end } = await start();
await makeAgents(service);
after(end);
afterEach(() => browser.check());

/** Waits until the page of a run shows a status. A selected step may show its own below. */
const shows = (page, status) =>
  page.locator('header .status').first().filter({ hasText: new RegExp(`^${status}$`) }).waitFor();

/** Makes a run that waits for an approval. */
const ask = () => service.run('secretary', 'Write the report');

/** Checks that the page of a run shows the facts of the API. */
async function checkFacts(page, { run_id: id }) {
  const { usage, ...run } = await service.send('GET', `/v1/runs/${id}`);
  const cached = Math.round((100 * usage.cache_read_tokens) / usage.input_tokens);
  const facts = await page.locator('.body > .facts > div').evaluateAll((all) => Object.fromEntries(
    all.map(({ children }) => [...children].map((one) => one.textContent.replaceAll(/\s+/g, ' ').trim()))));
  const { Agent, Model: answered, Took, Steps, Tokens, Cost } = facts;
  assert.deepEqual({ Agent, answered, Took, Steps, Tokens, Cost }, {
    Agent: `${run.agent} ${run.agent_version.slice(0, 7)}`, answered: run.answered_by, Took: duration(run.duration_ms),
    Steps: number(run.step_count), Cost: usd(usage.cost),
    Tokens: `${number(usage.input_tokens)} in, ${number(usage.output_tokens)} out ${cached}% cached`,
  });
}

/** Presses a key until a condition holds. */
async function pressUntil(page, key, isDone) {
  for (let presses = 0; presses < 60; presses++) {
    if (await page.evaluate(isDone)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead there`);
}

/** Opens the page of a run that has said its words, and not ended. */
async function watch(run) {
  const page = await browser.open(`/console/runs/${run.run_id}`);
  await page.getByText('One, two, three.').first().waitFor();
  await shows(page, 'running');
  await page.evaluate(() => (window.isSamePage = true));
  return page;
}

/** Checks that a run has ended on its page, without a reload. */
async function checkEnd(page, run) {
  await shows(page, 'completed');
  await checkFacts(page, run);
  assert(await page.evaluate(() => window.isSamePage));
}

test('a run is watched to its end', LIMIT, async () => {
  const run = await service.startRun('editor', 'Watch this');
  const page = await watch(run);
  model.release('Watch this');
  await checkEnd(page, run);
});

test('more windows than connections show a run, and its end', LIMIT, async () => {
  const run = await service.startRun('editor', 'Watch us');
  const pages = [await watch(run)];
  while (pages.length < 8) {
    const page = await pages[0].context().newPage();
    await page.goto(pages[0].url());
    pages.push(page);
  }
  await Promise.all(pages.map((page) => page.getByText('One, two, three.').first().waitFor()));
  model.release('Watch us');
  await Promise.all(pages.map((page) => shows(page, 'completed')));
});

test('the service is killed in a stream, and the page goes on', LIMIT, async () => {
  const run = await service.startRun('editor', 'Watch me');
  const page = await watch(run);
  const silence = page.getByText('No answer from the service');
  await service.kill();
  await silence.waitFor();
  await service.begin();
  await silence.waitFor({ state: 'detached' });
  model.release('Watch me');
  await checkEnd(page, run);
});

test('a lost request to stop a run is sent again with its key', LIMIT, async () => {
  const run = await service.startRun('editor', 'Watch until the stop');
  const page = await watch(run);
  const keys = [];
  page.on('request', (request) => request.url().endsWith('/stop') && keys.push(request.headers()['idempotency-key']));
  await page.route('**/stop', (route) => route.abort(), { times: 1 });
  const stop = page.getByRole('button', { name: 'Stop', exact: true });
  await stop.click();
  await page.getByText('The service does not respond').waitFor();
  // The buttons are drawn again meanwhile.
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
  const accepted = page.waitForResponse('**/stop');
  await stop.click();
  assert.equal((await accepted).status(), 202);
  model.release('Watch until the stop');
  await shows(page, 'stopped');
  assert.deepEqual([keys.length, keys[0].length], [2, 32]);
  assert.equal(keys[0], keys[1]);
});

test('a failed run is run again with another model', LIMIT, async () => {
  const failed = await service.run('editor', 'Fail with this model');
  assert.equal(failed.status, 'failed');
  const page = await browser.open(`/console/runs/${failed.run_id}`);
  await shows(page, 'failed');
  await page.keyboard.press('r');
  const dialog = page.getByRole('dialog', { name: 'Run again?' });
  await dialog.getByText('Fail with this model').waitFor();
  await dialog.getByLabel('Model').fill('mock/review');
  await dialog.getByRole('button', { name: 'Run again' }).click();
  await page.waitForURL((url) => url.pathname.startsWith('/console/runs/') && !url.pathname.endsWith(failed.run_id));
  await shows(page, 'completed');
  const run = await service.send('GET', `/v1/runs/${page.url().split('/').at(-1)}`);
  const { data: [message] } = await service.send('GET', `/v1/sessions/${run.session_id}/messages`);
  assert.deepEqual([run.agent, run.model, message.content], ['editor', 'mock/review', failed.input[0].content]);
});

test('the keyboard leads from the inbox to an approval', LIMIT, async () => {
  await ask();
  const run = await ask();
  const page = await browser.open('/console/inbox');
  await page.locator('.item').nth(1).waitFor();
  await pressUntil(page, 'Tab', () => document.activeElement.role === 'listbox');
  await pressUntil(page, 'ArrowDown', `document.getElementById('call-${run.run_id}').ariaSelected === 'true'`);
  await page.locator('.ask').waitFor();
  await pressUntil(page, 'Tab', () => document.activeElement.textContent.startsWith('Approve'));
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/console\/runs\//);
  await shows(page, 'completed');
  await page.getByText('The tool said: Wrote').first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
  const answered = await service.send('GET', `/v1/runs/${run.run_id}`);
  assert.equal(new URL(page.url()).pathname, `/console/runs/${answered.answer_run_id}`);
});

test('a call is denied by letters, and the model reads the reason', LIMIT, async () => {
  const run = await ask();
  const page = await browser.open(`/console/inbox?at=${run.run_id}`);
  await page.locator('.ask').waitFor();
  for (const key of ['a', 'x']) await page.keyboard.press(key);
  await page.locator('textarea:focus').waitFor();
  await page.keyboard.type('Not before Monday');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/console\/runs\//);
  await page.getByText(/The tool said: .*Not before Monday/).first().waitFor();
});

test('a shown call stays when a more urgent one arrives, and when somebody else answers it', LIMIT, async () => {
  const askBy = async (agent, seconds) => {
    const approvals = [{ tools: ['write_file'], approval: 'always', expires_after_seconds: seconds }];
    await service.send('PUT', `/v1/agents/${agent}`, { model: 'mock/talk', tools: ['write_file'], approvals });
    return service.run(agent, 'Write the report');
  };
  const shown = await askBy('calm', 7200);
  const page = await browser.open('/console/inbox');
  const card = (agent) => page.locator('.ask').getByText(`${agent} wants to run`).waitFor();
  await card('calm');
  for (const key of ['a', 'x']) await page.keyboard.press(key);
  await page.keyboard.type('Not ');
  const urgent = await askBy('hasty', 3600);
  await page.locator(`.item:first-child#call-${urgent.run_id}`).waitFor();
  await page.keyboard.type('today');
  assert.equal(await page.locator('textarea:focus').inputValue(), 'Not today');
  await page.getByRole('button', { name: 'Back' }).click();
  for (const key of ['a', 'a']) await page.keyboard.press(key);
  await page.waitForURL(/\/console\/runs\//);
  const { answer_run_id: next } = await service.send('GET', `/v1/runs/${shown.run_id}`);
  assert.equal(new URL(page.url()).pathname, `/console/runs/${next}`);

  // The most urgent call is not on the first page of the list.
  await ask();
  await page.route('**/v1/approvals?limit=100*', (route, request) =>
    route.continue({ url: request.url().replace('limit=100', 'limit=1') }));
  await page.getByRole('link', { name: /^Inbox/ }).click();
  await card('hasty');
  for (const key of ['a', 'x']) await page.keyboard.press(key);
  const { status, required_action: { answers } } = await service.send('GET', `/v1/runs/${urgent.run_id}`);
  assert.equal(status, 'waiting');
  const approved = answers.map(({ call_id, arguments_hash }) => ({ call_id, arguments_hash, decision: 'approve' }));
  const winner = await service.send('POST', `/v1/runs/${urgent.run_id}/answers`, { mode: 'async', answers: approved });
  await page.getByText('This call is no longer open').waitFor();
  await page.keyboard.type('jaa');
  assert.equal(await page.locator('textarea:focus').inputValue(), 'jaa');
  await card('hasty');
  assert(await page.getByRole('button', { name: 'Deny', exact: true }).isDisabled());
  assert.equal(await page.getByRole('link', { name: 'Open the run that goes on' }).getAttribute('href'),
    `/console/runs/${winner.run_id}`);
  assert.equal(await page.locator('.item[aria-selected="true"]').count(), 0);
  await checkAccess(page);
});

test('several calls of one tool are answered together, and each has its own result', LIMIT, async () => {
  const approvals = [{ tools: ['write_file'], approval: 'always' }];
  await service.send('PUT', '/v1/agents/clerk', { model: 'mock/talk', tools: ['write_file'], approvals });
  const runs = [await ask(), await ask(), await ask()];
  const [first, second, third] = runs.map(({ run_id: id }) => id);
  const other = (await service.run('clerk', 'Write the report')).run_id;
  const page = await browser.open(`/console/inbox?at=${other}`);
  const list = page.getByRole('listbox');
  await page.locator(`#call-${other}`).waitFor();
  const isMarked = (id) => page.locator(`#call-${id}`).getAttribute('aria-checked');
  await list.focus();
  for (const id of [first, second, third, other]) {
    await page.keyboard.press('Home');
    await pressUntil(page, 'ArrowDown', `document.getElementById('call-${id}').ariaSelected === 'true'`);
    await page.keyboard.press('Space');
  }
  assert.deepEqual(await Promise.all([first, second, third, other].map(isMarked)), ['true', 'true', 'true', null]);
  await page.getByRole('button', { name: 'Approve 3', exact: true }).waitFor();
  await checkAccess(page);
  const { answers } = (await service.send('GET', `/v1/runs/${second}`)).required_action;
  const approved = answers.map(({ call_id, arguments_hash }) => ({ call_id, arguments_hash, decision: 'approve' }));
  const body = { mode: 'async', answers: approved };
  const winner = (await service.send('POST', `/v1/runs/${second}/answers`, body)).run_id;
  // One response is lost, after the answer was accepted.
  await page.route(`**/${third}/answers`, async (route) => {
    await route.fetch();
    await route.abort();
  }, { times: 1 });
  const results = page.locator('.several > .what');
  const result = (at, words) => results.nth(at).getByText(words).waitFor();
  await page.getByRole('button', { name: 'Deny 3 with a reason' }).click();
  await page.keyboard.type('Not before Monday');
  await page.getByRole('button', { name: 'Deny 3', exact: true }).click();
  await Promise.all([result(0, /^Answered/), result(1, 'Somebody else'), result(2, 'The service does not respond')]);
  assert.equal(await results.nth(1).getByRole('link', { name: 'Open that run' }).getAttribute('href'),
    `/console/runs/${winner}`);
  // The form keeps the reason, so the same request is sent again.
  await page.getByRole('button', { name: 'Deny 1', exact: true }).click();
  await result(2, /^Answered/);
  await page.getByRole('button', { name: 'Done' }).click();
  await results.first().waitFor({ state: 'detached' });
  for (const { run_id: id, session_id: session } of runs) {
    const { data } = await service.send('GET', `/v1/sessions/${session}/children`);
    const { answer_run_id: next } = await service.send('GET', `/v1/runs/${id}`);
    const { session_id: end } = await service.send('GET', `/v1/runs/${next}?wait=10s`);
    assert.deepEqual(data.map((child) => child.session_id), [end], 'answered once');
    const texts = JSON.stringify(await service.send('GET', `/v1/sessions/${end}/messages`));
    assert.equal(texts.includes('Not before Monday'), id !== second);
  }
  assert.equal((await service.send('GET', `/v1/runs/${other}`)).status, 'waiting');
});

test('a call that is unmarked while others are answered is not answered', LIMIT, async () => {
  const [first, second] = [await ask(), await ask()].map(({ run_id: id }) => id);
  const page = await browser.open(`/console/inbox?at=${first}`);
  for (const id of [first, second]) await page.locator(`#call-${id} .box`).click();
  const sent = new Promise((resolve) => page.route(`**/${first}/answers`, resolve));
  await page.getByRole('button', { name: 'Approve 2', exact: true }).click();
  const route = await sent;
  await page.locator(`#call-${second} .box`).click();
  await route.continue();
  await page.locator('.several').getByText(/^Answered/).waitFor();
  assert.equal(await page.locator('.several .primary, .ask:not(.several)').count(), 0, 'the answered call is gone');
  await page.locator('.several button:enabled', { hasText: 'Done' }).click();
  assert.equal((await service.send('GET', `/v1/runs/${second}`)).status, 'waiting');
  assert.equal(await page.locator('.several').count(), 0);
});

test('an answer must be JSON, and its field says what it must fit', LIMIT, async () => {
  await service.send('PUT', '/v1/agents/chooser', {
    driver: 'scripted', model: 'demo/demo', script: [{ tool_calls: [{ name: 'choose', arguments: {} }] }, { text: 'Ok' }],
    client_tools: [{
      name: 'choose', description: 'Lets the user choose.',
      response_schema: { type: 'object', properties: { choice: { type: 'string' } }, required: ['choice'] },
    }],
  });
  const { run_id: id } = await service.run('chooser', 'Choose');
  const page = await browser.open(`/console/inbox?show=programs&at=${id}`);
  const card = page.locator('.ask');
  await card.getByRole('heading', { name: 'chooser needs your answer to choose', exact: true }).waitFor();
  await card.getByText('Lets the user choose.').waitFor();
  await card.getByText('What the answer must fit').click();
  await card.locator('details pre').getByText('"choice"').waitFor();
  const fault = card.locator('label').getByText('This is not valid JSON');
  await card.getByLabel('The answer, as JSON').fill('{');
  await card.getByRole('button', { name: 'Answer', exact: true }).click();
  await fault.waitFor();
  await checkAccess(page);
  await card.getByLabel('The answer, as JSON').fill('{"choice": "b"}');
  await fault.waitFor({ state: 'detached' });
  await card.getByRole('button', { name: 'Answer', exact: true }).click();
  await page.waitForURL(/\/console\/runs\//);
  await shows(page, 'completed');
});

test('the keys of a page act wherever the focus is, and its list has them', LIMIT, async () => {
  const { run_id: id } = await ask();
  const page = await browser.open(`/console/runs/${id}`);
  await page.locator('.row.wide').waitFor();
  await page.keyboard.press('?');
  const keys = await page.locator('dialog .keys dt').allTextContents();
  assert.deepEqual(['a', 'e', 'x', 'Left', 'Right', 'Enter', 'Escape', '/'].map((key) => keys.includes(key)),
    [true, true, true, true, true, true, true, false]);
  await page.keyboard.press('Escape');
  await page.locator('dialog').waitFor({ state: 'detached' });
  for (const key of ['Left', 'Left']) await page.keyboard.press(`Arrow${key}`);
  await page.locator('.row.wide').waitFor({ state: 'detached' });
  await page.keyboard.press('ArrowRight');
  await page.locator('.row.wide').waitFor();
  await page.keyboard.press('Escape');
  await page.locator('.pane').waitFor({ state: 'hidden' });
  await page.keyboard.press('Enter');
  await page.locator('.pane:focus').waitFor();
  await page.goto(`${service.url}/console/inbox?at=${id}`);
  await page.locator(`#call-${id}.selected`).waitFor();
  await page.keyboard.press('Space');
  await page.locator(`#call-${id}[aria-checked="true"]`).waitFor();
});

test('a text that is not stored or not sent is not lost', LIMIT, async () => {
  const page = await browser.open('/console/agents/editor');
  const field = page.getByLabel('Definition as JSON');
  const text = `${await field.inputValue()}\n`;
  await field.fill(text);
  page.removeAllListeners('dialog');
  const question = page.waitForEvent('dialog');
  const click = page.getByRole('link', { name: 'Overview' }).click();
  await (await question).dismiss();
  await click;
  assert.deepEqual([new URL(page.url()).pathname, await field.inputValue()], ['/console/agents/editor', text]);
  await page.getByRole('button', { name: 'Undo' }).click();

  const input = page.getByRole('dialog').getByLabel('Input');
  await page.locator('h1').click();
  await page.keyboard.press('n');
  await input.fill('Say it');
  await page.keyboard.press('Escape');
  // By its element: a role is gone when the browser has closed the dialog, before the page has taken it away.
  await page.locator('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('n');
  assert.equal(await input.inputValue(), 'Say it');
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/console\/runs\//);
  await page.getByRole('link', { name: 'Agents' }).first().click();
  await page.getByRole('link', { name: 'editor', exact: true }).click();
  await page.getByText('Definition').first().waitFor();
  await page.keyboard.press('n');
  assert.equal(await input.inputValue(), '');
});

test('two people approve at once, and one of them wins', LIMIT, async () => {
  const run = await ask();
  const path = `/console/runs/${run.run_id}`;
  const pages = await Promise.all([browser.open(path), browser.open(path)]);
  const sent = [];
  for (const page of pages) {
    // Both requests leave when both are made.
    await page.route('**/answers', (route) => {
      sent.push(route);
      if (sent.length === pages.length) sent.forEach((one) => one.continue());
    });
    await page.getByRole('button', { name: 'Approve' }).waitFor();
  }
  await Promise.all(pages.map((page) => page.getByRole('button', { name: 'Approve' }).click()));
  const moved = (page) => page.waitForURL((url) => url.pathname !== path).then(() => page);
  const winner = await Promise.any(pages.map(moved));
  const loser = pages.find((page) => page !== winner);
  await loser.getByText(/Somebody else has answered|The calls were answered/).first().waitFor();
  assert.equal(new URL(loser.url()).pathname, path);
  await loser.getByRole('link', { name: /^Open (that run|the run that goes on)$/ }).click();
  await shows(loser, 'completed');
  assert.equal(loser.url(), winner.url());
  assert.equal((await service.send('GET', `/v1/sessions/${run.session_id}/children`)).data.length, 1);
});

test('a key opens the console until it is revoked', LIMIT, async () => {
  const page = await browser.open('/console/inbox');
  await page.getByText('No keys: everybody').waitFor();
  assert.equal(await showsKey(page), false);
  const { stdout, stderr } = await service.command('keys', 'create', '--tenant', 'acme', '--label', 'ada');
  const isEmpty = page.getByText('Nothing waits for you');
  const field = page.getByLabel('API key');
  await requestUntil(page, field);
  await checkAccess(page);
  await field.fill('ark_wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').waitFor();
  await field.fill(stdout.trim());
  await page.keyboard.press('Enter');
  await field.waitFor({ state: 'detached' });
  // The requests above may have left either list.
  await page.getByRole('button', { name: 'Open', exact: true }).click();
  await isEmpty.waitFor();
  const seen = () => [document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage }).includes('ark_')];
  assert.deepEqual(await page.evaluate(seen), ['', false]);
  await page.reload();
  await isEmpty.waitFor();
  assert.equal(await showsKey(page), true);
  await service.command('keys', 'revoke', /key (\S+)/.exec(stderr)[1]);
  await requestUntil(page, field);
});

/** Returns whether the request that the page shows for a shell has a key. */
async function showsKey(page) {
  await page.locator('header.top').getByRole('button', { name: 'Show the requests' }).click();
  const dialog = page.getByRole('dialog');
  const request = await dialog.locator('pre').innerText();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await dialog.waitFor({ state: 'detached' });
  return request.includes('-H "authorization: Bearer $KEY"');
}

/** Lets the inbox send requests until something is there: a change of keys may take some seconds. */
async function requestUntil(page, wanted) {
  for (const deadline = Date.now() + 60_000; !await wanted.isVisible();) {
    assert(Date.now() < deadline, 'it never appears');
    for (const name of ['Answered', 'Open']) {
      await page.getByRole('button', { name, exact: true }).click({ timeout: 1000 }).catch(() => {});
    }
  }
}
