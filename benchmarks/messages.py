"""The requests that the benchmarks send, and what a right answer to each is.

Knows nothing of `mcp_app`: the same requests go to the floors and to the peers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]

STATEFUL = "2025-11-25"
STATELESS = "2026-07-28"

FIRST_ID = 100_000_000
"""Every id has nine digits, so that all requests of one kind are equally long."""

_CLIENT = {"name": "benchmarks", "version": "1"}
_TYPES = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One POST to `/mcp`: its headers but `Host`, and its message but the id."""

    headers: Mapping[str, str]
    message: JsonObject

    def body(self, identifier: int = FIRST_ID) -> bytes:
        """Return the message with that id, as compact as clients send it."""
        message = {"jsonrpc": "2.0", "id": identifier, **self.message}
        return json.dumps(message, separators=(",", ":")).encode()

    def lines(self, port: int) -> list[tuple[str, str]]:
        """Return all headers but `Content-Length`."""
        return [("Host", f"127.0.0.1:{port}"), *self.headers.items()]

    def with_token(self, bearer: str) -> Request:
        """Return the same request with a token."""
        headers = {**self.headers, "Authorization": f"Bearer {bearer}"}
        return Request(headers=headers, message=self.message)

    def raw(self, port: int) -> bytes:
        """Return the request as it goes through the socket, with the first id."""
        body = self.body()
        headers = [*self.lines(port), ("Content-Length", str(len(body)))]
        lines = [f"{name}: {value}\r\n" for name, value in headers]
        return "".join(["POST /mcp HTTP/1.1\r\n", *lines, "\r\n"]).encode() + body


def stateless(method: str, params: JsonObject) -> Request:
    """Return a request of the stateless era, with its routing headers."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": _CLIENT,
    }
    headers = {**_TYPES, "MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
    if method == "tools/call":
        headers["Mcp-Name"] = params["name"]
    message = {"method": method, "params": {**params, "_meta": meta}}
    return Request(headers=headers, message=message)


def stateful(session: str, method: str, params: JsonObject) -> Request:
    """Return a request of the stateful era, in that session."""
    headers = {**_TYPES, "MCP-Protocol-Version": STATEFUL, "Mcp-Session-Id": session}
    return Request(headers=headers, message={"method": method, "params": params})


def initialize() -> Request:
    """Return the request that opens a session."""
    params = {"protocolVersion": STATEFUL, "capabilities": {}, "clientInfo": _CLIENT}
    message = {"method": "initialize", "params": params}
    return Request(headers=_TYPES, message=message)


def call(
    tool: str, arguments: JsonObject | None = None, *, session: str | None = None
) -> Request:
    """Return a call of a tool: in that session, or of the stateless era.

    Without arguments it is the benchmark's own addition, 2 + 3.
    """
    given = {"a": 2, "b": 3} if arguments is None else arguments
    params = {"name": tool, "arguments": given}
    if session is None:
        return stateless("tools/call", params)
    return stateful(session, "tools/call", params)


IsRight = Callable[[JsonObject], bool]
"""Whether the `result` of an answer is right."""


def is_sum(result: JsonObject) -> bool:
    """Return whether this is the answer to 2 + 3, as text and structured."""
    return (
        result.get("content") == [{"type": "text", "text": "5"}]
        and result.get("structuredContent") == {"result": 5}
        and not result.get("isError", False)
    )
