// The calls that a run has left open: approvals, which the user decides, and the page's own tools.

import { button, h, onSubmit } from './view.js';

/** The tools that each request of the page adds to those of the agent. */
export const CLIENT_TOOLS = [
  {
    name: 'ask_user',
    description: 'Asks the user a question, and returns the answer. Use it for decisions that only the user can make.',
    parameters: {
      type: 'object',
      properties: {
        question: { type: 'string' },
        choices: { type: 'array', items: { type: 'string' }, description: 'Short answers to choose from.' },
      },
      required: ['question'],
    },
  },
  { name: 'local_time', description: 'Returns the time and the time zone of the user.' },
];

/**
 * Makes a form for each open call. One request answers all calls of a run, so `onAnswers` gets the
 * answers when there is one for each.
 */
export function makeForms(calls, onAnswers) {
  const forms = calls.map(() => h('form', { className: 'ask' }));
  const answers = calls.map((call, index) => new Promise((resolve) => {
    const answer = (fields, words) => {
      forms[index].replaceChildren(h('p', {}, h('strong', {}, call.tool), `: ${words}`));
      resolve({ call_id: call.call_id, arguments_hash: call.arguments_hash, ...fields });
    };
    const fill = call.kind === 'approval' ? fillApproval : CLIENT_FORMS.get(call.tool) ?? fillUnknown;
    fill(forms[index], call, answer);
  }));
  Promise.all(answers).then(onAnswers);
  return forms;
}

const CLIENT_FORMS = new Map([['ask_user', fillQuestion], ['local_time', fillTime]]);

function fillApproval(form, call, answer) {
  const reason = h('input', {});
  form.append(
    h('h2', {}, 'The agent wants to use ', h('strong', {}, call.tool)), h('p', {}, call.reason),
    h('dl', {}, ...Object.entries(call.arguments).flatMap(([name, value]) => [h('dt', {}, name),
      h('dd', {}, h('pre', {}, typeof value === 'string' ? value : JSON.stringify(value, null, 2)))])),
    h('div', { className: 'row' }, h('label', {}, 'Reason, if you deny', reason),
      h('button', { className: 'primary' }, 'Approve'),
      button('Deny', () => answer({ decision: 'deny', reason: reason.value || undefined }, 'denied'))),
  );
  onSubmit(form, () => answer({ decision: 'approve' }, 'approved'));
}

function fillQuestion(form, { arguments: { question, choices = [] } }, answer) {
  const field = h('input', { required: true });
  const choose = (text) => answer({ result: text }, text);
  form.append(
    h('h2', {}, question),
    h('div', { className: 'row' }, ...choices.map((text) => button(text, () => choose(text)))),
    h('div', { className: 'row' }, h('label', {}, 'Your answer', field),
      h('button', { className: 'primary' }, 'Answer'),
      button('Deny', () => answer({ decision: 'deny' }, 'denied'))),
  );
  onSubmit(form, () => choose(field.value));
}

/** Needs nobody: the page answers at once. */
function fillTime(form, call, answer) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const result = { local_time: new Date().toString(), time_zone: timeZone };
  answer({ result }, result.local_time);
}

/** A tool of another program, or an input that an MCP server asks for. */
function fillUnknown(form, call, answer) {
  form.append(h('p', {}, `This page can't answer the call of ${call.tool}.`),
    h('div', { className: 'row' }, button('Deny', () => answer({ decision: 'deny' }, 'denied'))));
}
