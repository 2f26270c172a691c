"""What is stopped is served by nobody: each scope, each transport, each revision."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Final, cast

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.test import Client as Browser

from mcp_app.catalog.stops import RETRY_S, SERVER_OFF, SWITCHED_OFF
from mcp_app.invalidation import workers
from mcp_app.models import Call, DefinitionRow, Server, Stop, Tool
from mcp_app.models.stops import By, Running, Scope
from mcp_app.pools.database import reader, writer
from mcp_app.process.background import background
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import SwitchedOff
from mcp_app.protocol.revisions import REVISIONS, STATEFUL
from mcp_app.publishing.stop_targets import find_definition
from mcp_app.server.outcome import STOPPED_CALL
from tests.asgi_client import Client, Outcome, Visit, outcome
from tests.behaviours import Stage, registry
from tests.old_client import OldClient
from tests.published import published
from tests.scripting import STATEFUL as A_STATEFUL
from tests.scripting import STATELESS
from tests.server.handlers.test_definitions import pages
from tests.serving import PATIENCE_S, Connect, until
from tests.transports.stdio.test_connection import (
    Channel,
    called,
    code,
    notification,
    request,
    stateless,
)
from tests.wire.middleware import Application, WireCheck

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("each_way")]

KIM: Final = By("kim", "7")
TOOL_OFF: Final = SWITCHED_OFF.format(what="tool")
URI: Final = "test://static-text"


class Site:
    """A process, in which something is stopped; after the test all is on again."""

    def __init__(self, process: Process, connect: Connect) -> None:
        self.process = process
        self.connect = connect

    async def check(self) -> None:
        await self.process.gate.wait_for_check()

    async def stop(
        self, scope: str, kind: str = "", name: str = "", running: str = Running.CANCEL
    ) -> Stop:
        row: Any = None
        if scope == Scope.SERVER:
            row = await reader.run(lambda: Server.objects.get(slug=name))
        elif scope == Scope.DEFINITION:
            row = await writer.run(find_definition, kind, name, registry)
            assert isinstance(row, DefinitionRow)
        made = await writer.run(workers.stop, scope, row, by=KIM, running=running)
        await self.check()
        return made

    async def start(self, *ended: Stop) -> None:
        keys = [each.pk for each in ended]
        assert len(await writer.run(workers.start, keys, by=KIM)) == len(keys)
        await self.check()


def waiting(client: Client) -> Visit:
    return client.begin("tools/call", {"name": "waits", "arguments": {}})


@pytest.fixture
async def site(process: Process, connect: Connect) -> AsyncIterator[Site]:
    made = Site(process, connect)
    yield made
    await writer.run(_start_all)
    await made.check()


def _start_all() -> None:
    Stop.objects.all().delete()
    made = Stop.objects.make(Scope.CHANGES, by=KIM)
    Stop.objects.end([made.pk], by=KIM)
    Stop.objects.all().delete()


def switched_off(found: Outcome) -> bool:
    """Whether a call was answered so that a model can read why nothing happened."""
    return found.result.get("isError") is True and found.text == TOOL_OFF


def unavailable(found: Outcome) -> bool:
    refused = (found.status, found.error["code"], found.error["message"])
    assert refused == (503, -32603, SERVER_OFF), found.raw
    return int(found.headers["retry-after"]) > 0


async def listed(client: Client, what: str = "tools") -> set[str]:
    member = "uri" if what == "resources" else "name"
    listing = await pages(client, f"{what}/list")
    return {each[member] for page in listing for each in page}


# -- one by one ---------------------------------------------------------------------


@pytest.mark.parametrize("version", REVISIONS)
async def test_a_stopped_tool_is_unlisted_and_says_so(site: Site, version: str) -> None:
    client = await site.connect(version)
    for name, arguments in (("drill_add", {"a": 1, "b": 2}), ("waits", {})):
        assert name == "waits" or name in await listed(client)
        made = await site.stop(Scope.DEFINITION, "tool", name)
        assert name not in await listed(client)
        assert switched_off(await client.call(name, **arguments))
        await site.start(made)
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_stops_of_the_same_thing_do_not_meet(site: Site) -> None:
    client = await site.connect(STATELESS)
    first = await site.stop(Scope.DEFINITION, "tool", "drill_add")
    second = await site.stop(Scope.DEFINITION, "tool", "drill_add")
    everything = await site.stop(Scope.EVERYTHING)
    await site.start(everything, first)
    assert switched_off(await client.call("drill_add", a=1, b=2))
    await site.start(second)
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_a_stopped_tool_that_one_may_not_see_is_unknown(site: Site) -> None:
    """The same bytes as for a tool that there is not, whether it is on or off."""
    secret = next(n for n, each in registry.tools.items() if each.definition.demands)
    client = await site.connect(STATELESS, path="/mcp")
    before = await client.call(secret)
    await site.stop(Scope.DEFINITION, "tool", secret)
    after = await client.call(secret)
    assert before.error == after.error
    assert after.error["code"] == -32602


@pytest.mark.parametrize("version", REVISIONS)
async def test_resources_templates_prompts_one_by_one(site: Site, version: str) -> None:
    client = await site.connect(version)
    await site.stop(Scope.DEFINITION, "resource", URI)
    assert URI not in await listed(client, "resources")
    # No template answers in its place.
    catalog = site.process.catalogs.serving("default")
    assert [each.stopped for each in catalog.matches_of_uri(URI)] == [True]
    found = await client.request("resources/read", {"uri": URI})
    said = SWITCHED_OFF.format(what="resource")
    assert (found.error["code"], found.error["message"]) == (-32603, said)
    if not client.revision.stateless:
        found = await client.request("resources/subscribe", {"uri": URI})
        assert found.error["message"] == said
    template = "test://template/{id}/data"
    uri = "test://template/1/data"
    assert (await client.request("resources/read", {"uri": uri})).result
    await site.stop(Scope.DEFINITION, "resourcetemplate", template)
    found = await client.request("resources/read", {"uri": uri})
    assert found.error["message"] == said
    await site.stop(Scope.DEFINITION, "prompt", "test_simple_prompt")
    assert "test_simple_prompt" not in await listed(client, "prompts")
    found = await client.request("prompts/get", {"name": "test_simple_prompt"})
    assert found.error["message"] == SWITCHED_OFF.format(what="prompt")
    asked = {
        "ref": {"type": "ref/prompt", "name": "test_simple_prompt"},
        "argument": {"name": "a", "value": ""},
    }
    found = await client.request("completion/complete", asked)
    assert found.error["message"] == SWITCHED_OFF.format(what="prompt")


async def test_clients_are_told(site: Site) -> None:
    client = await site.connect(STATELESS)
    visit = client.begin(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    await visit.message()
    made = await site.stop(Scope.DEFINITION, "tool", "drill_add")
    for _ in range(2):
        async with asyncio.timeout(PATIENCE_S):
            told = await visit.message()
        assert told is not None
        assert told["method"] == "notifications/tools/list_changed"
        if not made.ended:
            await site.start(made)
            made.ended = made.at
    await visit.leave()


async def test_what_changes_things(site: Site) -> None:
    client = await site.connect(STATELESS)
    changing = {
        each["name"]
        for page in await pages(client, "tools/list")
        for each in page
        if not each.get("annotations", {}).get("readOnlyHint")
    }
    reading = await listed(client) - changing
    assert changing
    assert "drill_add" in reading
    await site.stop(Scope.CHANGES)
    assert not await listed(client) & changing
    assert (await client.call("drill_add", a=1, b=2)).text == "3"
    for name, arguments in (("drill_ledger", {"key": "k"}), ("turns_on", {})):
        assert switched_off(await client.call(name, **arguments))
    assert (await client.request("resources/read", {"uri": URI})).result


async def test_a_stopped_call_is_audited_as_that(site: Site) -> None:
    client = await site.connect(STATELESS)
    await site.stop(Scope.DEFINITION, "tool", "drill_add")
    await client.call("drill_add", a=1, b=2)
    assert site.process.audit is not None
    await site.process.audit.wait_until_written()
    row = await reader.run(lambda: Call.objects.filter(name="drill_add").first())
    assert row is not None
    assert row.outcome == "switched_off"


# -- a server, and everything -------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.SERVER, Scope.EVERYTHING])
@pytest.mark.parametrize("version", REVISIONS)
async def test_every_request_is_503(
    site: Site, outside: WireCheck, version: str, scope: Scope
) -> None:
    """Before anybody looks who asks, and what; so nothing is known of a session."""
    client, other = (
        await site.connect(version),
        await site.connect(version, path="/mcp/tagged"),
    )
    inside, client.application = client.application, outside
    if client.revision.sessions:
        # What is refused so early is written as the newest of these revisions has it.
        client._headers["mcp-protocol-version"] = None
    name = "default" if scope == Scope.SERVER else ""
    made = await site.stop(scope, name=name)
    for method in ("ping", "tools/list", "resources/list", "nothing/known"):
        assert unavailable(await client.request(method))
    assert unavailable(await client.call("drill_add", a=1, b=2))
    assert unavailable(await client.sent(client.initialize()))
    assert unavailable(await client.sent([client.message("ping")]))
    assert unavailable(await client.sent("no message"))
    for method in ("GET", "DELETE", "PUT"):
        assert unavailable(await outcome(client.visit(method)))
    # It says nothing of who may come in, or of what there is.
    private = Client(outside, version, path="/mcp/private")
    unknown = Client(outside, version, path="/mcp/unheard-of")
    if scope == Scope.EVERYTHING:
        other.application, other._headers = outside, client._headers
        assert unavailable(await other.request("tools/list"))
        assert unavailable(await private.request("tools/list"))
        assert unavailable(await unknown.request("tools/list"))
    else:
        assert (await other.request("tools/list")).result
        assert (await private.request("tools/list")).status == 401
        assert (await unknown.request("tools/list")).status == 404
    assert await site.process.failing_part() == ""
    await site.start(made)
    # A session is what it was.
    client.application, client._headers = inside, {}
    assert (await client.call("drill_add", a=1, b=2)).text == "3"


async def test_open_streams_end(site: Site) -> None:
    stateful, client = await site.connect(A_STATEFUL), await site.connect(STATELESS)
    elsewhere = await site.connect(A_STATEFUL, path="/mcp/tagged")
    standing = await (await stateful.standing()).opened()
    other = await (await elsewhere.standing()).opened()
    listen = client.begin(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    await listen.message()
    await site.stop(Scope.SERVER, name="default")
    await standing.body()
    (retry,) = re.findall(rb"retry: (\d+)", standing.raw)
    assert RETRY_S[0] <= int(retry) / 1_000 <= RETRY_S[1]
    assert (await listen.messages())[-1]["result"]
    assert not other.ended
    await other.leave()


async def test_no_stream_opens_then(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await site.connect(A_STATEFUL)
    sessions, found = site.process.sessions, asyncio.Event()
    find = sessions.find

    async def slowly(*given: Any) -> Any:
        session = await find(*given)
        found.set()
        await site.stop(Scope.EVERYTHING)
        return session

    monkeypatch.setattr(sessions, "find", slowly)
    visit = client.visit("GET")
    await found.wait()
    monkeypatch.undo()
    assert unavailable(await outcome(visit))


@pytest.mark.parametrize("scope", [Scope.SERVER, Scope.EVERYTHING])
async def test_the_old_transport(
    site: Site, application: WireCheck, outside: WireCheck, scope: Scope
) -> None:
    client = await OldClient(application).open()
    assert (await client.call("drill_add", a=1, b=2)).text == "3"
    client.application = outside
    await site.stop(scope, name="default" if scope == Scope.SERVER else "")
    assert unavailable(await client.sent(client.message("ping")))
    found = await outcome(client.visit("GET", "/mcp/sse", accept="text/event-stream"))
    assert unavailable(found)
    await client.ended()
    await client.stream.done()


@pytest.mark.parametrize("version", STATEFUL)
async def test_one_tool_over_the_old_transport(
    site: Site, application: WireCheck, version: str
) -> None:
    client = await OldClient(application, version).open()
    await site.stop(Scope.DEFINITION, "tool", "drill_ledger")
    assert switched_off(await client.call("drill_ledger", key="a", seconds=0))
    await client.told("notifications/tools/list_changed")
    await client.leave()


@pytest.mark.parametrize("version", STATEFUL)
async def test_stdio(site: Site, version: str) -> None:
    from mcp_app.interface.principal import Principal  # noqa: PLC0415

    channel = Channel(site.process, "default", Principal.ANONYMOUS)
    await channel.initialize(version)
    tool = await site.stop(Scope.DEFINITION, "tool", "drill_add")
    await channel.send(called("drill_add", 2, a=1, b=2))
    assert (await channel.answer(2))["result"]["isError"]
    everything = await site.stop(Scope.EVERYTHING)
    await channel.send(request("ping", number=3), called("drill_add", 4, a=1, b=2))
    for number in (3, 4):
        refused = await channel.answer(number)
        assert (code(refused), refused["error"]["message"]) == (-32603, SERVER_OFF)
    await channel.send(stateless("tools/list", 5))
    channel.version = STATELESS
    assert code(await channel.answer(5)) == -32603
    channel.version = version
    await channel.send(notification("notifications/cancelled", requestId=9))
    await site.start(everything, tool)
    await channel.send(called("drill_add", 6, a=1, b=2))
    answer = await channel.answer(6)
    assert answer["result"]["content"][0]["text"] == "3"
    # The session hears of changes as before.
    await channel.heard("notifications/tools/list_changed")
    for listener in site.process.listeners:
        listener.end()


async def test_a_batch(site: Site) -> None:
    client = await site.connect("2025-03-26")
    await site.stop(Scope.DEFINITION, "tool", "drill_ledger")
    arguments = {"name": "drill_ledger", "arguments": {"key": "b", "seconds": 0}}
    batch = [client.message("tools/call", arguments), client.message("ping")]
    found = await client.sent(batch)
    by_id = {each["id"]: each["result"] for each in found.messages}
    assert by_id[batch[0]["id"]]["isError"] is True
    assert by_id[batch[1]["id"]] == {}


# -- what runs ----------------------------------------------------------------------


CANCELLED_BY: Final[list[tuple[str, str, str]]] = [
    (Scope.EVERYTHING, "", ""),
    (Scope.CHANGES, "", ""),
    (Scope.SERVER, "", "default"),
    (Scope.DEFINITION, "tool", "waits"),
]


@pytest.mark.parametrize(("scope", "kind", "name"), CANCELLED_BY)
@pytest.mark.parametrize("version", [A_STATEFUL, STATELESS])
async def test_running_calls_are_cancelled_and_their_clients_told(
    site: Site, stage: Stage, version: str, scope: str, kind: str, name: str
) -> None:
    client = await site.connect(version)
    visit = waiting(client)
    await stage.begun()
    made = await site.stop(scope, kind, name)
    (answer,) = await visit.messages()
    assert answer["error"]["message"] == STOPPED_CALL
    assert stage.told == ["cancelled"]
    async with asyncio.timeout(PATIENCE_S):
        while not await reader.run(_cancelled, made.pk):
            await asyncio.sleep(0.001)
    assert await reader.run(_cancelled, made.pk) == 1


@pytest.mark.parametrize("how", ["rename", "unpublish", "delete"])
@pytest.mark.parametrize("scope", [Scope.EVERYTHING, Scope.CHANGES, Scope.SERVER])
async def test_running_calls_of_a_server_that_is_no_more(
    site: Site, stage: Stage, how: str, scope: str
) -> None:
    row = await writer.run(lambda: published(Server(slug="brief", access="public")))
    try:
        await site.check()
        client = await site.connect(STATELESS, path="/mcp/brief")
        visit = waiting(client)
        await stage.begun()
        await writer.run(AWAY[how], row)
        await site.check()
        named = row if scope == Scope.SERVER else None
        await writer.run(partial(workers.stop, scope, named, by=KIM))
        await site.check()
        async with asyncio.timeout(PATIENCE_S):
            (answer,) = await visit.messages()
        assert answer["error"]["message"] == STOPPED_CALL
    finally:
        await writer.run(Server.objects.filter(pk=row.pk).delete)


def _renamed(row: Server) -> None:
    Server.objects.filter(pk=row.pk).update(slug="brief-2")
    row.refresh_from_db()
    Server.rows().publish([row])


AWAY: Final[dict[str, Callable[[Server], object]]] = {
    "rename": _renamed,
    "unpublish": lambda row: Server.rows().unpublish([row]),
    "delete": lambda row: Server.objects.filter(pk=row.pk).delete(),
}


async def test_a_stop_holds_what_was_deleted_and_made_again(site: Site) -> None:
    client = await site.connect(STATELESS)
    await site.stop(Scope.DEFINITION, "tool", "drill_add")
    await writer.run(_made_again, "drill_add")
    await site.check()
    assert switched_off(await client.call("drill_add", a=1, b=2))
    # The row of what code declares can go, and the code serves on.
    await site.stop(Scope.DEFINITION, "tool", "waits")
    await writer.run(Tool.objects.filter(name="waits").delete)
    await site.check()
    assert switched_off(await client.call("waits"))


def _made_again(name: str) -> None:
    row = Tool.objects.get(name=name)
    row.delete()
    row.pk = row.published = row.published_identity = None
    row._state.adding = True
    row.save()
    published(row)


async def test_a_draft_does_not_keep_code_from_being_stopped(site: Site) -> None:
    client = await site.connect(STATELESS)
    await writer.run(_draft, "waits")
    try:
        await site.check()
        await site.stop(Scope.DEFINITION, "tool", "waits")
        assert switched_off(await client.call("waits"))
    finally:
        await writer.run(Tool.objects.filter(name="waits").delete)


def _draft(name: str) -> None:
    Tool.objects.filter(name=name).delete()
    Tool.objects.create(name=name)


def _cancelled(key: int) -> int:
    return Stop.objects.get(pk=key).cancelled


@pytest.mark.parametrize(("scope", "kind", "name"), CANCELLED_BY)
@pytest.mark.parametrize("version", [A_STATEFUL, STATELESS])
async def test_running_calls_may_finish(
    site: Site, stage: Stage, version: str, scope: str, kind: str, name: str
) -> None:
    client = await site.connect(version)
    visit = waiting(client)
    await stage.begun()
    made = await site.stop(scope, kind, name, running=Running.FINISH)
    stage.released.set()
    answer = (await visit.messages())[-1]
    assert answer["result"]["content"][0]["text"] == "waited"
    assert await reader.run(_cancelled, made.pk) == 0
    again = await client.call("waits")
    assert again.status == 503 or switched_off(again)


async def test_a_call_of_something_else_goes_on(site: Site, stage: Stage) -> None:
    client = await site.connect(STATELESS)
    visit = waiting(client)
    await stage.begun()
    await site.stop(Scope.DEFINITION, "tool", "drill_add")
    await site.stop(Scope.SERVER, name="tagged")
    stage.released.set()
    assert (await visit.messages())[-1]["result"]


async def test_a_call_that_waits_for_its_row_is_refused(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcp_app.transports.http import call_handler  # noqa: PLC0415

    client = await site.connect(A_STATEFUL)
    begun, scopes = call_handler.begin, iter([Scope.DEFINITION, Scope.EVERYTHING])

    async def slowly(*given: Any) -> Any:
        stream = await begun(*given)
        scope = next(scopes)
        named = ("tool", "drill_ledger") if scope == Scope.DEFINITION else ("", "")
        await site.stop(scope, *named)
        return stream

    monkeypatch.setattr(call_handler, "begin", slowly)
    assert switched_off(await client.call("drill_ledger", key="row", seconds=0))
    await writer.run(Stop.objects.all().update, ended="2026-01-01T00:00:00Z")
    await writer.run(_start_all)
    await site.check()
    assert unavailable(await client.call("drill_ledger", key="row", seconds=0))
    assert await reader.run(_ledger, "row") == 0


def _ledger(key: str) -> int:
    from tests.drill.models import Ledger  # noqa: PLC0415

    return Ledger.objects.filter(key=key).count()


@pytest.mark.parametrize("version", [A_STATEFUL, STATELESS])
async def test_a_late_body_is_served_as_things_are(site: Site, version: str) -> None:
    client = await site.connect(version)
    arguments = {"name": "drill_add", "arguments": {"a": 1, "b": 2}}
    body = client.post(client.message("tools/call", arguments))
    whole = b"".join(body._pieces)
    await body.body()
    sent = cast("list[tuple[bytes, bytes]]", body.scope["headers"])
    headers = {name.decode(): value.decode() for name, value in sent}
    visit = client.visit("POST", whole[:10], headers=headers, complete=False)
    await until(lambda: not visit.unread)
    await asyncio.sleep(0.006)
    await site.stop(Scope.EVERYTHING)
    visit.goes_on(whole[10:])
    assert unavailable(await outcome(visit))


async def test_a_call_without_a_thread_does_not_begin(site: Site, stage: Stage) -> None:
    client = await site.connect(STATELESS)
    site.process.threads.size = 1
    first = client.begin("tools/call", {"name": "waits_sync", "arguments": {}})
    await until(stage.entered_thread.is_set)
    second = client.begin(
        "tools/call", {"name": "drill_add_sync", "arguments": {"a": 1, "b": 2}}
    )
    await until(lambda: len(site.process.running) >= 2)
    await site.stop(Scope.EVERYTHING, running=Running.FINISH)
    (answer,) = await second.messages()
    assert answer["error"]["message"] == STOPPED_CALL
    stage.released_thread.set()
    assert (await first.messages())[-1]["result"]


# -- the process --------------------------------------------------------------------


async def test_a_process_that_begins_knows_of_it(site: Site) -> None:
    await site.connect(STATELESS)
    await site.stop(Scope.EVERYTHING)
    other = Process(registry)
    try:
        await other.gate.wait_for_check()
        with pytest.raises(SwitchedOff):
            other.catalogs.serving("default")
    finally:
        other.stop_timers()
        other.threads.close()


async def test_a_stop_costs_no_statement_of_a_request(site: Site) -> None:
    from tests.statements import counted as statements  # noqa: PLC0415

    client = await site.connect(STATELESS)
    await site.stop(Scope.DEFINITION, "tool", "waits")
    await site.check()
    async with statements() as told:
        for _ in range(20):
            await client.call("waits")
            await client.call("drill_add", a=1, b=1)
    # A check is one that unites three tables.
    assert [each for each in told if "FROM" in each and "UNION ALL" not in each] == []


# -- the view -----------------------------------------------------------------------


@pytest.mark.parametrize("streams", [True, False])
async def test_the_view(
    site: Site, monkeypatch: pytest.MonkeyPatch, streams: bool
) -> None:
    await site.stop(Scope.EVERYTHING)
    if streams:
        application = WireCheck(cast("Application", ASGIHandler()))
        assert unavailable(await Client(application).request("tools/list"))
        return
    monkeypatch.setattr(background, "_loop", site.process.loop)
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    send = partial(Browser().post, "/mcp", body, content_type="application/json")
    answer = await asyncio.to_thread(send)
    found = (answer.status_code, answer.json()["error"]["message"])
    assert found == (503, SERVER_OFF)
    assert int(answer.headers["Retry-After"]) > 0
