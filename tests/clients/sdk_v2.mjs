// Drives an endpoint with `@modelcontextprotocol/client`, which knows both eras.
//
//     node sdk_v2.mjs http://127.0.0.1:8000/mcp stateful|stateless

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { CAPABILITIES, run } from './scenarios.mjs';

const HEARD = [
  'notifications/elicitation/complete',
  'notifications/prompts/list_changed',
  'notifications/resources/updated',
  'notifications/tools/list_changed',
];

const MODES = { stateful: 'legacy', stateless: 'auto' };

const [url, era] = process.argv.slice(2);

const adapter = {
  name: `sdk_v2 ${era}`,
  era,
  make(person) {
    const client = new Client(
      { name: 'sdk_v2', version: '1.0.0' },
      { capabilities: CAPABILITIES, versionNegotiation: { mode: MODES[era] } },
    );
    client.setRequestHandler('elicitation/create', async (r) => person.elicit(r));
    client.setRequestHandler('sampling/createMessage', async () => person.sample());
    client.setRequestHandler('roots/list', async () => person.listRoots());
    client.setNotificationHandler('notifications/message', ({ params }) => {
      person.logged.push([params.level, params.data]);
    });
    for (const method of HEARD) {
      client.setNotificationHandler(method, (message) => {
        person.heard.push({ method, ...message });
      });
    }
    return client;
  },
  connect: (client) => client.connect(new StreamableHTTPClientTransport(new URL(url))),
  call: (client, params, options) => client.callTool(params, options),
  revision: (client) => client.getNegotiatedProtocolVersion(),
};

await run(adapter, url);
