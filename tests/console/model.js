// A model that plays scripts, as a server of OpenAI's protocol.

import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * A completion. It streams `think`, `say` and `calls`. With `hold` it does not end before its task is
 * released. With `busy` the first request for it gets 503, with `fails` every request gets 400.
 * @typedef {{ say?: string, think?: string, calls?: [string, object][], hold?: boolean, busy?: boolean,
 *   fails?: boolean, after?: number }} Completion
 * @typedef {(turn: { step: number, task: string, results: string[] }) => Completion} Script
 */

export class Model extends EventEmitter {
  #released = new Set();
  #busy = new Set();
  #server;

  /**
   * Starts a model. The model `mock/NAME` plays the script NAME.
   * @param {Record<string, Script>} scripts @param {number} pace What times are multiplied by; 0 does not wait.
   */
  static async start(scripts, pace) {
    const model = new Model();
    model.#server = http.createServer((request, response) =>
      model.#respond(scripts, pace, request, response).catch((error) => response.destroy(error)));
    await once(model.#server.listen(0, '127.0.0.1'), 'listening');
    model.url = `http://127.0.0.1:${model.#server.address().port}/v1`;
    return model;
  }

  /** Lets the completions of a task that hold go on, now and later. */
  release(task) {
    this.#released.add(task);
    this.emit(task);
  }

  stop() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #respond(scripts, pace, request, response) {
    const { model, messages } = JSON.parse(await text(request));
    const at = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(at + 1);
    const task = wordsOf(messages[at]);
    const step = turn.filter(({ role }) => role === 'assistant').length;
    const results = turn.filter(({ role }) => role === 'tool').map(wordsOf);
    const { say = '', think = '', calls = [], after = 1, ...how } = scripts[model]({ step, task, results });
    await pause(400 * after * pace);
    const isBusy = how.busy && !this.#busy.has(task);
    if (isBusy) this.#busy.add(task);
    if (isBusy || how.fails) {
      response.writeHead(isBusy ? 503 : 400, { 'content-type': 'application/json' });
      response.end('{"error": {"message": "The model refuses."}}');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (chunk) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    const choose = (delta, reason = null) => send({ choices: [{ index: 0, delta, finish_reason: reason }] });
    for (const [name, words] of [['reasoning_content', think], ['content', say]]) {
      for (const piece of piecesOf(words)) {
        choose({ [name]: piece });
        await pause(25 * pace);
      }
    }
    if (how.hold && !this.#released.has(task)) await once(this, task);
    for (const [index, [name, args]] of calls.entries()) {
      const call = { name, arguments: JSON.stringify(args) };
      choose({ tool_calls: [{ index, id: `call_${step}_${index}`, type: 'function', function: call }] });
    }
    choose({}, calls.length ? 'tool_calls' : 'stop');
    const [input, output] = [900 + Math.round(JSON.stringify(messages).length / 4), 40 + Math.round(say.length / 4)];
    const cached = { cached_tokens: Math.round(step && 0.8 * input) };
    const usage = { prompt_tokens: input, completion_tokens: output, prompt_tokens_details: cached };
    send({ choices: [], usage: { ...usage, total_tokens: input + output } });
    response.end('data: [DONE]\n\n');
  }
}

/** Returns the text of a message. */
const wordsOf = ({ content }) => (typeof content === 'string' ? content : content.map((part) => part.text).join(''));

/** Cuts a text into pieces, about 50 if it is long. */
const piecesOf = (text) => text.match(new RegExp(`[^]{1,${Math.max(6, Math.ceil(text.length / 50))}}`, 'gu')) ?? [];
