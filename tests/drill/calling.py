"""The smallest client: one POST, and the JSON-RPC messages that it is answered with."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from email.message import Message
from typing import Any, Final, TypeAlias

from tests.wire.events import EventReader

JsonObject: TypeAlias = dict[str, Any]

STATEFUL: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"
META: Final = "io.modelcontextprotocol/"
CLIENT: Final = {"name": "drill-client", "version": "1"}
CAPABILITIES: Final[JsonObject] = {"elicitation": {}, "sampling": {}, "roots": {}}
TIME_S: Final = 60


def post(
    url: str, message: JsonObject, headers: Mapping[str, str]
) -> tuple[list[JsonObject], Message]:
    """Return the messages of the answer, in their order, and its headers."""
    request = urllib.request.Request(  # noqa: S310 - an address on loopback
        url,
        json.dumps(message).encode(),
        {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=TIME_S) as answer:  # noqa: S310
            return _messages(answer.headers, answer.read()), answer.headers
    except urllib.error.HTTPError as refusal:
        with refusal:
            return _messages(refusal.headers, refusal.read()), refusal.headers


def _messages(headers: Message, body: bytes) -> list[JsonObject]:
    if headers.get("Content-Type", "").startswith("text/event-stream"):
        events = EventReader().feed(body)
        return [json.loads(event.data[0]) for event in events if event.data[0]]
    return [json.loads(body)] if body else []


class Stateless:
    """A client of the stateless era."""

    def __init__(self, url: str, capabilities: JsonObject | None = None) -> None:
        self._url = url
        self._capabilities = CAPABILITIES if capabilities is None else capabilities

    def messages(
        self, tool: str, arguments: JsonObject, meta: JsonObject, **more: object
    ) -> list[JsonObject]:
        """Call a tool; `more` goes beside its arguments."""
        known = {
            f"{META}protocolVersion": STATELESS,
            f"{META}clientInfo": CLIENT,
            f"{META}clientCapabilities": self._capabilities,
        }
        params = {
            "name": tool,
            "arguments": arguments,
            "_meta": {**known, **meta},
            **more,
        }
        headers = {
            "MCP-Protocol-Version": STATELESS,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        return post(self._url, _request("tools/call", params), headers)[0]

    def call(self, tool: str, **arguments: object) -> JsonObject:
        """Return the result, whatever came before it."""
        result: JsonObject = self.messages(tool, arguments, {})[-1]["result"]
        return result


class Stateful:
    """A client of the stateful era, in a session."""

    def __init__(self, url: str, version: str = STATEFUL) -> None:
        self._url = url
        params = {
            "protocolVersion": version,
            "capabilities": CAPABILITIES,
            "clientInfo": CLIENT,
        }
        _, headers = post(url, _request("initialize", params), {})
        self._headers = {
            "MCP-Protocol-Version": version,
            "Mcp-Session-Id": headers["Mcp-Session-Id"],
        }
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        post(url, initialized, self._headers)

    def messages(
        self, tool: str, arguments: JsonObject, meta: JsonObject
    ) -> list[JsonObject]:
        """Call a tool that asks nothing."""
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        return post(self._url, _request("tools/call", params), self._headers)[0]

    def call(self, tool: str, **arguments: object) -> JsonObject:
        """Return the result, whatever came before it."""
        result: JsonObject = self.messages(tool, arguments, {})[-1]["result"]
        return result


_ids = iter(range(1, 1_000_000))


def _request(method: str, params: JsonObject) -> JsonObject:
    request_id = next(_ids)
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
