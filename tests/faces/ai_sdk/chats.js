// Chats of the AI SDK with the service: pages in a browser, and requests of a program.

import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { start as startAll, Threads, until } from '../threads.js';

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

/** Starts a model, a service that uses it, and a browser whose pages may call the service. */
export async function start() {
  const all = await startAll(PAGE);
  return { ...all, chats: new Chats(all.service, all.browser) };
}

/** The chats of a service. A key makes them those of its tenant. */
export class Chats extends Threads {
  #browser;

  constructor(service, browser, key) {
    super(service, key);
    this.#browser = browser;
  }

  async makeAgent() {
    const { status } = await this.send('PUT', '/v1/agents/assistant', AGENT);
    assert.equal(status, 200);
  }

  /** Opens the page of a chat. `query` goes to the service, and `no` to the page. */
  async open(id = this.newId(), { query = '', no = '' } = {}) {
    const api = `${this.url}/v1/ai-sdk/assistant/chat${query}`;
    const parameters = new URLSearchParams({ api, id, no, ...this.key && { key: this.key } });
    const chat = new Chat(this, await this.#browser.newPage(), id, !no.includes('resume'));
    await chat.load((page) => page.goto(`${this.#browser.origin}/?${parameters}`));
    return chat;
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
