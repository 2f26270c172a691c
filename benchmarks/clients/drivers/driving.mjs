// What all drivers in JavaScript share.  A driver calls `main` with a function that
// connects by a job, and gives a connection: `tools()`, `call(name, args)`, and perhaps
// `read(uri)`, `prompt(name, args)` and `close()`.  See driving.py, which says the same
// in Python, for jobs, for what is looked at, and for what is written.

import { createInterface } from 'node:readline';
import { writeSync } from 'node:fs';

const ADD = { a: 20, b: 22 };
const MARKS = {
  text: ['test_simple_text', 'This is a simple text response for testing.'],
  image: ['test_image_content', 'iVBORw0KGgo'],
  audio: ['test_audio_content', 'UklGRiYAAABXQVZF'],
  embedded: ['test_embedded_resource', 'This is an embedded resource content.'],
  link: ['test_resource_link', 'test://static-text'],
};
const READ = ['test://static-text', 'This is the content of the static text resource.'];
const PROMPT = ['test_prompt_with_arguments', { arg1: 'fish', arg2: 'fowl' }];
const PROMPTED = "arg1='fish', arg2='fowl'";
const ORDERED = 'This error was ordered by the caller.';
const STRUCTURED = '"structuredContent":{"result":42}';
const LONGEST = 2000;

const output = 1;
// What clients print would stand between the lines.
console.log = console.error;

export async function main(connect) {
  const job = JSON.parse(process.argv[2]);
  const report = { seen: {} };
  let connection;
  try {
    connection = await within(connect(job), job);
    await look(connection, job, report);
  } catch (error) {
    report.error = words(error);
  }
  say('REPORT', report);
  // How a client ends is not looked at: some wait for ever.
  await within(connection?.close?.(), job).catch(() => {});
  process.exit(0);
}

async function look(connection, job, report) {
  const { seen } = report;
  const outcome = async (promise) => {
    try {
      return (JSON.stringify(await within(promise, job)) ?? '').slice(0, LONGEST);
    } catch (error) {
      return words(error);
    }
  };
  const holds = (found, mark) => found.includes(mark) || found;
  report.tools = (await within(connection.tools(), job)).length;
  report.added = await outcome(connection.call('drill_add', ADD));
  seen.structured = report.added.includes(STRUCTURED);
  if (job.pause) {
    say('READY', report);
    await nextLine();
    report.after = await outcome(connection.call('drill_add', ADD));
    return;
  }
  if (!job.whole) return;
  const whoami = await outcome(connection.call('drill_whoami', {}));
  report.revision = whoami.match(/20\d\d-\d\d-\d\d/)?.[0] ?? '';
  for (const [kind, [tool, mark]] of Object.entries(MARKS)) {
    seen[kind] = holds(await outcome(connection.call(tool, {})), mark);
  }
  const failed = await outcome(connection.call('drill_fail', { kind: 'tool_error' }));
  seen.errors = holds(failed, ORDERED);
  if (connection.read) seen.resources = holds(await outcome(connection.read(READ[0])), READ[1]);
  if (connection.prompt) seen.prompts = holds(await outcome(connection.prompt(...PROMPT)), PROMPTED);
}

export const headers = ({ token }) => (token ? { Authorization: `Bearer ${token}` } : {});

async function within(promise, { patience_s: seconds }) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer after ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// What a person reads of an error.
function words(error) {
  return String(error?.message || error).slice(0, LONGEST);
}

async function nextLine() {
  const lines = createInterface({ input: process.stdin });
  await new Promise((resolve) => lines.once('line', resolve));
  lines.close();
}

function say(word, report) {
  writeSync(output, `${word} ${JSON.stringify(report)}\n`);
}
