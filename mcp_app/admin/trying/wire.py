"""The messages of a trial as sent, and the same call with curl and in Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

from mcp_app.account.client_configs import python_program
from mcp_app.account.client_formats import TOKEN
from mcp_app.interface.rules import visible
from mcp_app.protocol.headers import MirroredParameter, encode_value
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.negotiation import MIRRORED_MEMBERS
from mcp_app.protocol.revisions import Revision
from mcp_app.transports.in_process import Message

IN_PYTHON: Final = {
    "tools/call": ("call_tool", ("name", "arguments")),
    "prompts/get": ("get_prompt", ("name", "arguments")),
    "resources/read": ("read_resource", ("uri",)),
}
"""By method of MCP: the method of the SDK's client, and its parameters."""
MAX_TEXT_LENGTH: Final = 64 * 1024
MAX_MESSAGES: Final = 200


@dataclass(frozen=True, slots=True)
class Address:
    """Where clients reach the server, and what their requests need.

    `mirrored` are the arguments that are repeated in headers.
    """

    url: str
    needs_token: bool
    mirrored: Sequence[MirroredParameter] = ()


def exchanges(
    messages: Sequence[Message], address: Address, revision: Revision
) -> Iterator[tuple[str, str]]:
    """Yield the messages as text, each under a heading.

    Each message of the client is shown with its HTTP request line and headers.
    """
    for message in messages[:MAX_MESSAGES]:
        text = visible(message.text.decode("utf-8", "replace")[:MAX_TEXT_LENGTH], None)
        if not message.from_client:
            yield _("From the server"), text
            continue
        headers = _request_headers(json.loads(message.text), address, revision)
        head = "\n".join(f"{name}: {value}" for name, value in headers)
        request = f"POST {address.url}\n{head}\n\n{text}"
        yield _("From the client"), request


def _request_headers(
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
        params = message.get("params", {})
        name = params.get(MIRRORED_MEMBERS.get(method, ""))
        if isinstance(name, str):
            yield "Mcp-Name", encode_value(name)
        arguments = params.get("arguments")
        mirrored = address.mirrored if isinstance(arguments, dict) else ()
        for each in mirrored:
            value = each.header_value(arguments)
            if value is not None:
                yield f"Mcp-Param-{each.header}", value


def curl_command(
    messages: Sequence[Message], address: Address, revision: Revision
) -> str:
    """Return a curl command for the last request; "" for a revision with sessions."""
    requests = _client_requests(messages)
    if revision.sessions or not requests:
        return ""
    message = requests[-1]
    headers = [
        f"-H {shlex.quote(f'{name}: {value}')}"
        for name, value in _request_headers(message, address, revision)
    ]
    # ASCII escapes make hidden characters visible.
    body = shlex.quote(json.dumps(message, separators=(",", ":")))
    lines = [f"curl -sS {shlex.quote(address.url)}", *headers, f"--data {body}"]
    return " \\\n  ".join(lines)


def python_example(messages: Sequence[Message], address: Address) -> str:
    """Return a program for the first request that the Python SDK can send, or ""."""
    for message in _client_requests(messages):
        method, names = IN_PYTHON.get(str(message.get("method")), ("", ()))
        if method:
            params = message["params"]
            # ASCII escapes make hidden characters visible.
            arguments = ", ".join(ascii(params[name]) for name in names)
            token = TOKEN if address.needs_token else ""
            expression = f"await client.{method}({arguments})"
            return python_program(address.url, token, expression)
    return ""


def _client_requests(messages: Sequence[Message]) -> list[JsonObject]:
    """Return the messages that the client sent."""
    return [json.loads(message.text) for message in messages if message.from_client]
