// Every page, in both themes: accessible, within its policy, with requests of the API only, and small. Hostile text is
// text.

import assert from 'node:assert/strict';
import { after, afterEach, test } from 'node:test';
import { addressesOf, checkAccess, settle, start } from './browser.js';
import { makeLargeAgents, makeTree } from './large.js';
import { countElements, scrollThrough } from './scrolling.js';
import { attack, HOSTILE, seed } from './seed.js';

const LIMIT = { timeout: 900_000 };
const MOST_ELEMENTS = 1200;
const STEPS = 300;
const SESSIONS = 2000;

const { service, browser, end } = await start();
const routes = await browser.routes();
after(end);
afterEach(() => browser.check());

/** Checks that nothing on a page was made of text. */
async function checkText(page, isHostile) {
  const { text, ...made } = await page.evaluate(() => ({
    text: document.body.innerText, attacked: 'attacked' in window,
    elements: document.querySelectorAll('#app script, [onerror], [onload], a[href^="javascript:" i]').length,
  }));
  assert.deepEqual(made, { attacked: false, elements: 0 });
  assert(!/[\u001b\u115f\u200b-\u200f\u202a-\u202e\u2800\u{e0000}-\u{e007f}]/u.test(text), 'text is hidden');
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

test('another version of an agent opens as its difference', LIMIT, async () => {
  const page = await browser.open('/console/agents/editor');
  const versions = page.getByRole('region', { name: 'Versions' });
  await versions.locator('summary').getByText('description, system_prompt').waitFor();
  assert.equal(await versions.locator('.file').count(), 0);
  await versions.locator('summary').click();
  assert.deepEqual(await versions.locator('.fhead span').allTextContents(), ['description', 'system_prompt']);
  await checkAccess(page);
  await checkText(page, true);
  assert(await countElements(page) < MOST_ELEMENTS);
});

/** Returns properties of elements as the page shows them. */
const looksOf = (page, selector, names) => page.locator(selector).evaluateAll((all, wanted) => all.map((one) => {
  const style = getComputedStyle(one);
  return wanted.map((name) => style[name]).join(' ');
}), names);

/** Opens a page with colours that the system forces. Returns it with the colours of the system. */
async function openForced(path) {
  const page = await browser.open(path);
  await page.emulateMedia({ forcedColors: 'active' });
  await settle(page);
  const colours = await page.evaluate(() => {
    const probe = document.body.appendChild(document.createElement('i'));
    const names = ['Canvas', 'CanvasText', 'LinkText', 'GrayText', 'Highlight'];
    const found = names.map((name) => {
      probe.style.color = name;
      return [name, getComputedStyle(probe).color];
    });
    probe.remove();
    return Object.fromEntries(found);
  });
  assert.equal(new Set(Object.values(colours)).size, 5);
  return { page, colours };
}

test('with forced colours, lanes, shapes, statuses, focus and selection are told apart', LIMIT, async () => {
  const { trees: [[root]], runs: [[run]] } = await seed(service);
  const { page, colours: { Canvas, CanvasText, LinkText, GrayText, Highlight } } =
    await openForced(`/console/trees/${root}?fold=0`);
  const ink = new Set([CanvasText, LinkText, GrayText]);
  const lanes = await looksOf(page, '.lanes .lane', ['stroke']);
  assert.deepEqual(new Set(lanes), ink);
  assert.deepEqual(new Set(await looksOf(page, '.lanes .lane', ['opacity'])), new Set(['1']));
  const [thick] = await looksOf(page, '.lane.on', ['strokeWidth']);
  assert(parseFloat(thick) >= 2 * parseFloat((await looksOf(page, '.lane:not(.on)', ['strokeWidth']))[0]));
  for (const shape of ['circle.node', 'rect.node', 'path.node:not(.few)']) {
    const looks = await looksOf(page, shape, ['fill', 'stroke']);
    assert(looks.length > 0 && looks.every((look) => [...ink, Highlight].some((one) => look.includes(one))), shape);
  }
  assert.deepEqual(await looksOf(page, 'rect.node', ['fill']), [Canvas, Canvas]);

  const outline = ['outlineStyle', 'outlineWidth', 'outlineColor'];
  const outlines = async () => (await looksOf(page, '.trow', outline)).filter((look) => !look.startsWith('none'));
  assert.deepEqual(await outlines(), [`solid 2px ${Highlight}`]);
  for (const key of ['d', 'j']) await page.keyboard.press(key);
  await page.locator('.trow.second:not(.selected)').waitFor();
  assert.deepEqual((await outlines()).sort(), [`dashed 2px ${Highlight}`, `solid 2px ${Highlight}`]);
  const pressed = await looksOf(page, '.treebar .seg [aria-pressed="true"]', ['backgroundColor']);
  const others = await looksOf(page, '.treebar .seg [aria-pressed="false"]', ['backgroundColor']);
  assert.deepEqual([pressed, others.includes(Highlight)], [[Highlight], false]);
  await page.locator('.treebar input').focus();
  for (let presses = 0; presses < 2; presses++) await page.keyboard.press('Tab');
  const focused = await looksOf(page, '.treebar .seg [aria-pressed="true"]:focus', outline);
  assert.deepEqual(focused, [`solid 3px ${LinkText}`]);

  const { page: list } = await openForced('/console/runs');
  const border = ['borderTopStyle', 'borderTopWidth', 'borderTopColor'];
  for (const [status, look] of [['completed', 'solid 1px'], ['waiting', 'dashed 1px'], ['failed', 'double 3px']]) {
    assert.deepEqual(new Set(await looksOf(list, `.status.${status}`, border)), new Set([`${look} ${CanvasText}`]));
  }

  const { page: timeline } = await openForced(`/console/runs/${run}`);
  const bars = await looksOf(timeline, '.legend .bar', ['backgroundColor', 'backgroundImage', 'borderTopStyle']);
  assert(bars.length > 3 && new Set(bars).size === bars.length, bars.join('\n'));
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

test('a tree of many sessions has few elements at any place', LIMIT, async () => {
  await makeLargeAgents(service);
  const root = await makeTree(service, SESSIONS);
  for (const query of ['', '?fold=0']) {
    const page = await browser.open(`/console/trees/${root}${query}`);
    await page.getByText('2,000 sessions ·').waitFor();
    assert(await scrollThrough(page, '.trows') < MOST_ELEMENTS);
    await page.locator('.trow', { hasText: 'paragraph 1 of' }).waitFor();
  }
});
