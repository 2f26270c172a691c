// Signs in with both TypeScript SDKs, and says what came of it.
//
//     node sign_in.mjs http://127.0.0.1:8000/mcp http://127.0.0.1:8001/back
//
// The second address is where the person is led back to.
// It writes questions, one line of JSON each, and reads a line of JSON as the answer:
// `open` is the address of a page for the person, answered by what came back;
// `end` is the name of a program that is to be ended.  The last line is the `report`.

import { createHash, randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  Client as Client2,
  StreamableHTTPClientTransport as HTTP2,
} from '@modelcontextprotocol/client';

const ADD = { name: 'drill_add', arguments: { a: 20, b: 22 } };
const [URL_OF_SERVER, BACK] = process.argv.slice(2);

// The newer SDK compares the issuer that the answer names; the older has no place for it.
const PROGRAMS = {
  'sdk_v1': { Client: Client1, Transport: HTTP1, finish: ({ code }) => code },
  'sdk_v2 stateful': { Client: Client2, Transport: HTTP2, mode: 'legacy', finish: whole },
  'sdk_v2 stateless': { Client: Client2, Transport: HTTP2, mode: 'auto', finish: whole },
};

function whole(answer) {
  return new URLSearchParams(answer);
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

async function asks(question) {
  process.stdout.write(`${JSON.stringify(question)}\n`);
  return JSON.parse((await input.next()).value);
}

// What a program remembers, and where it wants the person to go.
class Memory {
  redirectUrl = BACK;
  states = [];
  verifiers = [];
  registered = 0;

  constructor(name) {
    this.clientMetadata = {
      client_name: name,
      redirect_uris: [BACK],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
  }

  state() {
    this.states.push(randomUUID());
    return this.states.at(-1);
  }

  clientInformation() {
    return this.client;
  }

  saveClientInformation(client) {
    this.registered += this.client?.client_id !== client.client_id;
    this.client = client;
  }

  tokens() {
    return this.kept;
  }

  saveTokens(tokens) {
    this.kept = tokens;
  }

  redirectToAuthorization(address) {
    this.address = address;
  }

  // A stream that ended asks as well, beside a call: each page has its own.
  saveCodeVerifier(verifier) {
    this.verifiers.push(verifier);
  }

  codeVerifier() {
    const wanted = this.address.searchParams.get('code_challenge');
    return this.verifiers.find(
      (each) => createHash('sha256').update(each).digest('base64url') === wanted,
    );
  }

  // The newer SDK compares it when the person comes back.
  saveDiscoveryState(found) {
    this.found = found;
  }

  discoveryState() {
    return this.found;
  }

  invalidateCredentials(scope) {
    if (scope === 'all' || scope === 'tokens') this.kept = undefined;
    if (scope === 'all' || scope === 'client') this.client = undefined;
    if (scope === 'all' || scope === 'discovery') this.found = undefined;
  }
}

async function connected({ Client, Transport, mode }, url, memory, seen) {
  const watched = async (address, init) => {
    const answer = await fetch(address, init);
    const challenge = answer.headers.get('www-authenticate');
    if (answer.status === 401) seen.push(challenge);
    return answer;
  };
  const options = mode && { versionNegotiation: { mode } };
  const client = new Client({ name: 'sign_in', version: '1.0.0' }, options);
  // What its stream says when it ends is no matter here.
  client.onerror = () => {};
  const transport = new Transport(new URL(url), { authProvider: memory, fetch: watched });
  try {
    await client.connect(transport);
  } catch (error) {
    return { transport, error: thrown(error) };
  }
  return { client };
}

function thrown({ constructor, message }) {
  return { name: constructor.name, message };
}

async function signedIn(program, url, memory, seen) {
  const { transport, error } = await connected(program, url, memory, seen);
  if (!error) throw new Error('It is let in though nobody was asked.');
  const answer = await asks({ open: memory.address.href });
  const same = memory.states.includes(answer.state);
  await transport.finishAuth(program.finish(answer));
  const again = await connected(program, url, memory, seen);
  if (again.error) throw new Error(JSON.stringify(again.error));
  return { client: again.client, error, same };
}

async function sum(client) {
  return (await client.callTool(ADD)).structuredContent;
}

async function comesOfIt(name, program, url) {
  const seen = [];
  const memory = new Memory(name);
  const first = await signedIn(program, url, memory, seen);
  const { client } = first;
  const { tools } = await client.listTools();
  const added = await sum(client);

  const before = memory.kept;
  memory.kept = { ...before, access_token: `mcp_at_${'x'.repeat(43)}` };
  const refreshed = {
    added: await sum(client),
    key: memory.kept.access_token !== before.access_token,
    refresh: memory.kept.refresh_token !== before.refresh_token,
  };

  await asks({ end: name });
  seen.length = 0;
  let next;
  try {
    next = { returned: await sum(client) };
  } catch (error) {
    next = thrown(error);
  }
  const ended = { next, kept: memory.kept ?? null, seen: [...seen] };
  await client.close();

  const second = await signedIn(program, url, memory, seen);
  const anew = { added: await sum(second.client), same: second.same };
  await second.client.close();
  return {
    refused: first.error,
    same: first.same,
    listed: tools.length,
    added,
    refreshed,
    ended,
    anew,
    registered: memory.registered,
  };
}

const report = {};
for (const [name, program] of Object.entries(PROGRAMS)) {
  report[name] = await comesOfIt(name, program, URL_OF_SERVER);
}
process.stdout.write(`${JSON.stringify({ report })}\n`);
process.exit(0);
