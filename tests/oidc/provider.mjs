// A certified OpenID provider (npm oidc-provider) for the tests of tokens. It issues JWT access
// tokens by client credentials, with claims that the test chooses.
//
// usage: node provider.mjs PORT ALGORITHM...   Port 0 takes a free one. It prints one line of JSON:
// {"issuer": "http://127.0.0.1:PORT", "control": "http://127.0.0.1:PORT"}
//
// The control server never goes down. All its commands are POST with a JSON body:
//   /token   {alg?, claims?, header?, ttl?, id_token?}  issues a token. `claims` overwrite those of
//            the token, and null removes one. Then, and with `header`, the newest key of the
//            algorithm signs the token again, since no client of a provider can ask for this.
//            `sign` is "none", "hs256-with-public-key" or "other-key" for forged tokens.
//   /rotate  {alg?, keep?}     makes a new key that signs from now on. The last `keep` old ones stay.
//   /down    {}                refuses connections.
//   /hang    {milliseconds}    answers a request for keys this much later.
//   /up      {}                ends both.
//   /jwks    {keys?, raw?, status?} replaces what the provider serves as its keys; {} ends that.
//   /count   {}                {"jwks": n, "discovery": n, "tokens": n}
import { createHmac, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { Provider } from 'oidc-provider';
import { SignJWT, decodeJwt, decodeProtectedHeader, exportJWK, generateKeyPair, importJWK } from 'jose';

// It warns about a store in memory.
console.warn = () => {};

const AUDIENCE = 'https://agents.example.org';
const SECRET = 'not-a-secret-of-anything';
const SCOPES = 'runs:write sessions:read';
const [port, ...algorithms] = process.argv.slice(2);
if (algorithms.length === 0) throw new Error('usage: node provider.mjs PORT ALGORITHM...');

const counts = { jwks: 0, discovery: 0, tokens: 0 };
/** Private keys by algorithm, the newest first. */
const keys = new Map();
let serial = 0;
let replaced = null;
let hang = 0;
let claims = {};
let ttl = 300;
let handle = null;

async function makeKey(alg, kid = `k${++serial}`) {
  const { privateKey } = await generateKeyPair(alg, { extractable: true, modulusLength: 2048 });
  return { ...(await exportJWK(privateKey)), kid, use: 'sig', alg };
}

function publicKey(jwk) {
  const { d, p, q, dp, dq, qi, ...shown } = jwk;
  return shown;
}

/** The provider reads its keys once, so a rotation makes another provider of the same issuer. */
function makeProvider(issuer) {
  const all = [...keys.values()].flat();
  const client = (alg) => ({
    client_id: `gateway-${alg}`,
    client_secret: SECRET,
    id_token_signed_response_alg: alg,
    grant_types: ['client_credentials'],
    redirect_uris: [],
    response_types: [],
    scope: SCOPES,
  });
  const provider = new Provider(issuer, {
    jwks: { keys: all },
    cookies: { keys: [randomUUID()] },
    scopes: SCOPES.split(' '),
    clients: [...keys.keys()].map(client),
    enabledJWA: {
      idTokenSigningAlgValues: [...keys.keys()],
      userinfoSigningAlgValues: [...keys.keys()],
    },
    ttl: { ClientCredentials: () => ttl },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        useGrantedResource: () => true,
        getResourceServerInfo: (context, resource, client) => ({
          scope: SCOPES,
          audience: AUDIENCE,
          accessTokenTTL: ttl,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: client.clientId.slice('gateway-'.length) } },
        }),
      },
    },
    extraTokenClaims: () => ({ tenant: 'acme', azp: 'gateway', ...given(claims) }),
  });
  provider.on('server_error', (context, error) => console.error(error));
  return provider.callback();
}

/** The claims that a provider can add itself. */
function given(claims) {
  const own = ['iss', 'aud', 'sub', 'exp', 'iat', 'nbf', 'jti', 'client_id', 'scope'];
  return Object.fromEntries(Object.entries(claims).filter(([name, value]) => value !== null && !own.includes(name)));
}

async function issue(issuer, asked) {
  const alg = asked.alg ?? algorithms[0];
  claims = asked.claims ?? {};
  ttl = asked.ttl ?? 300;
  const response = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${btoa(`gateway-${alg}:${SECRET}`)}`,
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: SCOPES, resource: AUDIENCE }),
  });
  const { access_token: token, ...rest } = await response.json();
  if (!token) throw new Error(JSON.stringify(rest));
  const changed = asked.header || asked.sign || Object.values(claims).includes(null)
    || Object.keys(claims).some((name) => !(name in given(claims)));
  return changed ? again(token, alg, asked) : token;
}

/** Signs a token of the provider again, with other claims and another header. */
async function again(token, alg, asked) {
  const changed = (from, by) => Object.fromEntries(
    Object.entries({ ...from, ...by }).filter(([, value]) => value !== null),
  );
  const header = changed(decodeProtectedHeader(token), asked.header);
  const payload = changed(decodeJwt(token), asked.claims);
  const encode = (part) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const [newest] = keys.get(alg);
  if (asked.sign === 'none') return `${encode({ ...header, alg: 'none' })}.${encode(payload)}.`;
  if (asked.sign === 'hs256-with-public-key') {
    const message = `${encode({ ...header, alg: 'HS256' })}.${encode(payload)}`;
    const secret = JSON.stringify(publicKey(newest));
    return `${message}.${createHmac('sha256', secret).update(message).digest('base64url')}`;
  }
  const key = asked.sign === 'other-key' ? await makeKey(alg, newest.kid) : newest;
  // The library refuses a header with `crit` that it does not know, and claims of wrong types.
  const { crit, ...known } = { ...header, alg };
  if (crit === undefined) return new SignJWT(payload).setProtectedHeader(known).sign(await importJWK(key, alg));
  const sign = new SignJWT(payload).setProtectedHeader({ ...known, crit });
  return sign.sign(await importJWK(key, alg), { crit: Object.fromEntries(crit.map((name) => [name, true])) });
}

async function serve(request, response) {
  const path = new URL(request.url, 'http://localhost').pathname;
  if (path === '/.well-known/openid-configuration') counts.discovery += 1;
  if (path === '/token') counts.tokens += 1;
  if (path !== '/jwks') return handle(request, response);
  counts.jwks += 1;
  if (hang > 0) await new Promise((done) => setTimeout(done, hang));
  if (replaced === null) return handle(request, response);
  response.writeHead(replaced.status ?? 200, { 'content-type': 'application/jwk-set+json' });
  response.end(replaced.raw ?? JSON.stringify({ keys: replaced.keys }));
}

async function listen(server, port) {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

let server = createServer(serve);
const address = await listen(server, +port);
const issuer = `http://127.0.0.1:${address}`;
for (const alg of algorithms) keys.set(alg, [await makeKey(alg)]);
handle = makeProvider(issuer);

const commands = {
  '/token': async (asked) => ({ token: await issue(issuer, asked) }),
  '/rotate': async ({ alg = algorithms[0], keep = 1 }) => {
    const made = await makeKey(alg);
    keys.set(alg, [made, ...keys.get(alg).slice(0, keep)]);
    handle = makeProvider(issuer);
    return { kid: made.kid };
  },
  '/down': async () => {
    server.closeAllConnections();
    server.close();
    return {};
  },
  '/hang': async ({ milliseconds }) => {
    hang = milliseconds;
    return {};
  },
  '/up': async () => {
    hang = 0;
    if (!server.listening) {
      server = createServer(serve);
      await listen(server, address);
    }
    return {};
  },
  '/jwks': async (asked) => {
    replaced = Object.keys(asked).length === 0 ? null : asked;
    return { keys: [...keys.values()].flat().map(publicKey) };
  },
  '/count': async () => counts,
};

// One command at a time: a token's claims are those of its own command.
let turn = Promise.resolve();
const control = createServer((request, response) => {
  turn = turn.then(async () => {
    try {
      const body = await new Response(request).text();
      const command = commands[request.url];
      if (!command) throw new Error(`no command ${request.url}`);
      const answer = JSON.stringify(await command(body ? JSON.parse(body) : {}));
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    } catch (error) {
      response.writeHead(500, { 'content-type': 'text/plain' }).end(String(error?.stack ?? error));
    }
  });
});
const controlled = await listen(control, 0);
console.log(JSON.stringify({ issuer, control: `http://127.0.0.1:${controlled}` }));
// The test holds standard input open as long as it lives.
process.stdin.resume().on('end', () => process.exit(0));
