// Calls a tool as a program with a key of its own.
//
//     node program_key.mjs http://127.0.0.1:8000/mcp http://127.0.0.1:8000 key_1234abcd key.pem

import { readFileSync } from 'node:fs';

import {
  Client,
  PrivateKeyJwtProvider,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';

const [url, expectedIssuer, clientId, file] = process.argv.slice(2);
const privateKey = readFileSync(file, 'utf8');
const given = { clientId, privateKey, algorithm: 'RS256', expectedIssuer };
const authProvider = new PrivateKeyJwtProvider(given);
const client = new Client({ name: 'program', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
const { tools } = await client.listTools();
const { structuredContent } = await client.callTool({ name: 'drill_add', arguments: { a: 20, b: 22 } });
await client.close();
process.stdout.write(JSON.stringify({ listed: tools.length, structuredContent }));
