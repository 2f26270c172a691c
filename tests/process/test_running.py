"""The requests that run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mcp_app import Context
from mcp_app.invalidation import changes
from mcp_app.invalidation.workers import Report
from mcp_app.pools.database import writer
from mcp_app.process import running
from mcp_app.process.runtime import Process
from mcp_app.server.outcome import STOPPED_CALL
from mcp_app.server.request_digests import request_key
from mcp_app.server.run import End, Run
from tests.scripting import STATEFUL, STATELESS, Play
from tests.serving import Connect, until

pytestmark = pytest.mark.usefixtures("scripted")


class Held:
    """A call that runs until it may go on."""

    def __init__(self) -> None:
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def script(self, ctx: Context) -> str:
        self.entered.set()
        await self.go.wait()
        return "over"


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_running_call_is_known_until_it_is_over(
    play: Play, connect: Connect, process: Process, version: str
) -> None:
    held = Held()
    headers = {"x-user": "7"}
    client = await connect(version, path="/mcp/private", headers=headers)
    visit = play.begin("async", held.script, client)
    await held.entered.wait()
    (call,) = process.running
    assert len(process.running) == 1
    key = call.principal.key
    assert process.running.call_count_of(key) == 1
    assert process.running.call_count_of("somebody else") == 0
    if call.session is not None:
        assert list(call.session.running.values()) == [call]
    held.go.set()
    assert (await visit.messages())[-1]["result"]["content"][0]["text"] == "over"
    assert list(process.running) == []
    assert process.running.call_count_of(key) == 0
    assert not process.running._owned
    assert call.task is None
    if call.session is not None:
        assert call.session.running == {}


async def test_a_call_of_a_stranger_counts_while_its_row_is_written(
    play: Play, connect: Connect, process: Process
) -> None:
    held = Held()
    visit = play.begin("async", held.script, await connect(STATEFUL))
    await held.entered.wait()
    (call,) = process.running
    another = Run(call.request.with_changes(person="203.0.113.9"))
    with process.running.expect_call(another, another.request.own_session):
        assert process.running.call_count_of(another.person) == 1
    held.go.set()
    await visit.messages()
    assert not process.running._owned


async def test_calls_are_looked_after_when_they_last(
    play: Play, connect: Connect, process: Process
) -> None:
    """Short ones are over before anybody looks; a client that leaves is then seen."""
    begun: list[Any] = []
    both = asyncio.Event()

    async def script(ctx: Context) -> None:
        begun.append(ctx)
        if len(begun) == 2:
            both.set()
        await asyncio.sleep(60)

    client = await connect(STATELESS)
    visits = [play.begin("async", script, client)]
    await until(lambda: begun)
    # The second is younger when the first is looked at.
    await asyncio.sleep(0.003)
    visits.append(play.begin("async", script, client))
    await both.wait()
    for visit in visits:
        await visit.leave()
    assert [each.cancelled for each in begun] == [True, True]
    assert len(process.running) == 0


@pytest.mark.parametrize("version", [STATEFUL, STATELESS])
async def test_a_process_says_what_runs(
    play: Play, connect: Connect, process: Process, version: str
) -> None:
    held = Held()
    client = await connect(version)
    assert process.build_report().calls == {}
    visit = play.begin("async", held.script, client)
    await held.entered.wait()
    report = process.build_report()
    assert report.calls == ({} if version == STATEFUL else {"default": 1})
    assert len(report.code) == 64
    assert Report.of_text(report.as_text()).calls == report.calls
    held.go.set()
    await visit.messages()
    assert process.build_report().calls == {}


async def test_staff_stop_a_call_and_its_client_is_told(
    play: Play, connect: Connect, process: Process
) -> None:
    held = Held()
    client = await connect(STATEFUL)
    visit = play.begin("async", held.script, client)
    await held.entered.wait()
    (call,) = process.running
    assert call.session is not None
    key = request_key(call.request_id)
    await writer.run(changes.record_stop, call.session.pk, "another")
    await writer.run(changes.record_stop, call.session.pk, key)
    (message,) = await visit.messages()
    assert message["error"]["message"] == STOPPED_CALL
    assert list(process.running) == []


async def test_a_fault_in_looking_after_one_call_does_not_keep_others_from_it(
    play: Play,
    connect: Connect,
    process: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faults: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
    begun: list[Context] = []

    async def script(ctx: Context) -> None:
        begun.append(ctx)
        await asyncio.sleep(60)

    def broken(call: object) -> None:
        monkeypatch.undo()
        raise KeyError(call)

    monkeypatch.setattr(running, "look_after", broken)
    client = await connect(STATELESS)
    spoiled = play.begin("async", script, client)
    await until(lambda: faults)
    later = play.begin("async", script, client)
    await until(lambda: len(begun) >= 2)
    await later.leave()
    await until(lambda: begun[1].cancelled)
    assert [type(each) for each in faults] == [KeyError]
    (call,) = process.running
    call.stop(End.CANCELLED)
    await spoiled.messages()
