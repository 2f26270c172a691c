// Drives an endpoint with `@modelcontextprotocol/sdk`, which knows the stateful era only.
//
//     node sdk_v1.mjs http://127.0.0.1:8000/mcp
//     node sdk_v1.mjs http://127.0.0.1:8000/mcp/sse
//     node sdk_v1.mjs '["python", "manage.py", "mcp_stdio"]'

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ElicitationCompleteNotificationSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, program, run } from './scenarios.mjs';

const HEARD = [
  ElicitationCompleteNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
];

let revision;

const adapter = {
  name: 'sdk_v1',
  era: 'stateful',
  make(person) {
    const client = new Client(
      { name: 'sdk_v1', version: '1.0.0' },
      { capabilities: CAPABILITIES },
    );
    client.setRequestHandler(ElicitRequestSchema, async (r) => person.elicit(r));
    client.setRequestHandler(CreateMessageRequestSchema, async () => person.sample());
    client.setRequestHandler(ListRootsRequestSchema, async () => person.listRoots());
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      person.logged.push([params.level, params.data]);
    });
    for (const schema of HEARD) {
      client.setNotificationHandler(schema, (message) => person.heard.push(message));
    }
    return client;
  },
  async connect(client, url) {
    const transport = transportTo(url);
    // Not every one keeps it where it can be read.
    const keep = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      revision = version;
      keep?.(version);
    };
    await client.connect(transport);
  },
  call: (client, params, options) => client.callTool(params, undefined, options),
  revision: () => revision,
};

function transportTo(url) {
  const started = program(url);
  if (started) return new StdioClientTransport(started);
  if (url.endsWith('/sse')) return new SSEClientTransport(new URL(url));
  return new StreamableHTTPClientTransport(new URL(url));
}

await run(adapter, process.argv[2]);
