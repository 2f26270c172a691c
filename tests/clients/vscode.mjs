// Connects to the servers of a file of VS Code, as VS Code would, and prints their tools.
//
//     TOKEN=mcp_... node vscode.mjs .vscode/mcp.json
//
// Each input that is hidden while it is typed gets the token.

import { readFileSync } from 'node:fs';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const { inputs = [], servers } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const typed = new Map(
  inputs
    .filter(({ type, password }) => type === 'promptString' && password)
    .map(({ id }) => [id, process.env.TOKEN]),
);
const filled = (text) => text.replace(/\$\{input:([^}]+)\}/g, (_, id) => typed.get(id));

const listed = {};
for (const [name, { type, url, headers = {} }] of Object.entries(servers)) {
  if (type !== 'http') throw new Error(`${name} is no server at an address: ${type}`);
  const sent = Object.entries(headers).map(([header, value]) => [header, filled(value)]);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: Object.fromEntries(sent) },
  });
  const client = new Client({ name: 'vscode', version: '1.0.0' });
  await client.connect(transport);
  listed[name] = (await client.listTools()).tools.map((tool) => tool.name);
  await client.close();
}
process.stdout.write(JSON.stringify(listed));
