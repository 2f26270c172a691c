"""The clients of MCP that people use: one table for pages and commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from django.conf import settings
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

from mcp_app.account.client_formats import (
    TOKEN,
    ClientProgram,
    JsonClient,
    TomlClient,
    cursor_link,
    quoted_literal,
    vscode_link,
)
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models.tokens import Secret
from mcp_app.protocol.revisions import LATEST

if TYPE_CHECKING:
    from mcp_app.interface.definitions import Label


# -- addresses -------------------------------------------------------------------------


def server_name(slug: str) -> str:
    """Return a name that distinguishes this site's server from others."""
    site = str(settings.ROOT_URLCONF).partition(".")[0].replace("_", "-")
    return site if slug == DEFAULT_SLUG else f"{site}-{slug}"


# -- client configs --------------------------------------------------------------------

# When you check an entry with its client again, set its `verified` to that month.
OCTOBER_2026: Final = (2026, 10)
NOVEMBER_2026: Final = (2026, 11)


def command_line(name: str, url: str, token: str) -> str:
    """Return the command that adds a server at a URL to Claude Code."""
    line = shlex.join(["claude", "mcp", "add", "--transport", "http", name, url])
    # Double quotes also work on Windows; no token contains one.
    return f'{line} --header "Authorization: Bearer {token}"' if token else line


PYTHON: Final = """\
import asyncio

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL = %s
HEADERS = %s


async def main():
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as client,
    ):
        print(%s)


asyncio.run(main())
"""
LISTING: Final = "[tool.name for tool in (await client.list_tools()).tools]"
TYPESCRIPT: Final = """\
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const url = new URL(%s);
const headers = %s;
const client = new Client(
  { name: 'first-look', version: '1.0.0' },
  { versionNegotiation: { mode: 'auto' } },
);
const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } });
await client.connect(transport);
const { tools } = await client.listTools();
console.log(tools.map((tool) => tool.name));
await client.close();
"""


def python_program(url: str, token: str, expression: str) -> str:
    """Return a program that connects to a URL and prints the value of an expression.

    The expression may use `client` and `await`.
    """
    return PYTHON % (*_url_and_headers(url, token), expression)


def _url_and_headers(url: str, token: str) -> tuple[str, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return quoted_literal(url), json.dumps(headers, ensure_ascii=False)


def _curl_command(_name: str, url: str, token: str) -> str:
    prefix, client = "io.modelcontextprotocol", {"name": "curl", "version": "1"}
    meta = {
        f"{prefix}/protocolVersion": LATEST.version,
        f"{prefix}/clientInfo": client,
        f"{prefix}/clientCapabilities": {},
    }
    call = {"id": 1, "method": "tools/list", "params": {"_meta": meta}}
    request = {"jsonrpc": "2.0", **call}
    headers = [
        *([f"Authorization: Bearer {token}"] if token else []),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {LATEST.version}",
        "Mcp-Method: tools/list",
    ]
    lines = [
        f"curl --silent --show-error {shlex.quote(url)}",
        *(f"--header {shlex.quote(each)}" for each in headers),
        f"--data {shlex.quote(json.dumps(request))}",
    ]
    return " \\\n  ".join(lines) + "\n"


_INTO_FILE: Final = _("Put this into %(place)s in your project.")

CLIENTS: Final[Mapping[str, ClientProgram]] = {
    "claude-code": JsonClient(
        title="Claude Code",
        steps=(
            _("Paste this line into a terminal, in the folder of your project."),
            _("Or put the file into the folder: it is for all who work there."),
        ),
        check=_("Type /mcp in Claude Code: %(name)s must say “connected”."),
        verified=NOVEMBER_2026,
        file=".mcp.json",
        line=command_line,
        stdio={"type": "stdio"},
        http={"type": "http"},
    ),
    "claude": ClientProgram(
        title="Claude",
        steps=(
            _("In Claude, in the browser or on the desktop, open Customize."),
            _("Below Connectors press “+”, then “Add custom connector”."),
            _("Paste the address."),
            _("Press “Connect”. If this site asks, sign in and allow it."),
        ),
        check=_("“Configure” at the connector lists the tools."),
        verified=NOVEMBER_2026,
        signs_in=True,
    ),
    "claude-desktop": JsonClient(
        title="Claude Desktop",
        steps=(
            _("Open Settings, Developer, Edit Config. Put this into the file."),
            _(
                "Restart Claude Desktop. It starts mcp-remote, a program of others that"
                " sends the token: Node.js must be installed."
            ),
        ),
        check=_("Settings, Developer lists %(name)s: it must be running."),
        verified=NOVEMBER_2026,
        elsewhere=_("claude_desktop_config.json (Settings, Developer, Edit Config)"),
        bridge=("npx", "-y", "mcp-remote"),
    ),
    "chatgpt": ClientProgram(
        title="ChatGPT",
        steps=(
            _("In ChatGPT, in the browser, open chatgpt.com/plugins."),
            _("Press “+”, then “Add custom MCP server”, and paste the address."),
            _(
                "Choose OAuth (or no authentication, if the server is public), and"
                " create the plugin. If this site asks, sign in and allow it."
            ),
        ),
        check=_("Your plugins list %(name)s."),
        verified=NOVEMBER_2026,
        signs_in=True,
    ),
    "cursor": JsonClient(
        title="Cursor",
        steps=(_("Press the button, or put this into %(place)s in your project."),),
        token_steps=(
            _("After the button, replace YOUR-TOKEN in Cursor: a link has no token."),
        ),
        check=_("The MCP part of Cursor's settings shows %(name)s with its tools."),
        verified=NOVEMBER_2026,
        file=".cursor/mcp.json",
        link=cursor_link,
    ),
    "vscode": JsonClient(
        title="VS Code",
        steps=(_("Press the button, or put this into %(place)s in your project."),),
        token_steps=(
            _("VS Code asks for the token once, and keeps it outside of the file."),
        ),
        check=_(
            "“MCP: List Servers” in the Command Palette: %(name)s must be running."
        ),
        verified=NOVEMBER_2026,
        file=".vscode/mcp.json",
        root="servers",
        stdio={"type": "stdio"},
        http={"type": "http"},
        link=vscode_link,
        asks=True,
    ),
    "gemini": JsonClient(
        title="Gemini CLI",
        steps=(_INTO_FILE,),
        check=_("“gemini mcp list” must say that %(name)s is connected."),
        verified=NOVEMBER_2026,
        file=".gemini/settings.json",
        url="httpUrl",
    ),
    "windsurf": JsonClient(
        title="Windsurf",
        steps=(
            _("Open Settings, Cascade, MCP Servers, and put this into %(place)s."),
            _("Press “Refresh” there."),
        ),
        check=_("The same settings must show %(name)s with its tools."),
        verified=OCTOBER_2026,
        elsewhere="~/.codeium/windsurf/mcp_config.json",
        url="serverUrl",
    ),
    "zed": JsonClient(
        title="Zed",
        steps=(_INTO_FILE,),
        check=_("Settings, AI, MCP Servers: a green dot must be beside %(name)s."),
        verified=NOVEMBER_2026,
        file=".zed/settings.json",
        root="context_servers",
    ),
    "codex": TomlClient(
        title="Codex",
        steps=(_("Put this into %(place)s."),),
        check=_("Start Codex, and type /mcp: it must list %(name)s with its tools."),
        verified=NOVEMBER_2026,
        elsewhere="~/.codex/config.toml",
        root="mcp_servers",
    ),
    "python": ClientProgram(
        title="Python",
        steps=(
            _("Install the SDK: pip install mcp"),
            _("Put this into %(place)s, and run it: python %(place)s"),
        ),
        check=_("It must print the names of the tools."),
        verified=NOVEMBER_2026,
        elsewhere="first_look.py",
        write=lambda _name, url, token: python_program(url, token, LISTING),
    ),
    "typescript": ClientProgram(
        title="TypeScript",
        steps=(
            _("Install the SDK: npm install @modelcontextprotocol/client"),
            _("Put this into %(place)s, and run it: node %(place)s"),
        ),
        check=_("It must print the names of the tools."),
        verified=NOVEMBER_2026,
        elsewhere="first-look.mjs",
        write=lambda _name, url, token: TYPESCRIPT % _url_and_headers(url, token),
    ),
    "curl": ClientProgram(
        title="curl",
        steps=(_("Paste this into a terminal of Linux or macOS."),),
        check=_("It must print the list of tools, as JSON."),
        verified=NOVEMBER_2026,
        elsewhere=_("a terminal"),
        write=_curl_command,
    ),
}
"""The clients, by their names on the command line."""


# -- guides ----------------------------------------------------------------------------


Guide: TypeAlias = Mapping[str, Any]
"""What a page says about a client and a server.

`line`, `text` and `link` are "" if there is none. `line` and `text` may contain the
token; `link` never does.
"""


@sensitive_variables()
def connection_guide(
    key: str, slug: str, url: str, *, token: str = "", takes_token: bool
) -> Guide:
    """Return the guide to connect a client to a server at a URL.

    If `takes_token` is true and `token` is empty, the texts have a placeholder.
    """
    client, name = CLIENTS[key], server_name(slug)
    token_text = (token or TOKEN) if takes_token else ""
    steps = [*client.steps, *(client.token_steps if takes_token else ())]
    line = client.line(name, url, token_text) if client.line else ""
    link = client.link(name, url, TOKEN if takes_token else "") if client.link else ""

    def fill_label(text: Label) -> str:
        return str(text) % {"name": name, "place": client.place_for_people}

    return {
        "key": key,
        "title": client.title,
        "steps": [fill_label(step) for step in steps],
        "line": Secret(line),
        "text": Secret(client.http_text(name, url, token=token_text)),
        "place": client.place_for_people,
        "link": link,
        "check": fill_label(client.check),
        "month": client.month_checked,
        "signs_in": client.signs_in,
    }
