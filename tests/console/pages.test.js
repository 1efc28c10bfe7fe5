// Every page, in both themes: accessible, within its policy, with requests of the API only, and small. Hostile text is
// text.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { addressesOf, checkAccess, settle, start } from './browser.js';
import { attack, HOSTILE, seed } from './seed.js';

const LIMIT = { timeout: 900_000 };
const MOST_ELEMENTS = 1200;
const STEPS = 300;

const { service, browser, end } = await start();
const routes = await browser.routes();
after(end);
afterEach(() => browser.check());

const countElements = (page) => page.evaluate(() => document.querySelectorAll('*').length);

/** Checks that nothing on a page was made of text. */
async function checkText(page, isHostile) {
  const { text, ...made } = await page.evaluate(() => ({
    text: document.body.innerText, attacked: 'attacked' in window,
    elements: document.querySelectorAll('#app script, [onerror], [onload], a[href^="javascript:" i]').length,
  }));
  assert.deepEqual(made, { attacked: false, elements: 0 });
  assert(!/[\u001b\u202a-\u202e]/.test(text), 'text can turn others');
  assert(text.length < 1 << 20, `${text.length} characters`);
  if (isHostile) assert(text.includes(HOSTILE.slice(0, 30)), 'the text is missing');
}

test('the pages of an empty store', LIMIT, async () => {
  for (const path of routes.filter((one) => !one.includes(':'))) await checkAccess(await browser.open(path));
  const page = await browser.open('/console/nothing');
  await settle(page);
  await page.keyboard.press('?');
  await page.getByRole('dialog').waitFor();
  await checkAccess(page);
});

test('the pages of a store with everything', LIMIT, async (t) => {
  const values = await seed(service);
  const hostile = await attack(service, values);
  for (const path of routes.flatMap((route) => addressesOf(route, values))) {
    await t.test(path, async () => {
      const page = await browser.open(path);
      await checkAccess(page);
      await checkText(page, hostile.some((id) => path.includes(id)));
      assert(await countElements(page) < MOST_ELEMENTS);
      // Here the inspector is a sheet.
      await page.setViewportSize({ width: 1000, height: 800 });
      await checkAccess(page);
    });
  }
});

test('a run of many steps has few elements', LIMIT, async () => {
  const run = await service.run('editor', `Count ${STEPS}`);
  assert.equal(run.step_count, STEPS + 1);
  const page = await browser.open(`/console/runs/${run.run_id}`);
  await page.getByRole('tree').focus();
  for (const key of ['End', 'PageUp', 'PageUp', 'Home', 'PageDown', 'End']) {
    await page.keyboard.press(key);
    await settle(page);
    assert(await countElements(page) < MOST_ELEMENTS);
  }
  await page.getByText('Counted.').first().waitFor();
});
