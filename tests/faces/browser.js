// Chromium, and a server of the page under test, whose origin is not that of the service. Errors of
// pages are recorded.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';

const MODULES = process.env.AGENT_RUNTIME_TEST_FACES_NODE;
const require = createRequire(`${MODULES}/`);
const { chromium } = require('playwright-core');
const esbuild = require('esbuild');

/** How long a page may take on a machine with much other work. */
const PATIENCE = 30_000;

export class Browser {
  #findings = new Set();
  #server;
  #chromium;
  #context;

  /** Starts a browser, and a server with one page that executes a script. */
  static async start(script) {
    const browser = new Browser();
    const files = {
      '/': ['text/html', '<!doctype html><div id="app"></div><script type="module" src="/page.js"></script>'],
      '/page.js': ['text/javascript', await bundle(script)],
      '/favicon.ico': ['image/png', ''],
    };
    browser.#server = http.createServer((request, response) => {
      const [type, body] = files[request.url.split('?')[0]];
      const headers = { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'max-age=3600' };
      response.writeHead(200, headers).end(body);
    });
    await once(browser.#server.listen(0, '127.0.0.1'), 'listening');
    browser.origin = `http://127.0.0.1:${browser.#server.address().port}`;
    browser.#chromium = await chromium.launch({
      executablePath: process.env.AGENT_RUNTIME_TEST_CHROMIUM,
      args: ['--no-sandbox', '--no-proxy-server', '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'],
    });
    browser.#context = await browser.#chromium.newContext();
    browser.#context.setDefaultTimeout(PATIENCE);
    return browser;
  }

  /** Makes an empty page. */
  async newPage() {
    const page = await this.#context.newPage();
    page.on('pageerror', (error) => this.#findings.add(error.stack));
    page.on('console', (message) => {
      const isOfNetwork = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isOfNetwork) this.#findings.add(message.text());
    });
    return page;
  }

  /** Closes all pages. None may have had an error. */
  async check() {
    await Promise.all(this.#context.pages().map((page) => page.close()));
    const findings = [...this.#findings];
    this.#findings.clear();
    assert.deepEqual(findings, []);
  }

  async stop() {
    await this.#chromium.close();
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** Bundles a script with the libraries that it imports. */
async function bundle(script) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [script], bundle: true, minify: true, write: false, format: 'esm', jsx: 'automatic',
    nodePaths: [MODULES], define: { 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0].text;
}
