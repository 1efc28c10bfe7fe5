// @ts-check
// The page of a run: facts, what it waits for, the timeline, the files that it changed, and the inspector.

import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { duration, number, short, usd } from '../logic/format.js';
import { firstLine, plain } from '../logic/text.js';
import { LONG, rowsOf } from '../logic/timeline.js';
import { readNumbers } from '../logic/urlstate.js';
import { Answers } from '../parts/answers.js';
import { icon } from '../parts/icons.js';
import { Page, said } from '../parts/page.js';
import { FileChanges } from '../parts/payload.js';
import { Age, Guide, ProblemBox, Requests, Status, useClock } from '../parts/ui.js';
import { address, go, setQuery } from '../router.js';
import { RunActs, Steer } from './run_acts.js';
import { hasSession, isActive, RunData } from './run_data.js';
import { Details, Facts, Inspector } from './run_inspector.js';
import { Timeline } from './run_timeline.js';

/** @import { Row, Run } from '../types.d.ts' */

const CRUMBS = [['Runs', '/console/runs']];

/** @param {{ id: string }} properties */
export function RunPage({ id }) {
  const data = useMemo(() => new RunData(id), [id]);
  useEffect(() => () => data.close(), [data]);
  const run = data.run.value;
  const title = titleOf(run, data.session.value) || short(id);
  if (run) return html`<${KnownRun} run=${run} data=${data} title=${title} />`;
  const problem = data.problem.value;
  return html`<${Page} title=${title} crumbs=${CRUMBS}><div class="body">
    ${problem ? html`<${ProblemBox} problem=${problem} />` : html`<p class="muted">Reading the run…</p>`}</div><//>`;
}

/** @param {{ run: Run, data: RunData, title: string }} properties */
function KnownRun({ run, data, title }) {
  const [problem, setProblem] = useState(null);
  const [isPaneOpen, setPaneOpen] = useState(/** @type {boolean | undefined} */ (undefined));
  void data.version.value;
  useClock(isActive(run) ? 500 : 60_000);
  useSaidStatus(run);
  const closePane = () => setPaneOpen(false);
  const openPane = (withFocus) => {
    setPaneOpen(true);
    const isSheet = matchMedia('(max-width: 1100px)').matches;
    if (withFocus || isSheet) setTimeout(() => /** @type {any} */ (document.querySelector('.pane'))?.focus());
  };
  const at = address.value.query.get('at');
  const toggled = readNumbers(address.value.query.get('fold'));
  const isExpanded = (step) => toggled.has(step) === data.total > LONG || !!at?.startsWith(`${step}.`);
  const openCalls = new Set(run.required_action?.calls.map((call) => call.call_id));
  const rows = rowsOf({ total: data.total, stepOf: (step) => data.stepOf(step), isExpanded, openCalls });
  const chosen = rows.find((row) => row.key === at) ?? rows.find((row) => row.key === at?.split('.')[0]);
  const selected = chosen ?? firstSelection(rows, run);
  const toggle = (step) => {
    if (!toggled.delete(step)) toggled.add(step);
    setQuery({ fold: [...toggled].join(','), at: `${step}` });
  };
  const goOn = (next) => go(`/console/runs/${next.run_id}`);
  const session = hasSession(run)
    && html`<a class="button" href=${`/console/sessions/${run.session_id}`}>${icon('tree')}Open session</a>`;
  const pane = selected ? html`<${Inspector} key=${selected.key} row=${selected} run=${run} />`
    : html`<p class="muted">No step yet.</p>`;
  return html`<${Page} title=${title} crumbs=${CRUMBS} status=${html`<${Status} of=${run.status} />`}
    actions=${html`${session}<${RunActs} run=${run} onProblem=${setProblem} />`}
    pane=${pane} paneLabel="Selected row" isPaneOpen=${isPaneOpen} onClosePane=${closePane}>
    <div class="body">
      <${ProblemBox} problem=${problem ?? data.problem.value} />
      <${Facts} facts=${factsOf(run, data)} />
      ${run.error && html`<div class="problem" role="alert"><p>${plain(run.error.message)}</p>
        <p><${Guide} code=${run.error.code} section="errors-of-runs" /></p></div>`}
      ${run.answer_run_id && html`<p class="note">The calls were answered.
        ${' '}<a class="link" href=${`/console/runs/${run.answer_run_id}`}>Open the run that goes on</a></p>`}
      ${run.required_action && html`<${Answers} run=${run} calls=${run.required_action.calls} onAnswered=${goOn} />`}
      ${data.total === 0 && html`<p class="note">${emptyNote(run)}</p>`}
      ${data.total > 0 && html`<${Timeline} rows=${rows} steps=${data.total} selected=${selected} isChosen=${!!chosen}
        isLive=${isActive(run)} origin=${originOf(run, rows)}
        note=${data.isCoarse ? 'finer times are stored for retention.events' : ''}
        onSelect=${(key) => setQuery({ at: key })} onOpen=${openPane} onToggle=${toggle}
        onView=${(from, to) => void data.want(from, to)} />`}
      <${Steer} run=${run} applied=${data.applied} />
      <${Files} run=${run} data=${data} />
      <${Details} run=${run} />
    </div><//>`;
}

/** Reads changes of the status aloud, and shows what a run waits for. @param {Run} run */
function useSaidStatus(run) {
  const before = useRef(run.status);
  useEffect(() => {
    if (before.current === run.status) return;
    before.current = run.status;
    said.value = `The run is ${run.status}.`;
    if (run.status === 'waiting') document.querySelector('.body')?.scrollTo({ top: 0 });
  }, [run.status]);
}

/** @param {Run | null} run @param {import('../types.d.ts').Session | null} session */
function titleOf(run, session) {
  // The title of a session may be that of one before it.
  const title = run?.metadata.title ?? session?.preview ?? session?.title;
  return typeof title === 'string' ? firstLine(title, 80) : '';
}

/**
 * Selects what stands first for a reader: the open call, the failure, or the last words.
 * @param {Row[]} rows @param {Run} run
 */
function firstSelection(rows, run) {
  const open = rows.find((row) => row.isOpen && row.call);
  const failed = run.status === 'failed' ? rows.findLast((row) => row.isFailed) : undefined;
  return open ?? failed ?? rows.findLast((row) => row.kind === 'model') ?? rows.at(-1);
}

/** Returns the time that the axis counts from. @param {Run} run @param {Row[]} rows */
const originOf = (run, rows) =>
  Math.min(Date.parse(run.started_at ?? run.created_at), rows.find((row) => row.step)?.start ?? Infinity);

/** @param {Run} run */
function emptyNote(run) {
  if (run.status === 'queued') return 'The run waits for a worker.';
  if (run.status === 'running') return 'No step has begun yet.';
  return run.session_id ? 'The run made no step.' : 'The run publishes nothing, so its steps are not stored.';
}

/** @param {Run} run @param {RunData} data */
function factsOf(run, data) {
  const { usage } = run;
  const cached = usage.input_tokens ? Math.round((100 * (usage.cache_read_tokens ?? 0)) / usage.input_tokens) : 0;
  const started = Date.parse(run.started_at ?? run.created_at);
  const queued = started - Date.parse(run.created_at);
  return {
    Agent: html`${run.agent} <small>${run.agent_version?.slice(0, 7)}</small>`,
    Model: run.answered_by ?? run.model,
    Took: run.status === 'queued' ? '–' : duration(run.duration_ms ?? Math.max(0, data.now - started)),
    Steps: number(run.step_count || data.total),
    Tokens: html`${number(usage.input_tokens)} in, ${number(usage.output_tokens)} out <small>${cached}% cached</small>`,
    Cost: usd(usage.cost),
    Started: html`<${Age} of=${run.started_at ?? run.created_at} /> <small>ago</small>`,
    'In the queue': queued > 1000 ? duration(queued) : null,
    Attempts: run.attempts > 1 ? run.attempts : null,
  };
}

/** @param {{ run: Run, data: RunData }} properties */
function Files({ run, data }) {
  const changes = data.changes.value;
  if (!changes?.files.length) return null;
  const { base_session_id: base, session_id: session } = run;
  const path = base ? `/v1/sessions/${base}/diff/${session}` : `/v1/sessions/${session}/files?recursive=true`;
  return html`<section class="card" aria-label="Files changed"><header><h2>Files changed</h2>
    <span class="muted">${changes.files.length}${changes.complete ? '' : ' or more'}${base
      && html` since <code>${short(base)}</code>`}</span>
    <span class="grow"></span><${Requests} calls=${{ Compare: { method: 'GET', path } }} />
    ${base && html`<a class="button" href=${`/console/compare/${base}/${session}`}>Compare</a>`}</header>
    <div class="files"><${FileChanges} files=${changes.files} /></div></section>`;
}
