// @ts-check
// Who the reader is: the tenant, the scopes of the key, and the service. The key itself is never in JavaScript for
// longer than the login takes.

import { signal } from '@preact/signals';
import { get, needsKey, send } from './api.js';
import { reloadOthers } from './live.js';

/**
 * @typedef {{ tenant: string, requires_key: boolean, scopes: string[], key: { label?: string | null } | null }} Me
 */

export const me = signal(/** @type {Me | null} */ (null));
export const service = signal(/** @type {{ version?: string } | null} */ (null));

/** Reads whether the browser needs a login, and who the reader is. */
export async function readIdentity() {
  const session = await get('/console/session').catch(() => null);
  if (session?.authentication === 'required') needsKey.value = true;
  if (needsKey.value) return;
  const [who, what] = await Promise.allSettled([get('/v1/me'), get('/v1/service')]);
  if (who.status === 'fulfilled') me.value = who.value;
  if (what.status === 'fulfilled') service.value = what.value;
}

/** Whether a scope is missing. Before the scopes are known, none is. @param {string} scope */
export const lacks = (scope) => me.value !== null && !['admin', scope].some((one) => me.value?.scopes.includes(one));

/** Returns the words that give curl the key of the caller. A service without keys needs none. */
export const authorization = () => (me.value?.requires_key === false ? [] : ['-H "authorization: Bearer $KEY"']);

/** @param {string} key */
export async function logIn(key) {
  await send({ method: 'POST', path: '/console/session', body: { key } });
  reloadOthers();
  location.reload();
}

export async function logOut() {
  await send({ method: 'DELETE', path: '/console/session' });
  reloadOthers();
  location.reload();
}
