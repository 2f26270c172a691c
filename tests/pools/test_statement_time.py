"""The limit as each database keeps it; nothing of it outlasts its block."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import pytest
from django.db import DatabaseError, connection, transaction

from mcp_app.pools.statement_time import TimeIsUp, limit_transaction, time_limit

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

SHORT_S: Final = 0.2
LONG_S: Final = 60
ENDLESS: Final = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
    " LIMIT 2000000000) SELECT COUNT(*) FROM n",
    "postgresql": "SELECT pg_sleep(60)",
    "mysql": "SELECT COUNT(*) FROM information_schema.columns a,"
    " information_schema.columns b, information_schema.columns c,"
    " information_schema.columns d",
}


def ask(sql: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchone()[0]


def endless() -> None:
    sql = ENDLESS[connection.vendor]
    if connection.vendor == "sqlite":
        # Only what reads is written as SELECT by Django; SQLite counts whatever runs.
        assert not sql.startswith("SELECT")
    ask(sql)


def test_what_takes_too_long_is_ended() -> None:
    began = time.monotonic()
    with pytest.raises(TimeIsUp), time_limit("default", SHORT_S):
        endless()
    # A database counts in its own milliseconds.
    assert SHORT_S / 2 < time.monotonic() - began < LONG_S
    assert ask("SELECT 1") == 1


def test_what_ends_in_time_is_answered() -> None:
    with time_limit("default", LONG_S):
        assert ask("SELECT 2") == 2
    assert ask("SELECT 3") == 3
    # Other errors stay what they are.
    with pytest.raises(DatabaseError), time_limit("default", LONG_S):
        ask("SELECT nothing FROM nowhere")


def test_a_statement_that_comes_too_late_is_not_begun() -> None:
    def late() -> None:
        with time_limit("default", SHORT_S):
            time.sleep(SHORT_S * 1.5)
            ask("SELECT 1")

    with pytest.raises(TimeIsUp):
        late()


def test_statements_share_the_time() -> None:
    """Each would end in time if it had all of it."""

    def sleep_twice() -> None:
        with time_limit("default", 4 * SHORT_S):
            ask(f"SELECT pg_sleep({3 * SHORT_S})")
            ask(f"SELECT pg_sleep({3 * SHORT_S})")

    if connection.vendor == "postgresql":
        with pytest.raises(TimeIsUp):
            sleep_twice()


def test_it_ends_with_its_block() -> None:
    # A machine that stands still may need longer for that.
    with suppress(TimeIsUp), time_limit("default", SHORT_S):
        ask("SELECT 1")
    time.sleep(SHORT_S * 1.5)
    assert ask("SELECT 4") == 4
    if connection.vendor == "postgresql":
        assert ask("SHOW statement_timeout") == "0"


def test_within_a_transaction_of_others() -> None:
    with transaction.atomic():
        with time_limit("default", LONG_S):
            ask("SELECT 1")
        if connection.vendor == "postgresql":
            assert ask("SHOW statement_timeout") == "0"
        with (
            pytest.raises(TimeIsUp),
            transaction.atomic(),
            time_limit("default", SHORT_S),
        ):
            endless()
        assert ask("SELECT 5") == 5


def test_a_whole_transaction() -> None:
    with transaction.atomic():
        limit_transaction("default", LONG_S)
        if connection.vendor == "postgresql":
            assert ask("SHOW statement_timeout") == "1min"
        assert ask("SELECT 6") == 6
    if connection.vendor == "postgresql":
        assert ask("SHOW statement_timeout") == "0"
