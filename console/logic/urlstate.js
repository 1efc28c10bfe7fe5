// @ts-check
// The URL is the state: paths of pages, and queries that hold selections and filters. Pure.

const ID = /^[0-9a-f-]{36}$/;

/**
 * Matches a path with a pattern such as `/console/runs/:id`. Returns the parameters, or null. All but `:name` are ids:
 * they become parts of other paths as they are.
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
    if (part !== ':name' && !ID.test(given[index])) return null;
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

/** Whether a text is the path of a file: with parts such as `..`, a URL would lead elsewhere. @param {string} text */
export const isFilePath = (text) => text.split('/').every((part) => !['', '.', '..'].includes(part));
