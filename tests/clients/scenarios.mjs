// What a TypeScript client does with the fixture set, step by step.
//
// A program hands in an adapter for its SDK; the report says for each step what came
// back, or `{thrown}` with the code of the error.

import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 10_000;
const LOOK_MS = 20;
const WATCHED = 'test://watched-resource';
const STATIC_TEXT = 'test://static-text';

export const MODEL_SAYS = 'This is a test response from the client';
export const CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: {},
};

// The person behind a client: gives the answers one by one, and remembers.
class Person {
  answers = [];
  asked = [];
  visits = [];
  logged = [];
  heard = [];

  accept(...forms) {
    this.answers.push(...forms.map((content) => ({ action: 'accept', content })));
  }

  elicit({ params }) {
    this.asked.push(params.message);
    if (params.mode === 'url') this.visits.push(params);
    return this.answers.shift();
  }

  sample() {
    return {
      role: 'assistant',
      content: { type: 'text', text: MODEL_SAYS },
      model: 'test-model',
      stopReason: 'endTurn',
    };
  }

  listRoots() {
    return { roots: [{ uri: 'file:///test/root', name: 'Test Root' }] };
  }
}

async function eventually(condition) {
  for (const end = Date.now() + PATIENCE_MS; !condition(); await sleep(LOOK_MS)) {
    if (Date.now() > end) throw new Error(`It never came true: ${condition}`);
  }
}

async function everyPage(list, items) {
  const pages = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    pages.push(page[items]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return pages.flat();
}

const texts = (result) => result.content.map((block) => block.text).join('|');

async function code(promise) {
  try {
    return { returned: await promise };
  } catch (error) {
    return { thrown: error.code, data: error.data ?? null };
  }
}

// Steps of both eras.
const STEPS = {
  async negotiation({ client, adapter }) {
    return {
      revision: adapter.revision(client),
      named: Boolean(client.getServerVersion().name),
      capabilities: client.getServerCapabilities(),
    };
  },
  async tools({ client }) {
    const tools = await everyPage((page) => client.listTools(page), 'tools');
    return tools.map((tool) => tool.name);
  },
  async resources({ client }) {
    const found = await everyPage((page) => client.listResources(page), 'resources');
    return found.map((resource) => resource.uri);
  },
  async templates({ client }) {
    const { resourceTemplates } = await client.listResourceTemplates();
    return resourceTemplates.map((template) => template.uriTemplate);
  },
  async prompts({ client }) {
    const prompts = await everyPage((page) => client.listPrompts(page), 'prompts');
    return prompts.map((prompt) => prompt.name);
  },
  async content({ call }) {
    const found = {};
    for (const tool of [
      'test_simple_text',
      'test_image_content',
      'test_audio_content',
      'test_embedded_resource',
      'test_multiple_content_types',
      'test_resource_link',
    ]) {
      found[tool] = (await call(tool)).content;
    }
    return found;
  },
  async structured({ call }) {
    const result = await call('drill_add', { a: 20, b: 22 });
    return [texts(result), result.structuredContent];
  },
  async whoami({ call }) {
    return (await call('drill_whoami')).structuredContent;
  },
  async progress({ call }) {
    const progressed = [];
    const onprogress = ({ progress, total }) => progressed.push([progress, total]);
    const result = await call('drill_count', { n: 20, delay_ms: 5 }, { onprogress });
    return { said: texts(result), progressed };
  },
  async reconnecting({ call }) {
    return texts(await call('test_reconnection'));
  },
  async elicitation({ call, person }) {
    const said = [];
    for (const tool of ['drill_ask', 'drill_ask_sync', 'drill_ask_database']) {
      person.accept({ answer: `blue of ${tool}` });
      said.push(texts(await call(tool, { question: 'Which colour?' })));
    }
    return { said, asked: person.asked };
  },
  async refusal({ call, person }) {
    person.answers = [{ action: 'decline' }, { action: 'cancel' }];
    const question = { question: 'Which colour?' };
    const results = [
      await call('drill_ask', question),
      await call('drill_ask_sync', question),
    ];
    return results.map((result) => [result.isError, texts(result)]);
  },
  async visiting({ call, person }) {
    const said = [];
    for (const tool of ['drill_ask_url', 'drill_ask_url_sync']) {
      person.answers = ['accept', 'decline', 'cancel'].map((action) => ({ action }));
      for (const _ of [1, 2, 3]) said.push(texts(await call(tool)));
    }
    const visits = person.visits.map(({ mode, message, url }) => ({ mode, message, url }));
    return { said, visits };
  },
  async twice({ call, person, name }) {
    const question = `Asked twice by ${name}?`;
    person.accept({ answer: 'yes' }, { answer: 'again' });
    const said = texts(await call('drill_ask_twice', { question }));
    const lines = await call('drill_ledger', { key: question, seconds: 0 });
    return { said, lines: lines.structuredContent };
  },
  async defaults({ call, person }) {
    person.accept({
      name: 'Jane Smith',
      age: 25,
      score: 88,
      status: 'inactive',
      verified: false,
    });
    return texts(await call('test_elicitation_sep1034_defaults'));
  },
  async sampling({ call }) {
    return texts(await call('test_sampling', { prompt: 'Say something' }));
  },
  async roots({ call }) {
    return texts(await call('test_input_required_result_list_roots'));
  },
  async together({ call, person }) {
    person.accept({ name: 'Alice' });
    return texts(await call('test_input_required_result_multiple_inputs'));
  },
  async rounds({ call, person }) {
    person.accept({ name: 'Alice' }, { color: 'blue' });
    return texts(await call('test_input_required_result_multi_round'));
  },
  async askingPrompt({ client, person }) {
    person.accept({ context: 'test context' });
    const { messages } = await client.getPrompt({
      name: 'test_input_required_result_prompt',
    });
    return messages.map((message) => message.content.text);
  },
  async reading({ client }) {
    const found = {};
    for (const uri of [
      STATIC_TEXT,
      'test://static-binary',
      WATCHED,
      'test://template/123/data',
    ]) {
      found[uri] = (await client.readResource({ uri })).contents;
    }
    return found;
  },
  async prompting({ client }) {
    const found = {};
    for (const [name, given] of [
      ['test_simple_prompt', {}],
      ['test_prompt_with_arguments', { arg1: 'testValue1', arg2: 'testValue2' }],
      [
        'test_prompt_with_embedded_resource',
        { resourceUri: 'test://example-resource' },
      ],
      ['test_prompt_with_image', {}],
    ]) {
      const { messages } = await client.getPrompt({ name, arguments: given });
      found[name] = messages.map((message) => message.content);
    }
    return found;
  },
  async completion({ client }) {
    const { completion } = await client.complete({
      ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
      argument: { name: 'arg1', value: 'test' },
    });
    return completion.values;
  },
  async errors({ client, call }) {
    const uri = 'test://nonexistent-resource-for-conformance-testing';
    return {
      tool: await code(call('no_such_tool')),
      prompt: await code(client.getPrompt({ name: 'no_such_prompt' })),
      resource: await code(client.readResource({ uri })),
    };
  },
  async failures({ call }) {
    const results = [
      await call('test_error_handling'),
      await call('drill_fail', { kind: 'tool_error' }),
      await call('drill_fail', { kind: 'exception' }),
      await call('drill_add', { a: 1 }),
    ];
    return results.map((result) => [result.isError, texts(result)]);
  },
  async cancelling({ call }) {
    const found = [];
    for (const tool of ['drill_sleep', 'drill_sleep_sync']) {
      const controller = new AbortController();
      const { signal } = controller;
      const sleeping = code(call(tool, { seconds: 30 }, { signal }));
      await sleep(200);
      controller.abort('No longer wanted.');
      found.push('thrown' in (await sleeping));
    }
    found.push(texts(await call('drill_add', { a: 1, b: 1 })));
    return found;
  },
  async sideBySide({ call }) {
    const numbers = [...Array(20).keys()];
    const tool = (i) => (i % 2 ? 'drill_add' : 'drill_add_sync');
    const results = await Promise.all(
      numbers.map((i) => call(tool(i), { a: i, b: i })),
    );
    return results.map(texts);
  },
  async mirrored({ call }) {
    const said = [];
    for (const region of ['eu-west-1', 'Zürich', ' padded ', '']) {
      said.push(texts(await call('test_x_mcp_header', { region })));
    }
    return said;
  },
};

const STATEFUL_STEPS = {
  async ping({ client }) {
    return client.ping();
  },
  async logging({ client, call, person }) {
    await client.setLoggingLevel('warning');
    await call('drill_log', { level: 'info', text: 'too low' });
    await call('drill_log', { level: 'error', text: 'heard' });
    await client.setLoggingLevel('debug');
    await call('test_tool_with_logging');
    await eventually(() => person.logged.length >= 4);
    return person.logged;
  },
  async subscribing({ client, call, person }) {
    const touched = (uri) => () => person.heard.some((m) => m.params?.uri === uri);
    await client.subscribeResource({ uri: WATCHED });
    await client.subscribeResource({ uri: STATIC_TEXT });
    await call('drill_touch', { uri: WATCHED });
    await eventually(touched(WATCHED));
    await client.unsubscribeResource({ uri: WATCHED });
    person.heard = [];
    await call('drill_touch', { uri: WATCHED });
    await call('drill_touch', { uri: STATIC_TEXT });
    await eventually(touched(STATIC_TEXT));
    return { afterUnsubscribing: touched(WATCHED)() };
  },
  async identifiers({ call, person }) {
    const completed = () =>
      person.heard
        .filter((message) => message.method === 'notifications/elicitation/complete')
        .map((message) => message.params?.elicitationId ?? message.elicitationId);
    person.answers = [{ action: 'decline' }, { action: 'accept' }];
    await call('drill_ask_url');
    await call('drill_ask_url');
    await eventually(() => completed().length > 0);
    const [declined, accepted] = person.visits.map((visit) => visit.elicitationId);
    return {
      strings: [typeof declined, typeof accepted],
      different: declined !== accepted,
      onlyTheAccepted: completed().join() === accepted,
    };
  },
  async changes({ call, person }) {
    await call('test_trigger_tool_change');
    await call('test_trigger_prompt_change');
    const heard = (method) => person.heard.some((m) => m.method === method);
    await eventually(() => heard('notifications/tools/list_changed'));
    await eventually(() => heard('notifications/prompts/list_changed'));
    return true;
  },
};

const STATELESS_STEPS = {
  async identifiers({ call, person }) {
    person.answers = [{ action: 'accept' }];
    await call('drill_ask_url');
    return person.visits.map((visit) => 'elicitationId' in visit);
  },
  async logging({ call, person }) {
    await call('test_logging_tool');
    const silent = person.logged.length;
    const _meta = { 'io.modelcontextprotocol/logLevel': 'warning' };
    await call('drill_log', { level: 'info', text: 'too low' }, {}, _meta);
    await call('drill_log', { level: 'error', text: 'heard' }, {}, _meta);
    await eventually(() => person.logged.length >= 1);
    return { silent, logged: person.logged };
  },
  async listening({ client, call, person }) {
    const subscription = await client.listen({
      toolsListChanged: true,
      resourceSubscriptions: [WATCHED],
    });
    await call('test_trigger_prompt_change');
    await call('test_trigger_tool_change');
    await call('drill_touch', { uri: STATIC_TEXT });
    await call('drill_touch', { uri: WATCHED });
    const methods = () => person.heard.map((message) => message.method);
    await eventually(() => methods().includes('notifications/tools/list_changed'));
    await eventually(() => methods().includes('notifications/resources/updated'));
    await subscription.close();
    return {
      honored: subscription.honoredFilter,
      heard: [...new Set(methods())].sort(),
      uris: person.heard.flatMap((message) => message.params?.uri ?? []),
      closed: await subscription.closed,
    };
  },
};

const STEPS_OF = { stateful: STATEFUL_STEPS, stateless: STATELESS_STEPS };

async function outcome(step, context) {
  try {
    return await Promise.race([
      step(context),
      sleep(2 * PATIENCE_MS, { thrown: 'The step took too long.' }, { ref: false }),
    ]);
  } catch (error) {
    return { thrown: error.code ?? null, message: String(error.stack) };
  }
}

// The adapter has `name`, `era`, `make(person)`, `connect(client, url)`,
// `call(client, params, options)` and `revision(client)`.
// How the program is started that an endpoint names as a list, if it does.
export function program(endpoint) {
  if (!endpoint.startsWith('[')) return undefined;
  const [command, ...args] = JSON.parse(endpoint);
  return { command, args, env: process.env, stderr: 'inherit' };
}

export async function run(adapter, url) {
  const report = { steps: {}, faults: [] };
  const person = new Person();
  const client = adapter.make(person);
  client.onerror = (error) => report.faults.push(String(error));
  await adapter.connect(client, url);
  const call = (name, given, options, _meta) =>
    adapter.call(client, { name, arguments: given, _meta }, options);
  for (const [title, step] of Object.entries({ ...STEPS, ...STEPS_OF[adapter.era] })) {
    Object.assign(person, new Person());
    const context = { adapter, client, call, person, name: adapter.name };
    report.steps[title] = await outcome(step, context);
  }
  await client.close();
  process.stdout.write(JSON.stringify(report));
}
