"""Whatever a program does in a dry run, it changes no row, and nobody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.scripting import STATEFUL, STATELESS, Play
from tests.workbench.trying import programs
from tests.workbench.trying.dry_runs import DryRuns, Line, all_rows
from tests.workbench.trying.programs import ACCEPTED, PROGRAMS, Program, Step

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

TOOLS: Final = ["sync", "atomic_sync", "async", "database", "atomic"]
ERAS: Final = st.sampled_from([STATELESS, STATEFUL])
FEW: Final = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
MANY: Final = settings(FEW, max_examples=100)
"""For each tool: together five hundred."""


@dataclass
class Watch:
    """A client that is told of what changes, and all rows of both databases."""

    line: Line
    before: Mapping[str, Sequence[Any]]


@pytest.fixture
async def rows(dry_runs: DryRuns) -> AsyncIterator[None]:
    await dry_runs("sync", lambda ctx: "The process has written what it does first.")
    await writer.run(programs.fill)
    yield
    await writer.run(programs.clear)


@pytest.fixture
async def watch(rows: None, process: Process) -> AsyncIterator[Watch]:
    line = Line(process)
    await line.initialize(STATEFUL)
    uri = {"uri": "shop://orders"}
    await line.send(method="resources/subscribe", params=uri, id="subscribed")
    await line.next()
    yield Watch(line, await writer.run(all_rows))
    for listener in [*process.listeners]:
        listener.end()


async def run(dry_runs: DryRuns, tool: str, program: Program, version: str) -> bool:
    """Run a program; return whether it came to its end."""
    script = program.sync if "sync" in tool.split("_") else program.run_async
    answers = [ACCEPTED] * (len(program.steps) + 1) ** 2
    answer = await dry_runs(tool, script, version=version, answers=answers)
    result = answer.get("result") or pytest.fail(str(answer))
    return not result.get("isError") and result["content"][0]["text"] == "done"


async def check(
    dry_runs: DryRuns, watch: Watch, tool: str, program: Program, version: str
) -> None:
    is_done = await run(dry_runs, tool, program, version)
    outcome = dry_runs.outcome
    assert outcome.is_all_undone
    assert outcome.endings == {}
    assert await writer.run(all_rows) == watch.before
    assert program.callbacks == []
    assert outcome.topics == tuple(dict.fromkeys(program.topics))
    assert is_done or "error" in {each.name for each in program.steps} or _may_wait()
    await asyncio.sleep(0)
    assert watch.line.messages.empty()


def _may_wait() -> bool:
    """Whether a program may fail because somebody else has the lock."""
    return connection.vendor == "sqlite"


@given(tool=st.sampled_from(TOOLS), program=PROGRAMS, version=ERAS)
@FEW
async def test_nothing_is_left(
    dry_runs: DryRuns, watch: Watch, tool: str, program: Program, version: str
) -> None:
    await check(dry_runs, watch, tool, program, version)


@pytest.mark.long
@pytest.mark.parametrize("tool", TOOLS)
@given(program=PROGRAMS, version=ERAS)
@MANY
async def test_nothing_is_left_of_many(
    dry_runs: DryRuns, watch: Watch, tool: str, program: Program, version: str
) -> None:
    await check(dry_runs, watch, tool, program, version)


EACH: Final = [
    Step("insert", "archive"),
    Step("atomic", "default", "b", [Step("update"), Step("on_commit")]),
    Step("on_commit", "archive", "b"),
    Step("once", "archive", "b"),
    Step("changed", "default", "tools"),
]


async def test_the_same_is_seen_where_nothing_is_undone(
    process: Process, play: Play, dry_runs: DryRuns, watch: Watch
) -> None:
    """Otherwise the tests above could not fail."""
    in_earnest = DryRuns(process, play, in_earnest=True)
    before, program = watch.before, Program(EACH)
    assert await run(in_earnest, "sync", program, STATELESS)
    after = await writer.run(all_rows)
    changed = {name for name in before if before[name] != after[name]}
    assert changed >= {"default.Stock", "archive.Ledger", "default.Once"}
    assert program.callbacks == ["a", "b"]
    told = await watch.line.next()
    assert told["method"] == "notifications/tools/list_changed"


async def test_the_same_in_a_dry_run(dry_runs: DryRuns, watch: Watch) -> None:
    program = Program(EACH)
    await check(dry_runs, watch, "sync", program, STATELESS)
    assert dry_runs.outcome.topics == ("tools",)
