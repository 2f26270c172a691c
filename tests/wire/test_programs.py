"""Programs that are started by their own command lines are checked."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.drill.running import ROOT
from tests.wire.programs import wire_checked

# A site whose application answers everything with this text.
SITE = """
import asyncio, sys
import mcp_app.asgi

async def application(scope, receive, send):
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": sys.argv[1].encode()})

mcp_app.asgi.Switch = lambda site, consumer: application
sys.modules["mcp_app.transports.http.consumer"] = type(sys)("consumer")
sys.modules["mcp_app.transports.http.consumer"].MCPConsumer = object
scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"",
         "headers": []}
body = {"type": "http.request", "body": b'{"jsonrpc":"2.0","id":1,"method":"ping"}'}

async def receive():
    return body

async def send(message):
    return

asyncio.run(mcp_app.asgi.application(None)(scope, receive, send))
"""


def sent(text: str) -> None:
    """Let a program of its own send this as the answer to a ping."""
    with wire_checked(os.environ) as environment:
        command = [sys.executable, "-c", SITE, text]
        subprocess.run(command, cwd=ROOT, env=environment, check=True)


def test_what_is_right() -> None:
    sent('{"jsonrpc":"2.0","id":1,"result":{}}')


def test_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match=r"POST /mcp .*'result': 7"):
        sent('{"jsonrpc":"2.0","id":1,"result":7}')
