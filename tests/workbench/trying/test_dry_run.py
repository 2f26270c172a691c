"""Dry runs through dispatch, on two databases: nothing is left, or it is said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.db import Error, connection, connections

from mcp_app import Accepted, Context, SyncContext, ToolError
from mcp_app.catalog.runnable import Runnable
from mcp_app.pools.database import writer
from mcp_app.pools.turns import Owner
from mcp_app.process.runtime import Process
from mcp_app.workbench.trying.dry_run import limit_time
from mcp_app.workbench.trying.dry_run_outcome import DryRunOutcome, Ending, Remark
from tests.drill.models import Customer, Ledger
from tests.scripting import STATEFUL, STATELESS
from tests.serving import PATIENCE_S
from tests.workbench.trying.dry_runs import (
    ALIASES,
    DryRuns,
    Script,
    durable,
    enter,
    execute,
    failed,
    lines,
    said,
    writing,
)

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

ERAS: Final = [STATELESS, STATEFUL]


# -- all is undone ------------------------------------------------------------------


async def awriting(ctx: Context) -> str:
    await Ledger.objects.acreate(key="line", worker="a dry run")
    return await sync_to_async(writing)(ctx)  # type: ignore[arg-type]


TOOLS: Final[dict[str, Script]] = {
    "sync": writing,
    "atomic_sync": writing,
    "async": awriting,
    "database": awriting,
    "atomic": awriting,
}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("version", ERAS)
async def test_what_it_writes_is_undone(dry_runs: DryRuns, version: str) -> None:
    for tool, script in TOOLS.items():
        answer = await dry_runs(tool, script, version=version)
        outcome = dry_runs.outcome
        assert not failed(answer)
        assert said(answer) == ("2 lines" if script is writing else "3 lines")
        assert (outcome.is_all_undone, outcome.endings) == (True, {})
        assert outcome.topics == ("tools", "shop://orders")
        assert outcome.statements >= 9
        assert outcome.seconds > 0
        assert outcome.sentences() == [
            "All that it wrote to the databases in its own thread was undone.",
            "It would tell clients: tools, shop://orders",
        ]
        assert dry_runs.line is not None
        assert dry_runs.line.messages.empty()


async def test_a_connection_of_its_own_is_told(dry_runs: DryRuns) -> None:
    """What is written there is in no transaction of the dry run."""

    def script(ctx: SyncContext) -> str:
        own = connections.create_connection("default")
        try:
            with own.cursor() as cursor:
                cursor.execute("SELECT 1")
        finally:
            own.close()
        return "looked"

    assert said(await dry_runs("sync", script)) == "looked"
    assert (dry_runs.outcome.is_all_undone, dry_runs.outcome.sentences()[0]) == (
        False,
        "It opened a connection of its own to “default”. What it wrote there stays.",
    )


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("error", [ValueError("no"), ToolError("no")])
async def test_an_error_is_answered_as_in_earnest(
    dry_runs: DryRuns, error: Exception
) -> None:
    def script(ctx: SyncContext) -> None:
        enter()
        raise error

    assert failed(await dry_runs("sync", script))
    assert (dry_runs.outcome.is_all_undone, dry_runs.outcome.remarks) == (True, ())


@pytest.mark.usefixtures("nothing_left")
async def test_its_result_is_converted_before_all_is_undone(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> Any:
        enter("read late")
        return Ledger.objects.filter(key="read late").values_list("key", flat=True)

    answer = await dry_runs("sync", script)
    assert answer["result"]["structuredContent"] == {"result": ["read late"]}


def cake(answer: object) -> str:
    assert isinstance(answer, Accepted)
    return str(answer.data["cake"])


ACCEPTED: Final = {"action": "accept", "content": {"cake": "plum"}}
FORM: Final = {"type": "object", "properties": {"cake": {"type": "string"}}}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("version", ERAS)
async def test_questions_pass_and_steps_are_run_again(
    dry_runs: DryRuns, version: str
) -> None:
    ran: list[str] = []

    def step(name: str) -> None:
        ran.append(name)
        enter()

    def script(ctx: SyncContext) -> str:
        ctx.once("a step", step, "sync")
        return cake(ctx.elicit("Which?", FORM))

    async def ascript(ctx: Context) -> str:
        await ctx.once("a step", step, "async")
        return cake(await ctx.elicit("Which?", FORM))

    for tool, each in (("sync", script), ("async", ascript)):
        answer = await dry_runs(tool, each, version=version, answers=[ACCEPTED])
        assert said(answer) == "plum"
        assert dry_runs.outcome.is_all_undone
    rounds = 2 if version == STATELESS else 1
    assert ran == ["sync"] * rounds + ["async"] * rounds


@pytest.mark.usefixtures("nothing_left")
async def test_many_at_once(process: Process, dry_runs: DryRuns) -> None:
    play = dry_runs._play
    number = 20 if connection.vendor != "sqlite" else 4
    all_of_them = [DryRuns(process, play) for _ in range(number)]
    answers = await asyncio.gather(*(each("sync", writing) for each in all_of_them))
    assert {each.outcome.is_all_undone for each in all_of_them} == {True}
    if connection.vendor != "sqlite":
        assert {said(each) for each in answers} == {"2 lines"}


async def test_what_a_thread_of_its_own_writes_is_not_undone(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> None:
        thread = threading.Thread(target=_enter_and_close)
        thread.start()
        thread.join()

    await dry_runs("sync", script)
    assert dry_runs.outcome.is_all_undone
    assert await writer.run(lines) == 1


def _enter_and_close() -> None:
    enter()
    connection.close()


# -- what only a dry run meets --------------------------------------------------------


@pytest.mark.usefixtures("nothing_left")
async def test_a_durable_transaction_is_explained(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> None:
        durable()

    assert failed(await dry_runs("sync", script))
    assert dry_runs.outcome.remarks == (Remark.DURABLE,)
    assert "durable" in dry_runs.outcome.sentences()[1]


@pytest.mark.usefixtures("nothing_left")
async def test_an_error_that_was_caught(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> str:
        with pytest.raises(Error):
            execute("SELECT of_nothing FROM nowhere")
        enter()
        return "entered"

    answer = await dry_runs("sync", script)
    on_postgresql = connection.vendor == "postgresql"
    assert failed(answer) is on_postgresql
    assert dry_runs.outcome.remarks == ((Remark.ABORTED,) if on_postgresql else ())
    assert dry_runs.outcome.is_all_undone


@pytest.mark.usefixtures("nothing_left")
async def test_what_only_a_commit_would_find(dry_runs: DryRuns) -> None:
    """PostgreSQL checks foreign keys then, and SQLite, which nobody can ask before."""

    def script(ctx: SyncContext) -> str:
        Customer.objects.create(name="a", email="a@example.com", country_id="xx")
        return "created"

    answer = await dry_runs("sync", script)
    assert failed(answer) is (connection.vendor != "sqlite")
    at_commit = connection.vendor == "postgresql"
    assert dry_runs.outcome.remarks == ((Remark.AT_COMMIT,) if at_commit else ())
    assert dry_runs.outcome.is_all_undone


@pytest.mark.usefixtures("nothing_left")
async def test_a_client_kept_for_another_loop(dry_runs: DryRuns) -> None:
    loop = asyncio.get_running_loop()
    kept: asyncio.Future[None] = loop.create_future()

    async def script(ctx: Context) -> None:
        await kept

    assert failed(await dry_runs("async", script))
    assert dry_runs.outcome.remarks == (Remark.OTHER_LOOP,)


# -- databases that are away, and time ------------------------------------------------


@pytest.mark.usefixtures("nothing_left")
async def test_a_database_that_is_away(dry_runs: DryRuns) -> None:
    ran: list[None] = []
    away = {"NAME": "/nowhere/of/a/dry/run", "HOST": "127.0.0.1", "PORT": "1"}
    with pytest.MonkeyPatch.context() as patched:
        for key, value in away.items():
            patched.setitem(connections.settings["archive"], key, value)
        answer = await dry_runs("sync", lambda ctx: ran.append(None))
    sentence = "The database “archive” cannot be reached; a dry run needs all."
    assert answer["error"]["message"] == sentence
    assert ran == []
    assert dry_runs.outcome.endings == {"archive": Ending.UNREACHABLE}
    assert dry_runs.outcome.sentences() == [sentence]


async def test_an_alias_without_a_database_is_left_out(
    dry_runs: DryRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = connections.configure_settings({"default": {}})["default"]
    monkeypatch.setitem(connections.settings, "empty", empty)
    assert said(await dry_runs("sync", writing)) == "2 lines"
    assert dry_runs.outcome.is_all_undone


async def test_code_of_ours_is_awaited_as_always(dry_runs: DryRuns) -> None:
    async def ours() -> str:
        return threading.current_thread().name

    awaited: Runnable[str] = Runnable(
        run=ours, style="async", bind=dict, convert=str, ours=True
    )
    run = dry_runs.dry_run.run
    exchange: Any = None
    assert await run(exchange, awaited, {}, str) == threading.current_thread().name
    assert not dry_runs.dry_run.nothing_around(awaited)
    assert dry_runs.outcome == DryRunOutcome()


@pytest.mark.usefixtures("dry_runs")
async def test_an_entry_has_no_more_time_than_a_dry_run(process: Process) -> None:
    await process.gate.wait_for_check()
    entries = process.catalogs.serving("private").tools
    limits = replace(process.limits, dry_run=5)
    usual, short = entries["sync"], entries["short"]
    assert limit_time(usual, limits).definition.timeout == 5
    assert limit_time(short, limits).definition.timeout == 0.3
    assert usual.definition.timeout is None
    assert limit_time(usual, limits).runnable is usual.runnable


@pytest.mark.parametrize("mcp", [{"THREADS": 1}])
async def test_a_trial_that_is_cancelled_before_a_thread_is_free(
    process: Process, dry_runs: DryRuns
) -> None:
    released = threading.Event()
    blocking = [
        process.threads.submit(
            lambda job: _wait(released), "blocks", Owner(str(index), stranger=False)
        )
        for index in range(process.threads.ceiling)
    ]
    ran: list[None] = []
    params = dry_runs._play.params("sync", lambda ctx: ran.append(None))
    line = await dry_runs.begin(params, STATEFUL)
    await until(lambda: len(process.running))
    await asyncio.sleep(0)
    cancelled = {"requestId": 1, "reason": "Enough."}
    await line.send(method="notifications/cancelled", params=cancelled)
    await until(lambda: not len(process.running))
    assert (dry_runs.outcome.is_all_undone, dry_runs.outcome.remarks) == (True, ())
    released.set()
    await until(lambda: all(each.is_unwanted for each in blocking))
    assert ran == []
    assert line.messages.empty()
    for listener in [*process.listeners]:
        listener.end()


def _wait(released: threading.Event) -> None:
    released.wait(PATIENCE_S)


LITTLE: Final = {"LIMITS": {"dry_run": 0.3}}


@pytest.mark.parametrize("mcp", [LITTLE])
@pytest.mark.parametrize("alias", ALIASES)
async def test_a_function_that_writes_and_hangs(dry_runs: DryRuns, alias: str) -> None:
    released = threading.Event()
    later: list[str] = []

    def script(ctx: SyncContext) -> None:
        Ledger.objects.using(alias).filter(key="held").update(key="written")
        released.wait(PATIENCE_S)
        try:
            enter(alias=alias)
        except Exception as error:
            later.append(str(error))
            raise

    await writer.run(enter, "held", alias)
    answer = await dry_runs("sync", script)
    outcome = dry_runs.outcome
    assert "did not finish" in said(answer)
    assert not outcome.is_all_undone
    assert Remark.STILL_RUNS in outcome.remarks
    if connection.vendor == "sqlite":
        assert outcome.endings == {alias: Ending.STILL_OPEN}
        assert "holds the lock" in outcome.sentences()[0]
        released.set()
    # Others can write.
    async with asyncio.timeout(PATIENCE_S):
        await writer.run(_rewrite, alias)
    if connection.vendor != "sqlite":
        assert outcome.endings == dict.fromkeys(ALIASES, Ending.CUT)
    released.set()
    await until(lambda: later)
    assert later == ["The dry run is over."]
    assert await writer.run(lines) == 1


def _rewrite(alias: str) -> None:
    changed = Ledger.objects.using(alias).filter(key="held").update(key="by others")
    assert changed == 1


async def until(so: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not so():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("mcp", [LITTLE])
async def test_a_statement_that_hangs_is_ended(dry_runs: DryRuns) -> None:
    """And leaves no lock: on MariaDB one that reckons does not hear of the cut."""
    asked = {
        "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT max(i) FROM n",
        "postgresql": "SELECT pg_sleep(600)",
        "mysql": "SELECT BENCHMARK(10000000000, MD5('a'))",
    }
    ended = threading.Event()

    def script(ctx: SyncContext) -> None:
        enter()
        Ledger.objects.filter(key="held").update(key="written")
        try:
            execute(asked[connection.vendor])
        finally:
            ended.set()

    await writer.run(enter, "held")
    assert "did not finish" in said(await dry_runs("sync", script))
    await until(ended.is_set)
    await until(lambda: Remark.STILL_RUNS not in dry_runs.outcome.remarks)
    async with asyncio.timeout(PATIENCE_S):
        await writer.run(_rewrite, "default")
    assert await writer.run(lines) == 1
    outcome = dry_runs.outcome
    # A machine that stands still may be so late that it is cut first.
    assert outcome.is_all_undone or set(outcome.endings.values()) == {Ending.CUT}


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("mcp", [LITTLE])
async def test_an_async_function_that_hangs_ends_by_itself(dry_runs: DryRuns) -> None:
    async def script(ctx: Context) -> None:
        await sync_to_async(enter)()
        await asyncio.Event().wait()

    assert "did not finish" in said(await dry_runs("async", script))
    assert (dry_runs.outcome.is_all_undone, dry_runs.outcome.remarks) == (True, ())


@pytest.mark.usefixtures("nothing_left")
async def test_a_trial_that_is_cancelled(dry_runs: DryRuns) -> None:
    begun, released = threading.Event(), threading.Event()

    def script(ctx: SyncContext) -> None:
        enter()
        begun.set()
        released.wait(PATIENCE_S)

    params = dry_runs._play.params("sync", script)
    line = await dry_runs.begin(params, STATEFUL)
    await until(begun.is_set)
    await line.send(
        method="notifications/cancelled", params={"requestId": 1, "reason": "Enough."}
    )
    expected = Ending.STILL_OPEN if connection.vendor == "sqlite" else Ending.CUT
    await until(lambda: dry_runs.outcome.endings.get("default") is expected)
    released.set()
    await until(lambda: Remark.STILL_RUNS not in dry_runs.outcome.remarks)
    assert line.messages.empty()
    for listener in dry_runs._process.listeners:
        listener.end()


async def test_who_commits_after_all_waited_in_vain_is_in_the_log(
    dry_runs: DryRuns, caplog: pytest.LogCaptureFixture
) -> None:
    """SQLite's connection is not cut: at its end it can be looked at."""
    if connection.vendor != "sqlite":
        return
    begun, released = threading.Event(), threading.Event()

    def script(ctx: SyncContext) -> None:
        enter()
        connection.connection.commit()
        begun.set()
        released.wait(PATIENCE_S)

    line = await dry_runs.begin(dry_runs._play.params("sync", script), STATEFUL)
    await until(begun.is_set)
    await line.send(method="notifications/cancelled", params={"requestId": 1})
    await until(lambda: Remark.STILL_RUNS in dry_runs.outcome.remarks)
    assert dry_runs.outcome.endings == {"default": Ending.STILL_OPEN}
    released.set()
    await until(lambda: dry_runs.outcome.endings == {"default": Ending.COMMITTED})
    await until(lambda: "committed on 'default' by itself" in caplog.text)
    assert await writer.run(lines) == 1
    for listener in [*dry_runs._process.listeners]:
        listener.end()
