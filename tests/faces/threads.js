// Threads of a service, for a program that calls the API, and the service itself.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { Service } from '../console/service.js';
import { Browser } from './browser.js';
import { Model } from './model.js';
import { talkOf } from './talk.js';

/** How long something may take on a machine with much other work. */
const PATIENCE = 30_000;
const POSTGRES = process.env.AGENT_RUNTIME_TEST_POSTGRES_URL;
const IS_REQUIRED = process.env.AGENT_RUNTIME_TEST_REQUIRE_SERVERS !== undefined;

/** Why tests with replicas are left out, if they are. */
export const withoutReplicas = !POSTGRES && !IS_REQUIRED && 'AGENT_RUNTIME_TEST_POSTGRES_URL is not set';

/** Starts a model, a service that uses it, and a browser whose pages may call the service. */
export async function start(script) {
  const model = await Model.start();
  const browser = await Browser.start(script);
  const service = await startService(model, browser);
  const check = async () => {
    await browser.check();
    model.check();
  };
  const end = async () => {
    await browser.stop();
    await service.end();
    model.stop();
  };
  return { model, browser, service, check, end };
}

function startService(model, { origin }, settings = {}) {
  return Service.start(model.url, [], {
    AGENT_RUNTIME__HTTP__ALLOWED_ORIGINS: JSON.stringify([origin]), AGENT_RUNTIME__QUEUE__LEASE: '2s', ...settings,
  });
}

/** Starts a replica that only serves requests and one that only works, for the time of `use`. */
export async function withReplicas(model, browser, use) {
  const name = `faces_${randomUUID().replaceAll('-', '')}`;
  const query = (words) => promisify(execFile)('psql', [POSTGRES, '--quiet', '--command', words]);
  await query(`create database ${name}`);
  const store = new URL(POSTGRES);
  store.pathname = `/${name}`;
  const replicas = [];
  try {
    for (const role of ['api', 'worker']) {
      const settings = { AGENT_RUNTIME__STORE__URL: store.href, AGENT_RUNTIME__QUEUE__ROLE: role };
      replicas.push(await startService(model, browser, settings));
    }
    await use(...replicas);
  } finally {
    await Promise.all(replicas.map((replica) => replica.end()));
    await query(`drop database ${name} with (force)`);
  }
}

/** The threads of a service. A key makes them those of its tenant. */
export class Threads {
  #count = 0;

  constructor({ url }, key) {
    this.url = url;
    this.key = key;
    this.headers = key ? { authorization: `Bearer ${key}` } : {};
  }

  /** Returns the name of a thread that does not exist yet. */
  newId() {
    return `thread-${++this.#count}`;
  }

  /** Sends a request. */
  send(method, path, body) {
    const headers = { 'content-type': 'application/json', ...this.headers };
    return fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
  }

  /** Reads a resource that must exist. */
  async read(path) {
    const response = await this.send('GET', path);
    const text = await response.text();
    assert(response.ok, `GET ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Returns the runs of a thread, the newest first. */
  async runs(id) {
    const { data } = await this.read(`/v1/runs?thread=${id}`);
    return data.map((run) => ({ id: run.run_id, status: run.status }));
  }

  async statuses(id) {
    return (await this.runs(id)).map(({ status }) => status);
  }

  /** Waits until no run is in progress. */
  async rest() {
    for (const status of ['queued', 'running']) {
      await until(`no run is ${status}`, async () => !(await this.read(`/v1/runs?status=${status}`)).data.length);
    }
  }

  /** Waits until the newest run of a thread has a status. */
  until(id, status) {
    return until(`${id} is ${status}`, async () => (await this.runs(id))[0]?.status === status);
  }

  /** Returns the session of a thread. */
  async session(id, include = '') {
    const { session_id: session } = await this.read(`/v1/threads/${id}`);
    return this.read(`/v1/sessions/${session}?include=${include}`);
  }

  /** Returns the messages that a session has. */
  async talk(session) {
    return talkOf((await this.read(`/v1/sessions/${session}/messages`)).data);
  }

  /** Returns the messages that the session of a thread has. */
  async stored(id) {
    return talkOf((await this.read(`/v1/threads/${id}/messages`)).data);
  }

  /** Returns the text of a file of a thread, or the status if there is none. */
  async file(id, path) {
    const response = await this.send('GET', `/v1/threads/${id}/files/${path}`);
    return response.ok ? response.text() : response.status;
  }
}

/** Waits until a condition holds, and reports another value if it never does. */
export async function until(what, holds, state = () => undefined) {
  for (const deadline = Date.now() + PATIENCE; !await holds();) {
    assert(Date.now() < deadline, `${what}: never; ${JSON.stringify(await state())}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}
