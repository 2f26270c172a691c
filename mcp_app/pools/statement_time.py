"""A time limit for SQL statements, which the database itself keeps.

PostgreSQL takes `statement_timeout`, for a transaction; MariaDB `max_statement_time`
and MySQL `MAX_EXECUTION_TIME`, for a statement; SQLite asks a progress handler.
No limit outlasts its block: afterwards the connection has its own limits again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from django.db import Error, connections, transaction

LIMIT_STATEMENTS: Final = """
    SELECT set_config('statement_timeout', %(limit)s, true)
    WHERE current_setting('statement_timeout')::interval
        NOT BETWEEN '1 microsecond' AND %(limit)s::interval
"""
"""For the transaction (`SET LOCAL`); keeps a shorter limit of the site (0 is none)."""
MAX_LIMIT_MS: Final = 2**31 - 1
"""PostgreSQL refuses more: 24 days."""

SHORTENED: Final = 0.9
"""If less than this share of a limit is left, the limit is set again."""

_INSTRUCTIONS: Final = 10_000
"""Of SQLite's machine, between two looks at the clock: less than a millisecond."""
_ENDED: Final = frozenset({"57014", 1969, 3024, "interrupted"})
"""How the databases say that a statement took too long."""


class TimeIsUp(Exception):
    """A statement was ended at its limit, or came after it."""


def limit_transaction(alias: str, seconds: float) -> None:
    """Let PostgreSQL end statements of the open transaction; other databases do not."""
    connection = connections[alias]
    if connection.vendor == "postgresql":
        limit = f"{_milliseconds(seconds)}ms"
        with connection.cursor() as cursor:
            cursor.execute(LIMIT_STATEMENTS, {"limit": limit})


@contextmanager
def time_limit(alias: str, seconds: float) -> Iterator[None]:
    """Give the statements of the block so many seconds on a database.

    Raises `TimeIsUp` at the limit, and for a statement that begins later.  On
    PostgreSQL the block is a transaction.  On a product that this module does not
    name, only statements that begin later are refused.
    """
    connection: Any = connections[alias]
    product = connection.vendor
    if product == "mysql" and connection.mysql_is_mariadb:
        product = "mariadb"
    limiter = _LIMITERS.get(product, _without_limiter)
    try:
        with limiter(connection, _Clock(seconds)):
            yield
    except Error as error:
        if is_time_limit(error):
            raise TimeIsUp from error
        raise


def is_time_limit(error: Error) -> bool:
    words = {arg for arg in error.args[:1] if isinstance(arg, str | int)}
    return not _ENDED.isdisjoint({getattr(error.__cause__, "sqlstate", None), *words})


class _Clock:
    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """The seconds that are left; raises `TimeIsUp` if there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeIsUp
        return left

    @property
    def is_expired(self) -> bool:
        return time.monotonic() >= self._end


def _milliseconds(seconds: float) -> int:
    return min(max(1, int(seconds * 1000)), MAX_LIMIT_MS)


@contextmanager
def _postgresql(connection: Any, clock: _Clock) -> Iterator[None]:
    with transaction.atomic(using=connection.alias):
        outer_limit = None
        if connection.savepoint_ids:
            # Only the end of the outermost transaction would undo the limit.
            with connection.cursor() as cursor:
                cursor.execute("SHOW statement_timeout")
                outer_limit = cursor.fetchone()[0]
        limit_transaction(connection.alias, clock.seconds_left)
        with connection.execute_wrapper(_limiting_again(connection.alias, clock)):
            yield
        # After an exception the rollback to the savepoint restores the limit.
        if outer_limit is not None:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('statement_timeout', %s, true)", [outer_limit]
                )


def _limiting_again(alias: str, clock: _Clock) -> Callable[..., Any]:
    """After a long statement, limit the next ones to the time that is left."""
    limit = clock.seconds_left

    def execute_with_rest(
        run: Any, sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        nonlocal limit
        left = clock.seconds_left
        if left < limit * SHORTENED:
            limit = left
            limit_transaction(alias, left)
        return run(sql, params, many, context)

    return execute_with_rest


def _looking_at(clock: _Clock) -> Callable[..., Any]:
    def execute_before_end(
        run: Any, sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if clock.is_expired:
            raise TimeIsUp
        return run(sql, params, many, context)

    return execute_before_end


def _read_limiter(
    limit: Callable[[str, int], str],
) -> Callable[[Any, _Clock], AbstractContextManager[None]]:
    @contextmanager
    def statement_limiter(connection: Any, clock: _Clock) -> Iterator[None]:
        def execute_with_limit(
            run: Any, sql: str, params: Any, many: bool, context: Any
        ) -> Any:
            milliseconds = _milliseconds(clock.seconds_left)
            if sql.startswith("SELECT "):
                sql = limit(sql, milliseconds)
            return run(sql, params, many, context)

        with connection.execute_wrapper(execute_with_limit):
            yield

    return statement_limiter


@contextmanager
def _sqlite(connection: Any, clock: _Clock) -> Iterator[None]:
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: clock.is_expired, _INSTRUCTIONS)
    try:
        with connection.execute_wrapper(_looking_at(clock)):
            yield
    finally:
        if connection.connection is not None:
            connection.connection.set_progress_handler(None, 0)


@contextmanager
def _without_limiter(connection: Any, clock: _Clock) -> Iterator[None]:
    with connection.execute_wrapper(_looking_at(clock)):
        yield


_LIMITERS: Final[dict[str, Callable[[Any, _Clock], AbstractContextManager[None]]]] = {
    "postgresql": _postgresql,
    "mariadb": _read_limiter(
        lambda sql, ms: f"SET STATEMENT max_statement_time={ms / 1000:g} FOR {sql}"
    ),
    "mysql": _read_limiter(
        lambda sql, ms: sql.replace(
            "SELECT", f"SELECT /*+ MAX_EXECUTION_TIME({ms}) */", 1
        )
    ),
    "sqlite": _sqlite,
}
