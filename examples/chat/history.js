// Draws the turns of a thread: the message of the user, the answer of the agent, and what the user
// can do with both.

import { Answer } from './turn.js';
import { button, h, onSubmit, textOf } from './view.js';

/**
 * Draws a turn. The turn then has its element and the calls in it.
 * @param actions What the user can do: `sendAgain(turn, content)` and `showVersion(session)`.
 */
export function drawTurn(turn, index, actions) {
  const [first, ...others] = turn.messages;
  const isOfUser = first?.role === 'user';
  const status = turn.runs[0]?.status;
  const answer = new Answer();
  answer.showMessages(isOfUser ? others : turn.messages);
  turn.calls = answer.calls;
  const message = isOfUser ? drawMessage(turn, first.content, index, actions) : [];
  turn.element = h('section', { className: 'turn' }, ...message, answer.element,
    status && status !== 'waiting' && h('div', { className: 'foot' },
      status === 'stopped' && h('span', {}, 'Stopped'), h('span', {}, usageOf(turn.runs)),
      isOfUser && button('Try again', () => actions.sendAgain(turn, first.content), { id: `again-${index}` })));
  return turn.element;
}

/** Draws what the user has said, with its versions. */
function drawMessage(turn, content, index, actions) {
  const bubble = h('div', { className: 'words user' }, textOf(content));
  const { versions } = turn;
  const at = versions.findIndex((one) => one.session_id === turn.first.session_id);
  const move = (by) => actions.showVersion(versions.at((at + by) % versions.length));
  return [bubble, h('div', { className: 'actions' },
    versions.length > 1 && h('span', { role: 'group', ariaLabel: 'Versions of this message' },
      button('‹', () => move(-1), { id: `before-${index}`, ariaLabel: 'Previous version' }),
      `${at + 1}/${versions.length}`,
      button('›', () => move(1), { id: `after-${index}`, ariaLabel: 'Next version' })),
    button('Edit', () => edit(turn, bubble, actions), { id: `edit-${index}` }))];
}

/** Replaces a message by a form. What is sent there begins another branch. */
function edit(turn, bubble, actions) {
  const field = h('textarea', { value: bubble.textContent, ariaLabel: 'Edited message', required: true });
  const form = h('form', { className: 'edit' }, field,
    h('div', { className: 'row' }, h('button', { className: 'primary' }, 'Send'),
      button('Cancel', () => form.replaceWith(bubble))));
  onSubmit(form, () => actions.sendAgain(turn, [{ type: 'text', text: field.value }]));
  bubble.replaceWith(form);
  field.focus();
}

function usageOf(runs) {
  const sum = (pick) => runs.reduce((total, run) => total + (pick(run) ?? 0), 0);
  const [input, output] = [sum(({ usage }) => usage.input_tokens), sum(({ usage }) => usage.output_tokens)];
  const [cost, seconds] = [sum(({ usage }) => usage.cost), sum(({ duration_ms: ms }) => ms) / 1000];
  return `${input.toLocaleString('en')} tokens in, ${output.toLocaleString('en')} out, `
    + `${cost ? `$${cost.toFixed(4)}, ` : ''}${seconds.toFixed(1)} s`;
}
