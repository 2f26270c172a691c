"""The messages of a trial as they are on the wire, and the same call by other means."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.account.client_configs import python_program
from mcp_app.interface.rules import visible
from mcp_app.protocol.headers import MirroredParameter, encode
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import NAMED_BY
from mcp_app.protocol.revisions import Revision
from mcp_app.transports.in_process import Message

TOKEN: Final = "YOUR-TOKEN"  # noqa: S105 - what a reader replaces
IN_PYTHON: Final = {
    "tools/call": ("call_tool", ("name", "arguments")),
    "prompts/get": ("get_prompt", ("name", "arguments")),
    "resources/read": ("read_resource", ("uri",)),
}
"""For a request the method of the Python SDK's client, and the parameters it takes."""
LONGEST: Final = 64 * 1024
MOST: Final = 200


@dataclass(frozen=True, slots=True, repr=False)
class Exchange:
    """A message as text, under a heading."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where clients reach the server, and what their requests have there.

    `mirrored` are the arguments that headers repeat.
    """

    url: str
    needs_token: bool
    mirrored: Sequence[MirroredParameter] = ()


def exchanges(
    messages: Sequence[Message], address: Address, revision: Revision
) -> Iterator[Exchange]:
    """Yield the messages with the HTTP requests in which such a client sends them."""
    for each in messages[:MOST]:
        text = visible(each.text.decode("utf-8", "replace")[:LONGEST], None)
        if not each.sent:
            yield Exchange(_("From the server"), text)
            continue
        headers = _headers(json.loads(each.text), address, revision)
        head = "\n".join(f"{name}: {value}" for name, value in headers)
        request = f"POST {address.url}\n{head}\n\n{text}"
        yield Exchange(_("From the client"), request)


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
        yield from _repeated(method, message.get("params", {}), address)


def _repeated(
    method: str, params: JsonObject, address: Address
) -> Iterator[tuple[str, str]]:
    """Yield the headers that repeat parameters of a request."""
    name = params.get(NAMED_BY.get(method, ""))
    if isinstance(name, str):
        yield "Mcp-Name", encode(name)
    arguments = params.get("arguments")
    if not isinstance(arguments, dict):
        return
    for each in address.mirrored:
        value = each.value(arguments)
        if value is not None:
            yield f"Mcp-Param-{each.header}", value


def curl(messages: Sequence[Message], address: Address, revision: Revision) -> str:
    """Return a shell line that sends the same; "" for a revision with sessions."""
    sent = _requests(messages)
    if revision.sessions or not sent:
        return ""
    message = sent[-1]
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in _headers(message, address, revision)
    ]
    # In ASCII no character of it is hidden.
    body = shlex.quote(json.dumps(message, separators=(",", ":")))
    lines = [f"curl -sS {shlex.quote(address.url)}", *headers, f"--data {body}"]
    return " \\\n  ".join(lines)


def python(messages: Sequence[Message], address: Address) -> str:
    """Return a program with the Python SDK that sends the same; "" if it has no way."""
    for message in _requests(messages):
        method, names = IN_PYTHON.get(str(message.get("method")), ("", ()))
        if method:
            params = message["params"]
            # In ASCII no character of it is hidden.
            given = ", ".join(ascii(params[name]) for name in names)
            token = TOKEN if address.needs_token else ""
            expression = f"await client.{method}({given})"
            return python_program(address.url, token, expression)
    return ""


def _requests(messages: Sequence[Message]) -> list[JsonObject]:
    """Return what the client sent."""
    return [json.loads(each.text) for each in messages if each.sent]
