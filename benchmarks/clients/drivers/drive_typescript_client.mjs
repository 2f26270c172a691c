// The client of the TypeScript SDK 2.x, as it is without options.

import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { headers, main } from './driving.mjs';

function transport(job) {
  if (job.transport === 'stdio') {
    const [command, ...args] = job.command;
    return new StdioClientTransport({ command, args, env: job.env });
  }
  const kinds = { http: StreamableHTTPClientTransport, sse: SSEClientTransport };
  return new kinds[job.transport](new URL(job.url), { requestInit: { headers: headers(job) } });
}

await main(async (job) => {
  const client = new Client({ name: 'clients', version: '1.0.0' });
  await client.connect(transport(job));
  return {
    tools: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    close: () => client.close(),
  };
});
