// The branches of a thread. A run continues one session and publishes another, so the sessions of a
// thread are a tree, and the thread points to one of them. Nothing here sends a request.

/**
 * Splits the messages of a session into turns. A turn begins with the session that adds a message
 * of the user. Runs that answer calls, and changes of files, continue the turn.
 * @param line The session and its ancestors, the oldest first.
 */
export function turnsOf(line, messages) {
  const turns = [];
  let from = 0;
  for (const session of line) {
    const added = messages.slice(from, session.message_count ?? from);
    from += added.length;
    if (!turns.length || added[0]?.role === 'user') turns.push({ first: session, sessions: [], messages: [] });
    turns.at(-1).sessions.push(session);
    turns.at(-1).messages.push(...added);
  }
  return turns;
}

/** Returns the versions of a turn, oldest first: the sessions that continue the same session. */
export function versionsOf({ first }, sessions) {
  const versions = sessions.filter((one) => one.parent_session_id === first.parent_session_id && !one.subagent_of);
  return versions.some((one) => one.session_id === first.session_id) ? versions.toReversed() : [first];
}

/** Returns the end of a branch. Where it forks, the newest one counts: the list has it first. */
export function endOf(session, sessions) {
  const next = sessions.find((one) => one.parent_session_id === session.session_id);
  return next ? endOf(next, sessions) : session;
}
