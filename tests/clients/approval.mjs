// Calls a tool as a task with `@modelcontextprotocol/sdk`, and prints its status, what
// is said of it, and after the end its status and its result.
//
//     node approval.mjs http://127.0.0.1:8000/mcp TOKEN approve|deny|lapse|withdraw

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, token, how] = process.argv.slice(2);
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
const client = new Client({ name: 'approval', version: '1' }, { capabilities: { tasks: {} } });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
// It knows from the list what can be a task.
await client.listTools();
const { tasks } = client.experimental;
let id;
for await (const { task } of tasks.callToolStream({ name: 'pay', arguments: { amount: 5 } })) {
  if (id || !task) continue;
  id = task.taskId;
  console.log(JSON.stringify([task.status, task.statusMessage]));
  if (how === 'withdraw') await tasks.cancelTask(id);
}
const { status } = await tasks.getTask(id);
const ended = await tasks.getTaskResult(id, CallToolResultSchema).catch((error) => error);
console.log(JSON.stringify([status, ended.message ?? ended.content[0].text]));
await client.close();
