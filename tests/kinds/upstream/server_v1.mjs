// A server of others with sessions, on `@modelcontextprotocol/sdk`: node server_v1.mjs PORT

import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { z } from 'zod';

const sessions = new Map();
const say = (text) => ({ content: [{ type: 'text', text }] });

async function begin() {
  const server = new McpServer({ name: 'Tracker', version: '9' });
  let count = 0;
  server.registerTool('count', {}, () => say(`${(count += 1)}/${sessions.size}`));
  const outputSchema = { sum: z.number() };
  const add = () => ({ ...say('sum'), structuredContent: { sum: 2 } });
  server.registerTool('add', { outputSchema }, add);
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await server.connect(transport);
  return transport;
}

const app = express().use(express.json());
app.all('/mcp', async (request, response) => {
  const there = sessions.get(request.headers['mcp-session-id']);
  // The examples of the SDK answer 400 in a lost session, too.
  if (!there && request.body?.method !== 'initialize') {
    const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
    return response.status(400).json({ jsonrpc: '2.0', error, id: null });
  }
  await (there ?? (await begin())).handleRequest(request, response, request.body);
});
app.listen(Number(process.argv[2]), '127.0.0.1');
