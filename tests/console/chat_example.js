// The example examples/chat with exactly its files: a service with its agents, a server of its
// page, and a browser. Only the model is played.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Model } from './model.js';
import { Service } from './service.js';

const require = createRequire(`${process.env.AGENT_RUNTIME_TEST_CONSOLE_NODE}/`);
const { chromium } = require('playwright-core');
const FOLDER = fileURLToPath(new URL('../../examples/chat/', import.meta.url));
const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };
/** How long a page may take on a machine with much other work. */
const PATIENCE = 60_000;

/** Starts everything. `script` plays the model of the agent `assistant`. */
export async function start(script, pace = 0) {
  const model = await Model.start({ 'gpt-5-mini': script }, pace);
  const pages = createServer(servePage);
  await once(pages.listen(0, '127.0.0.1'), 'listening');
  const origin = `http://127.0.0.1:${pages.address().port}`;
  const service = await Service.start(model.url, [], {
    AGENT_RUNTIME__HTTP__ALLOWED_ORIGINS: JSON.stringify([origin]),
    AGENT_RUNTIME__AGENTS__DIRECTORY: join(FOLDER, 'agents'),
    AGENT_RUNTIME__PROVIDERS__OPENAI__KIND: 'openai_chat',
    AGENT_RUNTIME__PROVIDERS__OPENAI__BASE_URL: model.url,
  });
  const browser = await chromium.launch({
    executablePath: process.env.AGENT_RUNTIME_TEST_CHROMIUM,
    args: ['--no-sandbox', '--no-proxy-server', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
  });
  const end = async () => {
    await browser.close();
    await service.end();
    pages.close();
    model.stop();
  };
  return { model, service, browser, origin, end };
}

/** Responds as `python3 -m http.server` does. */
function servePage({ url }, response) {
  const name = new URL(url, 'http://page').pathname.slice(1) || 'index.html';
  response.setHeader('content-type', TYPES[extname(name)]);
  response.end(readFileSync(join(FOLDER, name)));
}

/** Opens the page in its own context. Adds its errors and its requests to others to `findings`. */
export async function open({ browser, service, origin }, findings, options) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options,
  });
  context.setDefaultTimeout(PATIENCE);
  await context.addInitScript((url) => localStorage.setItem('url', url), service.url);
  const page = await context.newPage();
  // `settle` waits for these. The stream of a run would never let it end.
  page.pending = new Set();
  page.on('pageerror', (error) => findings.push(error.stack));
  page.on('console', (message) => {
    const isOfNetwork = message.text().startsWith('Failed to load resource');
    if (message.type() === 'error' && !isOfNetwork) findings.push(message.text());
  });
  page.on('request', (request) => {
    const isKnown = [origin, service.url, 'data:', 'blob:'].some((begin) => request.url().startsWith(begin));
    if (!isKnown) findings.push(request.url());
  });
  await page.goto(origin);
  await page.locator('#agent option').first().waitFor({ state: 'attached' });
  return page;
}
