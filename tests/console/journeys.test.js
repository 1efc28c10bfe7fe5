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

/** Waits until the page of a run shows a status. */
const shows = (page, status) => page.locator('header .status').getByText(status, { exact: true }).waitFor();

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
  const { stdout, stderr } = await service.command('keys', 'create', '--tenant', 'acme', '--label', 'ada');
  const isEmpty = page.getByText('Nothing waits for you');
  const field = page.getByLabel('API key');
  await requestUntil(page, field);
  await checkAccess(page);
  for (const [key, next] of [['ark_wrong', page.getByRole('alert')], [stdout.trim(), isEmpty]]) {
    await field.fill(key);
    await page.keyboard.press('Enter');
    await next.waitFor();
  }
  const seen = () => [document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage }).includes('ark_')];
  assert.deepEqual(await page.evaluate(seen), ['', false]);
  await page.reload();
  await isEmpty.waitFor();
  await service.command('keys', 'revoke', /key (\S+)/.exec(stderr)[1]);
  await requestUntil(page, field);
});

/** Lets the inbox send requests until something is there: a change of keys may take some seconds. */
async function requestUntil(page, wanted) {
  for (const deadline = Date.now() + 60_000; !await wanted.isVisible();) {
    assert(Date.now() < deadline, 'it never appears');
    for (const name of ['Answered', 'Open']) {
      await page.getByRole('button', { name, exact: true }).click({ timeout: 1000 }).catch(() => {});
    }
  }
}
