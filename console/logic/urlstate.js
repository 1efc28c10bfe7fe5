// @ts-check
// The URL is the state: paths of pages, and queries that hold selections and filters. Pure.

/**
 * Matches a path with a pattern such as `/console/runs/:id`. Returns the parameters, or null.
 * @param {string} pattern @param {string} path
 * @returns {Record<string, string> | null}
 */
export function matchPath(pattern, path) {
  const wanted = pattern.split('/');
  const given = path.replace(/\/+$/, '').split('/');
  if (wanted.length !== given.length) return null;
  /** @type {Record<string, string>} */
  const parameters = {};
  for (const [index, part] of wanted.entries()) {
    if (!part.startsWith(':')) {
      if (part !== given[index]) return null;
      continue;
    }
    try {
      parameters[part.slice(1)] = decodeURIComponent(given[index]);
    } catch {
      return null;
    }
  }
  return parameters;
}

/**
 * Changes parameters of a query. An empty value removes its parameter.
 * @param {string} search @param {Record<string, string | number | null | undefined>} changes
 */
export function changeQuery(search, changes) {
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value == null || value === '') query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString().replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%2F', '/');
  return text && `?${text}`;
}

/** Reads a list such as `fold=3,7`. @param {string | null} text @returns {Set<number>} */
export const readNumbers = (text) => new Set((text ?? '').split(',').filter((part) => /^\d+$/.test(part)).map(Number));
