// Chats of the AI SDK with the service: pages in a browser, and requests of a program.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { Service } from '../../console/service.js';
import { Browser } from '../browser.js';
import { Model } from '../model.js';
import { talkOf } from '../talk.js';

const PAGE = fileURLToPath(new URL('page.jsx', import.meta.url));
/** An agent with a tool of the service, one that needs an approval, and one of the page. */
const AGENT = {
  model: 'mock/chat', tools: ['calculator', 'write_file'], approvals: [{ tools: ['write_file'], approval: 'always' }],
  client_tools: [{
    name: 'locate', description: 'Says where the user is.',
    parameters: { type: 'object', properties: { indoors: { type: 'boolean' } } },
  }],
};

/** The line of a message without words and calls. */
const EMPTY = 'assistant: ';
/** How long something may take on a machine with much other work. */
const PATIENCE = 30_000;

/** Starts a model, a service that uses it, and a browser whose pages may call the service. */
export async function start() {
  const model = await Model.start();
  const browser = await Browser.start(PAGE);
  const service = await startService(model, browser);
  const chats = new Chats(service, browser);
  const check = async () => {
    await browser.check();
    model.check();
  };
  const end = async () => {
    await browser.stop();
    await service.end();
    model.stop();
  };
  return { model, browser, service, chats, check, end };
}

/** Starts a service with more settings. */
export function startService(model, { origin }, settings = {}) {
  return Service.start(model.url, [], {
    AGENT_RUNTIME__HTTP__ALLOWED_ORIGINS: JSON.stringify([origin]), AGENT_RUNTIME__QUEUE__LEASE: '2s', ...settings,
  });
}

/** The chats of a service. A key makes them those of its tenant. */
export class Chats {
  #service;
  #browser;
  #key;
  #count = 0;

  constructor(service, browser, key) {
    this.#service = service;
    this.#browser = browser;
    this.#key = key;
  }

  async makeAgent() {
    const { status } = await this.send('PUT', '/v1/agents/assistant', AGENT);
    assert.equal(status, 200);
  }

  /** Returns the id of a chat that does not exist yet. */
  newId() {
    return `chat-${++this.#count}`;
  }

  /** Opens the page of a chat. `query` goes to the service, and `no` to the page. */
  async open(id = this.newId(), { query = '', no = '' } = {}) {
    const api = `${this.#service.url}/v1/ai-sdk/assistant/chat${query}`;
    const parameters = new URLSearchParams({ api, id, no, ...this.#key && { key: this.#key } });
    const chat = new Chat(this, await this.#browser.newPage(), id, !no.includes('resume'));
    await chat.load((page) => page.goto(`${this.#browser.origin}/?${parameters}`));
    return chat;
  }

  /** Sends a request. */
  send(method, path, body) {
    const headers = { 'content-type': 'application/json', ...this.#key && { authorization: `Bearer ${this.#key}` } };
    return fetch(this.#service.url + path, { method, headers, body: body && JSON.stringify(body) });
  }

  /** Reads a resource that must exist. */
  async read(path) {
    const response = await this.send('GET', path);
    const text = await response.text();
    assert(response.ok, `GET ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Sends messages of a chat, as a page does. */
  post(id, messages) {
    return this.send('POST', '/v1/ai-sdk/assistant/chat', { id, messages, trigger: 'submit-message' });
  }

  /** Sends messages that must be refused without a run. */
  async refuse(id, messages) {
    const before = await this.runs(id);
    const response = await this.post(id, messages);
    const text = await response.text();
    assert(response.status >= 400 && response.status < 500, `${response.status} ${text}`);
    assert.match(response.headers.get('content-type'), /^text\/plain\b/);
    assert.match(text, /^[^{]/);
    assert.deepEqual(await this.runs(id), before);
  }

  /** Returns the history of a chat, as a page loads it. */
  history(id) {
    return this.read(`/v1/ai-sdk/assistant/chat/${id}/messages`);
  }

  /** Returns the runs of a chat, the newest first. */
  async runs(id) {
    const { data } = await this.read(`/v1/runs?thread=${id}`);
    return data.map((run) => ({ id: run.run_id, status: run.status }));
  }

  /** Waits until no run is in progress. */
  async rest() {
    for (const status of ['queued', 'running']) {
      await until(`no run is ${status}`, async () => !(await this.read(`/v1/runs?status=${status}`)).data.length);
    }
  }

  /** Waits until the newest run of a chat has a status. */
  until(id, status) {
    return until(`${id} is ${status}`, async () => (await this.runs(id))[0]?.status === status);
  }

  /** Returns the session of a chat. */
  async session(id) {
    const { session_id: session } = await this.read(`/v1/threads/${id}`);
    return this.read(`/v1/sessions/${session}?include=`);
  }

  /** Returns the messages that a session has. */
  async talk(session) {
    return talkOf((await this.read(`/v1/sessions/${session}/messages`)).data);
  }

  /** Returns the messages that the session of a chat has. */
  async stored(id) {
    return talkOf((await this.read(`/v1/threads/${id}/messages`)).data);
  }
}

/** A chat in a page. */
class Chat {
  #chats;
  #resumes;

  constructor(chats, page, id, resumes) {
    this.#chats = chats;
    this.#resumes = resumes;
    this.page = page;
    this.id = id;
  }

  /** Loads the page. Returns the status of the response to its request for a stream. */
  async load(go) {
    const resumed = this.#resumes ? this.page.waitForResponse(/\/stream\b/) : undefined;
    const [response] = await Promise.all([resumed, go(this.page)]);
    await this.page.waitForFunction(() => window.chat);
    return response?.status();
  }

  /** Opens the page again. */
  reload() {
    return this.load((page) => page.reload());
  }

  async send(text) {
    await this.page.getByRole('textbox').fill(text);
    await this.press('Send');
  }

  /** Presses a button, in the message at an index or outside the messages. */
  async press(name, at) {
    const part = at === undefined ? this.page.locator('main') : this.page.getByRole('article').nth(at);
    await part.getByRole('button', { name, exact: true }).click();
  }

  /** Changes the text of the message at an index, and sends it again. */
  async edit(at, text) {
    await this.page.getByRole('textbox').fill(text);
    await this.press('Edit', at);
  }

  /** Waits until the last message has exactly these words. */
  async shows(words) {
    await until(`the page shows ${words}`, async () => (await this.talk()).at(-1) === words, () => this.state());
  }

  /** Waits until the chat has a status. */
  async is(status) {
    await until(`the page is ${status}`, async () => (await this.state()).status === status, () => this.state());
  }

  /** Waits until the stream has ended, without an error. */
  async ends() {
    const hasEnded = async () => ['ready', 'error'].includes((await this.state()).status);
    await until('the stream has ended', hasEnded, () => this.state());
    assert.equal((await this.state()).error, undefined);
  }

  /** Waits until the page shows calls that need an approval. */
  async asks(count) {
    const buttons = this.page.getByRole('button', { name: 'Approve' });
    await until('the page asks', async () => await buttons.count() === count, () => this.state());
    await this.ends();
  }

  /** Returns the messages, the status and the error of the hook. */
  state() {
    return this.page.evaluate(() => window.chat);
  }

  async ids() {
    return (await this.state()).messages.map(({ id }) => id);
  }

  /** Returns the messages that the page shows, each as a line. */
  async talk() {
    return (await this.state()).messages.map(lineOf).filter((line) => line !== EMPTY);
  }

  /** Checks that the page shows a conversation, and that the history has it with the same ids. */
  async checkTalk(talk) {
    assert.deepEqual(await this.talk(), talk);
    const history = await this.#chats.history(this.id);
    assert.deepEqual(shapesOf((await this.state()).messages), shapesOf(history));
  }
}

/** Returns a message of a user. */
export const user = (text, id = text) => ({ id, role: 'user', parts: [{ type: 'text', text }] });

/** Waits until a condition holds, and reports another value if it never does. */
export async function until(what, holds, state = () => undefined) {
  for (const deadline = Date.now() + PATIENCE; !await holds();) {
    assert(Date.now() < deadline, `${what}: never; ${JSON.stringify(await state())}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

/** Returns a message as a line: its texts, reasoning in brackets, and its calls. */
const lineOf = ({ role, parts }) => `${role}: ${parts.map(wordsOf).filter(Boolean).join(' | ')}`;

function wordsOf(part) {
  if (part.type === 'text') return part.text;
  if (part.type === 'reasoning') return `(${part.text})`;
  if (!part.toolCallId) return '';
  const result = part.errorText ?? part.output;
  const name = part.toolName ?? part.type.replace('tool-', '');
  const end = result === undefined ? [] : [JSON.stringify(result)];
  return [`${name}(${JSON.stringify(part.input)})`, part.state, ...end].join(' ');
}

/**
 * Returns the parts of messages that must be equal in a page and in the history. A turn that has
 * failed leaves an empty message in the page.
 */
const shapesOf = (messages) => messages.filter((message) => lineOf(message) !== EMPTY).map(({ id, role, parts }) => {
  const shown = parts.filter(({ type }) => !type.startsWith('data-'));
  return { id, role, parts: shown.map((part) => [part.type, part.toolCallId, wordsOf(part)]) };
});
