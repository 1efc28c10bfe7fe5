// @ts-check
// Folds the events of a run into the state of its steps: what the model writes, and which tools work. Pure.

import { time } from './format.js';

/** @import { LiveCall, LiveState, LiveStep, RunEvent } from '../types.d.ts' */

const TERMINAL = new Set(['run.completed', 'run.stopped', 'run.waiting', 'run.failed', 'run.cancelled']);

/** @returns {LiveState} */
export function emptyState() {
  return {
    last: 0, now: 0, steps: new Map(), agents: new Map(), end: null, dropped: null, applied: 0, isPartial: false,
  };
}

/** Adds an event to the state. @param {LiveState} state @param {RunEvent} event */
export function fold(state, event) {
  if (event.type === 'stream.dropped') {
    state.dropped = event.data.reason ?? '';
    return;
  }
  state.dropped = null;
  if (event.sequence != null) {
    if (event.sequence <= state.last) rewind(state);
    if (event.sequence > state.last + 1 && !state.steps.size) state.isPartial = true;
    state.last = event.sequence;
  }
  state.now = Math.max(state.now, event.time ? time(event.time) : 0);
  apply(state, state.agents, event, state.now);
}

/** Forgets all steps: a number that comes a second time voids the earlier event and all later ones. */
function rewind(state) {
  Object.assign(state, { ...emptyState(), now: state.now, isPartial: true });
}

/** @param {LiveState} state @param {Map<string, LiveState>} agents @param {RunEvent} event */
function apply(state, agents, { type, data }, now) {
  if (TERMINAL.has(type)) state.end = data;
  else if (type === 'run.resumed') forgetAfter(state, data.step_count);
  else if (type === 'message.applied') state.applied++;
  else if (type === 'subagent.event') {
    const below = agents.get(data.agent_id);
    if (below) apply(below, agents, data.event, now);
  } else if (type === 'step.started') {
    state.steps.set(data.step_number, newStep(data.step_number, data.started_at ? time(data.started_at) : now));
  } else if (data?.step_number != null) {
    // A reader that begins in the middle has no `step.started`.
    const step = state.steps.get(data.step_number) ?? newStep(data.step_number, now);
    state.steps.set(data.step_number, step);
    change(step, agents, type, data, now);
  }
}

/** Forgets what a lost process had begun. @param {LiveState} state */
function forgetAfter(state, count) {
  for (const number of [...state.steps.keys()]) if (number > count) state.steps.delete(number);
}

/** @returns {LiveStep} */
const newStep = (number, start) => ({
  number, start, end: null, text: '', reasoning: '', requests: [], calls: [], usage: null,
});

/** @param {LiveStep} step @param {Map<string, LiveState>} agents */
function change(step, agents, type, data, now) {
  const request = step.requests.at(-1);
  switch (type) {
    case 'model.requested':
      step.requests.push(newRequest(data, now));
      break;
    case 'reasoning.delta':
      step.reasoning += data.text;
      if (request) request.think = [request.think?.[0] ?? now, now];
      break;
    case 'message.delta':
      step.text += data.text;
      if (request) request.first ??= now;
      break;
    case 'tool_call.started':
      step.calls.push({ ...newCall(data.call_id, data.name), start: null });
      if (request) request.first ??= now;
      break;
    case 'tool_call.delta':
      callOf(step, data.call_id, '', now).arguments += data.arguments;
      break;
    case 'model.responded':
      respond(step, data, now);
      break;
    case 'tool_call.output':
      callOf(step, data.call_id, '', now).output += data.text;
      break;
    case 'tool_call.completed': {
      const call = callOf(step, data.call_id, data.name, now);
      Object.assign(call, { end: now, content: data.content, isError: data.is_error, arguments: data.arguments });
      call.start = now - data.duration_ms;
      break;
    }
    case 'subagent.started': {
      const call = callOf(step, data.call_id, data.agent, now);
      Object.assign(call, { agent: data.agent, below: emptyState(), start: now });
      if (call.below) agents.set(data.agent_id, call.below);
      break;
    }
    case 'step.completed':
      Object.assign(step, { end: now, usage: data.usage });
  }
}

/** Ends the request to the model. Its calls start now. @param {LiveStep} step */
function respond(step, data, now) {
  const request = step.requests.find((one) => one.id === data.request_id);
  if (request) Object.assign(request, { end: now, attempts: data.attempts, error: data.error?.message ?? null });
  for (const call of step.calls) call.start ??= now;
}

/** @returns {import('../types.d.ts').RequestTrace} */
const newRequest = (data, now) => ({
  id: data.request_id, model: data.model, start: now, first: null, think: null, end: null, attempts: 1, error: null,
});

/** @returns {LiveCall} */
const newCall = (id, name) => ({
  id, name, arguments: '', start: null, end: null, output: '', content: null, isError: false, agent: null, below: null,
});

/** @param {LiveStep} step */
function callOf(step, id, name, now) {
  let call = step.calls.find((one) => one.id === id);
  if (!call) step.calls.push((call = { ...newCall(id, name), start: now }));
  return call;
}
