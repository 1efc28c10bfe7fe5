// Tries every command of provider.mjs, and checks its tokens with jose.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import assert from 'node:assert/strict';
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';

const algorithms = ['ES256', 'ES384', 'RS256', 'RS512', 'PS256', 'EdDSA'];
const child = spawn(process.execPath, ['provider.mjs', '0', ...algorithms], { stdio: ['pipe', 'pipe', 'inherit'] });
const [line] = await once(child.stdout, 'data');
const { issuer, control } = JSON.parse(line);
const ask = async (path, body = {}) => {
  const response = await fetch(control + path, { method: 'POST', body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
};
const wanted = { issuer, audience: 'https://agents.example.org', typ: 'at+jwt', requiredClaims: ['exp', 'iat', 'sub'] };
const verify = (token) => jwtVerify(token, createRemoteJWKSet(new URL(`${issuer}/jwks`)), wanted);
const discovery = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
assert.equal(discovery.jwks_uri, `${issuer}/jwks`);
for (const alg of algorithms) {
  const { token } = await ask('/token', { alg });
  const { payload, protectedHeader } = await verify(token);
  assert.equal(protectedHeader.alg, alg);
  assert.equal(payload.tenant, 'acme');
  console.log(alg, JSON.stringify(protectedHeader), JSON.stringify(payload), token.length);
}
const { token: old } = await ask('/token');
const { kid } = await ask('/rotate');
const { token: young } = await ask('/token');
assert.equal(decodeProtectedHeader(young).kid, kid);
await verify(old);
await verify(young);
await ask('/rotate', { keep: 0 });
await assert.rejects(verify(old));
const { token: other } = await ask('/token', { claims: { tenant: 'globex', sub: 'x', act: { sub: 'y' } }, ttl: 60 });
const claims = decodeJwt(other);
assert.deepEqual([claims.tenant, claims.sub, claims.act, claims.exp - claims.iat], ['globex', 'x', { sub: 'y' }, 60]);
await verify(other);
const { token: without } = await ask('/token', { claims: { tenant: null, aud: null } });
assert.equal('tenant' in decodeJwt(without) || 'aud' in decodeJwt(without), false);
for (const sign of ['none', 'hs256-with-public-key', 'other-key']) {
  await assert.rejects(verify((await ask('/token', { sign })).token), sign);
}
const { token: crit } = await ask('/token', { header: { crit: ['x'], x: 1 } });
assert.deepEqual(decodeProtectedHeader(crit).crit, ['x']);
for (const claims of [{ nbf: 'soon' }, { exp: null }, { iat: null }, { sub: null }, { iss: null }, { exp: 'x' }, { exp: 1 }]) {
  const { token } = await ask('/token', { claims });
  const decoded = decodeJwt(token);
  for (const [name, value] of Object.entries(claims)) assert.equal(decoded[name] ?? null, value, name);
}
for (const header of [{ typ: 'JWT' }, { kid: 'unknown' }, { kid: null }, { jku: 'https://evil.example' }]) {
  const decoded = decodeProtectedHeader((await ask('/token', { header })).token);
  for (const [name, value] of Object.entries(header)) assert.equal(decoded[name] ?? null, value, name);
}
const before = await ask('/count');
await fetch(`${issuer}/jwks`);
assert.equal((await ask('/count')).jwks, before.jwks + 1);
assert.equal((await fetch(`${issuer}/jwks`)).headers.get('cache-control'), null);
await ask('/jwks', { keys: [] });
assert.deepEqual(await (await fetch(`${issuer}/jwks`)).json(), { keys: [] });
await ask('/jwks', { raw: 'x'.repeat(300_000), status: 200 });
assert.equal((await (await fetch(`${issuer}/jwks`)).text()).length, 300_000);
await ask('/jwks');
await ask('/down');
await assert.rejects(fetch(`${issuer}/jwks`));
await ask('/up');
assert.equal((await fetch(`${issuer}/jwks`)).status, 200);
await ask('/hang', { milliseconds: 300 });
const begun = Date.now();
await fetch(`${issuer}/jwks`);
assert.ok(Date.now() - begun >= 295);
await ask('/up');
console.log('counts', JSON.stringify(await ask('/count')));
child.stdin.end();
const [code] = await once(child, 'exit');
assert.equal(code, 0);
console.log('ok');
