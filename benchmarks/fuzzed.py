"""What `benchmarks.fuzzing` calls: each parser, with input that nobody has chosen.

Each may refuse what it reads with its own error, and no other.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from mcp_app.protocol import cursors, jsonrpc, uri_templates
from mcp_app.protocol.errors import ProtocolError, RequestRefused
from mcp_app.protocol.headers import (
    Headers,
    check_repeated,
    check_routing,
    check_singletons,
    decode_value,
    is_json_type,
    parse_accept,
)
from mcp_app.protocol.oauth import addresses, clients, requests
from mcp_app.protocol.oauth.requests import OAuthError
from mcp_app.server.conversation import StateSealer
from mcp_app.streams import event_ids

SECRETS: Final = ("the first secret of a fuzzed site", "the second one")
SESSION: Final = "a" * 64
STATE: Final = StateSealer(SECRETS, age=600, size=16_384)


def read_json(data: bytes) -> None:
    """Read JSON; what was read is written, and is the same again."""
    with suppress(ProtocolError):
        value = jsonrpc.read(data)
        assert jsonrpc.read(jsonrpc.write(value)) == value


def read_headers(data: bytes) -> None:
    """Read lines as headers, and ask all that is asked of them."""
    pairs = [line.partition(b":") for line in data.split(b"\n")]
    try:
        headers = Headers((name.lower(), value) for name, _, value in pairs)
    except RequestRefused:
        return
    for check in (check_singletons, check_repeated):
        with suppress(ProtocolError):
            check(headers)
    with suppress(ProtocolError):
        check_routing(headers, "tools/call", "name")
    for _, _, value in pairs:
        text = value.decode("latin-1")
        parse_accept(text)
        is_json_type(text)
        with suppress(ProtocolError, ValueError):
            decode_value(text)


def read_event_id(data: bytes) -> None:
    """Show made-up event ids."""
    for text in _texts(data):
        with suppress(ProtocolError):
            event_ids.position_of(text, SESSION)
            raise AssertionError(f"A made-up event id was taken: {text!r}.")
        with suppress(ProtocolError):
            assert event_ids.of_request(text, SESSION) is None, text


def read_cursor(data: bytes) -> None:
    """Show made-up cursors."""
    for text in _texts(data):
        with suppress(ProtocolError):
            cursors.open_cursor(text, [b"k" * 32], server="default", listing="tools")
            raise AssertionError(f"A made-up cursor was taken: {text!r}.")


def read_state(data: bytes) -> None:
    """Show made-up state of a request."""
    for text in _texts(data):
        with suppress(ProtocolError):
            STATE.open_state(text, b"bound", 0)
            raise AssertionError(f"A made-up state was taken: {text!r}.")


def read_template(data: bytes) -> None:
    """Match a template, the first line, with a URI, the second."""
    text, _, uri = data.decode("utf-8", "replace").partition("\n")
    try:
        template = uri_templates.UriTemplate.parse(text)
    except uri_templates.TemplateError:
        return
    values = template.match(uri)
    if values is not None:
        again = template.match(template.expand(values))
        assert again == values, (text, uri, values, again)


def read_redirect(data: bytes) -> None:
    """Check a redirect, the first line; the second is what a request has."""
    uri, _, other = data.decode("utf-8", "replace").partition("\n")
    if addresses.redirect_problem(uri, ("cursor",)) is not None:
        return
    assert addresses.is_same_redirect(uri, uri)
    answer = addresses.with_answer(uri, {"code": "secret"})
    # The code goes to the host that a person saw.
    assert addresses.redirect_host(answer) == addresses.redirect_host(uri), uri
    if addresses.is_same_redirect(uri, other):
        # On one's own computer any port will do.
        hosts = addresses.redirect_host(uri), addresses.redirect_host(other)
        assert addresses.is_loopback(uri) or hosts[0] == hosts[1], hosts


def read_oauth(data: bytes) -> None:
    """Read one text as everything that programs send when they sign in."""
    text = data.decode("utf-8", "replace")
    with suppress(OAuthError):
        request = requests.read_authorization(text)
        requests.check_before_resource(request)
        requests.check_after_resource(request)
    with suppress(OAuthError):
        clients.read_client_metadata(data, ("cursor",))
    with suppress(OAuthError):
        kind = "application/x-www-form-urlencoded"
        form = requests.read_form(kind, data, "")
        requests.client_of(form, form.get("authorization"))
        requests.read_grant(form)
    assert clients.registration_of(text, SECRETS) is None, text


def _texts(data: bytes) -> Iterator[str]:
    """Yield input as it is, and as what is sealed is written."""
    yield data.decode("latin-1")
    yield base64.urlsafe_b64encode(data).decode().rstrip("=")


TARGETS = {
    "json": read_json,
    "headers": read_headers,
    "event-ids": read_event_id,
    "cursors": read_cursor,
    "state": read_state,
    "templates": read_template,
    "redirects": read_redirect,
    "oauth": read_oauth,
}

SEEDS: Final[Mapping[str, Sequence[str]]] = {
    "json": ['{"jsonrpc":"2.0","id":1,"params":{"a":[1.5e3,"\\u00e4",true,null]}}'],
    "headers": ["Mcp-Name: =?base64?bmFtZQ==?=\nAccept: text/event-stream;q=0.5, */*"],
    "templates": [
        "shop://{+path}/items{?q,page}\nshop://a/b/items?page=2&q=x",
        "a://{x}-{y}{&z}\na://1-2&z=%41",
    ],
    "redirects": [
        "http://127.0.0.1:8080/callback?a=b\nhttp://127.0.0.1:9/callback?a=b",
        "cursor://anysphere.cursor/oauth/callback",
        "https://client.example/%41/../back",
    ],
    "oauth": [
        "response_type=code&client_id=a&redirect_uri=https%3A%2F%2Fa.example%2F"
        "&code_challenge=0123456789012345678901234567890123456789012"
        "&code_challenge_method=S256&resource=https%3A%2F%2Fm.example%2Fmcp&state=s",
        '{"client_name":"A","redirect_uris":["https://a.example/"]}',
        "grant_type=authorization_code&code=c&redirect_uri=https%3A%2F%2Fa.example%2F"
        "&code_verifier=v&authorization=Basic+YTpi",
    ],
}
