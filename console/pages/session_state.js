// @ts-check
// The variables, the prompt and the settings of a session.

import { html } from 'htm/preact';
import { plain } from '../logic/text.js';
import { Code, JsonValue } from '../parts/payload.js';
import { ProblemBox, Requests, useRead } from '../parts/ui.js';

/** What the page tells elsewhere. */
const HIDDEN = ['agent_id', 'created_at', 'updated_at', 'execution_count', 'metadata', 'variables'];
const NAMES = {
  system_prompt: 'System prompt', response_format: 'Response format', overrides: 'Settings instead of the agent\'s',
  waiting: 'Open calls', remembered_approvals: 'Remembered approvals', tool_pins: 'Accepted tools of MCP servers',
  resources: 'Resources', workspace: 'Workspace',
};

/** @param {{ path: string }} properties */
export function State({ path }) {
  const read = `${path}?include=environment_state,context_state`;
  const { value, problem } = useRead(read);
  if (!value) return html`<div class="body"><${ProblemBox} problem=${problem} /></div>`;
  const { environment_state: environment, context_state: context } = value;
  const rest = Object.entries({ ...context, ...environment }).filter(([name]) => !HIDDEN.includes(name));
  const card = ([name, content]) => html`<section class="card" key=${name}>
    <header><h2>${NAMES[name] ?? plain(name)}</h2></header><div class="pad">${typeof content === 'string'
      ? html`<${Code} text=${content} />` : html`<${JsonValue} value=${content} />`}</div></section>`;
  return html`<div class="body">
    <${Values} title="Variables" values=${environment?.variables} read=${read} />
    <${Values} title="Metadata" values=${context?.metadata} />${rest.map(card)}</div>`;
}

/** @param {{ title: string, values?: Record<string, unknown>, read?: string }} properties */
function Values({ title, values = {}, read }) {
  const all = Object.entries(values);
  const line = ([name, value]) => html`<div key=${name}><dt>${plain(name)}</dt><dd>
    <${Code} text=${typeof value === 'string' ? value : JSON.stringify(value, null, 2)}
      label=${plain(name)} /></dd></div>`;
  return html`<section class="card"><header><h2>${title}</h2><span class="muted">${all.length || 'none'}</span>
    <span class="grow"></span>${read && html`<${Requests} calls=${{ Read: { method: 'GET', path: read } }} />`}</header>
    ${all.length > 0 && html`<dl class="values">${all.map(line)}</dl>`}</section>`;
}
