"""Transactions: what is tried again, and who hears of a commit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import (
    DatabaseError,
    IntegrityError,
    OperationalError,
    connection,
    transaction,
)

from mcp_app.models import Counter
from mcp_app.models.transactions import (
    ATTEMPTS,
    INNODB_DEADLOCK,
    NowMilliseconds,
    in_atomic,
    is_conflict,
    own_transaction,
    persistently,
    tells_of_commits,
)


class Cause(Exception):
    def __init__(self, sqlstate: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate


def caused(sqlstate: str) -> DatabaseError:
    error = OperationalError("it broke")
    error.__cause__ = Cause(sqlstate)
    return error


DEADLOCK = OperationalError(INNODB_DEADLOCK, "Deadlock found")


@pytest.mark.parametrize(
    ("error", "conflict"),
    [
        (DEADLOCK, True),
        (caused("40001"), True),
        (caused("40P01"), True),
        (caused("23505"), False),
        (OperationalError(1205, "Lock wait timeout exceeded"), False),
        (OperationalError("database is locked"), False),
        # The number in a text says nothing.
        (OperationalError(f"{INNODB_DEADLOCK}"), False),
        (ValueError(), False),
    ],
)
def test_what_gives_way_to_others(error: Exception, conflict: bool) -> None:
    assert is_conflict(error) is conflict


def failing(times: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def function() -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return "done"

    return function, calls


@pytest.mark.parametrize("times", [0, 1, ATTEMPTS])
def test_a_conflict_is_tried_again_and_given_up_some_day(times: int) -> None:
    function, calls = failing(times, DEADLOCK)
    assert persistently(function) == "done"
    assert len(calls) == times + 1
    function, calls = failing(99, DEADLOCK)
    with pytest.raises(OperationalError):
        persistently(function, times)
    assert len(calls) == times + 1


def test_no_other_error_is_tried_again_unless_it_is_named() -> None:
    function, calls = failing(1, IntegrityError())
    with pytest.raises(IntegrityError):
        persistently(function)
    assert len(calls) == 1
    function, calls = failing(1, IntegrityError())
    assert persistently(function, also=(IntegrityError,)) == "done"
    assert len(calls) == 2


@pytest.mark.django_db
@pytest.mark.parametrize("also", [(), (OperationalError,)])
def test_inside_a_transaction_whoever_opened_it_decides(
    also: tuple[type[DatabaseError], ...],
) -> None:
    function, calls = failing(1, DEADLOCK)
    with transaction.atomic(), pytest.raises(OperationalError):
        persistently(function, also=also)
    assert len(calls) == 1


@pytest.mark.django_db(transaction=True)
def test_who_hears_of_a_commit() -> None:
    assert (in_atomic("default"), tells_of_commits("default")) == (False, True)
    with transaction.atomic():
        assert (in_atomic("default"), tells_of_commits("default")) == (True, True)
    connection.set_autocommit(False)
    try:
        assert (in_atomic("default"), tells_of_commits("default")) == (False, False)
        with transaction.atomic():
            # It ends with a savepoint.
            assert not in_atomic("default")
            assert not tells_of_commits("default")
    finally:
        connection.rollback()
        connection.set_autocommit(True)


@pytest.mark.django_db(transaction=True)
def test_a_block_of_our_own_within_another_ends_with_it() -> None:
    told: list[str] = []
    with own_transaction("default"):
        assert in_atomic("default")
        transaction.on_commit(lambda: told.append("outer"))
        with own_transaction("default"):
            transaction.on_commit(lambda: told.append("inner"))
        assert told == []
    assert told == ["outer", "inner"]


@pytest.mark.django_db(transaction=True)
def test_our_own_transaction_is_undone_by_an_error() -> None:
    # A connection has its mode as soon as it is open.
    connection.ensure_connection()
    mode = getattr(connection, "transaction_mode", None)
    told: list[str] = []

    def breaks() -> None:
        with own_transaction("default"):
            transaction.on_commit(lambda: told.append("undone"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        breaks()
    assert told == []
    assert getattr(connection, "transaction_mode", None) == mode


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="a statement of SQLite's")
def test_on_sqlite_it_waits_before_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**connection.settings_dict["OPTIONS"]}
    options.pop("transaction_mode", None)
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", options)
    statements: list[str] = []

    def note(execute: Any, sql: str, *more: Any) -> Any:
        statements.append(sql)
        return execute(sql, *more)

    connection.close()
    # The second time the connection is open already.
    for count in (1, 2):
        with connection.execute_wrapper(note), own_transaction("default"):
            pass
        assert statements.count("BEGIN IMMEDIATE") == count
    assert "BEGIN" not in statements
    connection.close()


# -- clock -----------------------------------------------------------------------------


def now() -> int:
    counters = Counter.objects.annotate(now=NowMilliseconds())
    return int(counters.values_list("now", flat=True).get(name="clock"))


@pytest.mark.django_db
def test_the_clock_counts_milliseconds_in_utc() -> None:
    Counter.objects.create(name="clock")
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+05:30'")
    before = int(time.time() * 1000)
    found = now()
    after = int(time.time() * 1000)
    assert before - 50 <= found <= after + 50
    # It is finer than seconds.
    seen = set()
    for _ in range(3):
        seen.add(now() % 1000)
        time.sleep(0.005)
    assert len(seen) > 1
