"""One transaction that is always rolled back: how it begins, and what ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import Error, close_old_connections, connection, connections, transaction
from django.db.transaction import TransactionManagementError

from mcp_app.workbench.trying.dry_run_outcome import Ending
from mcp_app.workbench.trying.trial_transaction import Statements, TrialTransaction
from tests.drill.models import Ledger, Stock

pytestmark = [pytest.mark.usefixtures("own_connection"), pytest.mark.databases]

PATIENCE_S = 60


@pytest.fixture
def own_connection(served_rows: None) -> Iterator[None]:
    """A connection that is opened by the test, and no row left after it."""
    connection.close()
    yield
    left = Ledger.objects.filter(worker="a trial").count()
    Ledger.objects.all().delete()
    Stock.objects.all().delete()
    connection.close()
    assert left == 0


def enter(key: str = "line") -> None:
    Ledger.objects.create(key=key, worker="a trial")


def trial(statements: Statements | None = None) -> TrialTransaction:
    return TrialTransaction("default", statements or Statements(), PATIENCE_S)


def execute(*statements: str) -> list[Any]:
    with connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)
        return list(cursor.fetchall()) if cursor.description else []


def on(vendor: str) -> bool:
    return connection.vendor == vendor


def test_old_connections_are_closed_without_this_one() -> None:
    """What in earnest closes nothing that is in use."""
    with trial() as opened:
        with opened.statement_guard():
            enter()
            close_old_connections()
            enter()
        assert Ledger.objects.filter(worker="a trial").count() == 2
    assert opened.ending is Ending.UNDONE
    connection.set_autocommit(False)
    close_old_connections()
    assert connection.connection is None


def test_parts_that_psycopg_composes_are_read() -> None:
    if not on("postgresql"):
        return
    from psycopg import sql  # noqa: PLC0415

    commit: list[Any] = [sql.SQL("{}").format(sql.SQL("COMMIT")), b"COMMIT"]
    with trial() as opened, opened.statement_guard(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {}").format(sql.Literal("a")))
        for text in commit:
            with pytest.raises(TransactionManagementError, match="refuses COMMIT"):
                cursor.execute(text)


def test_the_transaction_of_sqlite_begins_without_the_lock() -> None:
    """Though the site asks for IMMEDIATE, where the connection is new and where not."""
    if not on("sqlite"):
        return
    for _ in range(2):
        with trial() as opened:
            Ledger.objects.count()
            assert not opened.may_hold_lock
            others = threading.Thread(target=_write_and_close)
            others.start()
            others.join(PATIENCE_S)
            assert not others.is_alive()
    assert connection.transaction_mode == "IMMEDIATE"  # type: ignore[attr-defined]
    assert Ledger.objects.filter(worker="another").count() == 2


def _write_and_close() -> None:
    Ledger.objects.create(key="line", worker="another")
    connection.close()


@pytest.mark.parametrize("by_driver", [False, True])
def test_it_tells_whether_it_may_hold_a_lock(by_driver: bool) -> None:
    with trial() as opened, opened.statement_guard():
        Ledger.objects.count()
        assert opened.may_hold_lock is not on("sqlite")
        statement = "UPDATE drill_ledger SET worker = worker"
        Ledger.objects.filter(key="none").update(worker="a trial")
        if by_driver:
            connection.connection.cursor().execute(statement)
        assert opened.may_hold_lock


def test_a_connection_that_was_kept_and_that_its_server_has_ended() -> None:
    execute("SELECT 1")
    if not on("sqlite"):
        _end_connection()
    with trial() as opened, opened.statement_guard():
        enter()
    assert opened.ending is Ending.UNDONE


def _end_connection() -> None:
    alias = "of the server"
    connections.settings[alias] = connections.settings["default"]
    try:
        if on("postgresql"):
            ((number,),) = execute("SELECT pg_backend_pid()")
            statement = f"SELECT pg_terminate_backend({number}, 10000)"
        else:
            ((number,),) = execute("SELECT CONNECTION_ID()")
            statement = f"KILL {number}"
        with connections[alias].cursor() as cursor:
            cursor.execute(statement)
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


def test_a_connection_that_its_server_ends_meanwhile() -> None:
    if on("sqlite"):
        return
    with trial() as opened, opened.statement_guard():
        enter()
        _end_connection()
        with pytest.raises(Error):
            enter()
    assert opened.ending is Ending.LOST
    assert execute("SELECT 1") == [(1,)]


def test_a_database_that_ends_the_transaction_by_itself() -> None:
    """What is written then would stay on SQLite."""
    if not on("sqlite"):
        return
    Stock.objects.create(sku="a", price=1)
    insert = "INSERT OR ROLLBACK INTO drill_stock (sku, level, price, hidden) VALUES"
    with trial() as opened, opened.statement_guard():
        enter()
        with pytest.raises(Error):
            execute(f"{insert} ('a', 0, 1, false)")
        with pytest.raises(TransactionManagementError, match="has ended"):
            enter()
    assert opened.ending is Ending.LOST


def test_a_deadlock() -> None:
    """MariaDB rolls all of it back: its savepoint is gone, and nothing committed."""
    if not on("mysql"):
        return
    for sku in "ab":
        Stock.objects.create(sku=sku, price=1)
    holding, waits = threading.Event(), threading.Event()

    def cross() -> None:
        with transaction.atomic():
            # Who has changed more is not the victim.
            for _ in range(50):
                Ledger.objects.create(key="weight", worker="another")
            Stock.objects.filter(sku="b").update(level=1)
            holding.set()
            waits.wait(PATIENCE_S)
            Stock.objects.filter(sku="a").update(level=1)
        connection.close()

    other = threading.Thread(target=cross)
    with trial() as opened, opened.statement_guard():
        Stock.objects.filter(sku="a").update(level=2)
        other.start()
        holding.wait(PATIENCE_S)
        waits.set()
        with pytest.raises(Error, match="Deadlock"):
            Stock.objects.filter(sku="b").update(level=2)
        with pytest.raises(TransactionManagementError, match="has ended"):
            enter()
    other.join(PATIENCE_S)
    assert opened.ending is Ending.LOST


def test_within_a_transaction_of_others() -> None:
    """A context manager of the site may have opened one."""
    told: list[str] = []
    with transaction.atomic():
        Ledger.objects.create(key="around", worker="another")
        transaction.on_commit(lambda: told.append("around"))
        with trial() as opened, opened.statement_guard():
            enter()
            transaction.on_commit(lambda: told.append("inside"))
        assert opened.ending is Ending.UNDONE
    assert told == ["around"]
    assert [each.key for each in Ledger.objects.all()] == ["around"]


def test_where_the_site_commits_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections.settings["default"], "AUTOCOMMIT", False)
    with trial() as opened, opened.statement_guard():
        enter()
    assert opened.ending is Ending.UNDONE
    assert not connection.in_atomic_block
    connection.commit()
    connection.close()
    monkeypatch.undo()
    assert not Ledger.objects.exists()


def test_the_time_of_statements_is_as_before_where_the_database_keeps_it() -> None:
    asked = {
        "postgresql": "SHOW statement_timeout",
        "mysql": "SELECT @@max_statement_time",
        "sqlite": "SELECT 1",
    }[connection.vendor]
    before = execute(asked)
    with trial():
        inside = execute(asked)
    assert (inside == before) is on("sqlite")
    assert execute(asked) == before
