// What people do with the sessions of a tree: fork, compare and merge them. Each effect is read from the API.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { short } from '../../console/logic/format.js';
import { start } from './browser.js';
import { makeAgents } from './seed.js';

const LIMIT = { timeout: 180_000 };

const { service, browser, end } = await start();
await makeAgents(service);
after(end);
afterEach(() => browser.check());

const read = (id, more = '?include=') => service.send('GET', `/v1/sessions/${id}${more}`);
const idsOf = async (path) => (await service.send('GET', path)).data.map(({ session_id: id }) => id).sort();
const childrenOf = (id) => idsOf(`/v1/sessions/${id}/children`);
const post = async (path, body) => (await service.send('POST', `/v1/sessions${path}`, body)).session_id;

/** Returns the roles and texts of a session. */
const talkOf = async (id) => (await read(id, '/messages')).data.map(({ role, content }) => [role, content[0].text]);

/** Makes a session that continues another with files. */
const write = (id, files) =>
  post(`/${id}/files`, { changes: Object.entries(files).map(([path, content]) => ({ path, content })) });

/** Returns the files of a session by their paths. */
async function filesOf(id) {
  const { data } = await read(id, '/files?recursive=true');
  const texts = data.map(async ({ path }) =>
    [path, await (await fetch(`${service.url}/v1/sessions/${id}/files/${path}`)).text()]);
  return Object.fromEntries(await Promise.all(texts));
}

/** Makes two branches that have changed the same files. */
async function makeBranches() {
  const root = await post('', { agent: 'editor', context_state: { metadata: { title: 'Two branches' } } });
  const base = await write(root, { 'a.md': 'A\n', 'b.md': 'B\n', 'c.md': 'C\n' });
  const mine = await write(base, { 'a.md': 'A mine\n', 'b.md': 'B mine\n', 'mine.md': 'M\n' });
  const theirs = await write(base, { 'a.md': 'A theirs\n', 'b.md': 'B theirs\n', 'theirs.md': 'T\n' });
  return { root, base, mine, theirs };
}

/** Opens a tree at one session, with another marked for a comparison by the keyboard. */
async function openMarked(root, selected, marked) {
  const page = await browser.open(`/console/trees/${root}?fold=0&at=${marked}`);
  await page.locator(`#session-${marked}.selected`).waitFor();
  await page.keyboard.press('d');
  await page.locator(`#session-${marked}.second`).waitFor();
  await page.locator(`#session-${selected}`).click();
  await page.locator('.pane .compare .facts').waitFor();
  return page;
}

test('a session of a tree is forked', LIMIT, async () => {
  const first = (await service.run('editor', 'Plan it')).session_id;
  const second = (await service.run(undefined, 'Go on', { base_session_id: first })).session_id;
  await service.send('PUT', '/v1/threads/plan', { session_id: second });
  const [before, talk] = [await read(second), await talkOf(first)];
  const page = await browser.open(`/console/trees/${first}?at=${first}`);
  await page.locator(`#session-${first}.selected`).waitFor();
  await page.keyboard.press('c');
  await page.locator('dialog textarea').fill('Try another way');
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/\/console\/runs\//);
  await page.locator('header .status').getByText('completed', { exact: true }).waitFor();
  const run = await service.send('GET', `/v1/runs/${new URL(page.url()).pathname.split('/').at(-1)}`);
  const fork = await read(run.session_id);
  assert.deepEqual([run.status, run.base_session_id, run.thread], ['completed', first, null]);
  assert.deepEqual([fork.parent_session_id, fork.root_session_id, fork.run_id], [first, first, run.run_id]);
  assert.deepEqual(await childrenOf(first), [second, fork.session_id].sort());
  assert.deepEqual(await talkOf(fork.session_id),
    [...talk, ['user', 'Try another way'], ['assistant', 'Done: try another way.']]);
  assert.deepEqual(await read(second), before);
  assert.equal((await service.send('GET', '/v1/threads/plan')).session_id, second);
  await page.goto(`${service.url}/console/trees/${first}?at=${fork.session_id}`);
  for (const id of [first, second, fork.session_id]) await page.locator(`#session-${id}`).waitFor();
});

test('two sessions of a tree are compared', LIMIT, async () => {
  const { root, base, mine, theirs } = await makeBranches();
  const told = (await service.run('editor', 'Tell it', { base_session_id: mine })).session_id;
  const all = await idsOf(`/v1/sessions?root=${root}`);
  const difference = await read(theirs, `/diff/${told}`);
  const page = await openMarked(root, told, theirs);
  const shown = () => page.locator('.compare').evaluate((compare) => {
    const textsOf = (selector) => [...compare.querySelectorAll(selector)].map((one) => one.textContent);
    return {
      names: textsOf('.facts dt'), facts: textsOf('.facts dd'), files: textsOf('.fhead span'),
      lines: textsOf('.diff :is(.add, .del) .line'),
      sides: [...compare.querySelectorAll('.sides .said')].map((one) => one.innerText.split('\n').filter(Boolean)),
    };
  });
  const expected = {
    names: ['Common ancestor', 'Messages of both', 'Files', 'Variables'],
    facts: [short(base), `${difference.shared_messages}`, '4', `${difference.environment.length}`],
    files: ['a.md', 'b.md', 'mine.md', 'theirs.md'],
    lines: ['−A theirs', '+A mine', '−B theirs', '+B mine', '+M', '−T'],
    sides: [['user', 'Tell it'], ['assistant', 'Done: tell it.']],
  };
  assert.deepEqual(await shown(), expected);
  assert.deepEqual(difference.files.map(({ path }) => path), expected.files);
  assert.equal(new URL(page.url()).searchParams.get('with'), theirs);
  await page.goto(`${service.url}/console/compare/${theirs}/${told}`);
  await page.locator('.sides .said').nth(1).waitFor();
  assert.deepEqual(await shown(), expected);
  assert.deepEqual(await idsOf(`/v1/sessions?root=${root}`), all, 'a comparison makes no session');
});

test('a session that no message names is named by what made it, everywhere', LIMIT, async () => {
  const { root, base, mine } = await makeBranches();
  const name = 'Files changed by hand';
  const page = await browser.open(`/console/trees/${root}?fold=0&at=${mine}`);
  await page.locator('.pane h2').getByText(name).waitFor();
  await page.keyboard.press('t');
  await page.getByRole('dialog', { name: `Point a thread to “${name}”` }).waitFor();
  await page.keyboard.type('by-hand');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal((await service.send('GET', '/v1/threads/by-hand')).session_id, mine);
  await page.locator('.pane').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('dialog', { name: `Remove “${name}”?` }).waitFor();
  await page.goto(`${service.url}/console/sessions/${base}`);
  await page.locator('.kin a').nth(1).waitFor();
  assert.deepEqual(await page.locator('.kin').first().locator('a').allTextContents(), [name, name]);
});

test('two sessions with conflicts are merged by choices', LIMIT, async () => {
  const { root, mine, theirs } = await makeBranches();
  const [all, sides] = [await idsOf(`/v1/sessions?root=${root}`), await Promise.all([mine, theirs].map(filesOf))];
  const page = await openMarked(root, mine, theirs);
  await page.keyboard.press('m');
  const dialog = page.locator('dialog');
  await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
  await dialog.getByText('2 changes can\'t be combined').waitFor();
  assert.deepEqual(await idsOf(`/v1/sessions?root=${root}`), all, 'nothing was written');
  for (const [path, side] of [['a.md', 'Mine'], ['b.md', 'Theirs']]) {
    await dialog.getByRole('group', { name: `Take for ${path}` }).getByRole('button', { name: side }).click();
  }
  // The response to the last request is lost, and a second press does not act twice.
  await page.route('**/merge', async (route) => {
    await route.fetch();
    await route.abort();
  }, { times: 1 });
  const again = dialog.getByRole('button', { name: 'Merge with these choices' });
  await again.click();
  await dialog.getByText('The service does not respond').waitFor();
  await again.click();
  await dialog.waitFor({ state: 'detached' });
  await page.waitForURL((url) => !all.includes(url.searchParams.get('at')));
  const merged = await read(new URL(page.url()).searchParams.get('at'));
  const [left, right] = [merged.parent_session_id, merged.merged_session_id];
  assert.deepEqual([(await read(left)).parent_session_id, (await read(right)).parent_session_id], [mine, theirs]);
  assert.deepEqual(await idsOf(`/v1/sessions?root=${root}`), [...all, left, right, merged.session_id].sort());
  assert.deepEqual(await filesOf(merged.session_id),
    { 'a.md': 'A mine\n', 'b.md': 'B theirs\n', 'c.md': 'C\n', 'mine.md': 'M\n', 'theirs.md': 'T\n' });
  assert.deepEqual(await filesOf(left), { ...sides[0], 'b.md': 'B theirs\n' });
  assert.deepEqual(await filesOf(right), { ...sides[1], 'a.md': 'A mine\n' });
  assert.deepEqual(await Promise.all([mine, theirs].map(filesOf)), sides);
  await page.locator(`#session-${merged.session_id}.selected`).getByText('merged in').waitFor();
});
