// @ai-sdk/mcp of Vercel: its client, and the tools that it makes.

import { createMCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport } from '@ai-sdk/mcp/mcp-stdio';

import { headers, main } from './driving.mjs';

function transport(job) {
  if (job.transport === 'stdio') {
    const [command, ...args] = job.command;
    return new Experimental_StdioMCPTransport({ command, args, env: job.env });
  }
  return { type: job.transport, url: job.url, headers: headers(job) };
}

await main(async (job) => {
  const client = await createMCPClient({ transport: transport(job) });
  let tools = {};
  return {
    async tools() {
      tools = await client.tools();
      return Object.keys(tools);
    },
    call: (name, args) => tools[name].execute(args, { toolCallId: '1', messages: [] }),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.experimental_getPrompt({ name, arguments: args }),
    close: () => client.close(),
  };
});
