// @ts-check
// The first page: what waits for a person, what works, what has failed, the newest trees, and the service.

import { html } from 'htm/preact';
import { useMemo, useState } from 'preact/hooks';
import { authorization, lacks, me } from '../identity.js';
import { count, number } from '../logic/format.js';
import { firstLine, plain } from '../logic/text.js';
import { asks } from '../parts/answers.js';
import { useVersion } from '../parts/list.js';
import { NewRun } from '../parts/new_run.js';
import { Page } from '../parts/page.js';
import { Code } from '../parts/payload.js';
import { runTitle } from '../parts/run_list.js';
import { Act, Age, Button, ProblemBox, Requests, Status, usePost, useRead } from '../parts/ui.js';
import { go } from '../router.js';
import { Facts } from './run_inspector.js';
import { nameOf } from './tree_rows.js';

/** @import { Approval, Run, Session } from '../types.d.ts' */

const DAY = 86_400_000;
const MOST = 5;

export function Overview() {
  const [isStarting, setStarting] = useState(false);
  const version = useVersion();
  const since = useMemo(() => new Date(Date.now() - DAY).toISOString(), []);
  const isBlind = lacks('sessions:read');
  const read = (path) => useRead(isBlind ? null : `${path}limit=${MOST}`, version);
  const waiting = read('/v1/approvals?');
  const working = read('/v1/runs?status=queued,running&');
  const failed = read(`/v1/runs?status=failed&created_from=${encodeURIComponent(since)}&`);
  const trees = read('/v1/sessions?roots=true&');
  const lists = [waiting, working, failed, trees];
  const isEmpty = lists.every(({ value }) => value?.data.length === 0);
  const cards = html`<div class="tiles">
    <${Tile} name="Waits for you" list=${waiting} to="/console/inbox" row=${callRow} empty="Nothing waits for you." />
    <${Tile} name="Works now" list=${working} to="/console/runs?status=running,queued" row=${runRow}
      empty="No run is at work." />
    <${Tile} name="Failed in the last day" list=${failed} to="/console/runs?status=failed" row=${failedRow}
      empty="No run has failed." />
    <${Tile} name="Newest trees" list=${trees} to="/console/trees" row=${treeRow} empty="No session yet." /></div>`;
  return html`<${Page} title="Overview" actions=${html`<${Button} kind="primary" name="run"
      onClick=${() => setStarting(true)}>New run<//>`}>
    <div class="body wide">
      ${isBlind && html`<p class="note">Your key lacks the scope sessions:read, which runs and sessions need.</p>`}
      ${isEmpty && html`<${Start} />`}${!isBlind && !isEmpty && cards}
      <div class="tiles">${!isBlind && html`<${Service} />`}<${Me} /></div></div>
    ${isStarting && html`<${NewRun} onClose=${() => setStarting(false)} />`}<//>`;
}

/** @param {{ name: string, list: any, to: string, row: (item) => any, empty: string }} properties */
function Tile({ name, list, to, row, empty }) {
  const items = list.value?.data ?? [];
  const total = list.value?.total ?? items.length;
  const sum = items.length > 0 && html`<span class="muted">
    ${number(total)}${(total === items.length && list.value.next_cursor) || total === 1000 ? ' or more' : ''}</span>`;
  return html`<section class="card" aria-label=${name}><header><h2><a href=${to}>${name}</a></h2>${sum}
      <span class="grow"></span><a class="link" href=${to} aria-label="All: ${name}">All</a></header>
    <${ProblemBox} problem=${list.problem} />
    ${items.length > 0 && html`<ul class="brief">${items.map(row)}</ul>`}
    ${!items.length && !list.problem && html`<p class="muted pad">${list.isReading ? 'Reading…' : empty}</p>`}
      </section>`;
}

/** @param {Approval} waiting */
const callRow = ({ run_id: id, agent, asked_at: at, required_action: { calls } }) => html`<li key=${id}>
  <a href=${`/console/inbox?at=${id}`}>${agent} ${asks(calls[0])} <code>${plain(calls[0].tool)}</code></a>
  <span class="muted"><${Age} of=${at} /></span></li>`;

/** @param {Run} run */
const runRow = (run) => html`<li key=${run.run_id}><a href=${`/console/runs/${run.run_id}`}>${runTitle(run)}</a>
  <span class="muted">${run.agent}</span><${Status} of=${run.status} />
  <span class="muted"><${Age} of=${run.started_at ?? run.created_at} /></span></li>`;

/** @param {Run} run */
const failedRow = (run) => html`<li key=${run.run_id}><a href=${`/console/runs/${run.run_id}`}>${runTitle(run)}</a>
  <span class="bad">${firstLine(run.error?.message ?? '', 80)}</span>
  <span class="muted"><${Age} of=${run.created_at} /></span></li>`;

/** A removed root is still listed, by the oldest session that is left. @param {Session} session */
const treeRow = (session) => html`<li key=${session.session_id}>
  <a href=${`/console/trees/${session.root_session_id ?? session.session_id}`}>${nameOf(session)}</a>
  <span class="muted">${session.agent}</span>
  <span class="muted">${count(session.tree?.session_count ?? 1, 'session')}</span>
  <span class="muted">${session.tree && html`<${Age} of=${session.tree.last_activity_at} />`}</span></li>`;

/** The first requests, as in the README, with the address of this service. */
function Start() {
  const [problem, setProblem] = useState(null);
  const first = usePost()('/v1/runs', { agent: 'demo', input: 'What is 17 * 23?', mode: 'async' });
  const words = ['curl -sS', `${location.origin}/v1/runs`, ...authorization(), "-H 'content-type: application/json'"];
  const request = `${words.join(' ')} \\\n `;
  const lines = [
    `SESSION=$(${request} -d '{"agent": "demo", "input": "What is 17 * 23?"}' |
  tee -a /dev/stderr | sed 's/.*"session_id":"\\([^"]*\\)".*/\\1/')`,
    `${request} -d '{"base_session_id": "'$SESSION'", "input": "And 2^10?"}'`,
    `${request} -d '{"base_session_id": "'$SESSION'", "input": "And 100 - 1?"}'`,
  ];
  const titles = ['Run the agent demo, which needs no model', 'Continue its session', 'Fork it: continue it once more'];
  return html`<section class="card" aria-label="Start here"><header><h2>Start here</h2>
      <span class="muted">The store has no session yet.</span></header>
    <ol class="start">${titles.map((text, at) => html`<li key=${text}><h3>${at + 1}. ${text}</h3>
      <${Code} text=${lines[at]} label=${text} /></li>`)}</ol>
    <div class="pad"><div class="acts"><${Act} kind="primary" name="run" call=${first} onProblem=${setProblem}
      onDone=${({ run_id: id }) => go(`/console/runs/${id}`)}>Run demo<//><${Requests} calls=${{ Run: first }} />
      <a class="link" href="/docs/guides">Guides</a></div><${ProblemBox} problem=${problem} /></div></section>`;
}

function Service() {
  const { value, problem } = useRead('/v1/service');
  const provider = ({ name, kind, has_credentials: isReady }) => html`<li key=${name}><span>${plain(name)}
      ${kind !== name && html`<small>${kind}</small>`}</span>
    <span class="muted">${isReady ? 'configured' : 'no credentials'}</span></li>`;
  const server = ({ name, state }) => html`<li key=${name}><span>${plain(name)} <small>MCP</small></span>
    <span class=${state === 'connected' ? 'ok' : state === 'idle' ? 'muted' : 'bad'}>${state}</span></li>`;
  // Those that may work stand first. Nobody has asked them.
  const providers = [...(value?.providers ?? [])].sort((a, b) => b.has_credentials - a.has_credentials);
  const facts = value && {
    Version: value.version,
    Role: value.role,
    Store: value.store,
    Redis: value.redis ? 'yes' : 'no',
    Tools: html`<span title=${value.tools?.join(', ')}>${number(value.tools?.length ?? 0)}</span>`,
    Started: value.started_at && html`<${Age} of=${value.started_at} /> <small>ago</small>`,
  };
  return html`<section class="card" aria-label="The service"><header><h2>The service</h2><span class="grow"></span>
      <a class="link" href="/docs">API</a><a class="link" href="/docs/guides">Guides</a></header>
    <${ProblemBox} problem=${problem} />
    ${facts && html`<div class="pad"><${Facts} facts=${facts} /></div>
      <ul class="brief">${providers.map(provider)}${(value.mcp_servers ?? []).map(server)}</ul>`}</section>`;
}

/** Who the reader is, with the limits of each of their runs. */
function Me() {
  const who = /** @type {any} */ (me.value);
  if (!who) return null;
  const limits = Object.entries(who.key?.runs ?? who.limits?.runs ?? {})
    .filter(([, value]) => value !== null && value?.length !== 0)
    .map(([name, value]) => [name, plain([value].flat().join(', '))]);
  const facts = {
    Tenant: plain(who.tenant),
    Key: who.key ? plain(who.key.label || 'without a label') : 'none needed',
    Scopes: who.scopes.join(', '),
    ...Object.fromEntries(limits),
  };
  return html`<section class="card" aria-label="You"><header><h2>You</h2></header>
    <div class="pad"><${Facts} facts=${facts} /></div></section>`;
}
