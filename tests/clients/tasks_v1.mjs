// Calls tools as tasks with `@modelcontextprotocol/sdk`, as VS Code does (2025-11-25).
//
//     node tasks_v1.mjs http://127.0.0.1:8000/mcp

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const asked = [];
const client = new Client(
  { name: 'tasks_v1', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} }, tasks: {} } },
);
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  asked.push(params.message);
  return { action: 'accept', content: { confirm: true } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

async function follow(name, args) {
  const steps = [];
  for await (const each of client.experimental.tasks.callToolStream({ name, arguments: args })) {
    const said = each.task?.status ?? each.result?.content[0].text ?? 'an error';
    if (steps.at(-1) !== said) steps.push(said);
  }
  return steps;
}

// Who asks for no task waits; the client holds each answer against the tool's schema.
async function wait(name, args) {
  const texts = [];
  for (let call = { name, arguments: args }; call; ) {
    const [{ text }] = (await client.callTool(call)).content;
    texts.push(text);
    const task = text.match(/task='(.+)'/)?.[1];
    call = task && { name: 'get_task_result', arguments: { task, wait: 0.5 } };
  }
  return texts;
}

const { tools } = await client.listTools();
const report = {
  support: Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport])),
  computed: await follow('slow_compute', { seconds: 1.5, label: 'it' }),
  confirmed: await follow('confirm_delete', { filename: 'old.txt' }),
  waited: await wait('slow_compute', { seconds: 4, label: 'later' }),
  failed: await follow('failing_job', {}),
  asked,
};
await client.close();
console.log(JSON.stringify(report));
