"""The server refuses the benchmark's requests as soon as one thing in them is wrong.

What is measured is therefore a call with every check made. The statuses and codes
are those of the design's table "What HTTP says".
"""

from __future__ import annotations

import http.client
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from benchmarks import load, servers
from benchmarks.client import (
    Headers,
    Reply,
    WrongAnswerError,
    checked,
    open_session,
    post,
)
from benchmarks.load import Answer
from benchmarks.messages import Request, call, has_tools, initialize, is_sum, stateless
from benchmarks.processes import Process

# They share a server.
pytestmark = pytest.mark.xdist_group("checks of the benchmarks")

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
UNSUPPORTED_VERSION = -32022

VERSION_HEADER = "MCP-Protocol-Version"
PREFIX = "io.modelcontextprotocol"

Break = Callable[["Post"], "Post"]


@dataclass(frozen=True, slots=True)
class Post:
    """A request as it goes out: all headers but the length, and the body's bytes."""

    headers: Headers
    body: bytes

    @classmethod
    def of(cls, request: Request, port: int) -> Post:
        return cls(request.lines(port), request.body())


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    """Serve the fixture set, which takes the benchmark's call as it is."""
    with servers.drill() as process:
        checked(process.port, call("drill_add"), is_sum)
        yield process


@pytest.fixture(scope="module")
def session(server: Process) -> str:
    """Open a session, in which the benchmark's call is taken as it is."""
    opened = open_session(server.port)
    checked(server.port, call("drill_add", session=opened), is_sum)
    return opened


def header(name: str, value: str | None) -> Break:
    """Set one header to another value; None leaves it out."""

    def broken(post: Post) -> Post:
        others = [line for line in post.headers if line[0] != name]
        added = [] if value is None else [(name, value)]
        return Post([*others, *added], post.body)

    return broken


def repeated(name: str) -> Break:
    """Send a header twice, with the same value."""

    def broken(post: Post) -> Post:
        again = [line for line in post.headers if line[0] == name]
        return Post([*post.headers, *again], post.body)

    return broken


def text(old: bytes, new: bytes) -> Break:
    """Replace a piece of the body, which stands there once."""

    def broken(post: Post) -> Post:
        assert post.body.count(old) == 1
        return Post(post.headers, post.body.replace(old, new))

    return broken


def member(*path: str, value: Any = None) -> Break:
    """Set a member of the message; None leaves it out."""

    def broken(post: Post) -> Post:
        message = json.loads(post.body)
        place = message
        for name in path[:-1]:
            place = place[name]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return Post(post.headers, json.dumps(message).encode())

    return broken


def body(content: bytes) -> Break:
    """Send another body."""
    return lambda post: Post(post.headers, content)


def both(*breaks: Break) -> Break:
    """Change header and body together, so that they still agree."""

    def broken(post: Post) -> Post:
        for change in breaks:
            post = change(post)
        return post

    return broken


# What is broken, then the status and the code that refuse it: no code where HTTP
# refuses before there is a message.
Table = dict[str, tuple[Break, int, int | None]]

IN_BOTH_ERAS: Table = {
    "origin": (header("Origin", "https://evil.example"), 403, None),
    "null origin": (header("Origin", "null"), 403, None),
    "host": (header("Host", "evil.example"), 421, None),
    "content type": (header("Content-Type", "text/plain"), 415, None),
    "no content type": (header("Content-Type", None), 415, None),
    "content encoding": (header("Content-Encoding", "gzip"), 415, None),
    "accept": (header("Accept", "text/html"), 406, None),
    "size": (body(b" " * (4 * 1024 * 1024 + 1)), 413, None),
    "empty body": (body(b""), 400, PARSE_ERROR),
    "a stray quote": (text(b"drill_add", b'drill_add"'), 400, PARSE_ERROR),
    "no UTF-8": (text(b"drill_add", b"drill_\xff"), 400, PARSE_ERROR),
    "a key twice": (text(b'"a":2', b'"a":2,"a":2'), 400, PARSE_ERROR),
    "NaN": (text(b'"a":2', b'"a":NaN'), 400, PARSE_ERROR),
    "too large a number": (text(b'"a":2', b'"a":1e400'), 400, PARSE_ERROR),
    "half a surrogate pair": (text(b'"a":2', b'"a":"\\ud800"'), 400, PARSE_ERROR),
    "depth": (text(b'"a":2', b'"a":' + b"[" * 64 + b"]" * 64), 400, PARSE_ERROR),
    "no object": (body(b"1"), 400, INVALID_REQUEST),
    "a batch": (body(b"[]"), 400, INVALID_REQUEST),
    "no jsonrpc": (member("jsonrpc"), 400, INVALID_REQUEST),
    "another jsonrpc": (member("jsonrpc", value="1.0"), 400, INVALID_REQUEST),
    "id": (member("id", value=[1]), 400, INVALID_REQUEST),
    "a member too many": (member("more", value=1), 400, INVALID_REQUEST),
    "params": (member("params", value=[1]), 400, INVALID_REQUEST),
}

STATELESS: Table = {
    **IN_BOTH_ERAS,
    "no method header": (header("Mcp-Method", None), 400, HEADER_MISMATCH),
    "another method header": (
        header("Mcp-Method", "tools/list"),
        400,
        HEADER_MISMATCH,
    ),
    "method header twice": (repeated("Mcp-Method"), 400, HEADER_MISMATCH),
    "no name header": (header("Mcp-Name", None), 400, HEADER_MISMATCH),
    "another name header": (header("Mcp-Name", "drill_echo"), 400, HEADER_MISMATCH),
    "name header twice": (repeated("Mcp-Name"), 400, HEADER_MISMATCH),
    "no version header": (header(VERSION_HEADER, None), 400, HEADER_MISMATCH),
    "another version header": (
        header(VERSION_HEADER, "2025-11-25"),
        400,
        HEADER_MISMATCH,
    ),
    "version header twice": (repeated(VERSION_HEADER), 400, HEADER_MISMATCH),
    "a version of the future": (
        both(
            header(VERSION_HEADER, "2099-01-01"),
            text(b"2026-07-28", b"2099-01-01"),
        ),
        400,
        UNSUPPORTED_VERSION,
    ),
    "no _meta": (member("params", "_meta"), 400, INVALID_PARAMS),
    "no version in _meta": (
        member("params", "_meta", f"{PREFIX}/protocolVersion"),
        400,
        INVALID_PARAMS,
    ),
    "no capabilities in _meta": (
        member("params", "_meta", f"{PREFIX}/clientCapabilities"),
        400,
        INVALID_PARAMS,
    ),
    "an unknown method": (
        both(header("Mcp-Method", "tools/cull"), text(b"tools/call", b"tools/cull")),
        404,
        METHOD_NOT_FOUND,
    ),
    "an unknown tool": (
        both(header("Mcp-Name", "drill_odd"), text(b"drill_add", b"drill_odd")),
        200,
        INVALID_PARAMS,
    ),
}

IN_A_SESSION: Table = {
    **IN_BOTH_ERAS,
    "no session": (header("Mcp-Session-Id", None), 400, INVALID_REQUEST),
    "an unknown session": (header("Mcp-Session-Id", "0" * 32), 404, None),
    "an unknown version header": (
        header(VERSION_HEADER, "2025-11-26"),
        400,
        None,
    ),
    "another session's version header": (
        header(VERSION_HEADER, "2025-06-18"),
        400,
        INVALID_REQUEST,
    ),
    "an unknown method": (
        text(b"tools/call", b"tools/cull"),
        200,
        METHOD_NOT_FOUND,
    ),
    "an unknown tool": (text(b"drill_add", b"drill_odd"), 200, INVALID_PARAMS),
}

WRONG_ARGUMENTS = {
    "no number": (text(b'"a":2', b'"a":"two"'), "a"),
    "a fraction": (text(b'"a":2', b'"a":2.5'), "a"),
    "a boolean": (text(b'"a":2', b'"a":true'), "a"),
    "null": (text(b'"a":2', b'"a":null'), "a"),
    "one too few": (text(b',"b":3', b""), "b"),
    "one too many": (text(b'"b":3', b'"b":3,"c":4'), "c"),
}


@pytest.mark.parametrize("what", STATELESS)
def test_a_stateless_call_with_one_thing_wrong(server: Process, what: str) -> None:
    assert_refused(server, call("drill_add"), *STATELESS[what])


@pytest.mark.parametrize("what", IN_A_SESSION)
def test_a_call_in_a_session_with_one_thing_wrong(
    server: Process, session: str, what: str
) -> None:
    assert_refused(server, call("drill_add", session=session), *IN_A_SESSION[what])


@pytest.mark.parametrize("what", WRONG_ARGUMENTS)
@pytest.mark.parametrize("era", ["stateless", "session"])
def test_wrong_arguments_are_named_in_the_result(
    server: Process, session: str, era: str, what: str
) -> None:
    request = call("drill_add", session=session if era == "session" else None)
    broken, name = WRONG_ARGUMENTS[what]
    reply = posted(server, broken(Post.of(request, server.port)))
    result = reply.message()["result"]
    assert (reply.status, result["isError"]) == (200, True)
    assert "structuredContent" not in result
    assert name in result["content"][0]["text"]


def test_a_session_is_refused_once_it_is_closed(server: Process) -> None:
    request = call("drill_add", session=open_session(server.port))
    checked(server.port, request, is_sum)
    close(server, request)
    assert_refused(server, request, lambda post: post, 404, None)


def test_a_session_cannot_be_initialized_again(server: Process, session: str) -> None:
    headers = dict(call("drill_add", session=session).headers)
    again = Request(headers=headers, message=initialize({}).message)
    assert_refused(server, again, lambda post: post, 400, INVALID_REQUEST)


def test_every_tool_on_the_list_is_counted(server: Process) -> None:
    listing = stateless("tools/list", {})
    count = len(checked(server.port, listing, lambda result: True)["tools"])
    checked(server.port, listing, has_tools(count))
    with pytest.raises(WrongAnswerError):
        checked(server.port, listing, has_tools(count + 1))


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_a_refused_load_counts_for_nothing(server: Process) -> None:
    request = call("drill_add")
    answer = Answer.learned(server.port, request, is_sum)
    refused = replace(request, headers={**request.headers, "Mcp-Name": "drill_echo"})
    with pytest.raises(WrongAnswerError, match=f"400 .*{HEADER_MISMATCH}"):
        load.run(server, refused, answer, seconds=1, connections=1, pause_ms=100)


def assert_refused(
    server: Process, request: Request, broken: Break, status: int, code: int | None
) -> None:
    """Break the request, which the server takes as it is, and see it refused."""
    reply = posted(server, broken(Post.of(request, server.port)))
    assert reply.status == status, reply.body
    if code is not None:
        assert reply.message()["error"]["code"] == code
    assert b'"result"' not in reply.body


def posted(server: Process, broken: Post) -> Reply:
    return post(server.port, broken.body, broken.headers)


def close(server: Process, request: Request) -> None:
    """End the session that the request belongs to."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {
        name: value for name, value in request.headers.items() if name != "Content-Type"
    }
    connection.request("DELETE", "/mcp", headers=headers)
    status = connection.getresponse().status
    connection.close()
    assert status in (200, 202, 204)
