// Subscribes to events with `@ai-sdk/mcp`, as it is told.
//
//     node events.mjs URL TOKEN PORT FOLDER
//
// It serves its webhook on this port, with the certificate in the folder.  Each line on
// standard input names what to do, with its options, as JSON; the answer is a line.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';

import { createMCPClient, experimental_createMCPEventWebhook } from '@ai-sdk/mcp';

const [url, token, port, folder] = process.argv.slice(2);
const callback = `https://localhost:${port}/hook`;
const saved = new Map();
const store = {
  get: async (key) => saved.get(key),
  getById: async (id) => [...saved.values()].find((each) => each.id === id),
  set: async (subscription) => void saved.set(subscription.key, subscription),
  update: async (key, patch) => void saved.set(key, { ...saved.get(key), ...patch }),
  delete: async (key) => void saved.delete(key),
};
const events = [];
const errors = [];
const ended = [];
const webhook = experimental_createMCPEventWebhook({
  store,
  onEvent: async ({ event }) => void events.push(event),
  onTerminated: async ({ termination }) => void ended.push(termination.error),
  onError: (error) => errors.push(String(error)),
});

const read = (name) => readFileSync(`${folder}/${name}.pem`);
const server = createServer(
  { cert: read('certificate'), key: read('key') },
  async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const { method, headers } = request;
    const address = `https://localhost:${port}${request.url}`;
    const answer = await webhook(
      new Request(address, { method, headers, body: Buffer.concat(parts) }),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(await answer.text());
  },
);
await new Promise((listening) => server.listen(port, '127.0.0.1', listening));

const headers = { Authorization: `Bearer ${token}` };
const transport = { type: 'http', url, headers };
const client = await createMCPClient({ transport, experimental_events: { store } });

const WORK = {
  list: async () => (await client.experimental_events.list()).events,
  subscribe: (options) =>
    client.experimental_events.subscribe({
      ...options,
      delivery: { mode: 'webhook', url: callback },
    }),
  refresh: ({ id }) => client.experimental_events.refresh({ id }),
  // The client has nothing for that: it sends what is stored.
  rotate: async ({ id, secret }) => {
    const { key, delivery } = await store.getById(id);
    await store.update(key, { delivery: { ...delivery, secret } });
    return client.experimental_events.refresh({ id });
  },
  unsubscribe: async ({ id }) => {
    await client.experimental_events.unsubscribe({ id });
    return saved.size;
  },
  heard: async () => ({ events, errors, ended }),
};
for await (const line of createInterface({ input: process.stdin })) {
  const { work, ...options } = JSON.parse(line);
  let answer;
  try {
    answer = { result: await WORK[work](options) };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  console.log(JSON.stringify(answer));
}
process.exit(0);
