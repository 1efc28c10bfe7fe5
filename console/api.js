// @ts-check
// Every request of the console. All of them are requests of the public API, and can be shown as curl.

import { signal } from '@preact/signals';
import { FrameReader } from './logic/sse.js';

/** @typedef {{ method: string, path: string, body?: unknown, key?: string }} Call A request, before it is sent. */

const MAX_ATTEMPTS = 4;
/** How long a request may wait until the page asks whether the service is there. */
const PATIENCE = 5000;
/** How long a stream may bring nothing. The service sends a comment every 15 seconds. */
const MAX_QUIET = 45_000;

/** Since when the service does not respond, and the time of its last response; null while it responds. */
export const silence = signal(/** @type {{ since: number, at: number } | null} */ (null));
/** Whether a request was refused because it has no key, or one that is no longer valid. */
export const needsKey = signal(false);
/** Counts how often the service came back after silence. Pages read their data again. */
export const comebacks = signal(0);

let answeredAt = Date.now();
let failingSince = 0;
/** @type {Set<number>} The start times of requests that wait for a response. */
const pending = new Set();

/** A response that is a problem document, or that never came. */
export class Problem extends Error {
  /** @param {number} status @param {any} document */
  constructor(status, document) {
    super(document?.detail ?? document?.title ?? `The service responded with ${status}.`);
    this.status = status;
    this.code = String(document?.code ?? '');
    this.requestId = document?.request_id ?? null;
    this.document = document ?? {};
  }
}

/**
 * Makes a request that changes something. Its key makes it safe to send again.
 * @param {string} path @param {unknown} [body] @returns {Call}
 */
export const post = (path, body) => ({ method: 'POST', path, body, key: newId() });

/** Sends a request, and returns the JSON of its response. @param {Call} call @param {AbortSignal} [stop] */
export async function send(call, stop) {
  for (let attempt = 1; ; attempt++) {
    const response = await fetchNow(call, stop);
    if (response.ok) return readBody(response);
    const problem = await problemOf(response);
    const after = Number(response.headers.get('retry-after'));
    if (![429, 503].includes(response.status) || attempt === MAX_ATTEMPTS || after > 60) throw problem;
    await pause(1000 * Math.max(1, after || 0), stop);
  }
}

/** Reads JSON. A list whose total is in a header has it as `total`. @param {Response} response */
async function readBody(response) {
  if (response.status === 204) return null;
  const body = await response.json();
  const total = response.headers.get('x-total');
  return total === null ? body : { ...body, total: Number(total) };
}

/** Reads a path. @param {string} path @param {AbortSignal} [stop] */
export const get = (path, stop) => send({ method: 'GET', path }, stop);

/**
 * Reads the first bytes of a file, and the size of the file.
 * @param {string} path @param {number} most @param {AbortSignal} [stop]
 * @returns {Promise<{ bytes: Uint8Array, size: number }>}
 */
export async function getBytes(path, most, stop) {
  const response = await fetchNow({ method: 'GET', path }, stop, '*/*', { range: `bytes=0-${most - 1}` });
  // An empty file has no first byte.
  if (response.status === 416) return { bytes: new Uint8Array(), size: 0 };
  if (!response.ok) throw await problemOf(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { bytes, size: Number(response.headers.get('content-range')?.split('/')[1] ?? bytes.length) };
}

/**
 * Reads a stream of events until it ends, or until it brings nothing for too long.
 * @param {string} path @param {AbortSignal} stop @param {(data: any) => void} onEvent
 */
export async function stream(path, stop, onEvent) {
  const end = new AbortController();
  const close = () => end.abort();
  let timer = setTimeout(close, MAX_QUIET);
  try {
    const either = AbortSignal.any([stop, end.signal]);
    const response = await fetchNow({ method: 'GET', path }, either, 'text/event-stream');
    if (!response.ok) throw await problemOf(response);
    if (!response.body || response.status === 204) return;
    const frames = new FrameReader();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(close, MAX_QUIET);
      for (const frame of frames.push(value)) onEvent(JSON.parse(frame.data));
    }
  } finally {
    clearTimeout(timer);
    close();
  }
}

/**
 * Writes a request as a command for a shell.
 * @param {Call} call @param {string[]} authorization The words that give the key of the caller.
 */
export function curl({ method, path, body, key }, authorization) {
  const words = ['curl -sS'];
  if (method !== 'GET' && !(method === 'POST' && body !== undefined)) words.push(`-X ${method}`);
  words.push(quote(location.origin + path), ...authorization);
  if (key) words.push(`-H ${quote(`idempotency-key: ${key}`)}`);
  if (body !== undefined) words.push("-H 'content-type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return words.join(' \\\n  ');
}

/** @param {string} text */
const quote = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`;

/** @param {Call} call @param {AbortSignal} [stop] */
async function fetchNow({ method, path, body, key }, stop, accept = 'application/json', more = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept, 'x-console': '1', ...more };
  if (body !== undefined) headers['content-type'] = 'application/json';
  if (key) headers['idempotency-key'] = key;
  const started = Date.now();
  pending.add(started);
  try {
    const options = { method, headers, signal: stop, body: body === undefined ? undefined : JSON.stringify(body) };
    const response = await fetch(path, { ...options, credentials: 'same-origin', cache: 'no-cache' });
    if (isFromProxy(response)) failingSince ||= Date.now();
    else noteAnswer(response.status);
    return response;
  } catch (error) {
    if (!stop?.aborted) failingSince ||= Date.now();
    throw error;
  } finally {
    pending.delete(started);
  }
}

/** Whether a proxy has responded because the service did not. @param {Response} response */
const isFromProxy = ({ status, headers }) => [502, 503, 504].includes(status)
  && !headers.get('content-type')?.startsWith('application/problem+json');

/** @param {number} status */
function noteAnswer(status) {
  if (status === 401) needsKey.value = true;
  answeredAt = Date.now();
  failingSince = 0;
  if (!silence.value) return;
  silence.value = null;
  comebacks.value++;
}

/** @param {Response} response */
async function problemOf(response) {
  const problem = new Problem(response.status, await response.json().catch(() => null));
  problem.requestId ??= response.headers.get('x-request-id');
  return problem;
}

/** Waits, but not longer than the page. @param {number} ms @param {AbortSignal} [stop] */
export function pause(ms, stop) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    stop?.addEventListener('abort', () => (clearTimeout(timer), reject(stop.reason)), { once: true });
  });
}

/** `crypto.randomUUID` exists only on https and on loopback. */
export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Asks whether the service is there when a request fails or waits. A slow request alone is no silence. */
export function watchSilence() {
  setInterval(async () => {
    const now = Date.now();
    const oldest = Math.min(failingSince || now, ...pending);
    if (!silence.value && !failingSince && now - oldest < PATIENCE) return;
    await fetchNow({ method: 'GET', path: '/healthz' }, AbortSignal.timeout(2000)).catch(() => {});
    if (answeredAt < now) silence.value ??= { since: oldest, at: answeredAt };
  }, 2000);
}
