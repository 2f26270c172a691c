// Subscribes with `@ai-sdk/mcp`, and prints as JSON what came of it.
//
//     node ai_sdk_events.mjs URL TOKEN FOLDER
//
// The receiver has the certificate of the folder. The secret is another one after the first event.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createMCPClient, experimental_createMCPEventWebhook } from '@ai-sdk/mcp';

const [url, token, folder] = process.argv.slice(2);
const rows = new Map();
const store = {
  get: async key => rows.get(key),
  getById: async id => [...rows.values()].find(row => row.id === id),
  set: async row => void rows.set(row.key, row),
  update: async (key, patch) => void rows.set(key, { ...rows.get(key), ...patch }),
  delete: async key => void rows.delete(key),
};
const report = { posts: [], events: [], statuses: [] };
let wake = () => {};
const receive = experimental_createMCPEventWebhook({
  store,
  onEvent: ({ event }) => { report.events.push(event.data.number); wake(); },
  onError: error => { report.error ??= String(error.message); },
});
const options = ['key', 'certificate'].map(name => readFileSync(`${folder}/${name}.pem`));
const server = createServer({ key: options[0], cert: options[1] }, async (request, answer) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const target = `https://localhost${request.url}`;
  const { method, headers } = request;
  const reply = await receive(new Request(target, { method, headers, body }));
  report.posts.push(JSON.parse(body).type ?? 'event');
  report.statuses.push(reply.status);
  answer.writeHead(reply.status, Object.fromEntries(reply.headers));
  answer.end(Buffer.from(await reply.arrayBuffer()));
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const events = async count => {
  while (report.events.length < count) await new Promise(resolve => { wake = resolve; });
};

const client = await createMCPClient({
  transport: { type: 'http', url, headers: { Authorization: `Bearer ${token}` } },
  experimental_events: { store },
});
const own = client.experimental_events;
report.listed = (await own.list()).events.map(each => [each.name, each.delivery]);
const delivery = { mode: 'webhook', url: `https://localhost:${server.address().port}/hook?a=b` };
const first = await own.subscribe({ name: 'drill.happened', arguments: { lane: 'a' }, delivery });
const [key] = rows.keys();
await events(1);
const secret = `whsec_${randomBytes(48).toString('base64')}`;
await store.update(key, { delivery: { ...rows.get(key).delivery, secret } });
const second = await own.refresh({ key });
report.sameId = first.id === second.id;
await events(report.events.length + 2);
await own.unsubscribe({ key });
await new Promise(resolve => setTimeout(resolve, 1_000));
report.left = rows.size;
await client.close();
server.closeAllConnections();
server.close();
console.log(JSON.stringify(report));
