"""What HTTP says: the status and the error of every request that is not served.

Each leaves nothing behind: no row, and by the fixtures no task and no open stream.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from mcp_app.catalog.stops import SERVER_OFF
from mcp_app.process.loading import Catalogs
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS, STATEFUL, SUPPORTED_VERSIONS
from tests.asgi_client import PREFIX, Client, JsonObject, Outcome, outcome
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST
from tests.serving import Connect, counted
from tests.wire.middleware import WireCheck

TRACES: Final = (
    "Subscription",
    "LoggedMessage",
    "Question",
    "Event",
    "Stream",
    "Session",
    "Once",
    "Task",
    "Ledger",
)
NOTHING: Final = dict.fromkeys(TRACES, 0)
NEWEST: Final = SUPPORTED_VERSIONS[0]
ERAS: Final = ("2025-11-25", NEWEST)


@pytest.fixture
def version() -> str:
    return "2025-11-25"


@pytest.fixture
async def client(connect: Connect, version: str) -> Client:
    return await connect(version)


def refused(found: Outcome, status: int, code: int = -32600) -> str:
    """Check status and code of a refusal and return its message."""
    assert (found.status, found.error["code"]) == (status, code), found.raw
    message: str = found.error["message"]
    return message


def whole(client: Client) -> JsonObject:
    return client.message(
        "tools/call", {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
    )


LATIN: Final = "application/json; charset=latin-1"
NOT_EVEN: Final = "application/json;q=0, text/event-stream;q=0.0"
HTTP_REFUSALS: Final[dict[str, tuple[tuple[str | None, ...], int]]] = {
    "content-type": ((None, "text/plain", "application/jsonx", LATIN), 415),
    "content-encoding": (("gzip", "identity, gzip"), 415),
    "accept": (("text/html", NOT_EVEN, "image/*"), 406),
}


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_http_refuses(client: Client) -> None:
    before = await counted()
    for name, (values, status) in HTTP_REFUSALS.items():
        for each in values:
            found = await client.sent(whole(client), {name: each})
            refused(found, status)
            assert found.answer.get("id") is None
    assert await counted() == before


SINGLETONS: Final[list[tuple[str, str, int]]] = [
    ("content-type", "application/json", -32600),
    ("authorization", "Bearer mcp_x", -32600),
    ("last-event-id", "7", -32600),
    ("mcp-protocol-version", NEWEST, -32020),
]


@pytest.mark.parametrize(("name", "value", "code"), SINGLETONS)
@pytest.mark.parametrize("version", ERAS)
async def test_headers_that_stand_twice(
    client: Client, name: str, value: str, code: int
) -> None:
    """The answer names its request: some clients show an error only then."""
    message = {**whole(client), "id": "twice"}
    headers = {name: [value, value], "content-length": str(len(json.dumps(message)))}
    found = await client.sent(message, headers)
    assert "there more than once" in refused(found, 400, code)
    assert found.answer["id"] == "twice"


TAKEN: Final[list[dict[str, Any]]] = [
    {"content-type": "Application/JSON"},
    {"content-type": "application/json;charset=UTF-8"},
    {"content-encoding": "identity"},
    {"accept": None},
    {"accept": ""},
    {"accept": "*/*"},
    {"accept": "application/*"},
    {"accept": "text/html, application/json;q=0.1"},
    {"accept": "application/json"},
    {"content-length": "17"},
]


@pytest.mark.parametrize("version", ERAS)
async def test_http_takes(client: Client) -> None:
    for headers in TAKEN:
        found = await client.sent(whole(client), headers)
        assert found.text == "3"
        assert found.headers["content-type"] == "application/json"
        assert found.headers["content-length"] == str(len(found.raw))


@pytest.mark.parametrize("version", ERAS)
async def test_events_alone_are_sent_as_events(connect: Connect, version: str) -> None:
    client = await connect(version, headers={"accept": "text/event-stream"})
    found = await client.call("drill_add", a=1, b=2)
    assert found.headers["content-type"] == "text/event-stream"
    assert found.text == "3"


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


UNREADABLE: Final = [
    b"",
    b"{",
    b"{'a': 1}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1e400}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud83d"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"9" * 5000 + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + nested(63) + b"}}",
    nested(100_000),
    b"[" + b"0," * 100_000 + b"0]",
]


@pytest.mark.parametrize("version", REVISIONS)
async def test_unreadable_json(client: Client) -> None:
    before = await counted()
    for body in UNREADABLE:
        found = await outcome(client.visit("POST", body))
        refused(found, 400, -32700)
        assert ("id" in found.answer) == client.revision.null_error_id
    assert await counted() == before


async def test_the_deepest_body(connect: Connect) -> None:
    client = await connect(NEWEST)
    deep = json.loads(nested(60))
    found = await client.call("drill_echo", value=deep)
    assert found.result["structuredContent"] == {"result": deep}


NO_ENVELOPES: Final[list[tuple[Any, str | int | None]]] = [
    (None, None),
    (7, None),
    ("ping", None),
    (True, None),
    ({}, None),
    ({"id": 5, "method": "ping"}, 5),
    ({"jsonrpc": "1.0", "id": "five", "method": "ping"}, "five"),
    *(
        ({"jsonrpc": "2.0", "id": each, "method": "ping"}, None)
        for each in (None, 1.5, 1.0, "", True, 2**53, [1], {"a": 1})
    ),
    ({"jsonrpc": "2.0", "id": 5, "method": 7}, 5),
    ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": []}, 5),
    ({"jsonrpc": "2.0", "id": 5, "method": "ping", "extra": 1}, 5),
    ({"jsonrpc": "2.0", "id": 5, "method": "ping", "result": {}}, 5),
    ({"jsonrpc": "2.0", "method": "notifications/initialized", "extra": 1}, None),
    ({"jsonrpc": "2.0", "id": 5}, 5),
    ({"jsonrpc": "2.0", "id": 5, "result": {}, "error": {}}, None),
    ({"jsonrpc": "2.0", "id": 5, "result": []}, None),
    ({"jsonrpc": "2.0", "id": 5, "error": {"code": "x", "message": "y"}}, None),
    ({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "y"}}, None),
]


@pytest.mark.parametrize("version", REVISIONS)
async def test_no_envelope(client: Client) -> None:
    before = await counted()
    for message, request_id in NO_ENVELOPES:
        found = await client.sent(message)
        refused(found, 400, -32600)
        assert found.answer.get("id") == request_id
        with_null = client.revision.null_error_id and request_id is None
        assert ("id" in found.answer) == (with_null or request_id is not None)
    assert await counted() == before


NULLS: Final[list[tuple[str, JsonObject]]] = [
    ("tools/list", {"cursor": None}),
    ("tools/call", {"name": "prints", "arguments": None}),
    ("prompts/get", {"name": "prompt_blocks", "arguments": None}),
]


@pytest.mark.parametrize("version", REVISIONS)
async def test_null_is_taken_for_absent(client: Client) -> None:
    for method, params in NULLS:
        found = await client.request(method, params)
        assert not found.result.get("isError"), found.answer
    if client.revision.sessions:
        ping = {"jsonrpc": "2.0", "id": 5, "method": "ping", "params": None}
        assert (await client.sent(ping)).result == {}


@pytest.mark.parametrize("mcp", [{"ENVELOPE": "lenient"}])
@pytest.mark.parametrize("version", ERAS)
async def test_a_lenient_envelope(client: Client) -> None:
    found = await client.sent({**whole(client), "extra": 1})
    assert found.text == "3"


@pytest.mark.parametrize("pieces", [[], [b'{"jsonrpc":'], [b"{", b'"jsonrpc"']])
@pytest.mark.parametrize("version", ERAS)
async def test_a_body_that_is_cut_short(client: Client, pieces: list[bytes]) -> None:
    before = await counted()
    visit = client.visit("POST", pieces, complete=False)
    await asyncio.sleep(0)
    await visit.leave()
    assert visit.status == 0
    assert await counted() == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE"])
async def test_other_methods(application: WireCheck, method: str) -> None:
    found = await outcome(Client(application).visit(method))
    refused(found, 405)
    assert found.headers["allow"] == "POST, GET, DELETE, OPTIONS"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_stateless_era_has_post_only(
    application: WireCheck, method: str
) -> None:
    found = await outcome(Client(application).visit(method))
    refused(found, 405)
    assert found.headers["allow"] == "POST, GET, DELETE, OPTIONS"


async def test_get_without_a_session(application: WireCheck) -> None:
    client = Client(application, "2025-11-25")
    refused(await outcome(client.visit("GET")), 405)
    headers = {"last-event-id": "1"}
    refused(await outcome(client.visit("GET", headers=headers)), 400)
    assert await counted() == NOTHING


@pytest.mark.parametrize("accept", ["application/json", "text/plain"])
async def test_get_wants_events(client: Client, accept: str) -> None:
    headers = {"accept": accept}
    refused(await outcome(client.visit("GET", headers=headers)), 406)


@pytest.mark.parametrize("event", ["1", "x", "abc.7", ""])
async def test_no_event_can_be_resumed_from(client: Client, event: str) -> None:
    headers = {"last-event-id": event}
    refused(await outcome(client.visit("GET", headers=headers)), 400)
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_delete(client: Client) -> None:
    found = await outcome(client.visit("DELETE"))
    assert (found.status, found.raw) == (204, b"")
    assert found.headers["content-length"] == "0"
    assert await counted() == NOTHING
    refused(await outcome(client.visit("DELETE")), 404)
    refused(await client.call("drill_add", a=1, b=2), 404)
    other = Client(client.application, "2025-11-25")
    refused(await outcome(other.visit("DELETE")), 400)


async def test_no_such_server(application: WireCheck) -> None:
    client = Client(application, path="/mcp/missing")
    assert "missing" in refused(await client.request("tools/list"), 404)


async def test_a_server_that_is_stopped(application: WireCheck) -> None:
    """It is there, and comes back: clients throw their tokens away on 404."""
    found = await Client(application, path="/mcp/off").request("tools/list")
    assert refused(found, 503, -32603) == SERVER_OFF
    assert int(found.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/default", "/mcp/default/"])
async def test_paths(application: WireCheck, path: str) -> None:
    client = Client(application, path=path)
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


@pytest.mark.parametrize("path", ["/mcp/private", "/mcp/closed"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT"])
async def test_nobody_authenticates(
    application: WireCheck, method: str, path: str
) -> None:
    for version in ERAS:
        client = Client(application, version, path=path)
        found = await outcome(client.visit(method, b"{"))
        refused(found, 401)
        assert found.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("path", "status"), [("/mcp/private", 401), ("/mcp", 405)])
async def test_a_browser_is_told_whose_address_it_is(
    application: WireCheck, path: str, status: int
) -> None:
    client = Client(application, path=path)
    browser = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    visit = client.visit("GET", headers=browser)
    page = (await visit.body()).decode()
    assert visit.status == status
    assert visit.headers["content-type"] == "text/html; charset=utf-8"
    assert ("www-authenticate" in visit.headers) == (status == 401)
    assert page.count("<p>") == 3
    assert "for programs that speak the Model Context Protocol" in page
    # What a program sends gets JSON as before.
    refused(await outcome(client.visit("GET")), status)
    posted = await outcome(client.visit("POST", b"{", headers=browser))
    assert posted.headers["content-type"] == "application/json"


async def test_wrong_credentials(application: WireCheck) -> None:
    client = Client(application, path="/mcp/private", headers={"x-user": "nobody"})
    assert "no such user" in refused(await client.request("tools/list"), 401)


async def test_stopping(process: Process, application: WireCheck) -> None:
    process.stopping = True
    opening = Client(application, "2025-11-25")
    calling = Client(application, "2026-07-28")
    for found in (
        await opening.sent(opening.initialize()),
        await calling.sent(whole(calling)),
        await calling.request("tools/list"),
    ):
        refused(found, 503, -32603)
        assert int(found.headers["retry-after"]) > 0
    assert await counted() == NOTHING


async def test_what_runs_may_be_ended_while_the_process_stops(
    process: Process, connect: Connect, stage: Stage
) -> None:
    client = await connect(BATCHED)
    running = client.begin("tools/call", {"name": "waits"}, id="p")
    await stage.begun()
    process.stopping = True
    refused(await client.sent(whole(client)), 503, -32603)
    refused(await client.sent([{**PING, "id": "q"}]), 503, -32603)
    cancelled = await client.notify("notifications/cancelled", {"requestId": "p"})
    assert cancelled.status == 202
    assert (await outcome(running)).messages == []
    assert (await outcome(client.visit("DELETE"))).status == 204


# -- sessions -------------------------------------------------------------------


WRONG_SESSIONS: Final[list[tuple[str | None, int]]] = [
    (None, 400),
    ("", 400),
    ("a b", 400),
    ("a\tb", 400),
    ("\xe9", 400),
    ("x" * 10_000, 400),
    ("unknown", 404),
    ("x" * 43, 404),
]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_wrong_session_ids(application: WireCheck, version: str) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    answer = {"jsonrpc": "2.0", "id": "question-1", "result": {}}
    for session, status in WRONG_SESSIONS:
        client = Client(application, version)
        client.session = session
        request = whole(client)
        found = await client.sent(request)
        refused(found, status)
        assert found.answer["id"] == request["id"]
        for message in (cancel, answer):
            assert (await client.sent(message)).status == status
        assert (await outcome(client.visit("DELETE"))).status == status
        if session is not None:
            assert (await outcome(client.visit("GET"))).status == status
    assert await counted() == NOTHING


async def test_repeated_session_id(connect: Connect) -> None:
    client = await connect("2025-11-25")
    assert client.session
    headers = {"mcp-session-id": [client.session, client.session]}
    refused(await client.sent(whole(client), headers), 400)
    # The stateless era has no sessions, and does not look.
    client = await connect("2026-07-28")
    assert (await client.sent(whole(client), headers)).text == "3"


@pytest.mark.parametrize("name", ["mcp-method", "mcp-name", "mcp-param-region"])
async def test_repeated_routing_headers(connect: Connect, name: str) -> None:
    client = await connect("2026-07-28")
    headers = {name: ["drill_add", "drill_add"]}
    said = refused(await client.sent(whole(client), headers), 400, -32020)
    assert name in said.lower()
    assert "more than once" in said or "does not match" in said
    # Nothing is routed by them in a session.
    client = await connect("2025-11-25")
    assert (await client.sent(whole(client), headers)).text == "3"


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_a_second_initialize(client: Client) -> None:
    request = client.initialize()
    found = await client.sent(request)
    refused(found, 400)
    assert found.answer["id"] == request["id"]
    assert "mcp-session-id" not in found.headers
    assert (await counted())["Session"] == 1


@pytest.mark.parametrize(
    ("named", "status", "said"),
    [("", 400, "not an id of"), ("x y", 400, "not an id of"), ("gone", 404, "new one")],
)
async def test_initialize_in_a_session_that_is_none(
    application: WireCheck, named: str, status: int, said: str
) -> None:
    client = Client(application, "2025-11-25")
    found = await client.sent(client.initialize(), {"mcp-session-id": named})
    assert said in refused(found, status)
    assert await counted() == NOTHING


FOREIGN: Final[list[tuple[str, JsonObject]]] = [
    ("POST", {"jsonrpc": "2.0", "id": 9, "method": "tools/list"}),
    ("POST", {"jsonrpc": "2.0", "method": "notifications/cancelled"}),
    ("POST", {"jsonrpc": "2.0", "id": "question-1", "result": {}}),
    ("POST", {"jsonrpc": "2.0", "id": 5, "method": 7}),
    ("GET", {}),
    ("DELETE", {}),
]


@pytest.mark.parametrize(("method", "message"), FOREIGN)
@pytest.mark.parametrize(
    "other", [{"x-user": "b"}, {"x-user": "a", "x-client": "other"}]
)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_the_session_of_somebody_else(
    connect: Connect,
    outside: WireCheck,
    version: str,
    other: dict[str, str],
    method: str,
    message: JsonObject,
) -> None:
    owner = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    stream = await owner.standing()
    answers = []
    for session in (owner.session, "x" * 43):
        client = Client(outside, version, path="/mcp/private", headers=other)
        headers = {"mcp-session-id": session}
        body = json.dumps(message).encode()
        visit = client.visit(method, body, headers=headers)
        await visit.body()
        answers.append((visit.status, sorted(visit.headers.items()), visit.raw))
    assert answers[0] == answers[1]
    assert answers[0][0] == (400 if message.get("method") == 7 else 404)
    await stream.quiet()
    await stream.leave()
    assert (await owner.request("tools/list")).status == 200


async def test_the_session_of_another_server(connect: Connect) -> None:
    client = await connect("2025-11-25", path="/mcp/pages")
    client.path = "/mcp"
    refused(await client.request("tools/list"), 404)


async def test_session_ids(connect: Connect) -> None:
    clients = [await connect("2025-11-25") for _ in range(10)]
    ids = {client.session or "" for client in clients}
    assert len(ids) == 10
    assert {len(each) for each in ids} == {43}
    assert all(0x21 <= ord(character) <= 0x7E for each in ids for character in each)


UNSUPPORTED: Final = ["2027-01-01", "1.0", "nonsense", "2025-11-26"]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_an_unsupported_version(client: Client) -> None:
    supported = list(SUPPORTED_VERSIONS)
    for named in UNSUPPORTED:
        headers = {"mcp-protocol-version": named}
        request = client.message("tools/list")
        found = await client.sent(request, headers)
        refused(found, 400, -32022)
        assert found.answer["id"] == request["id"]
        assert found.error["data"] == {"supported": supported, "requested": named}
        notified = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
        refused(await client.sent(notified, headers), 400, -32022)


@pytest.mark.parametrize("version", STATEFUL)
async def test_the_version_of_a_session(client: Client, version: str) -> None:
    for named in STATEFUL:
        headers = {"mcp-protocol-version": named}
        found = await client.sent(client.message("tools/list"), headers)
        # Revisions without the header do not say what it means there.
        if named == version or not client.revision.version_header:
            assert found.status == 200
        else:
            assert named in refused(found, 400)


@pytest.mark.parametrize("named", [*STATEFUL, "1.0"])
async def test_a_stateless_request_in_a_session_is_stateless(
    client: Client, named: str
) -> None:
    """The body names a version: the session is not looked at."""
    modern = Client(client.application)
    modern.session = "unknown"
    found = await modern.call("drill_whoami")
    assert found.result["structuredContent"]["session"] is False
    request = modern.message(
        "tools/list", {"_meta": {f"{PREFIX}protocolVersion": named}}
    )
    headers = {"mcp-protocol-version": named}
    refused(await modern.sent(request, headers), 400, -32022)
    refused(await modern.sent(request), 400, -32020)


# -- the stateless era ----------------------------------------------------------

Change = Callable[[JsonObject, dict[str, Any]], object]


def without_meta(name: str) -> Change:
    return lambda message, _: message["params"]["_meta"].pop(PREFIX + name)


def meta(name: str, value: object) -> Change:
    return lambda message, _: message["params"]["_meta"].update({PREFIX + name: value})


def header(name: str, value: object) -> Change:
    return lambda _, headers: headers.update({name: value})


def method(name: str) -> Change:
    return lambda message, _: message.update({"method": name})


IN_ORDER: Final[list[tuple[Change, int, int]]] = [
    (meta("protocolVersion", "2025-11-25"), 400, -32020),
    (
        lambda message, headers: (
            meta("protocolVersion", "1.0")(message, headers),
            header("mcp-protocol-version", "1.0")(message, headers),
        ),
        400,
        -32022,
    ),
    (without_meta("clientCapabilities"), 400, -32602),
    (method("nothing/at/all"), 404, -32601),
    (header("mcp-method", "tools/list"), 400, -32020),
    (header("mcp-name", "drill_echo"), 400, -32020),
]


@pytest.mark.parametrize("first", range(len(IN_ORDER)))
async def test_the_order_of_the_checks(application: WireCheck, first: int) -> None:
    client = Client(application)
    message = whole(client)
    headers: dict[str, Any] = {"mcp-method": "tools/call", "mcp-name": "drill_add"}
    for place, (change, _, _) in enumerate(IN_ORDER):
        # What is second would make header and body agree again.
        if place >= first and (first, place) != (0, 1):
            change(message, headers)
    _, status, code = IN_ORDER[first]
    found = await outcome(client.post(message, headers, routed=False))
    refused(found, status, code)
    assert found.answer["id"] == message["id"]


META: Final[list[tuple[str, object]]] = [
    ("protocolVersion", None),
    ("clientCapabilities", None),
    ("clientCapabilities", []),
    ("clientCapabilities", "all"),
    ("clientInfo", "me"),
    ("clientInfo", {"name": "me"}),
    ("clientInfo", {"name": "me", "version": 1}),
]


@pytest.mark.parametrize(("name", "value"), META)
async def test_incomplete_meta(
    application: WireCheck, name: str, value: object
) -> None:
    client = Client(application)
    message = whole(client)
    (without_meta(name) if value is None else meta(name, value))(message, {})
    found = await client.sent(message)
    assert name in refused(found, 400, -32602)


@pytest.mark.parametrize("value", [None, 7, "x", []])
async def test_meta_that_is_no_object(application: WireCheck, value: object) -> None:
    client = Client(application)
    message = client.message("tools/list")
    message["params"]["_meta"] = value
    refused(await client.sent(message), 400, -32602)


@pytest.mark.parametrize("value", [7, None, ["2026-07-28"], {}])
async def test_a_version_that_is_no_text(application: WireCheck, value: object) -> None:
    client = Client(application)
    message = client.message("tools/list")
    meta("protocolVersion", value)(message, {})
    refused(await client.sent(message), 400, -32602)
    headers = {"mcp-protocol-version": None}
    refused(await client.sent(message, headers), 400, -32602)


async def test_client_info_may_be_absent(application: WireCheck) -> None:
    client = Client(application)
    message = client.message("tools/call", {"name": "drill_whoami", "arguments": {}})
    without_meta("clientInfo")(message, {})
    found = await client.sent(message)
    assert found.result["structuredContent"]["client"] == ""


WRONG_NAMES: Final = ("=?base64?!!!?=", "=?base64?ZHJpbGxfYWRk", "drill_\xe4dd")
ROUTES: Final[dict[str, list[Any]]] = {
    "mcp-protocol-version": [None, "2025-11-25", [NEWEST, NEWEST]],
    "mcp-method": [None, "tools/list", "TOOLS/CALL", ["tools/call"] * 2],
    "mcp-name": [None, "drill_echo", ["drill_add"] * 2, *WRONG_NAMES],
}
ROUTING: Final = [{name: each} for name, values in ROUTES.items() for each in values]


@pytest.mark.parametrize("headers", ROUTING)
async def test_routing_headers(application: WireCheck, headers: dict[str, Any]) -> None:
    client = Client(application)
    found = await client.sent(whole(client), headers)
    refused(found, 400, -32020)


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-name": "=?base64?ZHJpbGxfYWRk?="},
        {"mcp-name": "  drill_add\t"},
        {"mcp-method": " tools/call "},
        {"mcp-param-region": "unasked"},
    ],
)
async def test_routing_headers_that_agree(
    application: WireCheck, headers: dict[str, Any]
) -> None:
    client = Client(application)
    assert (await client.sent(whole(client), headers)).text == "3"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "memo://fixed"}),
        ("prompts/get", {"name": "test_simple_prompt"}),
    ],
)
async def test_routed_by_name(
    application: WireCheck, method: str, params: JsonObject
) -> None:
    client = Client(application)
    assert (await client.request(method, params)).status == 200
    for wrong in (None, "another"):
        headers = {"mcp-name": wrong}
        found = await client.request(method, params, headers=headers)
        refused(found, 400, -32020)


MIRRORED: Final[list[tuple[JsonObject, dict[str, Any], int]]] = [
    ({}, {}, 200),
    ({"region": "eu"}, {"region": "eu"}, 200),
    ({"region": "\xe9"}, {"region": "=?base64?w6k=?="}, 200),
    ({"count": 42}, {"count": "042"}, 200),
    ({"count": 42}, {"count": "42.0"}, 200),
    ({"on": True}, {"on": "true"}, 200),
    ({"region": "eu"}, {}, 400),
    ({"region": "eu"}, {"region": "us"}, 400),
    ({"region": "eu"}, {"region": ["eu", "eu"]}, 400),
    ({}, {"region": "eu"}, 400),
    ({"count": 42}, {"count": "43"}, 400),
    ({"count": 42}, {"count": "forty"}, 400),
    ({"on": True}, {"on": "True"}, 400),
    ({"region": "\xe9"}, {"region": "\xe9"}, 400),
]


@pytest.mark.parametrize(("arguments", "said", "status"), MIRRORED)
async def test_mirrored_parameters(
    application: WireCheck,
    stage: Stage,
    arguments: JsonObject,
    said: dict[str, Any],
    status: int,
) -> None:
    client = Client(application)
    headers = {f"mcp-param-{name}": value for name, value in said.items()}
    params = {"name": "mirrors", "arguments": arguments}
    found = await client.request("tools/call", params, headers=headers)
    if status == 200:
        assert not found.result.get("isError")
    else:
        refused(found, 400, -32020)
    assert stage.told == (["mirrors ran"] if status == 200 else [])


async def test_sessions_mirror_nothing(client: Client) -> None:
    assert (await client.call("mirrors", region="eu")).text == "eu 0 False"


@pytest.mark.parametrize("named", ["notifications/cancelled", "notifications/made-up"])
async def test_stateless_notifications(application: WireCheck, named: str) -> None:
    client = Client(application)
    found = await client.notify(named, {"requestId": 1})
    assert (found.status, found.raw) == (202, b"")


@pytest.mark.parametrize(
    "answer", [{"result": {}}, {"error": {"code": 1, "message": ""}}]
)
async def test_a_stateless_response_is_unasked(
    application: WireCheck, answer: JsonObject
) -> None:
    client = Client(application)
    found = await client.sent({"jsonrpc": "2.0", "id": 1, **answer})
    refused(found, 400)
    assert "id" not in found.answer


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_a_response_that_nobody_asked_for(client: Client) -> None:
    for named in (1, "1", "question-1"):
        refused(await client.reply(named, {}), 400)
        error = {"code": 1, "message": "no"}
        refused(await client.reply(named, {"error": error}), 400)


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_the_id_of_a_running_request(
    connect: Connect, stage: Stage, version: str
) -> None:
    client = await connect(version)
    running = client.begin("tools/call", {"name": "waits"}, id=77)
    await stage.begun()
    found = await client.request("tools/list", id=77)
    assert "77" in refused(found, 400)
    assert found.answer["id"] == 77
    # Another type is another id, and another session has its own.
    assert (await client.request("tools/list", id="77")).status == 200
    other = await connect(version)
    assert (await other.request("tools/list", id=77)).status == 200
    stage.released.set()
    assert (await outcome(running)).text == "waited"
    assert (await client.request("tools/list", id=77)).status == 200


async def test_ids_of_the_stateless_era_never_meet(
    application: WireCheck, stage: Stage
) -> None:
    client = Client(application)
    running = [client.begin("tools/call", {"name": "waits"}, id=1) for _ in range(3)]
    await stage.begun()
    assert (await client.request("tools/list", id=1)).status == 200
    stage.released.set()
    assert [(await outcome(each)).text for each in running] == ["waited"] * 3


# -- batches --------------------------------------------------------------------

PING: Final = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
BATCHED: Final = "2025-03-26"


async def test_a_mixed_batch(connect: Connect) -> None:
    client = await connect(BATCHED)
    found = await client.sent(
        [
            PING,
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            client.message("tools/call", {"name": "nothing"}, id="e"),
            client.message("nothing", id="m"),
            client.message(
                "tools/call",
                {"name": "drill_add_sync", "arguments": {"a": 1, "b": 2}},
                id=7,
            ),
        ]
    )
    assert found.status == 200
    answers = {each["id"]: each for each in found.messages}
    assert answers.keys() == {"p", "e", "m", 7}
    assert answers["p"]["result"] == {}
    assert answers["e"]["error"]["code"] == -32602
    assert answers["m"]["error"]["code"] == -32601
    assert answers[7]["result"]["content"] == [{"type": "text", "text": "3"}]


@pytest.mark.parametrize("meta", [5, {"progressToken": 1.5}])
async def test_a_bad_request_of_a_batch_is_answered_by_itself(
    connect: Connect, meta: object
) -> None:
    client = await connect(BATCHED)
    bad = {**PING, "id": "bad", "params": {"_meta": meta}}
    found = await client.sent([PING, bad])
    answers = {each["id"]: each for each in found.messages}
    assert answers["p"]["result"] == {}
    assert answers["bad"]["error"]["code"] == -32602
    (alone,) = (await client.sent([bad])).messages
    assert (alone["id"], alone["error"]["code"]) == ("bad", -32602)


@pytest.mark.parametrize("mcp", [{"LIMITS": {"batch": 3}}])
async def test_a_batch_has_a_limit(connect: Connect) -> None:
    client = await connect(BATCHED)
    batch = [{**PING, "id": number} for number in range(1, 5)]
    assert "4 messages; at most 3 are allowed" in refused(await client.sent(batch), 400)
    assert len((await client.sent(batch[:3])).messages) == 3


@pytest.mark.parametrize("mcp", [{"LIMITS": {"depth": 8}}])
async def test_the_depth_of_a_small_body_has_the_sites_limit(connect: Connect) -> None:
    client = await connect("2026-07-28")
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    found = await client.call("drill_echo", value=deep)
    assert "more than 8" in refused(found, 400, -32700)


async def test_a_batch_without_requests(connect: Connect) -> None:
    client = await connect(BATCHED)
    notified = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    found = await client.sent([notified, notified])
    assert (found.status, found.raw) == (202, b"")


async def test_a_batch_of_wrong_messages_is_one_line_of_the_log(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    client = await connect(BATCHED)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    batch = [
        *({**cancelled, "params": {"requestId": number}} for number in range(1, 41)),
        *({**cancelled, "params": {"requestId": [number]}} for number in range(10)),
        *(client.message("nothing", id=f"m{number}") for number in range(25)),
        *(
            client.message("tools/call", {"name": "nothing"}, id=f"t{number}")
            for number in range(25)
        ),
    ]
    caplog.set_level(logging.INFO)
    found = await client.sent(batch)
    assert [each["error"]["code"] for each in found.messages].count(-32602) == 25
    # That strangers call in vain is told once a minute.
    lines = [each for each in caplog.records if each.name != "mcp_app.audit"]
    assert [each.getMessage() for each in lines] == ["A client cancelled 40 requests."]


WRONG_BATCHES: Final[list[list[Any]]] = [
    [],
    [7],
    [[PING]],
    [PING, {"jsonrpc": "2.0", "id": 1}],
    [PING, PING],
    [PING, {"jsonrpc": "2.0", "id": 1, "result": {}}],
    [PING, {"jsonrpc": "2.0", "id": 1, "method": "ping", "extra": 1}],
    [{"jsonrpc": "2.0", "id": 1, "result": {}}],
    [PING, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}],
]


@pytest.mark.parametrize("batch", WRONG_BATCHES)
async def test_wrong_batches(connect: Connect, batch: list[Any]) -> None:
    client = await connect(BATCHED)
    before = await counted()
    found = await client.sent(batch)
    refused(found, 400)
    assert found.answer["id"] is None
    assert await counted() == before


async def test_a_batch_with_progress(connect: Connect) -> None:
    client = await connect(BATCHED)
    params = {
        "name": "reports",
        "arguments": {"steps": [1, 2]},
        "_meta": {"progressToken": "t"},
    }
    found = await client.sent([PING, client.message("tools/call", params, id=1)])
    assert found.headers["content-type"] == "text/event-stream"
    told = found.notifications("notifications/progress")
    assert [each["progress"] for each in told] == [1, 2]
    assert {each["id"] for each in found.messages if "id" in each} == {"p", 1}


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
async def test_notifications(client: Client) -> None:
    for named in (
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/made/up",
        # A request is what has an id; and this is how another protocol cancels.
        "tools/list",
        "$/cancelRequest",
    ):
        found = await client.notify(named)
        assert (found.status, found.raw) == (202, b"")


async def test_t31_the_request_of_somebody_else_is_not_cancelled(
    connect: Connect, stage: Stage
) -> None:
    client, other = await connect("2025-11-25"), await connect("2025-11-25")
    running = client.begin("tools/call", {"name": "waits"}, id=1)
    await stage.begun()
    await other.notify("notifications/cancelled", {"requestId": 1})
    stage.released.set()
    assert (await outcome(running)).text == "waited"


@pytest.mark.parametrize("version", ERAS)
async def test_answers_do_not_cross(connect: Connect, version: str) -> None:
    clients = [await connect(version) for _ in range(8)]

    async def echoed(client: Client, number: int) -> bool:
        value = f"{client.session} {number}"
        params = {"name": "drill_echo", "arguments": {"value": value}}
        found = await client.request("tools/call", params, id=1 + number % 2)
        return found.text == value

    for number in range(4):
        assert all(
            await asyncio.gather(*(echoed(client, number) for client in clients))
        )


@pytest.mark.parametrize("mcp", [{"LIMITS": {"running_calls": 1}}])
@pytest.mark.parametrize("version", ERAS)
async def test_too_many_running_calls(
    connect: Connect, stage: Stage, version: str
) -> None:
    options: dict[str, Any] = {"path": "/mcp/private"}
    client = await connect(version, headers={"x-user": "a"}, **options)
    other = await connect(version, headers={"x-user": "b"}, **options)
    running = client.begin("tools/call", {"name": "waits_in_private"})
    await stage.begun()
    found = await client.request("tools/call", {"name": "open_to_all"}, id=99)
    refused(found, 429, -32603)
    assert found.answer["id"] == 99
    assert int(found.headers["retry-after"]) > 0
    assert (await other.call("open_to_all")).text == "b"
    stage.released.set()
    assert (await outcome(running)).text == "waited"
    assert (await client.call("open_to_all")).text == "a"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"running_calls": 2}}])
async def test_a_batch_counts_with_all_its_calls(connect: Connect) -> None:
    client = await connect(BATCHED, path="/mcp/private", headers={"x-user": "a"})
    pings = [{**PING, "id": number} for number in range(3)]
    assert (await client.sent(pings[:2])).status == 200
    refused(await client.sent(pings), 429, -32603)


NAMES: Final = (
    *("typed", "loose", "mirrors", "returns", "fails", "reports", "logs", "blocks"),
    *("orders", "visits", "samples", "roots", "asks_many", "orders_sync", "steps_sync"),
    *("greets", "prompt_asks", "test_prompt_with_arguments", "test_simple_text"),
    *("memo://fixed", "memo://number/7", "memo://value/json", "memo://asks", "a:b"),
)
MEMBERS: Final = (
    *("name", "uri", "arguments", "cursor", "level", "ref", "argument", "context"),
    *("value", "type", "a", "count", "kind", "which", "steps", "_meta", "requestId"),
    *("progressToken", "notifications", "resourceSubscriptions", "inputResponses"),
    *("requestState", "question_1", "action", "content", "item"),
)
TEXTS: Final = (
    "",
    "a",
    "\0",
    "\N{PARROT}",
    "1",
    "[1]",
    "tools",
    "ref/prompt",
    "accept",
)
PLAIN: Final = (None, True, 0, -1, 2**53, 2**70, 0.5, 1e300, *TEXTS, *NAMES)
CALLED: Final = ("tools/call", "tools/call", "prompts/get", "resources/read", "nothing")


def anything(rng: random.Random, depth: int = 0) -> Any:
    """Any JSON, with the words of the protocol in it."""
    if depth == 3 or rng.random() < 0.6:
        return rng.choice(PLAIN)
    if rng.random() < 0.3:
        return [anything(rng, depth + 1) for _ in range(rng.randrange(3))]
    members = rng.sample(MEMBERS, rng.randrange(4))
    return {name: anything(rng, depth + 1) for name in members}


def request(rng: random.Random, client: Client) -> JsonObject:
    """A request that is nearly right."""
    params = {name: anything(rng, 1) for name in rng.sample(MEMBERS, rng.randrange(5))}
    params |= {
        name: rng.choice(NAMES) for name in ("name", "uri") if rng.random() < 0.8
    }
    if not isinstance(params.get("_meta", {}), dict):
        del params["_meta"]
    method = rng.choice((*CALLED, *sorted(client.revision.methods)))
    return client.message(method, params)


@pytest.mark.parametrize(
    "mcp", [{"LIMITS": {"question_deadline": 0.01, "tool_timeout": 0.05}}]
)
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_whatever_comes(
    connect: Connect, caplog: pytest.LogCaptureFixture, version: str
) -> None:
    rng = random.Random(version)  # noqa: S311 - no secret
    client = await connect(version)
    for _ in range(200):
        message = request(rng, client)
        visit = client.post(message)
        is_stream = message["method"] == "subscriptions/listen"
        await (visit.message() if is_stream else visit.body())
        await visit.leave()
        assert visit.status < 500
    failures = {each.name for each in caplog.records if each.levelno >= logging.ERROR}
    assert failures <= {"mcp_app.calls"}


async def test_a_failure_of_ours(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody expects is told as such, without a word about the inside."""

    def broken(catalogs: Catalogs, slug: str) -> None:
        raise RuntimeError("the secret of the inside")

    monkeypatch.setattr(Catalogs, "serving", broken)
    found = await Client(application).request("tools/list")
    assert found.error["code"] == -32603
    assert b"secret" not in found.raw
