// Drives an endpoint with `@modelcontextprotocol/sdk`, which knows the stateful era only.
//
//     node sdk_v1.mjs http://127.0.0.1:8000/mcp

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
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

import { CAPABILITIES, run } from './scenarios.mjs';

const HEARD = [
  ElicitationCompleteNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
];

let transport;

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
    transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
  },
  call: (client, params, options) => client.callTool(params, undefined, options),
  revision: () => transport.protocolVersion,
};

await run(adapter, process.argv[2]);
