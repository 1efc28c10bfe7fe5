// @ts-check
// Turns decisions about conflicts into changes of files, after which a merge succeeds. Pure.

/** @import { Conflict, FileChange, FileVersion } from '../types.d.ts' */
/** @typedef {{ path: string, delete?: true, content?: { blob: string }, executable?: boolean }} Change */

/** Whether a request can write a version. @param {FileVersion | undefined} version */
const isWritable = (version) => !version || (version.kind === 'file' && !!version.hash);

/**
 * Whether a choice between both sides can be made here.
 * @param {Conflict} conflict @param {Map<string, FileChange>} files The differences, theirs on the left.
 */
export function canSettle({ part, name }, files) {
  const file = files.get(name);
  return part === 'files' && !!file && isWritable(file.left) && isWritable(file.right);
}

/** @param {Conflict} conflict @param {FileVersion | undefined} version @returns {Change[]} */
function write({ name: path, kind }, version) {
  if (!version) return [{ path, delete: true }];
  /** @type {Change} */
  const change = { path, content: { blob: version.hash ?? '' }, executable: !!version.executable };
  // The directory in its place goes first.
  return kind === 'file_and_directory' ? [{ path, delete: true }, change] : [change];
}

/**
 * Makes the changes of both sessions. Both then have the same version of each file, so that nothing conflicts: theirs
 * is written into mine, and mine into theirs.
 * @param {Conflict[]} conflicts @param {Map<string, FileChange>} files
 * @param {Record<string, 'mine' | 'theirs'>} chosen
 */
export function choicesOf(conflicts, files, chosen) {
  const settled = conflicts.filter((conflict) => canSettle(conflict, files));
  const take = (side, version) => settled
    .filter(({ name }) => chosen[name] === side)
    .flatMap((conflict) => write(conflict, files.get(conflict.name)?.[version]));
  return { onMine: take('theirs', 'left'), onTheirs: take('mine', 'right') };
}
