// Reads a thread: its history in turns, the run that is active on it, and the calls that wait.

import { all, get, path } from './api.js';
import { turnsOf, versionsOf } from './branches.js';

/** A thread that does not exist yet. */
export const NEW = { name: '', tip: null, agent: null, turns: [], sessions: [], active: null, calls: [], error: null };

/**
 * Reads a thread. `turns` is the history up to the session `tip`. The events of the `active` run
 * follow it. `calls` are open, and `error` is why the newest run has failed.
 */
export async function readThread(name, signal) {
  const runs = path`/v1/runs?thread=${name}`;
  const active = (await get(`${runs}&status=queued,running`, signal)).data.at(-1);
  let history = await all(path`/v1/threads/${name}/messages`, signal);
  // The run may continue an earlier session, or have ended between these two requests.
  if (active && active.base_session_id !== history.session_id) {
    history = await readSession(active.base_session_id, signal);
  }

  const { data: messages, session_id: tip } = history;
  const [lineage, { data: sessions }, { data: newest }] = await Promise.all([
    tip ? all(path`/v1/sessions/${tip}/lineage`, signal) : { data: [] },
    all(path`/v1/sessions?thread=${name}`, signal),
    get(`${runs}&limit=200`, signal),
  ]);
  const line = lineage.data.toReversed();
  const turns = turnsOf(line, messages);
  for (const turn of turns) {
    turn.versions = versionsOf(turn, sessions);
    turn.runs = newest.filter((run) => turn.sessions.some(({ session_id: id }) => id === run.session_id));
  }
  const asked = await readAsked(line, signal);
  // The step with the open calls is not part of the history yet.
  turns.at(-1)?.messages.push(...asked?.output ?? []);
  return {
    name, tip, turns, sessions, active, agent: line.at(-1)?.agent,
    calls: (!active && asked?.required_action?.calls) || [], error: active ? null : errorOf(newest[0], tip),
  };
}

async function readSession(id, signal) {
  const { data } = id ? await all(path`/v1/sessions/${id}/messages`, signal) : { data: [] };
  return { data, session_id: id };
}

/** Returns the run that waits for answers at the end of a line. Changes of files may follow it. */
async function readAsked(line, signal) {
  const last = line.findLast((session) => session.run_id);
  return last?.run_status === 'waiting' ? get(path`/v1/runs/${last.run_id}`, signal) : null;
}

/** Returns why the newest run has published nothing, if it began at the end of the history. */
function errorOf(run, tip) {
  if (!['failed', 'cancelled'].includes(run?.status) || run.base_session_id !== tip) return null;
  return run.error?.message ?? 'The run was cancelled.';
}
