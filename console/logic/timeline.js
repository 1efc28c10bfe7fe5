// @ts-check
// Turns the steps of a run, stored or live, into rows with bars, and times into positions. Pure.

import { duration, time } from './format.js';
import { firstLine } from './text.js';

/** @import { Bar, Interval, LiveStep, Part, Row, Scale, Step, StepRecord } from '../types.d.ts' */

/** More steps than these are collapsed, and the axis shows the steps in view. */
export const LONG = 60;

/**
 * Reads a stored step. Its events, if there are any, have finer times of the model.
 * @param {StepRecord} record @param {LiveStep} [live] @returns {Step}
 */
export function storedStep(record, live) {
  const messages = record.messages ?? [];
  const partsOf = (role) => messages.flatMap((message) => (message.role === role ? message.content : []));
  const [parts, results] = [partsOf('assistant'), partsOf('tool')];
  const [start, end] = [time(record.started_at), time(record.completed_at)];
  const executions = record.tool_executions;
  const ids = new Set([...parts.flatMap((part) => (part.type === 'tool_call' ? [part.id ?? ''] : [])),
    ...executions.map((execution) => execution.call_id)]);
  return {
    number: record.step_number, start, end,
    text: textOf(parts, 'text') || textOf(parts, 'refusal'),
    reasoning: textOf(parts, 'reasoning'),
    requests: requestsOf(record, live),
    calls: [...ids].map((id) => {
      const call = parts.find((part) => part.type === 'tool_call' && part.id === id);
      const execution = executions.find((one) => one.call_id === id);
      const result = results.find((part) => part.call_id === id);
      return {
        id, name: execution?.name ?? call?.name ?? result?.name ?? '', arguments: call?.arguments ?? '',
        start: execution ? time(execution.started_at) : null, end: execution ? time(execution.completed_at) : end,
        isError: execution?.is_error ?? false, isLive: false, content: result?.content ?? null, output: '',
        agent: execution?.subagent?.agent ?? null, cost: execution?.subagent?.usage.cost,
        below: (execution?.subagent?.steps ?? []).map((step) => storedStep(step)),
        raw: { call, execution: execution && { ...execution, subagent: execution.subagent?.session_id }, result },
      };
    }),
    errors: record.errors, usage: record.usage, model: record.answered_by ?? record.model ?? 'model', isLive: false,
    raw: record,
  };
}

/** Reads the state of a step that is at work. @param {LiveStep} live @param {number} now @returns {Step} */
export function liveStep(live, now) {
  const end = live.end ?? now;
  return {
    number: live.number, start: live.start, end, text: live.text, reasoning: live.reasoning,
    requests: live.requests.map((request) => ({ ...request, end: request.end ?? end })),
    calls: live.calls.map((call) => ({
      id: call.id, name: call.name, arguments: call.arguments, start: call.start, end: call.end ?? end,
      isError: call.isError, isLive: call.end == null, content: call.content, output: call.output, agent: call.agent,
      cost: null, below: [...(call.below?.steps.values() ?? [])].map((step) => liveStep(step, now)), raw: call,
    })),
    errors: [], usage: live.usage, model: live.requests.at(-1)?.model ?? 'model', isLive: live.end == null, raw: live,
  };
}

/** @param {Part[]} parts @param {string} type */
const textOf = (parts, type) =>
  parts.flatMap((part) => (part.type === type && part.text ? [part.text] : [])).join('\n\n');

/** @param {StepRecord} record @param {LiveStep} [live] @returns {Step['requests']} */
function requestsOf(record, live) {
  return (record.model_requests ?? []).map((request, index) => ({
    model: request.model, start: time(request.started_at), end: time(request.ended_at),
    first: live?.requests[index]?.first ?? (request.first_token_at ? time(request.first_token_at) : null),
    think: live?.requests[index]?.think ?? null, attempts: request.attempts, error: request.error?.message ?? null,
  }));
}

/**
 * Makes the rows of all steps in their order. A step that was not read yet has one row.
 * @param {{ total: number, stepOf: (number: number) => Step | null, isExpanded: (number: number) => boolean,
 *   openCalls: Set<string> }} run
 * @returns {Row[]}
 */
export function rowsOf({ total, stepOf, isExpanded, openCalls }) {
  /** @type {Row[]} */
  const rows = [];
  for (let number = 1; number <= total; number++) {
    const step = stepOf(number);
    if (!step) rows.push(newRow(`${number}`, 'unread', 0, number, `Step ${number}`));
    else addStep(rows, step, isExpanded(number), openCalls);
  }
  return rows;
}

/** @returns {Row} */
const newRow = (key, kind, depth, number, label) => ({
  key, kind, depth, number, label, start: NaN, end: NaN, bars: [], retries: [], cost: null, isFailed: false,
  isOpen: false, isLive: false, hasRows: false, step: null, call: null,
});

/** @param {Row[]} rows @param {Step} step @param {boolean} hasRows @param {Set<string>} openCalls */
function addStep(rows, step, hasRows, openCalls) {
  /** @type {Row[]} */
  const below = [];
  addParts(below, step, openCalls, { depth: 1, number: step.number, path: `${step.number}` });
  rows.push({
    ...newRow(`${step.number}`, 'step', 0, step.number, titleOf(step)), start: step.start, end: step.end, step, hasRows,
    bars: below.filter((row) => row.depth === 1).flatMap((row) => row.bars),
    retries: below.flatMap((row) => row.retries), cost: step.usage?.cost, isLive: step.isLive,
    isFailed: step.errors.length > 0, isOpen: below.some((row) => row.isOpen),
  });
  if (hasRows) rows.push(...below);
}

/** The title of a step: what the agent said, else what it did. @param {Step} step */
export function titleOf(step) {
  const names = step.calls.map((call) => call.name).join(', ');
  const [failure] = step.errors;
  const other = step.isLive ? 'Thinking…' : 'No words';
  return firstLine(step.text) || names || (failure ? `Failed: ${failure.code}` : other);
}

/**
 * Adds the rows of the model and of the tools of a step. `path` is the key of what is above them.
 * @param {Row[]} rows @param {Step} step @param {Set<string>} openCalls
 */
function addParts(rows, step, openCalls, { depth, number, path }) {
  if (step.requests.length) {
    const row = newRow(`${path}.model`, 'model', depth, number, step.requests.at(-1)?.model ?? step.model);
    const failed = step.requests.at(-1)?.error != null;
    rows.push({
      ...row, step, start: step.requests[0].start, end: Math.max(...step.requests.map((request) => request.end)),
      bars: step.requests.flatMap(modelBars), retries: step.requests.flatMap(retriesOf), isFailed: failed,
      isLive: step.isLive && step.calls.every((call) => call.start == null),
    });
  }
  for (const call of step.calls) {
    const isOpen = call.start == null && openCalls.has(call.id);
    if (call.start == null && !isOpen) continue;
    const start = call.start ?? step.end;
    const kind = isOpen ? 'open' : call.isError ? 'fail' : call.agent ? 'sub' : 'tool';
    const key = `${path}.${call.id}`;
    rows.push({
      ...newRow(key, 'tool', depth, number, call.name), start, end: call.end, step, call, isOpen,
      bars: [{ kind, start, end: call.end }], cost: call.cost, isFailed: call.isError, isLive: call.isLive,
    });
    for (const below of call.below) {
      addParts(rows, below, openCalls, { depth: depth + 1, number, path: `${key}/${below.number}` });
    }
  }
}

/** Cuts a request into waiting, reasoning and writing. @param {Step['requests'][0]} request @returns {Bar[]} */
function modelBars({ start, first, think, end, error }) {
  if (error != null && first == null) return [{ kind: 'fail', start, end }];
  const written = first ?? end;
  const bars = /** @type {Bar[]} */ ([{ kind: 'wait', start, end: Math.min(think?.[0] ?? written, end) }]);
  if (think) bars.push({ kind: 'think', start: think[0], end: Math.max(think[1], first ?? think[1]) });
  if (first != null) bars.push({ kind: 'write', start: Math.max(first, think?.[1] ?? first), end });
  const visible = bars.filter((bar) => bar.end > bar.start);
  return visible.length ? visible : bars.slice(0, 1);
}

/** Spreads the retries over the wait: only their number is known. @param {Step['requests'][0]} request */
function retriesOf({ start, first, think, end, attempts }) {
  const wait = (think?.[0] ?? first ?? end) - start;
  return Array.from({ length: Math.max(0, attempts - 1) }, (_, index) => start + (wait * (index + 1)) / attempts);
}

/** How much of the width a break takes, and how much the bars take: the rest is for labels. */
const BREAK = 0.04;
const WIDTH = 0.82;
/** Distances between ticks, in milliseconds. */
const STEPS = [
  1, 5, 10, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 144e5, 864e5,
];

/** Returns the times without any bar that are over 30 % of the whole. @param {Interval[]} intervals */
export function idleGaps(intervals) {
  const sorted = intervals.toSorted((a, b) => a.start - b.start);
  /** @type {Interval[]} */
  const gaps = [];
  let end = sorted[0]?.start ?? 0;
  for (const interval of sorted) {
    if (interval.start > end) gaps.push({ start: end, end: interval.start });
    end = Math.max(end, interval.end);
  }
  const whole = end - (sorted[0]?.start ?? 0);
  return gaps.filter((gap) => gap.end - gap.start > 0.3 * whole);
}

/**
 * Makes the scale of an axis. Long idle times are broken.
 * @param {Interval[]} intervals @param {number} origin The time that the labels count from. @returns {Scale}
 */
export function scaleOf(intervals, origin) {
  if (!intervals.length) return { position: () => 0, ticks: [], breaks: [] };
  const start = Math.min(...intervals.map((one) => one.start));
  const end = Math.max(...intervals.map((one) => one.end), start + 1);
  const gaps = idleGaps(intervals);
  const busy = Math.max(1, end - start - gaps.reduce((sum, gap) => sum + gap.end - gap.start, 0));
  const perMs = (WIDTH - BREAK * gaps.length) / busy;
  const position = (at) => {
    let [x, from] = [0, start];
    for (const gap of gaps) {
      if (at <= gap.start) break;
      x += (gap.start - from) * perMs + BREAK * Math.min(1, (at - gap.start) / (gap.end - gap.start));
      from = gap.end;
    }
    return Math.max(0, x + Math.max(0, Math.min(at, end) - from) * perMs);
  };
  const size = STEPS.find((step) => busy / step <= 7) ?? busy;
  const ticks = [];
  for (let at = Math.ceil((start - origin) / size) * size; Number.isFinite(at) && origin + at <= end; ) {
    const gap = gaps.find((one) => origin + at > one.start && origin + at < one.end);
    if (gap) at = Math.ceil((gap.end - origin) / size) * size;
    if (origin + at > end) break;
    ticks.push({ at: position(origin + at), label: tickLabel(at) });
    at += size;
  }
  const breaks = gaps.map((gap) => ({ at: position(gap.start) + BREAK / 2, label: duration(gap.end - gap.start) }));
  return { position, ticks, breaks };
}

/** @param {number} ms */
function tickLabel(ms) {
  if (ms === 0) return '0';
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${ms / 1000} s`;
  const [hours, minutes, seconds] = [ms / 3_600_000, (ms / 60_000) % 60, (ms / 1000) % 60].map(Math.floor);
  const padded = (value) => String(value).padStart(2, '0');
  return hours ? `${hours}:${padded(minutes)}:${padded(seconds)}` : `${minutes}:${padded(seconds)}`;
}
