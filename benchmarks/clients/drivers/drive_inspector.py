"""The command line of the MCP Inspector: each request is a connection."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

from driving import headers, main
from programs import ran

NEEDED = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")


class Connection:
    def __init__(self, job):
        self.job = job

    async def _asked(self, method, *options):
        written, beside = await ran(
            self.job,
            "mcp-inspector",
            "--cli",
            *_server(self.job),
            *("--format", "json", "--method", method, *options),
        )
        try:
            return json.loads(written)["result"]
        except (ValueError, KeyError):
            raise RuntimeError(_sentence(beside or written)) from None

    async def tools(self):
        return (await self._asked("tools/list"))["tools"]

    async def call(self, name, arguments):
        given = ("--tool-args-json", json.dumps(arguments))
        return await self._asked("tools/call", "--tool-name", name, *given)

    async def read(self, uri):
        return await self._asked("resources/read", "--uri", uri)

    async def prompt(self, name, arguments):
        pairs = [f"{key}={value}" for key, value in arguments.items()]
        named = ("--prompt-name", name)
        return await self._asked("prompts/get", *named, "--prompt-args", *pairs)


def _server(job):
    if job["transport"] == "stdio":
        # It gives a server nothing else of the environment.
        given = [f"-e{name}={job['env'][name]}" for name in NEEDED]
        return [*job["command"], *given]
    options = [f"{name}: {value}" for name, value in headers(job).items()]
    shown = [part for each in options for part in ("--header", each)]
    transport = {"http": "http", "sse": "sse"}[job["transport"]]
    return [job["url"], "--transport", transport, *shown]


def _sentence(written):
    """Return the message of the JSON that it writes for an error."""
    try:
        return json.loads(written)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return written


@asynccontextmanager
async def connect(job):
    yield Connection(job)


main(connect)
