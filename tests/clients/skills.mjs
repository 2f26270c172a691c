// Reads all skills of a server with the TypeScript SDK, which verifies each file.
//
//     node skills.mjs URL REVISION < DOCUMENTS
//
// The documents are a JSON list of pairs: frontmatter, and the SKILL.md that has it.
// It prints the files by skill, the children of folders, and the documents that npm's
// `yaml` reads as something else.

import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { parse } from 'yaml';

const [url, revision, documents] = process.argv.slice(2);
const differing = JSON.parse(readFileSync(documents, 'utf8')).filter(
  ([frontmatter, text]) =>
    !isDeepStrictEqual(parse(text.slice(4).split('\n---\n')[0]), frontmatter),
);
const mode = revision === '2026-07-28' ? { pin: revision } : 'legacy';
const client = new Client(
  { name: 'skills', version: '1.0' },
  { versionNegotiation: { mode } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const skills = new SkillsClient(client);
const listing = await skills.list();
const files = {};
for (const listed of listing.skills) {
  const { skill } = await skills.get(listed.uri);
  for (const { uri } of skill.resources) {
    const file = await skills.read(skill, uri);
    files[uri] = [file.verified, file.bytes.length];
  }
}
const root = listing.skills[0].uri.replace('/SKILL.md', '');
const { resources } = await skills.readDirectory(`${root}/references`);
const supported = [skills.supported, skills.directoryRead];
const version = client.getNegotiatedProtocolVersion();
await client.close();
console.log(
  JSON.stringify({
    version,
    supported,
    invalid: listing.invalid,
    files,
    children: resources.map((each) => each.name),
    differing,
  }),
);
