"""Plain calls answer as all others do, to the byte, and never skip a check."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Final

import pytest
from django.contrib.auth.models import Group, User
from django.db import connections
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mcp_app.auth.token_cache import TokenCache, token_cache
from mcp_app.models import AccessToken, Server, Tool
from mcp_app.pools.database import writer
from mcp_app.process.callers import Callers
from mcp_app.process.rates import Rates
from mcp_app.process.runtime import Process
from mcp_app.protocol.envelope import CallTemplate
from mcp_app.transports import addresses
from mcp_app.transports.http import plain_call, request_handler
from mcp_app.transports.http.plain_call import PlainCall
from mcp_app.transports.http.plain_headers import KnownHeaders, PlainHeaders
from mcp_app.transports.http.stateless_call import StatelessCall
from tests.asgi_client import Client
from tests.marks import long_cases
from tests.published import published, start, stopped
from tests.server.context_managers import told
from tests.streams.logging_rows import until
from tests.transports.http.differing import (
    ADD,
    HEADERS,
    META,
    PREFIX,
    VERSION,
    Both,
    Request,
    Step,
    call,
    changed,
    encoded,
    message,
    planted,
)
from tests.transports.http.recorded import recorded
from tests.wire.middleware import WireCheck

pytestmark = pytest.mark.databases

OTHER_META: Final = {**META, f"{PREFIX}clientInfo": {"name": "other", "version": "2"}}
DEEP: Final[Any] = json.loads("[" * 70 + "]" * 70)
ODD_META: Final[list[Any]] = [
    {},
    None,
    [],
    {**META, "progressToken": 3},
    {**META, "progressToken": {}},
    {**META, f"{PREFIX}logLevel": "debug"},
    {**META, f"{PREFIX}logLevel": "loud"},
    {**META, f"{PREFIX}protocolVersion": "2026-07-27"},
    {**META, f"{PREFIX}protocolVersion": "2025-11-25"},
    {**META, f"{PREFIX}protocolVersion": 2026},
    {**META, f"{PREFIX}clientCapabilities": []},
    {**META, f"{PREFIX}clientCapabilities": {"elicitation": {}}},
    {**META, f"{PREFIX}clientInfo": {"name": "x"}},
    {**META, f"{PREFIX}clientInfo": {"name": 1, "version": "1"}},
    {**META, f"{PREFIX}clientInfo": "x"},
    {**META, "example.org/more": 1},
    {**META, f"{PREFIX}clientCapabilities": {"experimental": DEEP}},
    {key: META[key] for key in META if not key.endswith("clientInfo")},
    {key: META[key] for key in META if not key.endswith("Capabilities")},
    {key: META[key] for key in META if not key.endswith("Version")},
    {**META, f"{PREFIX}clientInfo": {"name": "long", "version": "1" * 3_000}},
    # It comes after one that is too long to be kept.
    None,
]
ODD_VALUES: Final[dict[str, list[Any]]] = {
    "host": ["evil.example", None, ["localhost", "localhost"]],
    "origin": ["https://evil.example", "http://localhost", ""],
    "accept": ["application/json", "text/event-stream", "text/html", None, "*/*;q=0"],
    "content_type": ["text/plain", 'application/json; charset="utf-8"', None],
    "content_encoding": ["gzip", "identity"],
    "content_length": ["99999999999", "20"],
    "mcp_protocol_version": [None, "2025-11-25", "1999-01-01", f" {VERSION}"],
    "mcp_method": [None, "tools/list", " tools/call", ["tools/call", "tools/call"]],
    "mcp_name": [
        *(None, "weather", " drill_add ", "=?base64?ZHJpbGxfYWRk?="),
        *("=?base64?ZHJpbGxfYWR?=", ["drill_add"] * 2, ["drill_add", "weather"]),
    ],
    "mcp_param_a": ["1"],
    "mcp_session_id": ["abc"],
    "authorization": ["Bearer mcp_nothing", ["Basic eDp5", "Basic eDp5"]],
    "x_user": ["maria"],
    "traceparent": ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
    "cookie": [["a=b", "c=d"]],
    "x_large": ["y" * 70_000],
}
ODD_HEADERS: Final[list[dict[str, Any]]] = [
    *({name: each} for name, values in ODD_VALUES.items() for each in values),
    {"mcp_protocol_version": [VERSION, VERSION]},
    {f"x_{number}": "y" for number in range(300)},
]
ODD_IDS: Final = (None, 1.5, -1, 2**60, True, "", "ü" * 9, "x" * 300)
ODD_MEMBERS: Final[list[dict[str, Any]]] = [
    *({"jsonrpc": each} for each in ("1.0", 2.0)),
    *({"id": each} for each in ODD_IDS),
    *({"method": each} for each in ("tools/list", "nothing")),
    {"params": []},
    {"params": None},
    {"result": {}},
    {"more": 1},
]
ODD_PARAMS: Final[list[dict[str, Any]]] = [
    {"name": "drill_add"},
    {"name": "drill_add", "arguments": None},
    {"name": "drill_add", "arguments": []},
    {"name": None, "arguments": {}},
    {"name": {}, "arguments": {}},
    {"name": "nothing", "arguments": {}},
    {**ADD, "name": "nothing"},
    {**ADD, "requestState": "x"},
    {**ADD, "inputResponses": {}},
    {**ADD, "task": {}},
]
ODD_ARGUMENTS: Final[list[dict[str, Any]]] = [
    {},
    {"a": 1},
    {"a": 1, "b": 2, "c": 3},
    {"a": 1, "c": 3},
    {"a": "1", "b": "2"},
    {"a": 1.0, "b": 2},
    {"a": 1.5, "b": 2},
    {"a": True, "b": 2},
    {"a": 2**62, "b": 2**62},
    {"a": 2**70, "b": -(2**70)},
    {"b": 2, "a": 1},
]
IDS: Final = (
    *(b"8", b"0", b"10", b"07", b"00", b"-7", b"7.0", b"7e1", b'"7"', b"", b" 7"),
    *(b"1" * 15, b"1" * 16, b"1" * 17, b"9" * 40, b"7,8", b"[7]", b"\xb2", b"null"),
)
ARGUMENTS: Final = (
    b'"arguments":{"b":2,"a":1}',
    b'"arguments":{"a":1,"b":2,"a":1}',
    b'"arguments":{"a":1, "b":2}',
    b'"arguments":{"a":1,"b":2.0}',
    b'"arguments":{"a":1,"b":2},"arguments":{"a":1,"b":2}',
    b'"arguments":{"a":1,"b":2},"requestState":"x"',
    b'"arguments":{"a":1,"b":NaN}',
    b'"arguments":{"a":1,"b":"\\ud800"}',
    b'"arguments":{"a":1,"b":18446744073709551616}',
    b'"arguments":{"a":1,"b":[[[]]]}',
    b'"arguments":[1,2]',
    b'"arguments":{}',
    b'"arguments":',
    b'"arguments":null',
)
TOOLS: Final = [
    call("typed", count=3, names=["a"], options={"b": 1}),
    call("typed", count=3, kind="c"),
    call("loose", anything=DEEP),
    call("weather", place="Rome"),
    call("weather"),
    call("prints"),
    call("blocks"),
    call("marked"),
    call("dated", day="2026-01-01"),
    call("dated", day="yesterday"),
    call("mirrors", header="mirrors"),
    call("large", size=40),
    call("large", size=3_000_000),
    call("drill_whoami"),
    call("drill_secret"),
    call("logs"),
    call("logs", header="other"),
    *(call("returns", which=each) for each in ("nan", "surrogate", "huge integer")),
    *(call("returns", which=each) for each in ("none", "nul", "object", "unknown")),
    *(call("returns", which=each) for each in ("terminal", "hidden")),
    *(call("broken_promise", kind=each) for each in ("other", "none", "error")),
    *(call("fails", kind=each) for each in ("tool error", "content", "cannot", "x")),
    call("fails", kind="terminal"),
    *(call("fails", kind=each) for each in ("exit", "cancelled", "stop")),
    call("hangs"),
    call("hangs_sync"),
    call("survives"),
]
IN_THREADS: Final = [
    *(call("drill_add_sync", **each) for each in ODD_ARGUMENTS),
    call("drill_add_sync", header="drill_add", a=1, b=2),
    *(call("large_sync", size=each) for each in (40, 3_000_000)),
    *(call("returns_sync", which=each) for each in ("nan", "none", "object", "nul")),
    *(call("fails_sync", kind=each) for each in ("tool error", "content", "x")),
    *(call("fails_sync", kind=each) for each in ("cannot", "exit", "stop")),
    *(call(each) for each in ("rows", "rows_of_database", "logs_sync")),
    call("reports_sync", count=2),
]
"""Tools that do not run on the loop."""
PLACES: Final = [
    call("drill_add", path=path, a=1, b=2)
    for path in ("/mcp/", "/mcp/nothing", "/mcp/private", "/mcp/off", "/mcp?a=b")
]
_PARAMS: Final = {**ADD, "_meta": META}
_LAST: Final = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": _PARAMS}
_FIRST: Final = {"method": "tools/call", "params": _PARAMS, "jsonrpc": "2.0", "id": 7}
NEARLY: Final[list[bytes]] = [
    changed_text
    for order in (_LAST, _FIRST)
    for usual in [encoded(order)]
    for changed_text in (
        *[usual] * 3,
        *(usual.replace(b'"id":7', b'"id":' + each) for each in IDS),
        *(usual.replace(b'"arguments":{"a":1,"b":2}', each) for each in ARGUMENTS),
        *(usual.replace(b"{}", each) for each in (b"{ }", b"[]", b"{}}", b'{"a":1}')),
        usual.replace(b'"method"', b'"method":"tools/call","method"'),
        usual.replace(b'"2.0"', b'"2.1"'),
        usual.replace(b'"_meta"', b'"_meta":{},"_meta"'),
        usual + b"\n",
        b" " + usual,
        usual[:-1],
        usual[1:],
        usual + usual,
        usual.replace(b"drill_add", b"drill_ado"),
    )
]
"""Texts that are nearly those of the last call, of both SDKs."""
CORPUS: Final[list[Request]] = [
    call("drill_add", a=1, b=2),
    *(Request(encoded(message(meta=meta))) for meta in ODD_META),
    *(Request(encoded(message()), changed(**each)) for each in ODD_HEADERS),
    *(Request(encoded({**message(), **each})) for each in ODD_MEMBERS),
    *(Request(encoded(message(each))) for each in ODD_PARAMS),
    *(call("drill_add", **each) for each in ODD_ARGUMENTS),
    *TOOLS,
    *IN_THREADS,
    *PLACES,
    Request(b""),
    Request(b"{"),
    Request(b"[]"),
    Request(b'"x"'),
    Request(b"\xff"),
    Request(encoded([message()])),
    Request(encoded({**message(), "params": {"a": [[[]]] * 40}})),
    Request(b'{"id":1,' + encoded(message())[1:]),
    Request(encoded(message()) + b" "),
    Request(encoded(message()), pieces=2),
    Request(encoded(message()) + b"x" * len(encoded(message())), pieces=2),
    Request(encoded(message()), pieces=3),
    Request(encoded({key: message()[key] for key in ("jsonrpc", "method", "params")})),
    Request(encoded({"jsonrpc": "2.0", "id": 7, "method": "tools/call"})),
    Request(b"[" * 70 + b"]" * 70),
    Request(encoded(message({**ADD, "arguments": {"a": [[]] * 70, "b": 1}}))),
    Request(b" " * 5_000_000),
]


PARTS: Final = [CORPUS[start : start + 40] * 2 for start in range(0, len(CORPUS), 40)]
"""Each twice: the second time, more is known."""


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {
        "AUTHENTICATION": {
            "token": "mcp_app.authentication.access_token",
            "header": "tests.serving.by_header",
        }
    }


async def _write_nothing(_: TokenCache) -> None:
    """Leave everything as it is."""


@pytest.fixture
async def both(
    application: WireCheck, process: Process, monkeypatch: pytest.MonkeyPatch
) -> Both:
    await process.gate.wait_for_check()
    # A machine that is busy for a moment makes no request late.
    monkeypatch.setattr(plain_call, "LATE_AFTER_S", 60.0)
    monkeypatch.setattr(request_handler, "LATE_AFTER_S", 60.0)
    # Uses are looked at; what writes them now and then takes them away.
    monkeypatch.setattr(TokenCache, "write_uses", _write_nothing)
    return Both(application, process, monkeypatch)


async def test_the_corpus_is_answered_alike(both: Both) -> None:
    twice = [each for each in CORPUS for _ in range(2)]
    assert await both.differences(twice) == []
    assert both.plain > 60


@pytest.mark.parametrize(
    "mcp",
    [
        {},
        {"CALL_CONTEXT_MANAGERS": ["tests.server.context_managers.noting"]},
        {"AUDIT": "strict"},
    ],
)
@pytest.mark.parametrize("is_atomic", [False, True])
async def test_calls_in_threads_are_answered_alike(
    both: Both, mcp: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_atomic: bool
) -> None:
    monkeypatch.setitem(connections.settings["default"], "ATOMIC_REQUESTS", is_atomic)
    told.clear()
    assert await both.differences(IN_THREADS) == []
    # How many of the others are plain depends on how busy the machine is.
    assert not both.plain or "AUDIT" not in mcp
    ours, theirs = told[: len(told) // 2], told[len(told) // 2 :]
    assert ours == theirs
    assert bool(ours) is ("CALL_CONTEXT_MANAGERS" in mcp)
    seen = await both.seen(call("rows"))
    assert encoded(is_atomic) in seen.body


async def test_what_is_nearly_the_last_call_is_answered_alike(both: Both) -> None:
    assert await both.differences([Request(each) for each in NEARLY]) == []
    assert both.plain > 20


async def test_calls_of_real_clients_are_answered_alike(both: Both) -> None:
    calls = recorded()
    assert await both.differences(calls) == []
    assert both.plain >= len(calls) / 8


BY: Final = "/mcp/by-token"


def bearing(token: str, request: Request | None = None) -> Request:
    request = request or call("drill_add", a=1, b=2)
    headers = (*request.headers, ("authorization", f"Bearer {token}"))
    return Request(request.body, headers, BY, request.pieces)


WRONG: Final = (
    {"host": "evil.example"},
    {"origin": "https://evil.example"},
    {"accept": "text/html"},
)


class Crowd:
    """Users with tokens of a server for a group, and what happens to them."""

    def __init__(self, process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
        self._process = process
        self._patched = monkeypatch
        self.rows: list[Any] = []

    def make(self) -> None:
        self.server = published(
            Server(slug="by-token", access="token", groups="insiders")
        )
        self.group = Group.objects.create(name="insiders")
        self.alice = User.objects.create_user("alice")
        self.bob = User.objects.create_user("bob")
        self.alice.groups.add(self.group)
        self.rows = [self.server, self.group, self.alice, self.bob]
        self.row, self.token = self.both(self.alice)
        self.reading = self.new(self.alice, may="read")
        self.outside = self.new(self.bob)
        self.ending = self.new(
            self.alice, expires=timezone.now() + timedelta(minutes=5)
        )
        self.elsewhere = self.new(self.alice, servers=[Server.objects.get(slug="off")])

    def both(self, user: Any, **columns: Any) -> tuple[AccessToken, str]:
        """Return the row of a new token, and the token."""
        columns = {"may": "change", "name": "a laptop", **columns}
        return AccessToken.objects.make(user=user, **columns)

    def new(self, user: Any, **columns: Any) -> str:
        return self.both(user, **columns)[1]

    def erase(self) -> None:
        for row in self.rows:
            row.delete()

    def _changing(self, change: Callable[..., Any], *given: Any) -> Step:
        async def step() -> None:
            await writer.run(change, *given)
            await self._process.gate.wait_for_check()

        return step

    def steps(self) -> list[Step]:
        """Return requests of them all, between which their rights change."""
        everybody = [
            bearing(each)
            for each in (self.token, self.reading, self.outside, self.ending)
            for _ in range(3)
        ]
        others = [
            bearing(self.elsewhere),
            bearing(f"{self.token}x"),
            bearing(self.reading, call("marked")),
            bearing(self.token, call("marked")),
            Request(call("drill_add", a=1, b=2).body, HEADERS, BY),
            Request(bearing(self.token).body, bearing(self.token).headers, "/mcp"),
        ]
        return [
            *everybody,
            *others,
            *(self._of_another(**each) for each in WRONG),
            self._changing(self.alice.groups.clear),
            *everybody,
            self._changing(self.alice.groups.add, self.group),
            *everybody,
            self._changing(self._revoke, timezone.now()),
            *everybody,
            self._changing(self._revoke, None),
            *everybody,
            self._at(timedelta(hours=1)),
            *everybody,
            self._at(timedelta(0)),
            *everybody,
            self._changing(self._stop),
            *everybody,
            self._changing(self._start),
            *everybody,
        ]

    def _of_another(self, **headers: str) -> Request:
        """Return a request with a good token that must not be looked at."""
        good = bearing(self.token)
        token = dict(good.headers)["authorization"]
        return Request(good.body, changed(authorization=token, **headers), BY)

    def _revoke(self, when: Any) -> None:
        self.row.revoked = when
        self.row.save()

    def _stop(self) -> None:
        stopped(Tool.objects.get(name="drill_add"))

    def _start(self) -> None:
        start(Tool.objects.get(name="drill_add"))

    def _at(self, later: timedelta) -> Step:
        now = timezone.now

        async def step() -> None:
            self._patched.setattr(
                "mcp_app.auth.token_cache.timezone.now",
                (lambda: now() + later) if later else now,
            )

        return step


@pytest.fixture
async def crowd(
    both: Both, process: Process, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Crowd]:
    made = Crowd(process, monkeypatch)
    token_cache.forget_all()
    await writer.run(made.make)
    await process.gate.wait_for_check()
    yield made
    await writer.run(made.erase)
    token_cache.forget_all()


async def test_who_asks_is_found_alike(both: Both, crowd: Crowd) -> None:
    steps = [*crowd.steps(), *recorded(path=BY, token=crowd.token)]
    assert await both.differences(steps) == []
    assert both.plain > 30


async def test_no_principal_is_that_of_another(both: Both, crowd: Crowd) -> None:
    """200 tokens in turn: each call has the family of its own in the call log."""
    made = []
    for number in range(200):
        user = crowd.alice if number % 3 else crowd.bob
        made.append(await writer.run(crowd.both, user))
    for _ in range(3):
        for row, token in made:
            seen = await both.seen(bearing(token))
            if row.user_id == crowd.bob.pk:
                assert (seen.status, seen.record) == (403, ())
                continue
            ((circumstances, *_),) = seen.record
            assert circumstances[8] == row.family
            assert (circumstances[6], circumstances[7]) == (
                str(crowd.alice.pk),
                "alice",
            )


SLOW: Final = {
    **{"tool_rate": 5, "tool_burst": 5},
    **{"request_rate": 11, "request_burst": 11, "batch": 11},
}
"""So few that what comes back within a test allows no call more."""


async def forget_charges(rates: Rates) -> None:
    for buckets in (rates._persons, rates._addresses):
        for each in (*buckets._new.values(), *buckets._old.values()):
            each.full = 0.0


@pytest.mark.parametrize(
    "mcp",
    [
        {
            "AUTHENTICATION": {"token": "mcp_app.authentication.access_token"},
            "LIMITS": SLOW,
        }
    ],
)
async def test_t20_who_calls_too_often_is_refused_alike(
    both: Both, process: Process, crowd: Crowd
) -> None:
    """First by a result that a model reads, then at the door; with any token."""

    forget = partial(forget_charges, process.rates)
    tokens = [crowd.token, crowd.ending]
    fails, nothing = call("fails", kind="tool error"), call("nothing")
    steps: list[Step] = [
        forget,
        *[bearing(each) for each in tokens * 3],
        bearing(crowd.outside),
        bearing(crowd.token, fails),
        *[bearing(crowd.token, nothing)] * 2,
        bearing(crowd.token, Request(b"{", pieces=2)),
        *[bearing(each) for each in tokens * 2],
        Request(call("drill_add", a=1, b=2).body, HEADERS, BY),
    ]
    assert await both.differences(steps) == []
    assert both.plain >= 2
    await forget()
    seen = [await both.seen(each) for each in steps[1:] if isinstance(each, Request)]
    assert [b"too often" in each.body for each in seen].count(True)
    assert [each.status for each in seen].count(429)
    text, instead = "return rates.admits(charge, now)", "return True"
    with planted(PlainCall, "_is_within_rates", text, instead):
        assert await both.differences(steps)


_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Draw a request with few things that are odd."""
    name = draw(st.sampled_from(["drill_add", "drill_add_sync"]))
    changes: dict[str, Any] = {"mcp_name": name}
    params: dict[str, Any] = {"name": name, "arguments": draw(_SUMS)}
    meta: Any = draw(st.sampled_from([META, OTHER_META]))
    members: dict[str, Any] = {"id": draw(_IDS)}
    for odd in draw(st.lists(st.sampled_from(_ODD), max_size=2)):
        if odd == "headers":
            changes |= draw(st.sampled_from(ODD_HEADERS))
        elif odd == "meta":
            meta = draw(st.sampled_from(ODD_META) | _JSON)
        elif odd == "params":
            params = draw(st.sampled_from(ODD_PARAMS))
        elif odd == "arguments":
            params["arguments"] = draw(st.sampled_from(ODD_ARGUMENTS) | _JSON)
        else:
            members = draw(st.sampled_from(ODD_MEMBERS))
    body = draw(st.sampled_from([encoded, _spaced]))
    pieces = draw(st.sampled_from([1] * 9 + [2]))
    value = {**message(params, meta), **members}
    return Request(body(value), changed(**changes), pieces=pieces)


_ODD: Final = ("headers", "meta", "params", "arguments", "members")
_SUMS: Final = st.fixed_dictionaries({"a": st.integers(), "b": st.integers()})
_IDS: Final = st.integers(0, 2**53 - 1) | st.text(min_size=1, max_size=9)


def _spaced(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def drawn(count: int) -> list[Request]:
    found: list[Request] = []

    @settings(
        max_examples=count,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(requests())
    def draw(request: Request) -> None:
        found.append(request)

    draw()
    return found


@pytest.mark.parametrize("count", [1_000, *long_cases(20_000)])
async def test_drawn_requests_are_answered_alike(both: Both, count: int) -> None:
    assert await both.differences(drawn(count)) == []
    assert both.plain > count // 5


# -- faults that must be found --------------------------------------------------------

Fault = tuple[Any, str, str, str]


def faults(owner: Any, name: str, *changes: tuple[str, str, str]) -> dict[str, Fault]:
    """Return faults of one function: why, its text, and what stands instead."""
    return {why: (owner, name, text, instead) for why, text, instead in changes}


NO: Final = "type(meta) is not dict"
FAULTS: Final[dict[str, Fault]] = {
    **faults(
        KnownHeaders,
        "of",
        ("the Host is not in the key", 'get(b"host"),', ""),
        ("the Origin is not in the key", 'get(b"origin"),', ""),
        ("Accept is not in the key", 'get(b"accept"),', ""),
        ("the type is not in the key", 'get(b"content-type"),', ""),
    ),
    **faults(
        PlainHeaders,
        "accept_meta",
        ("a _meta that is not plain", "not is_plain_meta(meta, self.revision)", NO),
    ),
    **faults(
        StatelessCall,
        "_is_of_its_era",
        ("any _meta is the last one", "meta ==", "0 !="),
        ("state of an earlier round", "len(params) != _PARAMS", "False"),
        ("a deep _meta", "self._check_depth(body)", "0"),
    ),
    **faults(
        StatelessCall,
        "_known_tool",
        ("another name", "header == name.encode()", "True"),
        ("another name, again", "tool.entry.definition.name == name", "True"),
        (
            "who asked before is in the log",
            "known_tools.get(key)",
            "next((t for (_, n, _s), t in known_tools.items() if n == header), None)",
        ),
    ),
    **faults(
        StatelessCall,
        "_expected_tool",
        (
            "the last client's template",
            "key = self.caller,",
            "key = next(iter(known_headers.tools), (self.caller,))[0],",
        ),
    ),
    **faults(
        PlainCall,
        "is_admitted",
        ("a second Mcp-Name", "len(raw) != len(pairs)", "False"),
        ("many headers", "len(pairs) > MOST_HEADERS", "False"),
        ("large headers", "> MOST_HEADER_BYTES", "< 0"),
    ),
    **faults(
        PlainCall,
        "_is_callable",
        ("arguments that do not fit", "not plain.fits(arguments)", "False"),
        ("deep arguments", "self._check_depth(body)", "0"),
    ),
    "an unseen tool": (PlainCall, "_find_tool", "not is_visible", "0 and is_visible"),
    "a wrong version": (PlainCall, "_is_plain", 'value["jsonrpc"] == "2.0"', "True"),
    "half": (PlainCall, "_is_recognised", 'message.get("more_body", False)', "False"),
    "a result that is too large": (PlainCall, "_encode_answer", "len(result) >", "0 >"),
    "the method's header": (addresses, "_plain_call", "== ENCODED_METHOD", "!= b''"),
    "one digest for all": (
        Callers,
        "at",
        'blake2s(raw.get(b"authorization", b"")',
        'blake2s(b""',
    ),
    **faults(
        Callers,
        "at",
        ("a generation not looked at", "self._generation != process.generation", "0"),
        ("the token's end", "caller.token.ends is not None", "False"),
        ("a use not noted", "token_cache.note_token_use(caller.token)", "0"),
    ),
}
TEMPLATE_FAULTS: Final = faults(
    CallTemplate,
    "read",
    ("arguments that are not strict", "dumps(arguments) == text", "True"),
    ("another text after the arguments", "not fits", "False"),
    ("another text around the id", "(left, right) != self._texts", "False"),
)


@pytest.mark.parametrize("fault", TEMPLATE_FAULTS)
async def test_a_fault_of_templates_is_found(
    both: Both, application: WireCheck, fault: str
) -> None:
    with planted(*TEMPLATE_FAULTS[fault]):
        assert await both.differences([Request(each) for each in NEARLY])
    application.violations.clear()


# Each kind of key has one here: headers, name, credential, generation.
FIRST_FAULTS: Final = (
    "a second Mcp-Name",
    "one digest for all",
    "a generation not looked at",
    "the token's end",
)


@pytest.mark.parametrize(
    "fault",
    [
        *FIRST_FAULTS,
        *long_cases(*(each for each in FAULTS if each not in FIRST_FAULTS)),
    ],
)
async def test_a_fault_is_found(
    both: Both, crowd: Crowd, application: WireCheck, fault: str
) -> None:
    with planted(*FAULTS[fault]):
        assert await both.differ(*PARTS, crowd.steps())
    # What is sent with a fault may be wrong.
    application.violations.clear()


@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.usefixtures("each_way")
async def test_a_body_that_comes_too_slowly(
    application: WireCheck,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
    stopping: bool,
) -> None:
    await process.gate.wait_for_check()
    visit = Client(application).visit(
        "POST",
        headers={"mcp-method": "tools/call", "mcp-name": "drill_add"},
        body=encoded(message())[:20],
        complete=False,
    )
    await until(lambda: process.uploads._reading)
    monkeypatch.setattr(process, "stopping", stopping)
    process.uploads.give_up_all()
    answer = await visit.json()
    assert visit.status == (503 if stopping else 408)
    said = "stopping" if stopping else "did not arrive in time"
    assert said in answer["error"]["message"]
    assert not process.uploads._reading


@pytest.mark.parametrize(
    "request_",
    [call("drill_add", a=1, b=2), call("blocks"), call("fails", kind="tool error")],
)
async def test_a_call_leaves_no_cycle(both: Both, request_: Request) -> None:
    made: list[weakref.ref[PlainCall]] = []
    run = StatelessCall.serve

    async def serve(each: StatelessCall) -> None:
        made.append(weakref.ref(each))
        await run(each)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatelessCall, "serve", serve)
        gc.disable()
        try:
            for _ in range(3):
                await both.seen(request_)
            await asyncio.sleep(0)
        finally:
            gc.enable()
    assert made
    assert [each() for each in made] == [None] * len(made)


async def test_a_call_as_always_has_no_cached_property(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CPython 3.11 one costs a seventh of a call: it makes a dictionary."""
    lazy = {
        name
        for each in StatelessCall.__mro__
        for name, value in vars(each).items()
        if isinstance(value, cached_property)
    }
    made: list[set[str]] = []
    record = PlainCall._record

    def noting(each: PlainCall, body: bytes) -> None:
        made.append(lazy & set(vars(each)))
        record(each, body)

    monkeypatch.setattr(PlainCall, "_record", noting)
    for _ in range(4):
        await both.seen(call("drill_add", a=1, b=2))
    assert lazy
    assert made[-1] == set()


@pytest.mark.parametrize(
    "request_", [call("drill_add", a=1, b=2), call("fails", kind="tool error")]
)
@pytest.mark.usefixtures("each_way", "application")
async def test_what_cannot_be_sent_is_logged(
    process: Process, caplog: pytest.LogCaptureFixture, request_: Request
) -> None:
    await process.gate.wait_for_check()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request_.body, "more_body": False}

    async def send(_: Any) -> None:
        raise RuntimeError("The server program is broken.")

    headers = [(name.encode(), value.encode()) for name, value in request_.headers]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    for _ in range(2):
        caplog.clear()
        await addresses.endpoint(scope, receive, send, slug="default")
        assert "A request failed." in caplog.messages
    assert not len(process.running)
    caplog.clear()
