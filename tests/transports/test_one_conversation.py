"""One table of what a session takes, and when; each transport gives these answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import STATEFUL
from tests.asgi_client import CLIENT, EVERYTHING, PREFIX
from tests.behaviours import Stage
from tests.wire.transports import TRANSPORTS, HttpWire, Wire, close_connections

Message = dict[str, Any]
Answers = dict[Any, str]
"""By id (None: of no request), "result" or the text of the error."""

BATCHED: Final = "2025-03-26"
RUNNING: Final = 7
"""The id of the call that runs, where one does."""
CARRIERS: Final = {"http": "view", "sse": "HTTP+SSE", "stdio": "stdio", "wsgi": "wsgi"}


def initialize(version: str, number: Any = 1) -> Message:
    params = {
        "protocolVersion": version,
        "capabilities": EVERYTHING,
        "clientInfo": CLIENT,
    }
    return request("initialize", number, params)


def request(method: str, number: Any = 1, params: Message | None = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": number, "method": method}
    return message if params is None else {**message, "params": params}


def notification(method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def reply(number: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "result": {}}


def stateless(method: str, number: Any = 1) -> Message:
    meta = {f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}}
    return request(method, number, {"_meta": meta})


@dataclass
class Peer:
    """A client that has connected, and has not said anything."""

    carrier: str
    wire: Wire
    _taken: int = 0
    """How many messages that came were looked at."""

    async def says(self, value: Any, expected: int = 0) -> Answers:
        """Send a message or a batch; return the answers once so many are there.

        Where none is expected, none came before the answer to what was sent next.
        """
        await self.wire.say(value, answers=0, **_headers(value))
        probed = not expected and not isinstance(self.wire, HttpWire)
        if probed:
            await self.wire.ask("ping", id="probe")
        await self.wire.wait_for(lambda: len(self._answers()) >= expected)
        answers, self._taken = self._answers(), len(self.wire.heard)
        if probed:
            assert answers.pop("probe") == "result"
        return answers

    def _answers(self) -> Answers:
        answers: Answers = {}
        for each in self.wire.heard[self._taken :]:
            if "method" not in each:
                assert each.get("id") not in answers, self.wire.heard
                failed = each.get("error")
                answers[each.get("id")] = failed["message"] if failed else "result"
        return answers


def _headers(value: Any) -> dict[str, str]:
    """Return what a client of the stateless era says of a message over HTTP."""
    if isinstance(value, dict) and "_meta" in value.get("params", {}):
        return {"mcp_protocol_version": "2026-07-28", "mcp_method": value["method"]}
    return {}


State = Callable[[Peer, Stage], Awaitable[None]]


async def connected(peer: Peer, stage: Stage) -> None:
    """Nothing was said."""


async def initialized(peer: Peer, stage: Stage) -> None:
    await before_initialized(peer, stage)
    assert await peer.says(notification("notifications/initialized")) == {}


async def before_initialized(peer: Peer, stage: Stage) -> None:
    """The client was answered, and has not said that it is ready."""
    first = initialize(peer.wire.version, "i")
    assert await peer.says(first, 1) == {"i": "result"}


async def initializing(peer: Peer, stage: Stage) -> None:
    """The client was not answered yet."""
    await peer.wire.begin(initialize(peer.wire.version, "i"))


async def calling(peer: Peer, stage: Stage) -> None:
    """A call runs in the session."""
    await initialized(peer, stage)
    await peer.wire.begin(request("tools/call", RUNNING, {"name": "waits"}))
    await stage.begun()


@dataclass(frozen=True)
class But:
    """What a transport answers instead, and why."""

    expected: Mapping[Any, str]
    why: str


@dataclass(frozen=True)
class Row:
    """What is said in a state, and the answers by id: "result", or part of the error.

    None is the id of what answers no request: the whole of a batch, for one.
    """

    name: str
    state: State
    value: Any
    expected: Mapping[Any, str]
    versions: tuple[str, ...] = (BATCHED, "2025-11-25")
    but: Mapping[str, But] = field(default_factory=dict)


def on_http(expected: Mapping[Any, str], why: str) -> dict[str, But]:
    return {each: But(expected, why) for each in ("http", "wsgi")}


NO_SESSION: Final = (
    "On Streamable HTTP a header names the session that `initialize` opens, and a POST"
    " that names none has its answer: 400 (2025-11-25, transports, Session Management)."
)
NO_ANSWER: Final = (
    "A line that wants no answer gets none; a POST has a status in any case (400)."
)
ONE_ERA: Final = (
    "HTTP+SSE is the transport of sessions: it speaks no revision without them."
)
OTHERS: Final = tuple(each for each in STATEFUL if each != BATCHED)
PING: Final = request("ping", 2)
LIST: Final = request("tools/list", 3)
UNKNOWN: Final = notification("notifications/unknown")
STOP_IT: Final = notification("notifications/cancelled", requestId=RUNNING)
STATELESS_LIST: Final = stateless("tools/list")
TAKEN: Final = request("tools/list", RUNNING)
MODERN: Final = notification("notifications/unknown", **STATELESS_LIST["params"])
READY: Final = notification("notifications/initialized")


def told(name: str, message: Message, why: str = NO_SESSION) -> Row:
    """Return the row of a notification before `initialize`."""
    refused = on_http({None: "initialize first"}, why)
    return Row(f"{name} before initialize", connected, message, {}, but=refused)


def refused(name: str, state: State, batch: list[Any], why: str) -> Row:
    """Return the row of a batch that is refused as a whole."""
    return Row(name, state, batch, {None: why}, (BATCHED,))


NEWEST: Final = initialize("2025-11-25")
DONE: Final = "initialized already"
ANSWER: Final = reply("q")
NO_QUESTION: Final = {None: "No question"}
SILENT: Final = {"stdio": But({}, NO_ANSWER)}
FIRST: Final = "initialize first"
ALONE: Final = "single message"
BOTH: Final = {2: "result", 3: "result"}
ROWS: Final = [
    Row("initialize", connected, NEWEST, {1: "result"}),
    Row("initialize before initialized", before_initialized, NEWEST, {1: DONE}),
    Row("initialize twice", initialized, NEWEST, {1: DONE}),
    Row("initialize while a call runs", calling, NEWEST, {1: DONE}),
    Row(
        "initialize with the id of a call that runs",
        calling,
        initialize("2025-11-25", RUNNING),
        {RUNNING: DONE},
    ),
    Row(
        "initialize while another runs",
        initializing,
        NEWEST,
        {"i": "result", 1: DONE},
        but=on_http({1: "result"}, "Each opens a session of its own."),
    ),
    Row(
        "initialize in a batch at first",
        connected,
        [initialize(BATCHED), PING],
        {None: ALONE},
        but=on_http({None: FIRST}, NO_SESSION),
    ),
    refused("initialize in a batch", initialized, [PING, initialize(BATCHED)], ALONE),
    refused("it in one that cancels", calling, [STOP_IT, initialize(BATCHED)], ALONE),
    Row("a request before initialize", connected, LIST, {3: FIRST}),
    Row("an unknown request before initialize", connected, request("no"), {1: FIRST}),
    Row(
        "ping before initialize",
        connected,
        PING,
        {2: "result"},
        but=on_http({2: FIRST}, NO_SESSION),
    ),
    told("initialized", READY),
    told("cancelled", STOP_IT),
    told("an unknown notification", UNKNOWN),
    Row(
        "an answer before initialize",
        connected,
        ANSWER,
        NO_QUESTION,
        but={**on_http({None: FIRST}, NO_SESSION), **SILENT},
    ),
    Row("ping before initialized", before_initialized, PING, {2: "result"}),
    Row("a request before initialized", before_initialized, LIST, {3: "result"}),
    Row("cancelled before initialized", before_initialized, STOP_IT, {}),
    Row("an unknown one before initialized", before_initialized, UNKNOWN, {}),
    Row("an answer, too", before_initialized, ANSWER, NO_QUESTION, but=SILENT),
    Row("a batch, too", before_initialized, [PING, LIST], BOTH, (BATCHED,)),
    *(
        Row(
            f"a request without a session, {state.__name__}",
            state,
            STATELESS_LIST,
            {1: "result"},
            but={"sse": But({1: "Unsupported protocol version"}, ONE_ERA)},
        )
        for state in (connected, before_initialized, initialized)
    ),
    Row("a batch", initialized, [PING, UNKNOWN, LIST], BOTH, (BATCHED,)),
    Row("a batch of another revision", initialized, [PING], {None: ALONE}, OTHERS),
    Row("an empty batch of another", initialized, [], {None: ALONE}, OTHERS),
    Row("a batch of notifications", initialized, [UNKNOWN, STOP_IT], {}, (BATCHED,)),
    refused("an empty batch", initialized, [], "at least one"),
    refused("one in another", initialized, [UNKNOWN, [PING]], "Message 2 of the batch"),
    refused("an id twice", initialized, [PING, {**LIST, "id": 2}], "the same id"),
    refused("answers and requests", initialized, [PING, ANSWER], "not both"),
    refused("both eras", calling, [STOP_IT, PING, STATELESS_LIST], "stateless era"),
    refused("a notification of it", calling, [STOP_IT, PING, MODERN], "stateless era"),
    refused("a running id in it", calling, [STOP_IT, PING, TAKEN], "is running"),
    Row("an id that runs", calling, request("ping", RUNNING), {RUNNING: "is running"}),
    Row("a request while another runs", calling, LIST, {3: "result"}),
]


@pytest.fixture(params=CARRIERS)
async def peer(
    request: pytest.FixtureRequest,
    version: str,
    process: Process,
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Peer]:
    """A client of each transport in turn."""
    monkeypatch.setattr(background, "_loop", process.loop)
    async with TRANSPORTS[CARRIERS[request.param]](process, version, "") as wire:
        yield Peer(request.param, wire)
        stage.released.set()
    close_connections()


@pytest.mark.parametrize(
    ("row", "version"),
    [
        pytest.param(row, version, id=f"{row.name}, {version}")
        for row in ROWS
        for version in row.versions
    ],
)
async def test_what_is_said_when(peer: Peer, row: Row, stage: Stage) -> None:
    await row.state(peer, stage)
    otherwise = row.but.get(peer.carrier)
    expected = row.expected if otherwise is None else otherwise.expected
    answers = await peer.says(row.value, len(expected))
    assert _shortened(answers, expected) == expected
    # What is refused does nothing: the call goes on.
    assert stage.told == []


def _shortened(answers: Answers, expected: Mapping[Any, str]) -> Answers:
    """Return the answers with those parts of errors that are expected."""
    return {
        number: part if (part := expected.get(number, "")) and part in said else said
        for number, said in answers.items()
    }
