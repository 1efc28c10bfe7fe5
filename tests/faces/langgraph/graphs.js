// An agent that serves LangGraph: pages in a browser, and a program with the client of the SDK.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { after, afterEach } from 'node:test';
import { fileURLToPath } from 'node:url';
import { talkOf } from '../talk.js';
import { start, Threads, until } from '../threads.js';

const { Client } = createRequire(`${process.env.AGENT_RUNTIME_TEST_FACES_NODE}/`)('@langchain/langgraph-sdk');

export const LIMIT = { timeout: 60_000 };
const PAGE = fileURLToPath(new URL('page.jsx', import.meta.url));
/** An agent with tools of the service, one of which needs an approval, and a tool of the page. */
const AGENT = {
  model: 'mock/chat', tools: ['calculator', 'write_file'], approvals: [{ tools: ['write_file'], approval: 'always' }],
  client_tools: [{
    name: 'locate', description: 'Says where the user is.',
    parameters: { type: 'object', properties: { indoors: { type: 'boolean' } } },
  }],
};
const ROLES = { human: 'user', ai: 'assistant', tool: 'tool' };

/** Starts what the tests of a file need. Each test must leave nothing. A tenant has keys. */
export async function prepare(tenant) {
  const { model, browser, service, check, end } = await start(PAGE);
  after(end);
  const scopes = 'runs:write,sessions:read,admin';
  const makeGraphs = async (name, at = service) => {
    const key = name && await service.command('keys', 'create', '--tenant', name, '--scope', scopes);
    const graphs = new Graphs(at, browser, key?.stdout.trim());
    assert.equal((await graphs.send('PUT', '/v1/agents/assistant', AGENT)).status, 200);
    return graphs;
  };
  const graphs = await makeGraphs(tenant);
  afterEach(check);
  afterEach(() => graphs.rest());
  return { model, browser, service, graphs, client: graphs.client, makeGraphs };
}

/** The threads of a service, through LangGraph. A key makes them those of its tenant. */
export class Graphs extends Threads {
  #browser;

  constructor(service, browser, key) {
    super(service, key);
    this.#browser = browser;
    this.address = `${service.url}/v1/langgraph`;
    this.client = new Client({ apiUrl: this.address, apiKey: key ?? null, callerOptions: { maxRetries: 0 } });
  }

  newId() {
    return randomUUID();
  }

  /** Makes a thread, and returns its id. */
  async make() {
    return (await this.client.threads.create()).thread_id;
  }

  /** Opens the page of a thread, or of none. */
  async open(thread, { no = '' } = {}) {
    const options = { ...thread && { thread }, ...this.key && { key: this.key } };
    const query = new URLSearchParams({ api: this.address, no, ...options });
    const page = new Page(this, await this.#browser.newPage());
    await page.load((tab) => tab.goto(`${this.#browser.origin}/?${query}`));
    return page;
  }

  /** Opens a page, and makes some turns. Returns it with the sessions after them. */
  async openWith(model, turns, options) {
    const page = await this.open(undefined, options);
    const sessions = [];
    for (const [question, words] of turns) {
      await page.act('send', question);
      await model.play(words);
      await page.ends();
      sessions.push((await this.session(await page.id())).session_id);
    }
    return { page, id: await page.id(), sessions };
  }

  /** Makes a thread with a run, whose completion has calls. */
  async ask(model, ...calls) {
    const id = await this.make();
    const [values] = await Promise.all([this.wait(id, ask('Do it')), model.play('May I?', ...calls)]);
    return { id, values, interrupts: values.__interrupt__ };
  }

  /** Starts a run of a thread, and waits for its values. */
  wait(id, payload) {
    return this.client.runs.wait(id, 'assistant', payload);
  }

  /** Sends a request that must be refused with one of the statuses, and without a run. */
  async refuse(id, send, ...statuses) {
    const before = await this.runs(id);
    const error = await send().then(() => assert.fail('the request is served'), (reason) => reason);
    assert((statuses.length ? statuses : [400, 409, 422]).includes(error.status), `${error}`);
    // Agent Chat UI shows the body as it is.
    assert.match(error.text, /^[^{]/);
    assert.deepEqual(await this.runs(id), before);
  }

  async files(id) {
    const { data } = await this.read(`/v1/threads/${id}/files`);
    return data.map(({ path }) => path);
  }
}

/** A page that shows a thread. */
class Page {
  #graphs;

  constructor(graphs, tab) {
    this.#graphs = graphs;
    this.tab = tab;
  }

  async load(open) {
    await open(this.tab);
    await this.tab.waitForFunction(() => window.chat && !window.chat.state().isThreadLoading);
  }

  reload() {
    return this.load((tab) => tab.reload());
  }

  /** Starts an action of the page. */
  act(...words) {
    return this.tab.evaluate((all) => window.chat.act(...all), words);
  }

  /** Returns what the hook shows. */
  state() {
    return this.tab.evaluate(() => window.chat.state());
  }

  async id() {
    return (await this.state()).thread;
  }

  async ids() {
    return (await this.state()).messages.map(({ id }) => id);
  }

  async talk() {
    return talkIn((await this.state()).messages);
  }

  /** Waits until the last message has exactly these words. */
  async shows(line) {
    await until(`the page shows ${line}`, async () => (await this.talk()).at(-1) === line, () => this.state());
  }

  /** Waits until the stream has ended, and the page shows what it should. */
  async #rests(what, holds) {
    const isReady = async () => (({ isLoading, ...state }) => !isLoading && holds(state))(await this.state());
    await until(what, isReady, () => this.state());
    return this.state();
  }

  /** Waits until the stream has ended, without an error. */
  async ends() {
    assert.equal((await this.#rests('the stream has ended', () => true)).error, undefined);
  }

  /** Waits for an error, and returns its text. */
  async fails() {
    return (await this.#rests('the page shows an error', ({ error }) => error !== undefined)).error;
  }

  /** Waits for an interrupt, and returns it. */
  async asks() {
    const { error, interrupts } = await this.#rests('the page asks', (state) => state.interrupts.length);
    assert.deepEqual([error, interrupts.length], [undefined, 1]);
    return interrupts[0];
  }

  /** Returns which branch each message is of, if it has some. */
  async branches() {
    return (await this.state()).branches;
  }

  /** Waits for the end. Then the page must show a conversation, and the thread must have it. */
  async checkTalk(talk) {
    await this.ends();
    const { messages, shown, interrupts, thread } = await this.state();
    if (talk) assert.deepEqual(talkIn(messages), talk);
    assert.equal(new Set(messages.map(({ id }) => id)).size, messages.length);
    if (shown.length) assert.deepEqual(messages.map(shapeOf), shown.map(shapeOf));
    const { values, next, tasks } = await this.#graphs.client.threads.getState(thread);
    assert.deepEqual([values.messages, next.length > 0], [messages, tasks.length > 0]);
    if (!next.length) assert.deepEqual(interrupts, []);
  }
}

/** Returns messages of LangGraph as lines. */
export const talkIn = (messages) => talkOf(messages.map(({ type, content, tool_calls: calls }) => ({
  role: ROLES[type], content,
  tool_calls: calls?.map(({ name, args }) => ({ function: { name, arguments: JSON.stringify(args) } })),
})));

/** Returns a message of a user, and a run with that input. */
export const human = (content) => ({ type: 'human', id: randomUUID(), content });
export const ask = (content) => ({ input: { messages: [human(content)] } });

/** Returns what must be equal in a stream and in a thread. */
const shapeOf = ({ id, type, content, tool_calls: calls = [], tool_call_id: call, status }) => (
  { id, type, content, calls: calls.map(({ id: of, name, args }) => ({ of, name, args })), call, status });

/** Reads a stream to its end. */
export async function readAll(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}
