// An agent that talks AG-UI: pages in a browser, and a program with the same client.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { after, afterEach } from 'node:test';
import { fileURLToPath } from 'node:url';
import { talkOf } from '../talk.js';
import { start, Threads, until } from '../threads.js';

const { HttpAgent } = createRequire(`${process.env.AGENT_RUNTIME_TEST_FACES_NODE}/`)('@ag-ui/client');

export const LIMIT = { timeout: 60_000 };
const PAGE = fileURLToPath(new URL('page.js', import.meta.url));
/** An agent with tools of the service, one of which needs an approval, and a tool of a page. */
const AGENT = {
  model: 'mock/chat', tools: ['calculator', 'variables_set', 'write_file'],
  approvals: [
    { tools: ['write_file'], approval: 'always', arguments: { '/path': 'now.md' }, expires_after_seconds: 1 },
    { tools: ['write_file'], approval: 'always' },
  ],
  client_tools: [{
    name: 'locate', description: 'Says where the user is.',
    response_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  }],
};
/** A tool that only the page knows. */
export const PICK = {
  name: 'pick_color', description: 'Lets the user pick a color.',
  parameters: { type: 'object', properties: { colors: { type: 'array', items: { type: 'string' } } } },
};

// The client drops what its protocol does not have, and warns.
console.warn = (words) => { throw new Error(words); };

/** Starts what the tests of a file need. Each test must leave nothing. A tenant has keys. */
export async function prepare(tenant) {
  const { model, browser, service, check, end } = await start(PAGE);
  after(end);
  const makeAgents = async (name, at = service) => {
    const key = name && await makeKey(service, name);
    const agents = new Agents(at, browser, key);
    assert.equal((await agents.send('PUT', '/v1/agents/assistant', AGENT)).status, 200);
    return agents;
  };
  const agents = await makeAgents(tenant);
  afterEach(check);
  afterEach(() => agents.rest());
  return { model, browser, service, agents, makeAgents };
}

async function makeKey(service, tenant) {
  const scopes = 'runs:write,sessions:read,admin';
  const { stdout } = await service.command('keys', 'create', '--tenant', tenant, '--scope', scopes);
  return stdout.trim();
}

/** The threads of a service, through AG-UI. A key makes them those of its tenant. */
export class Agents extends Threads {
  #browser;

  constructor(service, browser, key) {
    super(service, key);
    this.#browser = browser;
    this.address = `${service.url}/v1/ag-ui/assistant`;
  }

  /** Opens the page of a thread, and waits until it has loaded the messages. */
  async open(id, options) {
    const page = await this.follow(id, options);
    if (!options?.no?.includes('hydration')) await page.ends();
    return page;
  }

  /**
   * Opens the page of a thread. `query` goes to the service, `no` to the page, and the other
   * options are parameters of all of its runs.
   */
  async follow(id = this.newId(), { query = '', no = '', ...parameters } = {}) {
    const options = { url: this.address + query, thread: id, no, parameters: JSON.stringify(parameters) };
    const address = new URLSearchParams({ ...options, ...this.key && { key: this.key } });
    const page = new Page(this, await this.#browser.newPage(), id, parameters);
    await page.load((tab) => tab.goto(`${this.#browser.origin}/?${address}`));
    return page;
  }

  /** Sends the input of a run as it is. Returns what the client makes of the response. */
  async post(id, input) {
    const body = { threadId: id, runId: randomUUID(), messages: [], ...input };
    const send = (url, init) => {
      const headers = { ...init.headers, ...this.headers };
      return fetch(url, { ...init, headers, body: JSON.stringify(body) });
    };
    const { threadId, runId, messages: initialMessages } = body;
    const agent = new HttpAgent({ url: this.address, threadId, initialMessages, fetch: send });
    const result = { events: [], input: body };
    await agent.runAgent({ runId }, {
      onEvent: ({ event }) => void result.events.push(event),
      onRunErrorEvent: ({ event }) => void (result.error = event.message),
      onRunFailed({ error }) {
        result.error = error.message;
        return { stopPropagation: true };
      },
    });
    return { ...result, outcome: outcomeOf(result), messages: agent.messages, state: agent.state };
  }

  /** Loads a thread. */
  async hydrate(id, parameters) {
    const result = await this.post(id, parameters);
    assert.equal(result.error, undefined);
    return result;
  }

  /** Sends an input that must be refused without a run. Returns the error. */
  async refuse(id, input) {
    const before = await this.runs(id);
    const { events } = await this.post(id, input);
    assert.deepEqual(events.map(({ type }) => type), ['RUN_STARTED', 'RUN_ERROR'], JSON.stringify(events));
    const [started, error] = events;
    assert.deepEqual([started.threadId, error.code], [id, `${error.code}`]);
    assert.match(error.message, /^[^{]/);
    assert.deepEqual(await this.runs(id), before);
    return error.message;
  }
}

/** A page that shows a thread. */
class Page {
  #agents;
  #tab;
  #parameters;

  constructor(agents, tab, id, parameters) {
    this.#agents = agents;
    this.#tab = tab;
    this.#parameters = parameters;
    this.id = id;
  }

  async load(open) {
    await open(this.#tab);
    await this.#tab.waitForFunction(() => window.chat);
  }

  reload() {
    return this.load((tab) => tab.reload());
  }

  close() {
    return this.#tab.close();
  }

  /** Starts a run after the first messages, or all of them, and those of `add`. */
  go(step) {
    return this.#tab.evaluate((one) => window.chat.go(one), step);
  }

  /** Sends a message. */
  send(content, step) {
    return this.go({ add: [user(content)], ...step });
  }

  /** Changes the message at an index, and sends it again. */
  async edit(at, content) {
    const { id } = (await this.state()).messages[at];
    await this.send(content, { first: at, add: [user(content, id)] });
  }

  /** Sends the result of a call of the page. */
  answer(call, content, step) {
    return this.go({ add: [resultOf(call, content)], ...step });
  }

  /** Closes the connection. */
  abort() {
    return this.#tab.evaluate(() => window.chat.abort());
  }

  /** Returns the messages, the state and the runs of the client. */
  state() {
    return this.#tab.evaluate(() => window.chat.state());
  }

  /** Returns the newest run. */
  async run() {
    return (await this.state()).runs.at(-1);
  }

  async ids() {
    return (await this.state()).messages.map(({ id }) => id);
  }

  /** Returns the types of the events of the newest run, those of a stretch once. */
  async types() {
    const types = (await this.run()).events.map(({ type }) => type);
    return types.filter((type, at) => type !== types[at - 1]);
  }

  /** Returns the messages, each as a line. */
  async talk() {
    return talkIn((await this.state()).messages.filter(hasWords));
  }

  /** Waits until the last message has exactly these words. */
  async shows(line) {
    await until(`the page shows ${line}`, async () => (await this.talk()).at(-1) === line, () => this.state());
  }

  /** Waits until the run has ended, without an error. Returns its outcome. */
  async ends() {
    assert.equal(await this.#error(), undefined);
    return outcomeOf(await this.run());
  }

  /** Waits until the run has ended with an error. Returns its text. */
  async fails() {
    const error = await this.#error();
    assert.match(`${error}`, /^(?!undefined)[^{]/);
    return error;
  }

  async #error() {
    await until('the run has ended', async () => (await this.run()).hasEnded, () => this.run());
    return (await this.run()).error;
  }

  /** Waits for the interrupts of the run, and returns them. */
  async asks() {
    const { type, interrupts } = await this.ends();
    assert.equal(type, 'interrupt');
    return interrupts;
  }

  /** Waits for calls that the page must answer, and returns their ids. */
  async calls() {
    const { type, pendingToolCallIds } = await this.ends();
    assert.equal(type, 'success');
    return pendingToolCallIds;
  }

  /** Waits for the end. Then the page must show a conversation, and so must one that is opened. */
  async checkTalk(talk) {
    await this.ends();
    if (talk) assert.deepEqual(await this.talk(), talk);
    const [{ messages, state }, run] = [await this.state(), await this.run()];
    const fresh = await this.#agents.hydrate(this.id, this.#parameters);
    const own = new Set(messages.filter(isOfPage).map(({ toolCallId }) => toolCallId));
    assert.deepEqual(shapesOf(messages, own), shapesOf(fresh.messages, own));
    assert.deepEqual(state, fresh.state);
    assert.deepEqual(openIn(outcomeOf(run)), openIn(fresh.outcome));
  }
}

/** Returns a message of a user. */
export const user = (content, id = randomUUID()) => ({ id, role: 'user', content });

/** Returns a message with the result of a call of the page. */
export const resultOf = (toolCallId, content, more) => (
  { id: `of-page-${randomUUID()}`, role: 'tool', toolCallId, content, ...more });

/** Returns answers to interrupts. Without a payload they cancel. */
export const answersTo = (...answers) => answers.map(([{ id: interruptId }, payload]) => (
  payload ? { interruptId, status: 'resolved', payload } : { interruptId, status: 'cancelled' }));

/** Returns messages of AG-UI as lines. */
export const talkIn = (messages) => talkOf(messages.map((one) => ({ ...one, tool_calls: one.toolCalls })));

const outcomeOf = ({ events }) => events.findLast(({ type }) => type === 'RUN_FINISHED')?.outcome;

/** Returns the calls that an outcome leaves open. */
const openIn = ({ interrupts = [], pendingToolCallIds = [] } = {}) => ({ interrupts, pendingToolCallIds });

const isOfPage = ({ id, role }) => role === 'tool' && id.startsWith('of-page-');

/** Returns whether a message is more than reasoning that the service has taken back. */
const hasWords = ({ role, content }) => role !== 'reasoning' || content;

/**
 * Returns what must be equal in a page and after a load. A load has no greeting, and results of the
 * page have other ids.
 */
function shapesOf(messages, own) {
  const asked = messages.slice(messages.findIndex(({ role }) => role === 'user'));
  return asked.filter(hasWords).map(({ id, role, content, toolCalls, toolCallId }) => (
    { id: own.has(toolCallId) ? 'of the page' : id, role, content, toolCalls, toolCallId }));
}
