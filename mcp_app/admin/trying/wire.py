"""The messages of a trial as they are on the wire, and the same call by other means."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.interface.rules import visible
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import NAMED_BY
from mcp_app.protocol.revisions import Revision
from mcp_app.transports.in_process import Message

TOKEN: Final = "YOUR-TOKEN"  # noqa: S105 - what a reader replaces
LONGEST: Final = 64 * 1024
MOST: Final = 200


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A message as text, under a heading."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where clients reach the server, and whether they show a token there."""

    url: str
    needs_token: bool


def exchanged(
    messages: Sequence[Message], address: Address, revision: Revision
) -> Iterator[Exchanged]:
    """Yield the messages with the HTTP requests in which such a client sends them."""
    for each in messages[:MOST]:
        text = visible(each.text.decode("utf-8", "replace")[:LONGEST], None)
        if not each.sent:
            yield Exchanged(_("From the server"), text)
            continue
        headers = _headers(json.loads(each.text), address, revision)
        head = "\n".join(f"{name}: {value}" for name, value in headers)
        request = f"POST {address.url}\n{head}\n\n{text}"
        yield Exchanged(_("From the client"), request)


def _headers(
    message: dict[str, Any], address: Address, revision: Revision
) -> Iterator[tuple[str, str]]:
    """Yield the headers of a request that a client of this revision sends."""
    yield "Content-Type", "application/json"
    yield "Accept", "application/json, text/event-stream"
    if address.needs_token:
        yield "Authorization", f"Bearer {TOKEN}"
    method = message.get("method")
    if revision.stateless or (revision.version_header and method != "initialize"):
        yield "MCP-Protocol-Version", revision.version
    if revision.sessions and method != "initialize":
        yield "Mcp-Session-Id", _("the one that initialize returned")
    if revision.routing_headers and method:
        yield "Mcp-Method", method
        name = message.get("params", {}).get(NAMED_BY.get(method, ""))
        if isinstance(name, str):
            yield "Mcp-Name", visible(name)


def curl(messages: Sequence[Message], address: Address, revision: Revision) -> str:
    """Return a shell line that sends the same; "" for a revision with sessions."""
    sent = [each for each in messages if each.sent]
    if revision.sessions or not sent:
        return ""
    message: JsonObject = json.loads(sent[-1].text)
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in _headers(message, address, revision)
    ]
    body = shlex.quote(sent[-1].text.decode("utf-8", "replace"))
    lines = [f"curl -sS {shlex.quote(address.url)}", *headers, f"--data {body}"]
    return visible(" \\\n  ".join(lines), None)
