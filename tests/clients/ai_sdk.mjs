// Connects with `@ai-sdk/mcp`, and prints as JSON what came of it.
//
//     node ai_sdk.mjs URL [TOKEN]

import { createMCPClient } from '@ai-sdk/mcp';

const [url, token] = process.argv.slice(2);
const headers = token ? { Authorization: `Bearer ${token}` } : {};
const report = {};
try {
  const client = await createMCPClient({ transport: { type: 'http', url, headers } });
  report.tools = Object.keys(await client.tools()).length;
  await client.close();
} catch (error) {
  report.error = String(error.message);
}
console.log(JSON.stringify(report));
