// The requests of the page, and the settings that they need. docs/api.md describes each request.

/** The browser stores the address, and the key only until the tab is closed. */
export const settings = {
  get url() { return localStorage.getItem('url') ?? 'http://127.0.0.1:8080'; },
  set url(url) { localStorage.setItem('url', url.replace(/\/+$/, '')); },
  get key() { return sessionStorage.getItem('key') ?? ''; },
  set key(key) { sessionStorage.setItem('key', key); },
};

/** An error that the service has reported: its problem document. */
export class Problem extends Error {
  constructor(status, document) {
    super(document?.detail ?? `The service responded with the status ${status}.`);
    this.status = status;
  }
}

/** Makes a path, with each of its values encoded. */
export const path = (words, ...values) => String.raw({ raw: words }, ...values.map(encodeURIComponent));

/** Sends a request, and returns the response. Throws a `Problem` if the service refuses it. */
export async function send(method, address, { body, idempotencyKey, signal } = {}) {
  const headers = {};
  if (settings.key) headers.authorization = `Bearer ${settings.key}`;
  if (body) headers['content-type'] = 'application/json';
  if (idempotencyKey) headers['idempotency-key'] = idempotencyKey;
  const options = { method, headers, signal, cache: 'no-cache', body: body && JSON.stringify(body) };
  const response = await fetch(settings.url + address, options).catch((error) => {
    if (signal?.aborted) throw error;
    throw new Error(`${settings.url} does not respond, or does not allow pages of ${location.origin}.`);
  });
  if (!response.ok) throw new Problem(response.status, await response.json().catch(() => null));
  return response;
}

export const get = async (address, signal) => (await send('GET', address, { signal })).json();
export const post = async (address, body) => (await send('POST', address, { body })).json();
export const put = async (address, body) => (await send('PUT', address, { body })).json();

/** Reads all pages of a list. Returns the first page, with the items of all. */
export async function all(address, signal) {
  const pages = address + (address.includes('?') ? '&' : '?') + 'limit=200';
  const list = await get(pages, signal);
  for (let cursor = list.next_cursor; cursor;) {
    const page = await get(`${pages}&cursor=${cursor}`, signal);
    list.data.push(...page.data);
    cursor = page.next_cursor;
  }
  return list;
}
