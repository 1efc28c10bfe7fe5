// @ts-check
// The pages: their paths, and their entries in the navigation. README.md tells how to add one.

import { matchPath } from './logic/urlstate.js';
import { AgentPage, Agents } from './pages/agents.js';
import { ComparePage } from './pages/compare.js';
import { Inbox } from './pages/inbox.js';
import { Overview } from './pages/overview.js';
import { RunPage } from './pages/run.js';
import { Runs } from './pages/runs.js';
import { SessionPage } from './pages/session.js';
import { ThreadPage, Threads } from './pages/threads.js';
import { TreePage } from './pages/tree.js';
import { Trees } from './pages/trees.js';
import { Webhooks } from './pages/webhooks.js';

/** @typedef {{ path: string, section: string, page: (parameters: any) => any }} Route */
/** @typedef {{ id: string, name: string, path: string, icon: string, key: string }} Section */

/** @type {Route[]} */
export const ROUTES = [
  { path: '/console', section: 'overview', page: Overview },
  { path: '/console/inbox', section: 'inbox', page: Inbox },
  { path: '/console/trees', section: 'sessions', page: Trees },
  { path: '/console/trees/:root', section: 'sessions', page: TreePage },
  { path: '/console/compare/:left/:right', section: 'sessions', page: ComparePage },
  { path: '/console/runs', section: 'runs', page: Runs },
  { path: '/console/runs/:id', section: 'runs', page: RunPage },
  { path: '/console/threads', section: 'threads', page: Threads },
  { path: '/console/threads/:name', section: 'threads', page: ThreadPage },
  { path: '/console/agents', section: 'agents', page: Agents },
  { path: '/console/agents/:name', section: 'agents', page: AgentPage },
  { path: '/console/webhooks', section: 'webhooks', page: Webhooks },
  { path: '/console/sessions/:id', section: 'sessions', page: SessionPage },
];

/** @type {Section[]} The entries of the navigation. `g` and the key go there. */
export const SECTIONS = [
  { id: 'overview', name: 'Overview', path: '/console', icon: 'overview', key: 'o' },
  { id: 'inbox', name: 'Inbox', path: '/console/inbox', icon: 'inbox', key: 'i' },
  { id: 'sessions', name: 'Sessions', path: '/console/trees', icon: 'tree', key: 's' },
  { id: 'runs', name: 'Runs', path: '/console/runs', icon: 'run', key: 'r' },
  { id: 'threads', name: 'Threads', path: '/console/threads', icon: 'thread', key: 't' },
  { id: 'agents', name: 'Agents', path: '/console/agents', icon: 'agent', key: 'a' },
  { id: 'webhooks', name: 'Webhooks', path: '/console/webhooks', icon: 'webhook', key: 'w' },
];

/** Finds the page of a path. @param {string} path */
export function routeOf(path) {
  for (const route of ROUTES) {
    const parameters = matchPath(route.path, path);
    if (parameters) return { ...route, parameters };
  }
  return null;
}
