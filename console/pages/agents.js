// @ts-check
// The agents, and the page of one: its definition with an editor, its versions, and its runs.

import { html } from 'htm/preact';
import { useState } from 'preact/hooks';
import { lacks } from '../identity.js';
import { useKeys } from '../keys.js';
import { changedFields, definitionOf } from '../logic/definition.js';
import { number } from '../logic/format.js';
import { firstLine, plain } from '../logic/text.js';
import { List, More, useList } from '../parts/list.js';
import { NewRun } from '../parts/new_run.js';
import { Page, said } from '../parts/page.js';
import { FileBox } from '../parts/payload.js';
import { Removal } from '../parts/removal.js';
import { RunList } from '../parts/run_list.js';
import { Age, Button, Dialog, ProblemBox, useRead } from '../parts/ui.js';
import { go } from '../router.js';
import { Editor } from './agent_editor.js';
import { Facts } from './run_inspector.js';

const NAME = '(?!\\.{1,2}$)[A-Za-z0-9._\\-]{1,64}';
const AGENTS = { keyOf: (agent) => agent.name };
/** What a new agent begins with. `demo/demo` needs no key. */
const TEMPLATE = { description: '', model: 'demo/demo', system_prompt: '', tools: ['calculator'] };
const VERSIONS = { keyOf: (agent) => agent.version };

/** @param {string} name */
const pageOf = (name) => `/console/agents/${encodeURIComponent(name)}`;

/** The models of an agent; absent if the key may not read them. */
const modelsOf = (agent) => [agent.model, ...(agent.models ?? [])].filter(Boolean);

/** @type {import('../parts/list.js').Column[]} */
const COLUMNS = [
  ['Agent', ({ name, description }) => html`<a class="to" href=${pageOf(name)}>${name}</a>
    ${description && html`<p class="muted">${firstLine(description)}</p>`}`],
  ['Model', (agent) => plain(modelsOf(agent)[0] ?? '–'), 'minor'],
  ['Tools', ({ tools }) => (tools ? number(tools.length) : '–'), 'number minor'],
  ['Version', ({ version }) => html`<code>${version.slice(0, 7)}</code>`, 'minor'],
  ['From', ({ configured }) => (configured ? 'a file' : 'the API')],
  ['Age', (agent) => html`<${Age} of=${agent.created_at} />`, 'number'],
];

export function Agents() {
  const list = useList('/v1/agents', AGENTS);
  const [isMaking, setMaking] = useState(false);
  useKeys([{ keys: 'n', does: 'New agent', run: () => setMaking(true) }]);
  const actions = html`<${Button} kind="primary" name="agent" keys="n" onClick=${() => setMaking(true)}>New agent<//>`;
  return html`<${Page} title="Agents" actions=${actions}><div class="body wide">
    <${List} list=${list} label="Agents" kind="of-agents" columns=${COLUMNS}
      empty=${html`<p><strong>No agent yet.</strong></p>`} /></div>
    ${isMaking && html`<${NewAgent} onClose=${() => setMaking(false)} />`}<//>`;
}

/** Asks for a name. The page of a free name has an editor. @param {{ onClose: () => void }} properties */
function NewAgent({ onClose }) {
  const onSubmit = (event) => {
    event.preventDefault();
    go(pageOf(String(new FormData(event.currentTarget).get('name'))));
  };
  return html`<${Dialog} title="New agent" onClose=${onClose}><form onSubmit=${onSubmit}>
    <label>Name<input name="name" required pattern=${NAME} autocomplete="off"
      title="1 to 64 letters, digits, -, _ and ." /></label>
    <div class="acts"><button class="primary" type="submit">Write its definition</button></div></form><//>`;
}

/** @param {{ name: string }} properties */
export function AgentPage({ name }) {
  const path = `/v1/agents/${encodeURIComponent(name)}`;
  const [saves, setSaves] = useState(0);
  const [open, setOpen] = useState('');
  const { value: agent, problem } = useRead(path, saves);
  const isFree = !agent && problem?.code === 'agent_not_found';
  const onClose = () => setOpen('');
  const onStored = () => {
    said.value = 'Stored.';
    setSaves(saves + 1);
  };
  useKeys(agent ? [{ keys: 'n', does: 'New run', run: () => setOpen('run') }] : []);
  const actions = agent && html`<${Button} kind="primary" name="run" keys="n" onClick=${() => setOpen('run')}>Run<//>
    <${Button} kind="danger" name="x" disabled=${agent.configured} onClick=${() => setOpen('remove')}
      title=${agent.configured ? 'The agent is in a file of the service' : ''}>Remove<//>`;
  const definition = agent ? definitionOf(agent) : { name, ...TEMPLATE };
  const mayRead = agent ? !agent.configured || !lacks('admin') : isFree;
  const runs = `/v1/runs?agent=${encodeURIComponent(name)}`;
  return html`<${Page} title=${plain(name)} crumbs=${[['Agents', '/console/agents']]} actions=${actions}>
    <div class="body wide">${!isFree && html`<${ProblemBox} problem=${problem} />`}
      ${isFree && html`<p class="note">There is no agent of this name yet. Write its definition, and store it.</p>`}
      ${agent?.description && html`<p>${plain(agent.description)}</p>`}
      ${agent && html`<${Facts} facts=${factsOf(agent)} />`}
      ${agent?.configured && html`<p class="note">It is in a file of the service, which all tenants share. What you
        store here under its name is your tenant's own.</p>`}
      ${agent && !mayRead && html`<p class="note">Your key lacks the scope admin, which the definition of an agent from
        a file needs.</p>`}
      ${mayRead && html`<${Editor} key=${agent?.version} path=${path} definition=${definition}
        version=${agent?.version ?? null} onStored=${onStored} />`}
      ${agent && !lacks('admin') && html`<${Versions} key=${agent.version} path=${path} agent=${agent} />`}
      ${agent && html`<section aria-label="Runs of the agent"><h2>Runs</h2>
          <${RunList} path=${runs} label="Runs of the agent" empty="No run of this agent is stored." />
        </section>`}</div>
    ${open === 'run' && html`<${NewRun} agent=${name} onClose=${onClose} />`}
    ${open === 'remove' && html`<${Removal} what="agent" name=${name} path=${path} scope="admin"
      to="/console/agents" onClose=${onClose}>Its versions stay for the sessions that used them.<//>`}<//>`;
}

/** @param {any} agent */
const factsOf = (agent) => ({
  Version: html`<code title=${agent.version}>${agent.version.slice(0, 7)}</code>`,
  Model: plain(modelsOf(agent).join(', ')) || null,
  Driver: agent.driver,
  Tools: agent.tools && number(agent.tools.length),
  From: agent.configured ? 'a file' : 'the API',
  Stored: html`<${Age} of=${agent.created_at} /> <small>ago</small>`,
});

/**
 * The versions that are stored. Another one opens as its difference to the current one.
 * @param {{ path: string, agent: any }} properties
 */
function Versions({ path, agent }) {
  const list = useList(`${path}/versions`, VERSIONS);
  const others = list.rows.filter(({ version }) => version !== agent.version);
  if (!others.length && !list.next && !list.problem) return null;
  return html`<section class="card" aria-label="Versions"><header><h2>Other versions</h2>
      <span class="muted">and how they differ from the current one</span></header>
    <div class="pad"><${ProblemBox} problem=${list.problem} />
      ${others.map((old) => html`<${Version} key=${old.version} old=${old} agent=${agent} />`)}
      <${More} list=${list} /></div></section>`;
}

/**
 * Another version. One at a time is open, and a closed one draws no differences.
 * @param {{ old: any, agent: any }} properties
 */
function Version({ old, agent }) {
  const [isOpen, setOpen] = useState(false);
  const changes = changedFields(definitionOf(old), definitionOf(agent));
  return html`<details name="version" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><code title=${old.version}>${old.version.slice(0, 7)}</code> stored <${Age} of=${old.created_at} /> ago
      <span class="muted"> ${changes.map(({ path }) => plain(path)).join(', ') || 'equal'}</span></summary>
    ${isOpen && changes.map((change) => html`<${FileBox} key=${change.path} ...${change} />`)}</details>`;
}
