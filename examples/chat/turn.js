// What an agent writes and does in a turn: text, reasoning, and calls of tools. Stored messages and
// the events of a run become the same elements.

import { announce, h, pretty, textOf } from './view.js';

export class Answer {
  element = h('div', { className: 'answer' });
  /** The elements, each with its step: a run that resumes takes back its last steps. */
  #parts = [];
  #unspoken = '';

  /** @param calls The calls of the turn by id. The results of open calls come from a later run. */
  constructor(calls = new Map()) {
    this.calls = calls;
  }

  /** Shows the stored messages of a turn. */
  showMessages(messages) {
    for (const { id: step, role, content } of messages) {
      for (const part of content) {
        if (part.type === 'reasoning') this.#write('reasoning', part.text, step);
        else if (part.type === 'tool_call') this.#call(part.id, part.name, step).setArguments(part.arguments);
        else if (part.type === 'tool_result') this.#call(part.call_id, part.name, step).end(part);
        else this.#write(role, textOf([part]), step);
      }
    }
  }

  /** Shows an event of a run. */
  showEvent({ type, data }) {
    const { step_number: step, call_id: id, name } = data;
    if (type === 'message.delta') this.#addText(data.text, step);
    else if (type === 'reasoning.delta') this.#write('reasoning', data.text, step);
    else if (type === 'tool_call.started') this.#call(id, name, step);
    else if (type === 'tool_call.delta') this.#call(id, name, step).addArguments(data.arguments);
    else if (type === 'tool_call.output') this.#call(id, name, step).addOutput(data.text);
    else if (type === 'tool_call.completed') this.#call(id, name, step).end(data);
    else if (type === 'run.resumed') this.forgetAfter(data.step_count);
    else if (type.startsWith('run.') && this.#unspoken) announce(this.#unspoken);
  }

  /** Takes back the parts of all steps after one. */
  forgetAfter(step) {
    for (const part of this.#parts.filter((one) => one.step > step)) {
      part.element.remove();
      this.calls.delete(part.id);
    }
    this.#parts = this.#parts.filter((part) => part.step <= step);
  }

  /** Adds text of the model. Screen readers get whole sentences. */
  #addText(text, step) {
    this.#write('assistant', text, step);
    const [, sentences, rest] = /^([^]*[.!?:]\s)?([^]*)$/.exec(this.#unspoken + text);
    this.#unspoken = rest;
    if (sentences) announce(sentences);
  }

  /** Adds text to the last part, or begins another one. */
  #write(kind, text, step) {
    if (!text) return;
    const last = this.#parts.at(-1);
    if (last?.kind === kind && last.step === step) {
      last.text.appendData(text);
      return;
    }
    const words = h('div', { className: `words ${kind}` }, text);
    const element = kind === 'reasoning' ? h('details', {}, h('summary', {}, 'Reasoning'), words) : words;
    this.#add({ kind, step, element, text: words.firstChild });
  }

  /** Returns a call, which begins if it is new. */
  #call(id, name, step) {
    if (!this.calls.has(id)) {
      const call = new Call(name);
      this.calls.set(id, call);
      this.#add({ kind: 'call', step, element: call.element, id });
    }
    return this.calls.get(id);
  }

  #add(part) {
    this.#parts.push(part);
    this.element.append(part.element);
  }
}

/** A call of a tool: its name and its state in a line, then the arguments and the result. */
class Call {
  #arguments = h('pre');
  #result = h('pre');
  #brief = h('code');
  #state = h('span', { className: 'state' }, 'open');

  constructor(name) {
    this.element = h('details', { className: 'call' },
      h('summary', {}, h('span', { className: 'name' }, name), this.#brief, this.#state),
      h('small', {}, 'Arguments'), this.#arguments, h('small', {}, 'Result'), this.#result);
  }

  addArguments(text) {
    this.#arguments.append(text);
    this.#brief.textContent = this.#arguments.textContent;
  }

  setArguments(text) {
    this.#arguments.textContent = pretty(text);
    this.#brief.textContent = text;
  }

  addOutput(text) {
    this.#result.append(text);
  }

  /** Shows the result. `verdict` is why the service has not executed the call. */
  end({ arguments: text, content, is_error: isError = false, verdict }) {
    if (text) this.setArguments(text);
    this.#result.textContent = textOf(content);
    this.#state.textContent = { supplied: 'answered' }[verdict] ?? verdict ?? (isError ? 'failed' : 'done');
    this.element.classList.toggle('failed', isError);
  }
}
