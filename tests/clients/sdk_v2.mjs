// Drives an endpoint with `@modelcontextprotocol/client`, which knows both eras.
//
//     node sdk_v2.mjs http://127.0.0.1:8000/mcp stateful|stateless
//     node sdk_v2.mjs http://127.0.0.1:8000/mcp/sse stateful
//     node sdk_v2.mjs '["python", "manage.py", "mcp_stdio"]' stateful|stateless

import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { CAPABILITIES, program, run } from './scenarios.mjs';

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
  connect(client) {
    return client.connect(transportTo(url));
  },
  call: (client, params, options) => client.callTool(params, options),
  revision: (client) => client.getNegotiatedProtocolVersion(),
};

function transportTo(url) {
  const started = program(url);
  if (started) return new StdioClientTransport(started);
  if (url.endsWith('/sse')) return new SSEClientTransport(new URL(url));
  return new StreamableHTTPClientTransport(new URL(url));
}

await run(adapter, url);
