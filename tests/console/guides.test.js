// The guides in a browser: accessible in both themes, never wider than the window, and by keyboard alone. They load
// files of their own service only.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { checkAccess, settle, start } from './browser.js';

const LIMIT = { timeout: 900_000 };
const PAGES = ['/docs/guides', '/docs/commands.md', '/docs/api.md', '/docs/console.md', '/docs/problems.md'];
const WIDTHS = [1440, 1000, 320];

const { browser, end } = await start();
after(end);
afterEach(() => browser.check());

const readCopied = (page) => page.evaluate(() => navigator.clipboard.readText());

test('guides are accessible, and fit into each window', LIMIT, async (t) => {
  for (const path of PAGES) {
    await t.test(path, async () => {
      const page = await browser.open(path);
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 800 });
        const hidden = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert(hidden <= 0, `${hidden} pixels are hidden at ${width}`);
        await checkAccess(page);
      }
      for (const name of ['Guides', 'On this page']) {
        const list = page.getByRole('navigation', { name });
        assert(await list.isHidden());
        await page.getByRole('button', { name }).press('Enter');
        await list.waitFor();
        await checkAccess(page);
        await page.keyboard.press('Escape');
        await page.setViewportSize({ width: WIDTHS[0], height: 800 });
        assert(await list.isVisible(), 'a wide window shows the list');
        await page.setViewportSize({ width: WIDTHS.at(-1), height: 800 });
      }
    });
  }
});

test('people search and copy with the keyboard', LIMIT, async () => {
  const page = await browser.open('/docs/commands.md');
  // In a wide window, the results cover a part of the list of headings.
  await page.setViewportSize({ width: WIDTHS[1], height: 800 });
  await page.keyboard.press('Control+k');
  await page.keyboard.type('session in use');
  await page.getByText('1 result', { exact: true }).waitFor();
  await checkAccess(page);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/docs/problems.md#session_in_use');
  await page.keyboard.press('Control+k');
  await page.keyboard.type('nothing has these words');
  await page.getByText('No results').waitFor();
  await page.keyboard.press('Escape');
  assert(await page.getByText('No results').isHidden());

  await page.goto(`${browser.url}/docs/budgets.md`);
  await settle(page);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy' }).first().press('Enter');
  await page.getByText('Copied').first().waitFor();
  assert.equal(await readCopied(page), await page.locator('pre').first().textContent());
});

test('without scripts, all else works', LIMIT, async () => {
  const viewport = { width: 400, height: 800 };
  const page = await browser.chromium.newPage({ javaScriptEnabled: false, viewport });
  await page.goto(`${browser.url}/docs/api.md`);
  assert.equal(await page.getByRole('button', { name: 'Copy' }).count(), 0);
  assert.equal(await page.getByRole('search').count(), 0);
  await page.getByRole('button', { name: 'Guides' }).press('Enter');
  await page.getByRole('link', { name: 'Budgets', exact: true }).press('Enter');
  await page.waitForURL('**/docs/budgets.md');
});
