// Signs in with ID-JAGs of a company, with the secret by Basic, then in the form.
//
//     node company.mjs http://127.0.0.1:8000/mcp http://127.0.0.1:8000
//
// `SECRET` is that of the client "claude"; `BASIC` and `POST` are the ID-JAGs.

import {
  Client,
  CrossAppAccessProvider,
  StreamableHTTPClientTransport,
  discoverOAuthServerInfo,
  exchangeJwtAuthGrant,
} from '@modelcontextprotocol/client';

const [url, expectedIssuer] = process.argv.slice(2);
const { SECRET, BASIC, POST } = process.env;
const claude = { clientId: 'claude', clientSecret: SECRET };
const ADD = { name: 'drill_add', arguments: { a: 20, b: 22 } };
const asked = [];

async function used(authProvider) {
  const client = new Client({ name: 'claude', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
  const { tools } = await client.listTools();
  const { structuredContent } = await client.callTool(ADD);
  await client.close();
  return [tools.length > 1, structuredContent];
}

function assertion({ authorizationServerUrl, resourceUrl }) {
  asked.push(authorizationServerUrl, resourceUrl);
  return BASIC;
}

const basic = await used(new CrossAppAccessProvider({ ...claude, assertion, expectedIssuer }));
const { authorizationServerMetadata: site } = await discoverOAuthServerInfo(url);
const given = { ...claude, tokenEndpoint: site.token_endpoint, jwtAuthGrant: POST };
const tokens = await exchangeJwtAuthGrant({ ...given, authMethod: 'client_secret_post' });
const post = await used({ token: async () => tokens.access_token });
process.stdout.write(JSON.stringify({ asked, basic, post }));
