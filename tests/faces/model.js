// A model whose completions a test writes piece by piece, as a server of OpenAI's protocol.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { talkOf } from './talk.js';

/** How long the service may take until it asks. */
const PATIENCE = 30_000;

export class Model {
  /** Requests that no test has taken, and tests that wait for one. */
  #requests = [];
  #waiting = [];
  #calls = 0;
  #server;

  static async start() {
    const model = new Model();
    model.#server = http.createServer(async (request, response) => {
      const body = JSON.parse(await text(request));
      const completion = new Completion(body, response, () => `call_${++model.#calls}`);
      const take = model.#waiting.shift();
      if (take) take(completion);
      else model.#requests.push(completion);
    });
    await once(model.#server.listen(0, '127.0.0.1'), 'listening');
    model.url = `http://127.0.0.1:${model.#server.address().port}/v1`;
    return model;
  }

  /** Waits for the next request of the service. */
  async next() {
    const completion = this.#requests.shift() ?? await new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((one) => one !== take);
        reject(new Error('the service does not ask the model'));
      }, PATIENCE);
      const take = (request) => {
        clearTimeout(timer);
        resolve(request);
      };
      this.#waiting.push(take);
    });
    checkResults(completion.request.messages);
    return completion;
  }

  /** Plays a whole completion. Returns the conversation that the model has read. */
  async play(words, ...calls) {
    const reply = await this.next();
    if (words) reply.write(words);
    for (const [name, args] of calls) reply.call(name, args);
    reply.end();
    return reply.talk;
  }

  /** Checks that tests have taken all requests. */
  check() {
    const left = this.#requests.splice(0);
    for (const completion of left) completion.fail();
    assert.deepEqual(left.map(({ talk }) => talk), []);
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** A completion in progress. */
class Completion {
  #response;
  #makeId;
  #calls = 0;

  constructor(request, response, makeId) {
    this.request = request;
    this.#response = response;
    this.#makeId = makeId;
    /** Settles when the connection has closed. */
    this.closed = once(response, 'close');
  }

  /** The conversation that the model reads. */
  get talk() {
    return talkOf(this.request.messages);
  }

  reason(words) {
    this.#choose({ reasoning_content: words });
  }

  write(words) {
    this.#choose({ content: words });
  }

  /** Calls a tool, and returns the id of the call. */
  call(name, args) {
    const id = this.#makeId();
    const call = { name, arguments: JSON.stringify(args) };
    this.#choose({ tool_calls: [{ index: this.#calls++, id, type: 'function', function: call }] });
    return id;
  }

  end() {
    this.#choose({}, this.#calls ? 'tool_calls' : 'stop');
    this.#send({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
    this.#response.end('data: [DONE]\n\n');
  }

  /** Refuses the request. */
  fail() {
    this.#response.writeHead(400, { 'content-type': 'application/json' });
    this.#response.end('{"error": {"message": "The model refuses."}}');
  }

  #choose(delta, reason = null) {
    this.#send({ choices: [{ index: 0, delta, finish_reason: reason }] });
  }

  #send(chunk) {
    if (!this.#response.headersSent) this.#response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  }
}

/** Checks that each call of a request has one result. */
function checkResults(messages) {
  const calls = messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
  const results = messages.filter(({ role }) => role === 'tool').map((message) => message.tool_call_id);
  assert.deepEqual(results.toSorted(), calls.toSorted(), 'each call has one result');
}
