// @ts-check
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { emptyState, fold } from '../logic/events.js';
import { idleGaps, liveStep, rowsOf, scaleOf, storedStep } from '../logic/timeline.js';

const T0 = Date.parse('2026-11-21T10:00:00.000Z');
const at = (/** @type {number} */ ms) => new Date(T0 + ms).toISOString();

/** A step with a model that waits, and two parallel calls, of which the second fails. */
const record = {
  step_number: 1, step_type: 'tool_execution', finish_reason: 'tool_calls', answered_by: 'mock/large', model: 'l',
  usage: { input_tokens: 1, output_tokens: 1, cost: 0.5 }, started_at: at(0), completed_at: at(900), errors: [],
  model_requests: [{ model: 'mock/large', started_at: at(0), first_token_at: at(300), ended_at: at(400), attempts: 3, error: null }],
  tool_executions: [
    { call_id: 'a', name: 'grep', is_error: false, started_at: at(400), completed_at: at(700), duration_ms: 300 },
    { call_id: 'b', name: 'review', is_error: true, started_at: at(400), completed_at: at(900), duration_ms: 500,
      subagent: { agent: 'reviewer', session_id: 's', status: 'completed', usage: { input_tokens: 1, output_tokens: 1, cost: 0.25 }, steps: [] } },
  ],
  messages: [
    { id: 'm', role: /** @type {const} */ ('assistant'), content: [{ type: 'text', text: 'I look.' },
      ...['a', 'b', 'c'].map((id) => ({ type: 'tool_call', id, name: id === 'c' ? 'shell' : 'grep', arguments: '{}' }))] },
    { id: 'n', role: /** @type {const} */ ('tool'), content: [{ type: 'tool_result', call_id: 'a', content: [{ type: 'text', text: 'found' }] }] },
  ],
};
const rowsWith = (/** @type {any} */ more) =>
  rowsOf({ total: 1, stepOf: () => storedStep(record), isExpanded: () => true, openCalls: new Set(), ...more });

test('a step has rows for its model and its calls', () => {
  const rows = rowsWith({ openCalls: new Set(['c']) });
  assert.deepEqual(rows.map(({ key, label, depth }) => [key, label, depth]), [
    ['1', 'I look.', 0], ['1.model', 'mock/large', 1], ['1.a', 'grep', 1], ['1.b', 'review', 1], ['1.c', 'shell', 1],
  ]);
  const [step, model, grep, review, open] = rows;
  assert.deepEqual(model.bars.map(({ kind, start, end }) => [kind, start - T0, end - T0]), [['wait', 0, 300], ['write', 300, 400]]);
  assert.deepEqual(model.retries.map((time) => time - T0), [100, 200]);
  assert.deepEqual([grep.start, review.start], [T0 + 400, T0 + 400]);
  assert.equal(grep.call?.content?.[0].text, 'found');
  assert.deepEqual([review.isFailed, review.bars[0].kind, review.cost], [true, 'fail', 0.25]);
  assert.deepEqual([open.isOpen, step.isOpen, step.cost, step.hasRows], [true, true, 0.5, true]);
  assert.equal(rowsWith({}).length, 4, 'a call that was never executed has no row');
  assert.equal(rowsWith({ isExpanded: () => false }).length, 1);
});

test('8,000 steps that were not read have a row each', () => {
  const start = performance.now();
  const rows = rowsWith({ total: 8000, stepOf: (/** @type {number} */ n) => (n === 8000 ? storedStep({ ...record, step_number: n }) : null) });
  assert.equal(rows.length, 7999 + 4);
  assert.deepEqual([rows[0].kind, rows[7999].kind], ['unread', 'step']);
  assert.ok(performance.now() - start < 200);
});

test('long idle times are broken', () => {
  const bars = [{ start: 0, end: 1000 }, { start: 60_000, end: 61_000 }, { start: 500, end: 2000 }];
  assert.deepEqual(idleGaps(bars), [{ start: 2000, end: 60_000 }]);
  const scale = scaleOf(bars, 0);
  assert.deepEqual(scale.breaks.map(({ label }) => label), ['58.0 s']);
  const [a, b, c] = [1000, 2000, 61_000].map(scale.position);
  assert.ok(a < b && b < c && c <= 0.82 + 1e-9 && Math.abs(b - 2 * a) < 1e-9);
  assert.ok(scale.ticks.length > 2 && scale.ticks.every(({ at: x }) => x <= 0.82 + 1e-9));
  assert.deepEqual(idleGaps([{ start: 0, end: 10 }, { start: 12, end: 30 }]), []);
});

/** Folds events, numbered from 1 if they have no number. @param {any[]} events */
function folded(events, state = emptyState()) {
  events.forEach(([type, data, ms, sequence], index) => fold(state, { type, data, time: at(ms ?? index), sequence: sequence ?? state.last + 1 }));
  return state;
}
const begin = [
  ['run.started', {}, 0], ['step.started', { step_number: 1, started_at: at(0) }, 0],
  ['model.requested', { step_number: 1, request_id: 'r', model: 'm' }, 0],
  ['reasoning.delta', { step_number: 1, text: 'Hm' }, 100], ['reasoning.delta', { step_number: 1, text: '.' }, 200],
  ['message.delta', { step_number: 1, text: 'I lo' }, 300], ['message.delta', { step_number: 1, text: 'ok.' }, 350],
  ['tool_call.started', { step_number: 1, index: 0, call_id: 'a', name: 'shell' }, 360],
  ['tool_call.delta', { step_number: 1, index: 0, call_id: 'a', arguments: '{"command"' }, 370],
];
const respond = ['model.responded', { step_number: 1, request_id: 'r', attempts: 2, error: null }, 400];

test('deltas become a live step, and its model has three shades', () => {
  const state = folded([...begin, respond, ['tool_call.output', { step_number: 1, call_id: 'a', text: 'line\n' }, 450]]);
  const step = liveStep(/** @type {any} */ (state.steps.get(1)), T0 + 500);
  assert.deepEqual([step.text, step.reasoning, step.isLive], ['I look.', 'Hm.', true]);
  assert.deepEqual([step.calls[0].output, step.calls[0].arguments, step.calls[0].isLive], ['line\n', '{"command"', true]);
  const rows = rowsWith({ stepOf: () => step });
  assert.deepEqual(rows[1].bars.map(({ kind, start, end }) => [kind, start - T0, end - T0]), [['wait', 0, 100], ['think', 100, 300], ['write', 300, 400]]);
  assert.deepEqual([rows[1].retries.length, rows[2].end - T0, rows[2].isLive], [1, 500, true]);
  const ended = folded([['tool_call.completed', { step_number: 1, call_id: 'a', name: 'shell', arguments: '{}', content: [], is_error: true, duration_ms: 90 }, 500],
    ['step.completed', { step_number: 1, usage: {} }, 510], ['run.failed', { status: 'failed' }, 520]], state);
  const call = ended.steps.get(1)?.calls[0];
  assert.deepEqual([call?.isError, (call?.end ?? 0) - (call?.start ?? 0), ended.end?.status], [true, 90, 'failed']);
});

test('a takeover forgets later steps, and a second reading forgets all', () => {
  const resumed = folded([...begin, ['step.started', { step_number: 2 }], ['run.resumed', { attempts: 2, step_count: 1 }]]);
  assert.deepEqual([...resumed.steps.keys()], [1]);
  const again = folded([['step.started', { step_number: 1 }, 900, 4]], folded(begin));
  assert.deepEqual([again.last, again.steps.get(1)?.text, again.isPartial], [4, '', true]);
});

test('a dropped reader knows where to go on, and a late one misses nothing that comes', () => {
  const state = folded(begin);
  fold(state, { type: 'stream.dropped', data: { reason: 'slow', after: 9 } });
  assert.deepEqual([state.dropped, state.last], ['slow', 9]);
  fold(state, { type: 'message.delta', data: { step_number: 1, text: '!' }, time: at(999), sequence: 10 });
  assert.deepEqual([state.dropped, state.steps.get(1)?.text], [null, 'I look.!']);
  const late = folded([['message.delta', { step_number: 5, text: 'x' }, 0, 700]]);
  assert.deepEqual([late.isPartial, late.steps.get(5)?.text], [true, 'x']);
});

test('events of subagents go to their own steps, at any depth', () => {
  const nested = (/** @type {string} */ agent, /** @type {string} */ type, /** @type {any} */ data) =>
    ['subagent.event', { step_number: 1, call_id: 'a', agent_id: agent, depth: 1, event: { type, data } }];
  const state = folded([...begin, ['subagent.started', { step_number: 1, call_id: 'a', agent: 'reviewer', agent_id: 'x' }],
    nested('x', 'step.started', { step_number: 1 }), nested('x', 'model.requested', { step_number: 1, request_id: 'q', model: 'n' }),
    nested('x', 'subagent.started', { step_number: 1, call_id: 'deep', agent: 'third', agent_id: 'y' }),
    nested('y', 'step.started', { step_number: 1 }), nested('y', 'message.delta', { step_number: 1, text: 'deep' }),
    nested('unknown', 'step.started', { step_number: 9 })]);
  const below = state.steps.get(1)?.calls[0].below;
  assert.deepEqual([state.steps.size, below?.steps.get(1)?.calls[0].below?.steps.get(1)?.text], [1, 'deep']);
  const rows = rowsWith({ stepOf: () => liveStep(/** @type {any} */ (state.steps.get(1)), T0 + 999) });
  assert.deepEqual(rows.map(({ key }) => key), ['1', '1.model', '1.a', '1.a/1.model', '1.a/1.deep']);
});
