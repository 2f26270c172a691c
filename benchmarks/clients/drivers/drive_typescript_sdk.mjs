// The official TypeScript SDK, from 1.0 on.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { headers, main } from './driving.mjs';

async function transport(job) {
  if (job.transport === 'stdio') {
    const [command, ...args] = job.command;
    return new StdioClientTransport({ command, args, env: job.env });
  }
  const url = new URL(job.url);
  const requestInit = { headers: headers(job) };
  if (job.transport === 'sse') return new SSEClientTransport(url, await onSse(requestInit));
  // Old ones have no such module.
  const { StreamableHTTPClientTransport } = await import(
    '@modelcontextprotocol/sdk/client/streamableHttp.js'
  );
  return new StreamableHTTPClientTransport(url, { requestInit });
}

// The oldest ones take the class of the stream from the site, as a browser's.
async function onSse(requestInit) {
  try {
    globalThis.EventSource ??= (await import('eventsource')).default;
  } catch {
    return { requestInit };
  }
  return { requestInit, eventSourceInit: requestInit };
}

await main(async (job) => {
  const client = new Client({ name: 'clients', version: '1.0.0' }, { capabilities: {} });
  await client.connect(await transport(job));
  return {
    async tools() {
      const found = [];
      let cursor;
      do {
        const page = await client.listTools({ cursor });
        found.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor);
      return found;
    },
    call: (name, args) => client.callTool({ name, arguments: args }),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    close: () => client.close(),
  };
});
