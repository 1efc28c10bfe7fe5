// A service of its own: the program in a new folder with a SQLite store. It may be killed and started again.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const PROGRAM = process.env.AGENT_RUNTIME_TEST_BINARY;
const SCRIPT = fileURLToPath(new URL('large.toml', import.meta.url));

export class Service {
  #folder = mkdtempSync(join(tmpdir(), 'agent-runtime-console-'));
  #options;
  #child;

  /**
   * Starts a service that has a server of models as its provider `mock`, and a script as its provider `script`.
   * `settings` are variables of its environment.
   */
  static async start(address, models, settings = {}) {
    const service = new Service();
    const host = `127.0.0.1:${await freePort()}`;
    const prices = models.map((name) => `[prices."mock/${name}"]\ninput = 2.0\noutput = 8.0\n`);
    const provider = `[providers.mock]\nkind = "openai_chat"\nbase_url = "${address}"\n`;
    const script = `[providers.script]\nkind = "scripted"\nscript = ${JSON.stringify(SCRIPT)}\n`;
    writeFileSync(join(service.#folder, 'agent-runtime.toml'), [provider, script, ...prices].join('\n'));
    const env = {
      AGENT_RUNTIME__STORE__URL: 'sqlite://store.db', AGENT_RUNTIME__STORE__ACQUIRE_TIMEOUT: '20s',
      AGENT_RUNTIME__HTTP__LISTEN: host, AGENT_RUNTIME__QUEUE__LEASE: '5s', ...settings,
    };
    service.#options = { cwd: service.#folder, env };
    service.url = `http://${host}`;
    await service.begin();
    return service;
  }

  /** Starts the process, and waits until it listens. */
  async begin() {
    const log = join(this.#folder, 'log');
    const file = openSync(log, 'a');
    const child = spawn(PROGRAM, ['serve'], { ...this.#options, stdio: ['ignore', 'pipe', file] });
    closeSync(file);
    this.#child = child;
    process.once('exit', () => child.kill('SIGKILL'));
    const lines = createInterface(child.stdout);
    const isListening = await new Promise((resolve) => {
      lines.on('line', (line) => line.includes('listening on') && resolve(true));
      child.once('exit', () => resolve(false));
    });
    assert(isListening, readFileSync(log, 'utf8'));
  }

  async kill() {
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async end() {
    await this.kill();
    rmSync(this.#folder, { recursive: true });
  }

  /** Runs a command of the program, and returns what it has printed. */
  command(...words) {
    return promisify(execFile)(PROGRAM, words, this.#options);
  }

  /** Sends a request that must succeed, and returns the response. */
  async send(method, path, body) {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    assert(response.ok, `${method} ${path}: ${response.status} ${text.slice(0, 2000)}`);
    return JSON.parse(text);
  }

  /** Starts a run in the background. */
  startRun(agent, input, more) {
    return this.send('POST', '/v1/runs', { agent, input, mode: 'async', durability: 'step', ...more });
  }

  /** Makes a run, and returns it when it has ended. */
  async run(agent, input, more) {
    let run = await this.startRun(agent, input, more);
    while (['queued', 'running'].includes(run.status)) run = await this.send('GET', `/v1/runs/${run.run_id}?wait=10s`);
    return run;
  }
}

/** Finds a port below those of clients, so that it stays free after a kill. */
async function freePort() {
  for (;;) {
    const port = 15_000 + Math.floor(15_000 * Math.random());
    const server = createServer();
    const isFree = await once(server.listen(port, '127.0.0.1'), 'listening').then(() => true, () => false);
    if (isFree) await promisify(server.close.bind(server))();
    if (isFree) return port;
  }
}
