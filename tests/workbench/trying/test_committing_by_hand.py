"""Code that commits by itself in a dry run: it is refused, or it is said."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from django.db import Error, connection, connections, transaction

from mcp_app import SyncContext
from mcp_app.pools.database import writer
from mcp_app.workbench.trying.dry_run_outcome import Ending
from tests.workbench.trying.dry_runs import (
    DryRuns,
    durable,
    enter,
    execute,
    failed,
    lines,
    said,
    writing,
)

pytestmark = [pytest.mark.usefixtures("scripted"), pytest.mark.databases]

COMMITTED: Final = "It committed by itself. What it wrote stays."


@dataclass(frozen=True)
class Way:
    """A way to commit by hand, and what is to be said of it, if it is not refused."""

    act: Callable[[], object]
    refused: str | None = None
    """A part of the error, if there is one."""
    ending: Ending | None = None
    vendors: tuple[str, ...] = ("sqlite", "postgresql", "mysql")


def raw(*statements: str) -> None:
    cursor = connection.connection.cursor()
    for each in statements:
        cursor.execute(each)
    cursor.close()


def ddl() -> None:
    execute("CREATE TABLE of_a_dry_run (id integer)")


def close_and_go_on() -> None:
    connection.close()
    enter()


def reconnect() -> None:
    connection.close()
    connection.connect()
    enter()


def commit_by_driver() -> None:
    connection.connection.commit()


def close_driver() -> None:
    connection.connection.close()


def commit_and_close() -> None:
    connection.connection.commit()
    connection.close()


SERVERS: Final = ("postgresql", "mysql")
WAYS: Final = {
    "sql": Way(lambda: execute(" /* a */ commit"), "refuses COMMIT"),
    "several": Way(
        lambda: execute("SELECT 1; COMMIT"), "refuses COMMIT", vendors=SERVERS
    ),
    "end": Way(lambda: execute("END"), "refuses END"),
    "rollback": Way(lambda: execute("ROLLBACK"), "refuses ROLLBACK"),
    "driver": Way(commit_by_driver, ending=Ending.COMMITTED),
    "raw sql": Way(lambda: raw("COMMIT"), ending=Ending.COMMITTED),
    "executescript": Way(
        lambda: connection.cursor().executescript("SELECT 1"),
        ending=Ending.COMMITTED,
        vendors=("sqlite",),
    ),
    "ddl": Way(ddl, "refuses CREATE", vendors=("mysql",)),
    "ddl undone": Way(ddl, vendors=("sqlite", "postgresql")),
    "raw ddl": Way(
        lambda: raw("CREATE TABLE IF NOT EXISTS of_a_dry_run (id integer)"),
        ending=Ending.COMMITTED,
        vendors=("mysql",),
    ),
    "set_autocommit": Way(
        lambda: transaction.set_autocommit(True), "an 'atomic' block is active"
    ),
    "commit": Way(transaction.commit, "an 'atomic' block is active"),
    "durable": Way(durable, "durable atomic block cannot be nested"),
    "closed": Way(close_and_go_on, "", Ending.LOST),
    "closed by the driver": Way(close_driver, ending=Ending.LOST),
    "committed and closed": Way(commit_and_close, ending=Ending.LOST),
    "connected again": Way(reconnect, "has ended", Ending.LOST),
    "another in its place": Way(
        lambda: connections.__delitem__("default"), ending=Ending.LOST
    ),
    "begin after commit": Way(lambda: raw("COMMIT", "BEGIN"), ending=Ending.COMMITTED),
    "rolled back by hand": Way(lambda: raw("ROLLBACK"), ending=Ending.COMMITTED),
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_ways_to_commit_by_hand(
    dry_runs: DryRuns, subtests: pytest.Subtests
) -> None:
    for name, way in WAYS.items():
        if connection.vendor in way.vendors:
            with subtests.test(name):
                await _try_way(dry_runs, way)
    # psycopg warns of connections that such code drops: here, and in no later test.
    gc.collect()


async def _try_way(dry_runs: DryRuns, way: Way) -> None:
    errors: list[Exception] = []

    def script(ctx: SyncContext) -> None:
        enter()
        try:
            way.act()
        except Exception as error:
            errors.append(error)
            raise

    await dry_runs("sync", script)
    outcome = dry_runs.outcome
    assert len(errors) == (way.refused is not None)
    assert (way.refused or "") in " ".join(map(str, errors))
    assert outcome.endings == ({} if way.ending is None else {"default": way.ending})
    assert outcome.is_all_undone is (way.ending is None)
    committed = way.ending is Ending.COMMITTED
    assert (COMMITTED in " ".join(outcome.sentences())) is committed
    left = await writer.run(lines)
    assert not (outcome.is_all_undone and left)
    await writer.run(execute, "DROP TABLE IF EXISTS of_a_dry_run")
    # The next call in this thread meets nothing of it.
    assert said(await dry_runs("sync", writing)) == "2 lines"
    assert dry_runs.outcome.is_all_undone


@pytest.mark.usefixtures("nothing_left")
async def test_a_refusal_that_the_code_catches_is_told(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> None:
        enter()
        for each in ("COMMIT", "BEGIN"):
            with pytest.raises(Error):
                execute(each)
        enter()

    assert not failed(await dry_runs("sync", script))
    outcome = dry_runs.outcome
    assert (outcome.is_all_undone, outcome.refusals) == (True, ("COMMIT", "BEGIN"))


async def test_after_a_commit_of_the_driver_nothing_more_is_written_on_sqlite(
    dry_runs: DryRuns,
) -> None:
    """There the connection would commit each statement by itself."""

    def script(ctx: SyncContext) -> None:
        enter()
        connection.connection.commit()
        enter()

    answer = await dry_runs("sync", script)
    assert dry_runs.outcome.endings == {"default": Ending.COMMITTED}
    assert failed(answer) is (connection.vendor == "sqlite")
    assert await writer.run(lines) == 1


@pytest.mark.usefixtures("nothing_left")
async def test_books_of_django_that_are_left_in_disorder(dry_runs: DryRuns) -> None:
    def script(ctx: SyncContext) -> None:
        transaction.atomic().__enter__()
        enter()
        connection.execute_wrappers.clear()
        transaction.set_rollback(True)

    await dry_runs("sync", script)
    assert dry_runs.outcome.is_all_undone
    assert said(await dry_runs("sync", writing)) == "2 lines"
