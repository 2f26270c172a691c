// Calls a tool with `@modelcontextprotocol/client`, and prints the result as JSON.
//
//     node call.mjs http://127.0.0.1:8000/mcp drill_add '{"a": 20, "b": 22}' [TOKEN]

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, name, given, token] = process.argv.slice(2);

const headers = token ? { Authorization: `Bearer ${token}` } : {};
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers },
});
const client = new Client(
  { name: 'call', version: '1.0.0' },
  { versionNegotiation: { mode: 'auto' } },
);
await client.connect(transport);
const { tools } = await client.listTools();
const listed = tools.some((tool) => tool.name === name);
const result = await client.callTool({ name, arguments: JSON.parse(given) });
await client.close();
process.stdout.write(JSON.stringify({ listed, result }));
