// @ts-check
// Lists that stay current while they are read: how new rows join old ones, and how filters become a query. Pure.

/**
 * Joins the rows that are shown with a fresh first page. A row stays where it is, with its new values, and a new one
 * comes in where the page has it. Returns null if they share no row, so that rows between them may be unknown.
 * @template T @param {T[]} rows @param {T[]} page @param {(row: T) => string} keyOf
 * @param {boolean} isWhole Whether the rows are all of the list, so that the page may also add some at the end.
 * @returns {T[] | null}
 */
export function join(rows, page, keyOf, isWhole) {
  const known = new Set(rows.map(keyOf));
  const fresh = new Map(page.map((row) => [keyOf(row), row]));
  /** @type {Map<string, T[]>} The new rows before each known one. */
  const before = new Map();
  /** @type {T[]} */
  let added = [];
  for (const row of page) {
    if (!known.has(keyOf(row))) {
      added.push(row);
      continue;
    }
    before.set(keyOf(row), added);
    added = [];
  }
  if (rows.length && page.length && !before.size) return null;
  const joined = rows.flatMap((row) => [...(before.get(keyOf(row)) ?? []), fresh.get(keyOf(row)) ?? row]);
  return isWhole ? [...joined, ...added] : joined;
}

/**
 * Makes the query of a list from filters in the address. `metadata` is `KEY=VALUE`, or an object in JSON.
 * @param {URLSearchParams} query @param {string[]} names
 */
export function filterQuery(query, names) {
  const wanted = new URLSearchParams();
  for (const name of names) {
    const value = query.get(name)?.trim();
    const pair = name === 'metadata' && /^([^={]+)=(.*)$/s.exec(value ?? '');
    if (pair) wanted.set(`metadata.${pair[1].trim()}`, pair[2].trim());
    else if (value) wanted.set(name, value);
  }
  return wanted.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
}
