"""Nobody reaches what is another's: each thing that can be sent, by everybody.

The table of `matrix.py` is held against the methods that the server knows, and each of
its cells against the endpoint, with real tokens.  What is found wrong is told together.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, TypeAlias, cast

import pytest

from mcp_app.interface.principal import Principal
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import REVISIONS, STATELESS
from mcp_app.server.events import STREAM
from mcp_app.server.handlers import HANDLERS
from mcp_app.server.subscriptions import METHOD as LISTEN
from mcp_app.transports.stdio.connection import NotServed
from tests.asgi_client import PREFIX, Client, outcome
from tests.attacks import matrix
from tests.attacks.callers import (
    Bytes,
    Callers,
    Victim,
    callers,
    of_era,
    read,
    sent,
    victim,
    whole,
    without_streams,
)
from tests.auth.issuers.loopback_issuer import LoopbackIssuer, loopback_issuer
from tests.behaviours import Stage
from tests.marks import NEWEST_FIRST, STATEFUL_NEWEST_FIRST, long_cases
from tests.oauth.program import ORIGIN, WAYS
from tests.old_client import OldClient
from tests.serving import _nothing_untold
from tests.transports.stdio.test_connection import META, Channel, called
from tests.wire.middleware import WireCheck

NEWEST: Final = "2026-07-28"
ON_HTTP: Final = list(matrix.pairs(matrix.HTTP, matrix.WSGI, matrix.SSE))
MIDDLE: Final = ("2025-03-26", "2025-06-18")
"""Revisions that the other transports treat as Streamable HTTP does."""
OTHERS_ON_HTTP: Final = [
    *(each for each in ON_HTTP if each[0] == matrix.HTTP or each[1] not in MIDDLE),
    *long_cases(
        *(each for each in ON_HTTP if each[0] != matrix.HTTP and each[1] in MIDDLE)
    ),
]
OWN_ON_HTTP: Final = [
    *((transport, version, matrix.OWN) for transport, version in ON_HTTP),
    *((matrix.HTTP, NEWEST, owner) for owner in matrix.OWNERS if owner != matrix.OWN),
    *long_cases(
        *(
            (transport, version, owner)
            for transport, version in ON_HTTP
            for owner in matrix.OWNERS
            if owner != matrix.OWN and (transport, version) != (matrix.HTTP, NEWEST)
        )
    ),
]
RATED: Final = [
    *((matrix.HTTP, version) for version in (NEWEST, "2025-03-26")),
    (matrix.SSE, "2024-11-05"),
    *long_cases(*((transport, version) for transport, version in ON_HTTP)),
]
HOUR_S: Final = 3_600
TALE: Final = {"roots": [{"uri": "file:///mine", "name": "mine"}]}
Opened: TypeAlias = Callable[..., Any]


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackIssuer]:
    with loopback_issuer() as made:
        yield made


@pytest.fixture
def mcp(issuer: LoopbackIssuer) -> dict[str, Any]:
    # The "header" of other tests is missing: a server that names it is closed.
    ways = {**WAYS, "keycloak": issuer.entry()}
    return {"AUTHENTICATION": ways, "PUBLIC_URL": ORIGIN, "HOSTS": ["*"]}


@pytest.fixture
async def who(process: Process, issuer: LoopbackIssuer) -> AsyncIterator[Callers]:
    async with callers(issuer) as made:
        # So that no stream of a test is told of these rows.
        await _nothing_untold(process)
        yield made


@pytest.fixture
def served(application: WireCheck) -> Callable[[str], WireCheck]:
    def on(transport: str) -> WireCheck:
        if transport == matrix.WSGI:
            application._application = without_streams
        return application

    return on


# -- the table ------------------------------------------------------------------------


def test_every_method_has_a_row() -> None:
    spoken = frozenset[str]().union(*(each.methods for each in REVISIONS.values()))
    assert spoken == {*HANDLERS, LISTEN, STREAM}
    # These have their own, in tests/tasks, tests/events and test_skills.py.
    apart = ("tasks/", "events/", "skills/", "resources/directory/")
    others = {each for each in spoken if each.startswith(apart)}
    assert set(matrix.REQUESTS) == spoken - others


def test_cells_that_cannot_be_name_cells() -> None:
    for some in matrix.CANNOT.values():
        for transport, version, row in some:
            assert transport in matrix.TRANSPORTS
            assert version in REVISIONS
            assert row in matrix.ROWS
    for transport, caller in matrix.NO_SUCH_CALLER:
        assert transport in matrix.TRANSPORTS
        assert caller in set(matrix.CALLERS) - {matrix.OWN}


# -- with what is somebody else's -----------------------------------------------------


async def send_row(
    row: str, target: Victim, site: WireCheck, path: str, headers: dict[str, str]
) -> Bytes:
    what = whole(row, target.named, target.version)
    era = of_era(target.version, row, what, target.client)
    named = {**headers, **era["headers"]}
    return await read(sent(site, row, path, named, era["message"], target.event))


class Attack:
    """Somebody sends what names a victim's things, and what names nothing."""

    def __init__(self, target: Victim, outside: WireCheck, who: Callers) -> None:
        self._target = target
        self._outside = outside
        self._who = who

    async def by(self, caller: str, row: str) -> Iterator[str]:
        target = self._target
        own = {**target.headers, **self._who.headers(caller)}
        path = target.path
        if caller in (matrix.CLOSED, matrix.LACKING):
            path = path.replace(self._who.path(matrix.OWN), self._who.path(caller))
        found = await self._sent(row, path, own)
        unknown, headers = target.unknown()
        if caller in (matrix.CLOSED, matrix.LACKING):
            unknown = unknown.replace(
                self._who.path(matrix.OWN), self._who.path(caller)
            )
        twin = await self._sent(row, unknown, {**headers, **self._who.headers(caller)})
        return self._judged(caller, row, found, twin)

    async def _sent(self, row: str, path: str, headers: dict[str, str]) -> Bytes:
        if self._target.transport == matrix.SSE and row == matrix.GET:
            path = f"{path.partition('/messages')[0]}/sse"
        return await send_row(row, self._target, self._outside, path, headers)

    def _judged(
        self, caller: str, row: str, found: Bytes, twin: Bytes
    ) -> Iterator[str]:
        target, (status, _, raw) = self._target, found
        place = f"{target.transport} {target.version}, {row} by {caller}"
        if caller in matrix.SHUT_OUT and status != 401:
            yield f"{place}: {status} {raw!r}"
        # Whoever opens something new is given an id of their own.
        opens = target.transport == matrix.SSE and row == matrix.GET
        stateful = not (REVISIONS[target.version].stateless or opens)
        if found != twin and (stateful or caller in matrix.SHUT_OUT):
            yield f"{place}: {found} is not {twin}"
        there = matrix.exists(target.transport, target.version, row) and stateful
        if (
            there
            and caller in matrix.STRANGERS
            and row != "initialize"
            and status != 404
        ):
            yield f"{place}: {status} {raw!r}"
        if any(each.encode() in raw for each in target.secrets):
            yield f"{place}: it has what is the victim's: {raw!r}"
        if not target.untouched():
            yield f"{place}: something came to the victim"


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize(("transport", "version"), OTHERS_ON_HTTP)
async def test_nobody_else_reaches_a_session_a_stream_or_a_call(
    served: Callable[[str], WireCheck],
    outside: WireCheck,
    who: Callers,
    stage: Stage,
    transport: str,
    version: str,
) -> None:
    """T2: 404 (or 401) and the very bytes that an unknown session has."""
    target = await victim(transport, version, served(transport), who, stage)
    outside._application = served(transport)._application
    attack = Attack(target, outside, who)
    wrong = [
        sentence
        for row in matrix.ROWS
        for caller in (*matrix.STRANGERS, *matrix.SHUT_OUT)
        for sentence in await attack.by(caller, row)
    ]
    assert wrong == []
    await goes_on(target, stage)


async def goes_on(target: Victim, stage: Stage) -> None:
    """What was open is what it was: a call that runs, and a question that waits."""
    for each in target.open:
        await each.quiet()
    stage.released.set()
    if target.old is not None:
        await _goes_on_sse(target.old, target)
        return
    client = target.client
    assert client is not None
    if client.revision.sessions and target.transport == matrix.HTTP:
        assert (await client.reply(target.named.question, TALE)).status == 202
        asked = target.open[-1]
        assert (await outcome(asked)).text == "file:///mine=mine"
    running = next(each for each in target.open if _is_call(each))
    assert (await outcome(running)).text == "waited"
    assert stage.told == ["done"]
    if target.transport == matrix.HTTP:
        await target.open[0].quiet()
        await target.open[0].leave()
    if client.revision.sessions:
        assert (await outcome(client.visit("DELETE"))).status == 204


def _is_call(visit: Any) -> bool:
    """Whether it is what waits, of all that is open: the first POST of a tool."""
    headers = dict(visit.scope["headers"])
    return bool(visit.scope["method"] == "POST") and (
        headers.get(b"mcp-method") != LISTEN.encode()
    )


async def _goes_on_sse(old: OldClient, target: Victim) -> None:
    assert (await old.reply(target.named.question, TALE)).status == 202
    assert (await old.answered("of roots")).text == "file:///mine=mine"
    assert (await old.answered("of waits")).text == "waited"
    await old.leave()


# -- one's own ------------------------------------------------------------------------


ENDINGS: Final = (
    (matrix.CANCELS, matrix.BATCH, matrix.ANSWER, matrix.DELETE),
    (matrix.REFUSAL,),
)
"""What ends a call, a question, or the session."""
ENDS: Final = {row for rows in ENDINGS for row in rows}


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize(("transport", "version", "owner"), OWN_ON_HTTP)
async def test_what_is_ones_own_is_served(
    served: Callable[[str], WireCheck],
    who: Callers,
    stage: Stage,
    transport: str,
    version: str,
    owner: str,
) -> None:
    """A cell exists exactly where its own caller is not refused."""
    served_rows = set()
    for rows in ([each for each in matrix.ROWS if each not in ENDS], *ENDINGS):
        stage.entered.clear()
        stage.released.clear()
        target = await victim(transport, version, served(transport), who, stage, owner)
        for row in rows:
            if await serves(row, target, who.headers(owner), served(transport)):
                served_rows.add(row)
        stage.released.set()
        await left(target)
    assert served_rows == {
        row for row in matrix.ROWS if matrix.exists(transport, version, row)
    }


async def serves(
    row: str, target: Victim, own: dict[str, str], application: WireCheck
) -> bool:
    headers, path = {**target.headers, **own}, target.path
    if row == "initialize" or (target.old is not None and row == matrix.GET):
        headers.pop("mcp-session-id", None)
        if target.old is not None:
            # It has been initialized by this message, or its stream opened.
            return True
    status, _, raw = await send_row(row, target, application, path, headers)
    if target.old is not None and status == 202 and row in matrix.REQUESTS:
        return "result" in (await target.old.answered(f"id of {row}")).answer
    if status == 200 and raw.startswith(b"{"):
        return "result" in json.loads(raw)
    return status in (200, 202, 204)


NEVER_REFUSED: Final = (matrix.CANCELS, matrix.ANSWER, matrix.DELETE)
"""There are as many of them as is open."""


def _spend(process: Process) -> None:
    """Let everybody have sent as much as may be, and more."""
    for bucket in process.rates._persons._new.values():
        bucket.full += HOUR_S


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize(("transport", "version"), RATED)
async def test_t20_who_is_over_the_limit_is_refused_whatever_it_is(
    served: Callable[[str], WireCheck],
    who: Callers,
    stage: Stage,
    process: Process,
    transport: str,
    version: str,
) -> None:
    site, own = served(transport), who.headers(matrix.OWN)
    target = await victim(transport, version, site, who, stage)
    _spend(process)
    wrong: list[tuple[object, ...]] = []
    for row in matrix.ROWS:
        if matrix.exists(transport, version, row) and row not in (
            *NEVER_REFUSED,
            matrix.REFUSAL,
        ):
            status, headers, raw = await _sent_over_the_limit(row, target, own, site)
            told = json.loads(raw or b"{}").get("error", {})
            if status == 202 and target.old is not None:
                # Its client reads the refusal on the stream.
                named = whole(row, target.named, version)["id"]
                told = (await target.old.answered(named)).error
            elif status != 429:
                wrong.append((row, status, headers, raw))
            if told.get("code") != -32603:
                wrong.append((row, told))
    assert wrong == []
    for row in NEVER_REFUSED:
        if matrix.exists(transport, version, row):
            assert await serves(row, target, own, site), row
    stage.released.set()
    await left(target)


async def _sent_over_the_limit(
    row: str, target: Victim, own: dict[str, str], application: WireCheck
) -> Bytes:
    headers, path = {**target.headers, **own}, target.path
    if row == "initialize":
        headers.pop("mcp-session-id", None)
    if target.transport == matrix.SSE and row == matrix.GET:
        path = f"{path.partition('/messages')[0]}/sse"
    return await send_row(row, target, application, path, headers)


async def left(target: Victim) -> None:
    if target.old is not None:
        await target.old.leave()
        return
    for each in target.open:
        if each.scope["method"] == "GET" or not _is_call(each):
            await each.leave()
    if target.client is not None and target.client.revision.sessions:
        await outcome(target.client.visit("DELETE"))
    for each in target.open:
        if not each.ended:
            await each.leave()


async def test_the_stateless_era_has_no_stream_of_its_own_session(
    served: Callable[[str], WireCheck], who: Callers, stage: Stage
) -> None:
    """All of HTTP+SSE and 2026-07-28 is refused."""
    (version,) = STATELESS
    target = await victim(matrix.SSE, "2024-11-05", served(matrix.SSE), who, stage)
    client = Client(served(matrix.SSE), version)
    for row in matrix.REQUESTS:
        what = whole(row, target.named, version)
        said = of_era(version, row, what, client)["message"]
        found = await read(
            sent(served(matrix.SSE), row, target.path, who.headers(matrix.OWN), said)
        )
        assert found[0] in (202, 400), (row, found)
        if found[0] == 202:
            assert target.old is not None
            answer = (await target.old.answered(f"id of {row}")).answer
            assert "error" in answer, (row, answer)
    assert target.untouched()
    stage.released.set()
    await left(target)


# -- what names things from one's own session ----------------------------------------


async def own_client(
    application: WireCheck, who: Callers, version: str, caller: str
) -> Client:
    headers = who.headers(caller)
    client = Client(application, version, path=who.path(caller), headers=headers)
    return await client.open()


STATEFUL: Final = [name for name, each in REVISIONS.items() if each.sessions]


@pytest.mark.parametrize("version", STATEFUL_NEWEST_FIRST)
@pytest.mark.parametrize("caller", matrix.STRANGERS)
async def test_what_others_name_of_mine_in_their_own_session(
    application: WireCheck, who: Callers, stage: Stage, version: str, caller: str
) -> None:
    """T31: cancelling is ignored; T3: answers and ids of events are nobody's."""
    target = await victim(matrix.HTTP, version, application, who, stage)
    other = await own_client(application, who, version, caller)
    requested = {"requestId": target.named.call}
    assert (await other.notify("notifications/cancelled", requested)).status == 202
    for answer in (TALE, {"error": {"code": 1, "message": "No."}}):
        found = await other.reply(target.named.question, answer)
        unknown = await other.reply("question-0123456789abcdef", answer)
        assert found.status == unknown.status == 400
        said = found.raw.replace(
            str(target.named.question).encode(), b"question-0123456789abcdef"
        )
        assert said == unknown.raw
    # The same ids are theirs to use.
    again = other.begin("tools/call", {"name": "whoami"}, id=target.named.call)
    assert (await outcome(again)).status == 200
    assert target.untouched()
    await goes_on(target, stage)


@pytest.mark.parametrize(
    "version", [name for name, each in REVISIONS.items() if each.resumable]
)
async def test_ids_of_my_events_are_nobody_elses(
    application: WireCheck, who: Callers, stage: Stage, version: str
) -> None:
    """T3: 400, with one body for all, and not a byte of the stream."""
    target = await victim(matrix.HTTP, version, application, who, stage)
    ids = [*target.open[-1].ids, *target.open[0].ids]
    assert ids
    for caller in matrix.STRANGERS:
        other = await own_client(application, who, version, caller)
        found = {
            (await outcome(other.visit("GET", headers={"last-event-id": each}))).raw
            for each in (*ids, "nonsense", f"{'x' * 22}.1", f"{'x' * 22}.1.1")
        }
        assert len(found) == 1
        assert b"-32600" in found.pop()
    assert target.untouched()
    await goes_on(target, stage)


HIDDEN: Final[list[tuple[str, str, Any]]] = [
    ("tools/call", "secret", {"name": "{}", "arguments": {}}),
    (
        "tools/call",
        "secret",
        {"name": "call_tool", "arguments": {"name": "{}", "arguments": {}}},
    ),
    (
        "tools/call",
        "secret",
        {"name": "call_reading_tool", "arguments": {"name": "{}", "arguments": {}}},
    ),
    ("prompts/get", "secret_prompt", {"name": "{}", "arguments": {"word": "a"}}),
    ("resources/read", "vault://list", {"uri": "{}"}),
    ("resources/read", "vault://item/gold", {"uri": "{}"}),
    ("resources/subscribe", "vault://list", {"uri": "{}"}),
    ("resources/subscribe", "vault://item/gold", {"uri": "{}"}),
    ("resources/unsubscribe", "vault://list", {"uri": "{}"}),
    (
        "completion/complete",
        "secret_prompt",
        {
            "ref": {"type": "ref/prompt", "name": "{}"},
            "argument": {"name": "word", "value": ""},
        },
    ),
    (
        "completion/complete",
        "vault://item/{name}",
        {
            "ref": {"type": "ref/resource", "uri": "{}"},
            "argument": {"name": "name", "value": ""},
        },
    ),
]
"""What she may see and he may not, and where it is named."""


def filled(params: Any, name: str) -> Any:
    if isinstance(params, dict):
        return {key: filled(value, name) for key, value in params.items()}
    return name if params == "{}" else params


def nobody_has(name: str) -> str:
    return name.replace("secret", "sxcret").replace("vault", "vxult")


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_is_hidden_is_unknown(
    application: WireCheck, who: Callers, version: str
) -> None:
    """The same bytes, but for the name; and she has it."""
    ana = await own_client(application, who, version, matrix.OWN)
    ben = await own_client(application, who, version, matrix.OTHER_USER)
    for method, name, params in HIDDEN:
        if method not in ben.revision.methods:
            continue
        hidden = await ben.request(method, filled(params, name), id=7)
        unknown = await ben.request(method, filled(params, nobody_has(name)), id=7)
        told = unknown.raw.replace(nobody_has(name).encode(), name.encode())
        assert (hidden.status, hidden.headers) == (unknown.status, unknown.headers)
        assert hidden.raw == told, (method, name)
        hers = await ana.request(method, filled(params, name), id=7)
        assert "result" in hers.answer, (method, name)
        assert hers.raw != hidden.raw or method == "resources/unsubscribe"


LISTS: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_t11_my_cursors_show_others_what_is_theirs(
    application: WireCheck, who: Callers, process: Process, version: str
) -> None:
    """T11: a cursor is a place, no right; hidden things stay hidden."""
    await writer.run(_small_pages)
    await process.gate.wait_for_check()
    ana = await own_client(application, who, version, matrix.OWN)
    ben = await own_client(application, who, version, matrix.OTHER_USER)
    for method, member in LISTS.items():
        theirs = {str(each) for each in await _all(ben, method, member)}
        seen = 0
        async for cursor in _cursors(ana, method):
            found = (await ben.request(method, {"cursor": cursor})).result
            assert {str(each) for each in found[member]} <= theirs
            seen += 1
        assert seen
        hers = {str(each) for each in await _all(ana, method, member)}
        assert theirs < hers


def _small_pages() -> None:
    from mcp_app.models import Server  # noqa: PLC0415 - beside what uses it
    from tests.published import published  # noqa: PLC0415 - beside what uses it

    row = Server.objects.get(slug="by-token")
    row.page_size, row.selection, row.tags = 2, "tags", "private paged"
    row.save()
    published(row)


async def _cursors(client: Client, method: str) -> AsyncIterator[str]:
    params: dict[str, Any] = {}
    while cursor := (await client.request(method, params)).result.get("nextCursor"):
        yield cursor
        params = {"cursor": cursor}


async def _all(client: Client, method: str, member: str) -> list[Any]:
    found = (await client.request(method)).result[member]
    async for cursor in _cursors(client, method):
        page = (await client.request(method, {"cursor": cursor})).result
        found = [*found, *page[member]]
    return cast("list[Any]", found)


@pytest.mark.usefixtures("each_way")
async def test_t10_my_request_state_is_nobody_elses(
    application: WireCheck, who: Callers
) -> None:
    """T10: one body for whatever is not valid here; and it stays valid for me."""
    ana = await own_client(application, who, NEWEST, matrix.OWN)
    call = {"name": "asks_in_private", "arguments": {}}
    asked = (await ana.request("tools/call", call)).result
    answer = {"action": "accept", "content": {"item": "tea"}}
    brought = {**call, "inputResponses": dict.fromkeys(asked["inputRequests"], answer)}
    bodies = set()
    for caller in matrix.STRANGERS:
        other = await own_client(application, who, NEWEST, caller)
        for state in (asked["requestState"], "nonsense", asked["requestState"][:-1]):
            again = {**brought, "requestState": state}
            found = await other.request("tools/call", again, id=1)
            assert found.error["code"] == -32602
            bodies.add(found.raw)
    assert len(bodies) == 1
    brought["requestState"] = asked["requestState"]
    mine = await ana.request("tools/call", brought)
    assert mine.text == "1 tea"


# -- stdio ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version"), [version for _, version in matrix.pairs(matrix.STDIO)]
)
async def test_pipes_serve_own(process: Process, who: Callers, version: str) -> None:
    principal = Principal(
        kind="user", user_id="1", permissions=frozenset(), client="stdio"
    )
    wrong = []
    for row in matrix.ROWS:
        channel = Channel(process, "by-token", principal)
        channel.version = version
        there = row not in (
            matrix.GET,
            matrix.RESUME,
            matrix.DELETE,
        ) and await _answers(channel, row, version)
        if there != matrix.exists(matrix.STDIO, version, row):
            wrong.append(row)
    for listener in process.listeners:
        listener.end()
    assert wrong == []


async def _answers(channel: Channel, row: str, version: str) -> bool:
    """Whether what a row sends is served to whoever has the pipes."""
    stateless = version in STATELESS
    opened = None if stateless else await channel.initialize(version)
    if row == "initialize" and opened is not None:
        return "result" in opened
    if row in (matrix.ANSWER, matrix.REFUSAL):
        return await _asks(channel, whole(row, matrix.Named(), version), stateless)
    what = whole(row, matrix.Named(), version)
    if row == matrix.BATCH:
        await channel.send(*what, batch=True)
        return isinstance(await channel.next(), list)
    if row not in matrix.REQUESTS:
        await channel.send(what)
        # Whoever is not refused goes on.
        row, what = "tools/list", whole("tools/list", matrix.Named(), version)
    if stateless:
        what["params"] = {**what["params"], "_meta": META}
    await channel.send(what)
    if row == LISTEN and stateless:
        return bool(await channel.heard("notifications/subscriptions/acknowledged"))
    return "result" in await channel.answer(what["id"])


async def _asks(channel: Channel, reply: Any, stateless: bool) -> bool:
    """Whether a question comes, and a call goes on with its answer."""
    call = called("roots", "asks")
    if stateless:
        capabilities: dict[str, Any] = {f"{PREFIX}clientCapabilities": {"roots": {}}}
        call["params"]["_meta"] = {**META, **capabilities}
        await channel.send(call)
        assert "inputRequests" in (await channel.answer("asks"))["result"]
        return False
    await channel.send(call)
    question = await channel.heard("roots/list")
    await channel.send({**reply, "id": question["id"]})
    return "result" in await channel.answer("asks")


async def test_pipes_are_nobody_elses(process: Process, who: Callers) -> None:
    """What `NO_SUCH_CALLER` says of stdio."""
    for caller in set(matrix.CALLERS) - {matrix.OWN}:
        assert (matrix.STDIO, caller) in matrix.NO_SUCH_CALLER
    channel = Channel(process, "by-token", Principal.ANONYMOUS)
    with pytest.raises(NotServed):
        await channel.connection.find_caller()
