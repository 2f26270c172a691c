// An issuer of access tokens that nobody here wrote: oidc-provider.
//
//     node oidc_provider.mjs
//
// Its address is written as the first line.  It gives JWTs for any `resource` to the
// client "ana", whose secret is in CLIENT_SECRET, by client credentials.  A line on
// standard input lets it change its keys, which a line on standard output tells; it ends
// with its input.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';

import Provider from 'oidc-provider';

const SCOPES = ['mcp:read', 'mcp:change'];

let keys = 0;

function newKey() {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  keys += 1;
  return { ...privateKey.export({ format: 'jwk' }), kid: `key ${keys}`, alg: 'ES256', use: 'sig' };
}

function newProvider(issuer) {
  return new Provider(issuer, {
    clients: [
      {
        client_id: 'ana',
        client_secret: process.env.CLIENT_SECRET,
        grant_types: ['client_credentials'],
        id_token_signed_response_alg: 'ES256',
        redirect_uris: [],
        response_types: [],
      },
    ],
    cookies: { keys: ['unused'] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_context, resource) => ({
          audience: resource,
          scope: SCOPES.join(' '),
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    jwks: { keys: [newKey()] },
    scopes: SCOPES,
    ttl: { ClientCredentials: 600 },
  });
}

const server = createServer((request, response) => answer(request, response));
server.listen(0, '127.0.0.1');
await new Promise((done) => server.once('listening', done));
const issuer = `http://127.0.0.1:${server.address().port}`;
let answer = newProvider(issuer).callback();
console.log(issuer);
for await (const _line of createInterface({ input: process.stdin })) {
  answer = newProvider(issuer).callback();
  console.log('changed');
}
process.exit(0);
