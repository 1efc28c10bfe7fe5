// @ts-check
// What a session is: facts, the sessions around it, proof that it is whole, and its removal.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { lacks } from '../identity.js';
import { count, moment, number, short } from '../logic/format.js';
import { plain } from '../logic/text.js';
import { icon } from '../parts/icons.js';
import { Act, Age, Button, CopyButton, Dialog, ProblemBox, Requests, Status, useRead } from '../parts/ui.js';
import { go } from '../router.js';
import { Facts } from './run_inspector.js';
import { nameOf } from './tree_rows.js';

/** How many sessions before and after it the page shows. */
const SHOWN = 8;

/** @param {string} id */
const to = (id) => `/console/sessions/${id}`;
const sessionLink = (id) => id && html`<a class="link" href=${to(id)}><code>${short(id)}</code></a>`;

/** A link to the page of something with a name. @param {{ kind: string, name: string }} properties */
const Named = ({ kind, name }) =>
  html`<a class="link" href=${`/console/${kind}/${encodeURIComponent(name)}`}>${plain(name)}</a>`;

/** @param {{ session: any, path: string, version: number }} properties */
export function About({ session, path, version }) {
  const { session_id: id, parent_session_id: parent, run_id: run, thread } = session;
  const facts = {
    Agent: html`<${Named} kind="agents" name=${session.agent} /> <small>${session.agent_version?.slice(0, 7)}</small>`,
    Run: run && html`<a class="link" href=${`/console/runs/${run}`}><code>${short(run)}</code></a>`,
    Thread: thread && html`<${Named} kind="threads" name=${thread} />`,
    Made: html`<${Age} of=${session.created_at} /> <small>ago</small>`,
    Messages: number(session.message_count),
    Ancestors: number(session.depth),
    'Merged with': sessionLink(session.merged_session_id),
    'Files taken from': sessionLink(session.environment_session_id),
    'Subagent of': sessionLink(session.subagent_of),
  };
  const copied = (name, text) => html`<div><dt>${name}</dt><dd><code>${text}</code>
    <${CopyButton} text=${text} label=${`Copy: ${name}`} /></dd></div>`;
  return html`<header><h2>${icon('tree')}<span>About</span>${session.run_status
      && html`<${Status} of=${session.run_status} />`}</h2>
      <${Requests} calls=${{ 'The session': { method: 'GET', path: `${path}?include=` } }} /></header>
    <${Facts} facts=${facts} />
    <div class="acts">
      <a class="button" href=${path} download=${`session-${id}.json`} title=${`GET ${path}`}>${icon('out')}Export</a>
      ${parent && html`<a class="button" href=${`/console/compare/${parent}/${id}`}>Compare with parent</a>`}
      <${Remove} session=${session} path=${path} /></div>
    <${Relatives} session=${session} path=${path} version=${version} />
    <${Verify} path=${path} />
    <section><h3>Identity</h3>
      <dl class="ids">${copied('Id', id)}${copied('Root hash', session.root_hash)}</dl></section>`;
}

/** The sessions that continue this one, and those that it continues. */
function Relatives({ session, path, version }) {
  const children = useRead(`${path}/children?limit=${SHOWN}`, version).value;
  const lineage = useRead(session.depth ? `${path}/lineage?limit=${SHOWN + 1}` : null).value;
  const { root_session_id: root, session_id: id } = session;
  const row = (one) => html`<li key=${one.session_id}>${one.removed_at
    ? html`<span class="muted">${short(one.session_id)}, removed on ${moment(one.removed_at)}</span>`
    : html`<a href=${to(one.session_id)}>${nameOf(one)}</a>
      <small>${one.has_files_changed && 'files, '}<${Age} of=${one.created_at} /></small>`}</li>`;
  const before = lineage?.data.slice(1) ?? [];
  const omitted = session.depth - before.length;
  return html`<section><h3>Continued by${children && html` <span>${children.data.length || 'none'}</span>`}</h3>
      <ul class="kin">${children?.data.map(row)}</ul>
      ${children?.next_cursor
        && html`<a class="link" href=${`/console/trees/${root}?at=${id}`}>All in the tree</a>`}</section>
    ${session.depth > 0 && html`<section><h3>Continues</h3><ul class="kin">${before.map(row)}</ul>
      ${lineage && omitted > 0 && html`<p class="muted">And ${count(omitted, 'older session')}, the oldest of them
        ${' '}<a class="link" href=${to(root)}>the root</a></p>`}</section>`}`;
}

/** @param {{ path: string }} properties */
function Verify({ path }) {
  const [report, setReport] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const call = { method: 'GET', path: `${path}/verify` };
  const fault = ({ session_id: id, part, detail }, key) =>
    html`<li key=${key}>${sessionLink(id)} ${part}: ${plain(detail)}</li>`;
  return html`<section class="proof"><h3>Integrity</h3>
    <div class="acts"><${Act} name="shield" call=${call} scope="sessions:read" onDone=${setReport}
      onProblem=${setProblem} help="Computes all hashes again, down to the root">Verify<//></div>
    <div role="status">${report && html`<p class=${report.valid ? 'ok' : 'problem'}>${report.valid
        ? 'All hashes match' : 'Some parts do not match their hashes'}: ${count(report.sessions, 'session')},
      ${` ${count(report.messages, 'message')}`}${report.removed > 0 && `, ${number(report.removed)} removed`}.</p>
      <ul>${report.faults.slice(0, 50).map(fault)}</ul>`}</div>
    <${ProblemBox} problem=${problem} /></section>`;
}

/** @param {{ session: any, path: string }} properties */
function Remove({ session, path }) {
  const [isAsking, setAsking] = useState(false);
  const [hasAll, setAll] = useState(false);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const { parent_session_id: parent, thread } = session;
  const name = nameOf(session);
  const run = problem?.document?.run_id;
  const reason = problem?.code === 'session_in_use' && html`<p>${run
    ? html`A run starts from it: <a class="link" href=${`/console/runs/${run}`}>wait for it, or cancel it</a>.`
    : 'A thread points to it or to one of its subagents\' sessions. Move the thread, or delete it.'}
    ${!run && thread && html` It was made on the thread <${Named} kind="threads" name=${thread} />.`}</p>`;
  return html`<${Button} kind="danger" name="x" onClick=${() => setAsking(true)}>Remove<//>
    ${isAsking && html`<${Dialog} title="Remove the session for good?" onClose=${() => setAsking(false)}>
      <p><strong>${name}</strong> goes, with its run, its subagents' sessions, and what no other session needs.</p>
      <label class="check"><input type="checkbox" checked=${hasAll} disabled=${lacks('admin')}
        onChange=${({ target }) => setAll(target.checked)} />And all sessions that continue it${lacks('admin')
          && ': your key lacks the scope admin'}</label>
      <${ProblemBox} problem=${problem} />${reason}
      <div class="acts"><${Act} kind="danger" name="x" scope=${hasAll ? 'admin' : 'runs:write'}
        call=${{ method: 'DELETE', path: hasAll ? `${path}?descendants=true` : path }} onProblem=${setProblem}
        onDone=${() => go(parent ? to(parent) : '/console/trees')}>Remove it<//></div><//>`}`;
}
