// @ts-check
// Lays a tree of sessions out as git does: rows newest first, and one lane for each line that is open. Pure.

/** @import { LaidRow, LaneSpan, Session, Tree, TreeRow } from '../types.d.ts' */

/** Fewer sessions in a line, and fewer attempts, are not folded. */
const LEAST = 3;
/** The colours of lanes other than lane 0, which has colour 0. */
const COLOURS = 7;

/** @param {Session} a @param {Session} b */
const newestFirst = (a, b) => compare(b.created_at, a.created_at) || compare(b.session_id, a.session_id);
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Orders sessions, and finds who continues whom. @param {Iterable<Session>} sessions @returns {Tree} */
export function treeOf(sessions) {
  const list = [...sessions].sort(newestFirst);
  const byId = new Map(list.map((session) => [session.session_id, session]));
  /** @type {Map<string, Session[]>} */
  const children = new Map();
  for (const session of list) {
    const parent = session.parent_session_id;
    if (!parent) continue;
    const known = children.get(parent);
    if (known) known.push(session);
    else children.set(parent, [session]);
  }
  return { list, byId, children };
}

/** Returns the ids of a session and its ancestors. @param {Tree} tree @param {string | undefined} id */
export function lineOf({ byId }, id) {
  /** @type {Set<string>} */
  const line = new Set();
  for (let next = id && byId.get(id); next; next = byId.get(next.parent_session_id ?? '')) line.add(next.session_id);
  return line;
}

/** Returns the sessions that descend from one, itself first. @param {Tree} tree @param {string} id */
export function descendantsOf({ children }, id) {
  const found = [id];
  for (const next of found) for (const child of children.get(next) ?? []) found.push(child.session_id);
  return found;
}

/** Returns the second parent: the source of a merge, or of the files. @param {Session} session */
const secondOf = (session) => session.merged_session_id ?? session.environment_session_id;

/** @param {Session} session @returns {TreeRow} */
const rowOf = (session) =>
  ({ key: session.session_id, kind: 'session', session, members: [session], parent: session.parent_session_id });

/** @param {'line' | 'attempts'} kind @param {Session[]} members @returns {TreeRow} */
const foldOf = (kind, members) => ({
  key: `:${members[0].session_id}`, kind, session: members[0], members,
  parent: members.at(-1)?.parent_session_id ?? null,
});

/** Shows every session. @param {Tree} tree */
export const everyRow = ({ list }) => list.map(rowOf);

/**
 * Folds stretches in which nothing branches, and attempts that nobody continued. What to keep splits a stretch; a
 * stretch with a session in `opened` is shown whole.
 * @param {Tree} tree
 * @param {{ keep: (session: Session) => boolean, pinned: Set<string>, opened: Set<string> }} wanted
 * @returns {TreeRow[]}
 */
export function foldRows({ list, byId, children }, { keep, pinned, opened }) {
  /** @type {Map<string, TreeRow>} The rows of the sessions that were looked at. */
  const placed = new Map();
  const place = (row) => row.members.forEach((member) => placed.set(member.session_id, row));
  const parentOf = (session) => byId.get(session.parent_session_id ?? '');
  const count = (session) => children.get(session.session_id)?.length ?? 0;
  const isStraight = (session) => !!session && count(session) === 1 && !!parentOf(session) && !keep(session);
  const isAttempt = (session) => count(session) === 0 && !keep(session);
  /** @param {'line' | 'attempts'} kind @param {Session[]} members */
  const hide = (kind, members) => {
    if (members.length < LEAST) members.forEach((member) => place(rowOf(member)));
    else place(foldOf(kind, members));
  };
  /** @param {'line' | 'attempts'} kind @param {Session[]} members */
  const fold = (kind, members) => {
    if (members.some(({ session_id: id }) => opened.has(id))) return members.forEach((member) => place(rowOf(member)));
    const isPinned = ({ session_id: id }) => pinned.has(id);
    members.filter(isPinned).forEach((member) => place(rowOf(member)));
    if (kind === 'attempts') return hide(kind, members.filter((member) => !isPinned(member)));
    let part = /** @type {Session[]} */ ([]);
    for (const member of members) {
      if (!isPinned(member)) part.push(member);
      else part = (hide(kind, part), []);
    }
    return hide(kind, part);
  };
  const rows = [];
  for (const session of list) {
    const parent = parentOf(session);
    if (placed.has(session.session_id)) {
      // The row stands where its newest session would.
    } else if (isStraight(session)) {
      const members = [session];
      for (let next = parent; isStraight(next); next = parentOf(next)) members.push(/** @type {Session} */ (next));
      fold('line', members);
    } else if (parent && isAttempt(session)) {
      fold('attempts', (children.get(parent.session_id) ?? []).filter(isAttempt));
    } else {
      place(rowOf(session));
    }
    const row = placed.get(session.session_id);
    if (row?.session === session) rows.push(row);
  }
  return rows;
}

/** Adds a row below the last session that continues each removed one. @param {TreeRow[]} rows @param {Tree} tree */
export function withRemoved(rows, { byId }) {
  /** @type {Map<string, TreeRow>} */
  const missing = new Map();
  for (const row of rows) if (row.parent && !byId.has(row.parent)) missing.set(row.parent, row);
  if (!missing.size) return rows;
  /** @type {(id: string, row: TreeRow) => TreeRow} */
  const removed = (id, row) => ({ key: id, kind: 'removed', session: row.session, members: [], parent: null });
  return rows.flatMap((row) => {
    const isLast = row.parent && missing.get(row.parent) === row;
    return isLast && row.parent ? [row, removed(row.parent, row)] : [row];
  });
}

/** @param {string} id */
const hashOf = (id) => [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);

/**
 * Returns the colours of branches: in turn from the oldest on, so that they stay when sessions are added. A branch of
 * one session takes no turn.
 * @param {{ last: number, id: string, isLong: boolean }[]} branches `last` is the row of the oldest session.
 */
function coloursOf(branches) {
  const colours = branches.map(({ id }, number) => number && 1 + (hashOf(id) % COLOURS));
  const long = [...branches.keys()].filter((number) => number && branches[number].isLong);
  long.sort((a, b) => branches[b].last - branches[a].last);
  for (const [turn, number] of long.entries()) colours[number] = 1 + (turn % COLOURS);
  return colours;
}

/**
 * Gives each row a lane, and the lines that cross it. Lane 0 belongs to the line of `main`. The effort is the number of
 * rows times the number of open lanes.
 * @param {TreeRow[]} rows @param {Set<string>} main @param {Tree} tree
 */
export function layOut(rows, main, tree) {
  /** @type {(LaneSpan | undefined)[]} The line in each lane that looks for its parent. */
  const open = [];
  const openSpans = () => open.flatMap((span) => span ?? []);
  const spans = /** @type {LaneSpan[]} */ ([]);
  const laid = /** @type {LaidRow[]} */ ([]);
  const done = new Set();
  let width = 1;
  /** Branch 0 is in lane 0. */
  const branches = [{ last: 0, id: '', isLong: false }];
  const free = () => {
    let lane = 1;
    while (open[lane]) lane++;
    return lane;
  };
  /** @param {number} lane @param {Omit<LaneSpan, 'lane' | 'end'>} span */
  const begin = (lane, span) => {
    width = Math.max(width, lane + 1);
    return (open[lane] = { ...span, lane, end: rows.length });
  };
  for (const [index, row] of rows.entries()) {
    const ids = row.kind === 'removed' ? [row.key] : row.members.map((member) => member.session_id);
    const isMine = new Set(ids);
    const into = openSpans().filter((span) => isMine.has(span.want));
    const own = into.filter((span) => !span.isMerge);
    const isMain = main.has(ids[0]);
    const kept = own.find((span) => span.lane) ?? own[0] ?? into[0];
    const lane = isMain ? 0 : kept?.lane ?? free();
    const colour = isMain ? 0 : kept?.colour ?? branches.length;
    const isLong = branches[colour] !== undefined || row.kind === 'line';
    branches[colour] = { last: index, id: ids.at(-1) ?? row.key, isLong };
    for (const span of into) {
      span.end = index;
      spans.push(span);
      open[span.lane] = undefined;
    }
    const passes = openSpans();
    ids.forEach((id) => done.add(id));
    /** @type {LaidRow} */
    const found = { row, lane, colour, passes, joins: into };
    const line = { start: index, from: ids[0], colour };
    width = Math.max(width, lane + 1);
    // A parent may stand above its child if the clocks of two replicas differ.
    if (row.parent && !done.has(row.parent)) found.down = begin(lane, { ...line, want: row.parent, isMerge: false });
    const second = row.kind === 'session' ? secondOf(row.session) : null;
    if (second && tree.byId.has(second) && !done.has(second)) {
      const known = open.find((span) => span?.want === second && span.lane !== lane);
      if (known) found.merge = known;
      else {
        const branch = branches.push({ last: index, id: second, isLong: false }) - 1;
        found.merge = begin(free(), { ...line, colour: branch, want: second, isMerge: true });
      }
    }
    laid.push(found);
  }
  spans.push(...openSpans());
  // Until here the colour is the number of the branch.
  const colours = coloursOf(branches);
  for (const one of [...laid, ...spans]) one.colour = colours[one.colour];
  return { laid, width, spans };
}

/**
 * Draws the lines of rows as paths of SVG, one for each kind of line and colour, so that few elements do.
 * @param {LaidRow[]} laid @param {Set<string>} line The ids of the thick line.
 * @param {{ height: number, x: (lane: number) => number }} size
 */
export function drawLines(laid, line, { height, x }) {
  /** @type {Map<string, string[]>} */
  const paths = new Map();
  const add = (span, isDotted, d) => {
    const isOn = !span.isMerge && line.has(span.from) && line.has(span.want);
    const kind = `${isOn ? 'on ' : ''}${span.isMerge ? 'merge ' : ''}${isDotted ? 'dotted ' : ''}c${span.colour}`;
    const known = paths.get(kind);
    if (known) known.push(d);
    else paths.set(kind, [d]);
  };
  for (const [position, { row, lane, passes, joins, down, merge }] of laid.entries()) {
    const [top, me] = [position * height, x(lane)];
    const middle = top + height / 2;
    const isDotted = row.kind === 'line';
    for (const span of passes) add(span, false, `M${x(span.lane)} ${top}v${height}`);
    for (const span of joins) {
      const from = x(span.lane);
      if (from === me) {
        add(span, isDotted, `M${me} ${top}V${middle}`);
        continue;
      }
      const bend = Math.min(height / 2, Math.abs(from - me)) * Math.sign(from - me);
      const corner = `V${middle - Math.abs(bend)}Q${from} ${middle} ${from - bend} ${middle}`;
      add(span, false, `M${from} ${top}${corner}H${me}`);
    }
    if (down) add(down, isDotted, `M${me} ${middle}V${top + height}`);
    if (merge) {
      const to = x(merge.lane);
      const bend = Math.min(height / 2, Math.abs(to - me)) * Math.sign(to - me);
      const corner = `H${to - bend}Q${to} ${middle} ${to} ${middle + Math.abs(bend)}`;
      add(merge.isMerge ? merge : { ...merge, isMerge: true }, false, `M${me} ${middle}${corner}V${top + height}`);
    }
  }
  // The thick lines stand above the others.
  return [...paths].map(([kind, d]) => ({ kind, d: d.join('') })).sort((a, b) => a.kind.localeCompare(b.kind));
}
