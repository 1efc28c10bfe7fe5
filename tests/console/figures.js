// Measures the pages of the console with large trees, sessions and runs, and in many tabs: node figures.js [GROUP…]
// Prints a table. The exit code is 1 if a figure misses its aim.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { start } from './browser.js';
import { makeLargeAgents, makeLine, makeRun, makeTree } from './large.js';
import { scrollThrough } from './scrolling.js';
import { makeAgents } from './seed.js';

const SESSIONS = 2000;
const TURNS = 10_000;
const STEPS = 8000;
const TABS = 30;
/** The length of what the long ones are compared with: enough to fill the view. */
const SHORT = 50;
/** How often a page is opened. The figure is the median. */
const TIMES = 15;

/** The aims. Times are in milliseconds. */
const AIMS = {
  firstRows: 1000, opens: 2000, longer: 100, jump: 1000, task: 250, end: 5000, elements: 1200, connections: 6,
};
const VIEWPORT = { width: 1440, height: 900 };

const { model, service, browser, end } = await start();
const lines = [];

/** Adds a line to the table. Without an aim it is there to compare with. */
function report(figure, value, unit, aim = Infinity) {
  const verdict = aim === Infinity ? '' : value <= aim ? 'OK' : 'MISSED';
  const words = (number) => (number === Infinity ? '' : `${Math.round(number).toLocaleString('en')} ${unit}`.trim());
  lines.push([figure, words(value), aim === Infinity ? '' : `≤ ${words(aim)}`, verdict]);
  console.error(lines.at(-1).join('  '));
}

/** In a page, from its start: notes the longest task, and when something is drawn for the first time. */
function watch(selector) {
  window.longestTask = 0;
  const tasks = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longestTask = Math.max(window.longestTask, duration);
  });
  tasks.observe({ type: 'longtask', buffered: true });
  window.drawn = (wanted) => new Promise((resolve) => {
    const look = () => {
      if (!document.querySelector(wanted)) return;
      changes.disconnect();
      // The frame after this one begins when this one is drawn.
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    };
    const changes = new MutationObserver(look);
    changes.observe(document, { childList: true, subtree: true, attributes: true });
    look();
  });
  window.opened = window.drawn(selector);
}

/** Opens a path in a browser without cache. Returns the page, and when a selector had something to show. */
async function open(path, selector) {
  const context = await browser.chromium.newContext({ viewport: VIEWPORT });
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  await page.addInitScript(watch, selector);
  await page.goto(service.url + path);
  return { page, took: await page.evaluate(() => window.opened) };
}

const close = (page) => page.context().close();
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

/** Opens paths in turn, so that other work on the machine slows all of them. Returns the median of each one. */
async function openInTurn(pages) {
  const took = pages.map(() => []);
  for (let time = 0; time < TIMES; time++) {
    for (const [at, [path, selector]] of pages.entries()) {
      const opened = await open(path, selector);
      took[at].push(opened.took);
      await close(opened.page);
    }
  }
  return took.map(median);
}

/** Reports that a long page opens as a short one does. */
async function compare(name, long, short) {
  const [longTook, shortTook] = await openInTurn([long, short]);
  report(`${name}: a short one opens`, shortTook, 'ms');
  report(`${name}: opens`, longTook, 'ms', AIMS.opens);
  report(`${name}: opens later than the short one by`, Math.max(0, longTook - shortTook), 'ms', AIMS.longer);
}

/** Scrolls through a page, and reports its elements and its longest task since it was opened. */
async function scroll(name, page, box) {
  report(`${name}: elements, most`, await scrollThrough(page, box), '', AIMS.elements);
  // The report of a task follows the task.
  await pause(500);
  report(`${name}: longest task`, await page.evaluate(() => window.longestTask), 'ms', AIMS.task);
}

/** Waits until a tree has read its sessions, or as many as it reads without being asked. */
const isRead = (page) => page.waitForFunction((most) => {
  const words = document.querySelector('.treebar')?.innerText ?? '';
  return words.includes('session') && (!words.includes('so far') || words.includes(most));
}, 'Read older ones');

async function treeFigures() {
  const root = await makeTree(service, SESSIONS);
  for (const [look, query] of [['folded', ''], ['every session', '?fold=0']]) {
    const name = `tree of ${SESSIONS} sessions, ${look}`;
    const address = [`/console/trees/${root}${query}`, '.trow'];
    report(`${name}: first rows`, (await openInTurn([address]))[0], 'ms', AIMS.firstRows);
    const { page } = await open(...address);
    await isRead(page);
    await scroll(name, page, '.trows');
    await close(page);
  }
}

async function lineFigures() {
  const [long, short] = [await makeLine(service, TURNS), await makeLine(service, SHORT)];
  const session = ({ session_id: id, message_count: count }) =>
    [`/console/sessions/${id}`, `.message[aria-posinset="${count}"] .parts`];
  const name = `session of ${TURNS} turns`;
  await compare(`${name}, to its last message`, session(long), session(short));
  const { page } = await open(...session(long));
  await scroll(name, page, '.messages');
  await close(page);

  const tree = `tree of a line of ${TURNS} turns`;
  const address = [`/console/trees/${long.root_session_id}`, '.trow'];
  report(`${tree}: first rows`, (await openInTurn([address]))[0], 'ms', AIMS.firstRows);
  const { page: treePage } = await open(`${address[0]}?fold=0`, '.trow');
  await isRead(treePage);
  report(`${tree}: all that it reads by itself`, await treePage.evaluate(() => performance.now()), 'ms');
  await scroll(`${tree}, every session`, treePage, '.trows');
  await close(treePage);
}

async function stepFigures() {
  const [long, short] = [await makeRun(service, STEPS), await makeRun(service, SHORT)];
  const run = ({ run_id: id }) => [`/console/runs/${id}`, '#row-1 .fold svg'];
  const name = `run of ${STEPS} steps`;
  const began = performance.now();
  await service.send('GET', `/v1/runs/${long.run_id}/steps?from=0&limit=50`);
  report(`${name}: the service alone reads 50 of them`, performance.now() - began, 'ms');
  await compare(`${name}, to its first step`, run(long), run(short));
  const { page } = await open(...run(long));
  for (const [to, part] of [['middle', 0.5], ['end', 1]]) {
    const took = await page.evaluate(async ([share, step]) => {
      const started = performance.now();
      const box = document.querySelector('.rows');
      box.scrollTop = share * (box.scrollHeight - box.clientHeight);
      return await window.drawn(`#row-${step} .fold svg`) - started;
    }, [part, part * STEPS]);
    report(`${name}: jump to the ${to}`, took, 'ms', AIMS.jump);
  }
  await scroll(name, page, '.rows');
  await close(page);
}

/** Counts the connections to the service, except those of this process. */
function connections() {
  const port = `:${Number(new URL(service.url).port).toString(16).toUpperCase().padStart(4, '0')}`;
  const own = new Set(readdirSync('/proc/self/fd').map((file) => {
    try {
      return readlinkSync(`/proc/self/fd/${file}`);
    } catch {
      return '';
    }
  }));
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1, -1).map((row) => row.trim().split(/\s+/));
  // The fields: 2 is the address of the peer, 3 is the state, of which 01 is established, 9 is the inode.
  return rows.filter((row) => row[2].endsWith(port) && row[3] === '01' && !own.has(`socket:[${row[9]}]`)).length;
}

/**
 * Opens a run in tabs of one browser, and reports when they show its end.
 * @param {string} name @param {boolean} areInView Whether they are windows side by side, of which none is hidden.
 */
async function tabFigures(name, areInView) {
  const task = `Watch ${name}`;
  const run = await service.startRun('editor', task);
  const context = await browser.chromium.newContext({ viewport: VIEWPORT });
  context.setDefaultTimeout(120_000);
  let most = 0;
  const timer = setInterval(() => (most = Math.max(most, connections())), 100).unref();
  const pages = [];
  for (let tab = 1; tab <= TABS; tab++) {
    const page = await context.newPage();
    await page.addInitScript(watch, 'header .status.running');
    // A browser without a screen hides no tab.
    const isHidden = !areInView && tab < TABS;
    if (isHidden) await page.addInitScript(() => Object.defineProperty(document, 'hidden', { get: () => true }));
    await page.goto(`${service.url}/console/runs/${run.run_id}`);
    pages.push(page);
  }
  await Promise.all(pages.map((page) => page.evaluate(() => window.opened)));
  const ends = pages.map((page) => page.evaluate(async () => {
    await window.drawn('header .status.completed');
    return Date.now();
  }));
  await pause(1000);
  model.release(task);
  const shown = await Promise.all(ends);
  const ended = await service.send('GET', `/v1/runs/${run.run_id}`);
  clearInterval(timer);
  const late = Math.max(...shown) - Date.parse(ended.completed_at);
  report(`${name}: the last one shows the end of a run after`, late, 'ms', AIMS.end);
  report(`${name}: connections, most`, most, '', AIMS.connections);
  await context.close();
}

const GROUPS = {
  tree: treeFigures,
  line: lineFigures,
  steps: stepFigures,
  tabs: async () => {
    await tabFigures(`${TABS} tabs of a window`, false);
    await tabFigures(`${TABS} windows in view`, true);
  },
};

await makeAgents(service);
await makeLargeAgents(service);
const wanted = process.argv.slice(2);
try {
  for (const group of wanted.length ? wanted : Object.keys(GROUPS)) await GROUPS[group]();
} finally {
  await end();
}
const table = [['figure', 'measured', 'aim', ''], ...lines];
const widths = table[0].map((_, column) => Math.max(...table.map((line) => line[column].length)));
for (const line of table) console.log(line.map((cell, column) => cell.padEnd(widths[column])).join('  ').trimEnd());
process.exitCode = lines.some((line) => line.includes('MISSED')) ? 1 : 0;
