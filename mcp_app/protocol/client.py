"""What an MCP client writes and reads over Streamable HTTP, without any I/O.

It knows both eras: 2026-07-28 without a session, 2025-11-25 and older with one
(basic/transports/streamable-http of each).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.headers import MirroredParameter, encode_value
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    MIRRORED_MEMBERS,
    PROTOCOL_VERSION,
)
from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL, STATELESS

NEWEST_STATELESS: Final = LATEST.version
NEWEST_STATEFUL: Final = LATEST_STATEFUL.version


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRequest:
    """A message, and the headers that belong to it; a notification has no id."""

    body: bytes
    headers: Sequence[tuple[str, str]]
    identifier: int | None = None


@dataclass(slots=True)
class Dialog:
    """How to speak to a server: the revision, and the session if there is one.

    `client` is our own name and version.  We declare no capability, so no server can
    ask our users anything.
    """

    version: str
    client: JsonObject
    session: str = ""
    _last_id: int = 0

    @property
    def is_stateless(self) -> bool:
        """Whether each request stands alone."""
        return self.version in STATELESS

    def request_message(
        self,
        method: str,
        params: JsonObject,
        *,
        mirrors: Sequence[MirroredParameter] = (),
        wants_progress: bool = False,
    ) -> ClientRequest:
        """Return a request; headers repeat the parameters in `mirrors`."""
        self._last_id += 1
        headers = self.headers()
        meta: JsonObject = {"progressToken": self._last_id} if wants_progress else {}
        if self.is_stateless:
            meta[PROTOCOL_VERSION] = self.version
            meta[CLIENT_INFO], meta[CLIENT_CAPABILITIES] = self.client, {}
            headers.append(("Mcp-Method", method))
            if (member := MIRRORED_MEMBERS.get(method)) is not None:
                headers.append(("Mcp-Name", encode_value(str(params[member]))))
            arguments = params.get("arguments", {})
            for each in mirrors:
                if (value := each.header_value(arguments)) is not None:
                    headers.append((f"Mcp-Param-{each.header}", value))
        message = {
            "jsonrpc": "2.0",
            "id": self._last_id,
            "method": method,
            "params": {**params, "_meta": meta} if meta else params,
        }
        return ClientRequest(
            body=jsonrpc.write(message), headers=headers, identifier=self._last_id
        )

    def initialize_params(self) -> JsonObject:
        """Return the parameters of `initialize`."""
        return {
            "protocolVersion": self.version,
            "capabilities": {},
            "clientInfo": self.client,
        }

    def notification_message(self, method: str, params: JsonObject) -> ClientRequest:
        """Return a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        return ClientRequest(body=jsonrpc.write(message), headers=self.headers())

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of a message, and of the DELETE that ends the session."""
        headers = [
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", self.version),
        ]
        if self.session:
            headers.append(("Mcp-Session-Id", self.session))
        return headers


class EventReader:
    """Reads Server-Sent Events from pieces of any size (HTML standard, 9.2.6)."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []
        self._ends_with_cr = False

    def read_events(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that is complete now."""
        if not piece:
            return
        was_cut, self._ends_with_cr = self._ends_with_cr, piece.endswith(b"\r")
        if was_cut:
            # This is the second half of a line break.
            piece = piece.removeprefix(b"\n")
        *ends, rest = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for end in ends:
            line = bytes(self._line) + end
            self._line.clear()
            if line:
                name, _, value = line.partition(b":")
                if name == b"data":
                    self._data.append(value.removeprefix(b" "))
            # A blank line ends the event.
            elif self._data:
                yield b"\n".join(self._data)
                self._data = []
        self._line += rest


def is_answer_to(message: Any, identifier: int | None) -> bool:
    """Whether a message is the answer to a request."""
    is_answer = isinstance(message, dict) and "method" not in message
    return is_answer and message.get("id") == identifier
