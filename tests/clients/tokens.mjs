// Shows access tokens to an endpoint with both TypeScript SDKs, and says what came of it.
//
//     node tokens.mjs
//
// The first line on standard input is a JSON object: `url`, `shown` (tokens by a name,
// empty where none is shown), `living` (a good one for each program) and `seldom` (a tool
// that may not be called often).  When all have
// something open by that, a line is written; the next line on standard input says that
// the tokens were revoked.  Then the report is written, as JSON.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport as SSE1 } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  Client as Client2,
  SSEClientTransport as SSE2,
  StreamableHTTPClientTransport as HTTP2,
} from '@modelcontextprotocol/client';

const PATIENCE_MS = 30_000;
const LOOK_MS = 20;
const INFO = { name: 'tokens', version: '1.0.0' };
const ADD = { name: 'drill_add', arguments: { a: 20, b: 22 } };
const SLEEP = { name: 'drill_sleep', arguments: { seconds: 600 } };

const legacy = { versionNegotiation: { mode: 'legacy' } };
const auto = { versionNegotiation: { mode: 'auto' } };
const PROGRAMS = {
  'sdk_v1': { Client: Client1, Transport: HTTP1 },
  'sdk_v1 on SSE': { Client: Client1, Transport: SSE1, path: '/sse' },
  'sdk_v2 stateful': { Client: Client2, Transport: HTTP2, options: legacy },
  'sdk_v2 stateless': { Client: Client2, Transport: HTTP2, options: auto, listens: true },
  'sdk_v2 on SSE': { Client: Client2, Transport: SSE2, options: legacy, path: '/sse' },
};

// A client, and what its requests were answered.
async function connected({ Client, Transport, options, path = '' }, url, token) {
  const seen = [];
  const watched = async (address, init) => {
    const answer = await fetch(address, init);
    const { status, headers } = answer;
    const challenge = headers.get('www-authenticate');
    seen.push({ method: init?.method ?? 'GET', status, challenge });
    return answer;
  };
  const client = new Client(INFO, options);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const where = new URL(url + path);
  const transport = new Transport(where, { requestInit: { headers }, fetch: watched });
  const state = { client, seen, faults: [] };
  client.onerror = (error) => state.faults.push(thrown(error));
  try {
    await client.connect(transport);
  } catch (error) {
    state.error = thrown(error);
  }
  return state;
}

function thrown(error) {
  const { name, code, status, message } = error;
  return { name, code: code ?? null, status: status ?? null, message, text: error.data?.text ?? null };
}

async function outcome(promise) {
  const late = sleep(PATIENCE_MS, { late: true }, { ref: false });
  const said = promise.then(
    (returned) => ({ returned }),
    (error) => ({ thrown: thrown(error) }),
  );
  return Promise.race([said, late]);
}

async function eventually(condition) {
  for (const end = Date.now() + PATIENCE_MS; !condition(); await sleep(LOOK_MS)) {
    if (Date.now() > end) throw new Error(`It never came true: ${condition}`);
  }
}

async function shows(program, url, token) {
  const { client, seen, error } = await connected(program, url, token);
  if (error) return { error, seen };
  const { tools } = await client.listTools();
  const { structuredContent } = await client.callTool(ADD);
  await client.close();
  return { listed: tools.length, structuredContent };
}

async function opens(program, url, token) {
  const { error, ...state } = await connected(program, url, token);
  if (error) throw new Error(JSON.stringify(error));
  const { client, seen } = state;
  const listens = program.listens ? await client.listen({ toolsListChanged: true }) : null;
  const streams = () => seen.some(({ method, status }) => method === 'GET' && status === 200);
  if (!listens) await eventually(streams);
  const running = outcome(client.callTool(SLEEP));
  await sleep(200);
  return { ...state, listens, running, before: seen.length };
}

// A stream of HTTP+SSE that ended is opened again, and calls wait for that.
async function isRevoked(program, { client, seen, faults, listens, running, before }) {
  const call = program.path ? null : await running;
  const next = await outcome(client.callTool(ADD));
  const again = () => seen.slice(before).some(({ method }) => method === 'GET');
  if (!listens) await eventually(again);
  const ended = listens ? await outcome(listens.closed) : null;
  await client.close();
  return { call, next, ended, faults, seen: seen.slice(before) };
}

// Calls until it is told to wait, waits as long as it reads, and calls once more.
async function waits(program, url, token, tool) {
  const { client, error } = await connected(program, url, token);
  if (error) throw new Error(JSON.stringify(error));
  const calls = [];
  do {
    calls.push(await client.callTool({ name: tool, arguments: {} }));
  } while (!calls.at(-1).isError && calls.length < 100);
  const [{ text }] = calls.at(-1).content;
  const [, seconds] = /Wait (\d) seconds?\./.exec(text) ?? [];
  await sleep(1000 * Number(seconds));
  const after = await client.callTool({ name: tool, arguments: {} });
  await client.close();
  return { text, refused: after.isError === true };
}

async function each(made) {
  const pairs = Object.entries(PROGRAMS).map(async ([name, program]) => [
    name,
    await made(program, name),
  ]);
  return Object.fromEntries(await Promise.all(pairs));
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { url, shown, living, seldom } = JSON.parse((await input.next()).value);
const refused = {};
for (const [kind, token] of Object.entries(shown)) {
  refused[kind] = await each((program) => shows(program, url, token));
}
const limited = {};
// One after another: it is one person.
for (const name of ['sdk_v1', 'sdk_v2 stateful', 'sdk_v2 stateless']) {
  limited[name] = await waits(PROGRAMS[name], url, shown.good, seldom);
}
const open = await each((program, name) => opens(program, url, living[name]));
process.stdout.write('open\n');
await input.next();
const revoked = await each((program, name) => isRevoked(program, open[name]));
process.stdout.write(`${JSON.stringify({ refused, revoked, limited })}\n`);
process.exit(0);
