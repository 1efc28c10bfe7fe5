// Chromium at the console of a service. It records what no page may do.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Model } from './model.js';
import { SCRIPTS } from './seed.js';
import { Service } from './service.js';

const require = createRequire(`${process.env.AGENT_RUNTIME_TEST_CONSOLE_NODE}/`);
const { chromium } = require('playwright-core');
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** How long a page may take on a machine with much other work. */
const PATIENCE = 60_000;
/** How long a page must stay the same to count as drawn. */
const QUIET = 300;

/** Starts a model, a service that uses it, and a browser. */
export async function start(pace = 0) {
  const model = await Model.start(SCRIPTS, pace);
  const service = await Service.start(model.url, Object.keys(SCRIPTS));
  const browser = await Browser.start(service);
  const end = async () => {
    await browser.chromium.close();
    await service.end();
    model.stop();
  };
  return { model, service, browser, end };
}

class Browser {
  /** Violations of policies, errors of pages, and requests that the API does not describe. */
  #findings = new Set();

  static async start(service) {
    const browser = new Browser();
    const { paths } = await service.send('GET', '/openapi.json');
    browser.url = service.url;
    browser.operations = Object.entries(paths).map(([path, methods]) =>
      ({ pattern: new RegExp(`^${path.replaceAll(/\{[^}]*\}/g, '[^/]+')}$`), methods }));
    browser.chromium = await chromium.launch({
      executablePath: process.env.AGENT_RUNTIME_TEST_CHROMIUM,
      args: ['--no-sandbox', '--no-proxy-server', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
    });
    return browser;
  }

  /** Opens a path in a context of its own, which shares no cookies with others. */
  async open(path) {
    const context = await this.chromium.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: 'reduce' });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.pending = new Set();
    const find = (what) => this.#findings.add(`${page.url()}: ${what}`);
    context.on('request', (request) => {
      if (!this.#isKnown(request)) find(`${request.method()} ${request.url()}`);
      if (!/\/(changes|events)(\?|$)/.test(request.url())) page.pending.add(request);
    });
    for (const end of ['requestfinished', 'requestfailed']) context.on(end, (request) => page.pending.delete(request));
    page.on('pageerror', (error) => find(error.stack));
    page.on('dialog', (dialog) => find(dialog.message()));
    page.on('console', (message) => {
      const isOfNetwork = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isOfNetwork) find(message.text());
    });
    await page.addInitScript(() => addEventListener('securitypolicyviolation', (violation) =>
      console.error(`${violation.effectiveDirective} forbids ${violation.blockedURI} ${violation.sample}`)));
    await page.goto(this.url + path);
    return page;
  }

  /** Returns whether a request is for a file of the console or of the guides, or an operation of the API. */
  #isKnown(request) {
    const { origin, pathname, protocol } = new URL(request.url());
    const method = request.method().toLowerCase();
    const isFile = method === 'get' && /^\/(console|docs)(\/|$)/.test(pathname);
    const isOperation = ({ pattern, methods }) => method in methods && pattern.test(pathname);
    return protocol === 'data:' || (origin === this.url && (isFile || this.operations.some(isOperation)));
  }

  /** Closes all pages. None may have done what it must not. */
  async check() {
    await Promise.all(this.chromium.contexts().map((context) => context.close()));
    const findings = [...this.#findings];
    this.#findings.clear();
    assert.deepEqual(findings, []);
  }

  /** Returns the paths of the pages, one for each page. */
  async routes() {
    const page = await this.open('/console');
    const routes = await page.evaluate(async () => (await import('/console/routes.js')).ROUTES
      .map(({ path, page: { name } }) => [name, path]));
    return [...new Map(routes).values()];
  }
}

/** Waits until a page has its data and stays the same. */
export async function settle(page) {
  await page.locator('h1').first().waitFor();
  const isQuiet = (quiet) => new Promise((resolve) => {
    const later = () => setTimeout(resolve, quiet);
    let timer = later();
    new MutationObserver(() => {
      clearTimeout(timer);
      timer = later();
    }).observe(document.body, { childList: true, subtree: true });
  });
  const deadline = Date.now() + PATIENCE;
  do {
    await page.evaluate(isQuiet, QUIET);
    assert(Date.now() < deadline, `${page.url()} waits for ${[...page.pending].map((request) => request.url())}`);
  } while (page.pending.size > 0);
}

/** Checks the accessibility of a page in both themes. */
export async function checkAccess(page) {
  await settle(page);
  const session = await page.context().newCDPSession(page);
  await session.send('Runtime.evaluate', { expression: AXE });
  const expression = `axe.run({ runOnly: ${JSON.stringify(RULES)} }).then(({ violations }) => violations.flatMap(
    ({ help, nodes }) => nodes.slice(0, 3).map(({ html, failureSummary }) => help + html + failureSummary)))`;
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    const run = { expression, awaitPromise: true, returnByValue: true };
    const { result } = await session.send('Runtime.evaluate', run);
    assert.deepEqual(result.value, [], `${page.url()} in the ${colorScheme} theme`);
  }
}

/** Returns the addresses of a path, with the values that `seed` has for its parameters. */
export function addressesOf(path, values) {
  const names = path.match(/:\w+/g);
  if (!names) return [path];
  const lists = values[path.split('/')[2]];
  assert(lists, `seed.js has no values for the parameters of ${path}`);
  return lists.map((list) => names.reduce((done, name, at) => done.replace(name, encodeURIComponent(list[at])), path));
}
