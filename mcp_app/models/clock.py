"""The database's clock, which all processes share: integer milliseconds in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler

_NOW: Final[Mapping[str, str]] = {
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)",
    "postgresql": "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint",
    # UNIX_TIMESTAMP(NOW()) would be ambiguous when the server's clocks go back.
    "mysql": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000",
}

# SQLite and MySQL read their clock once in a statement.
_STATEMENT: Final[Mapping[str, str]] = {
    **_NOW,
    "postgresql": "(EXTRACT(EPOCH FROM statement_timestamp()) * 1000)::bigint",
}


def now_sql(connection: BaseDatabaseWrapper) -> str:
    """Return what stands for the time in a statement of our own."""
    return _NOW[connection.vendor]


class NowMilliseconds(models.Func):
    """Milliseconds since 1970 in UTC, on the database's own clock."""

    arity = 0
    output_field = models.BigIntegerField()

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,
        *positional: Any,
        **named: Any,
    ) -> tuple[str, Any]:
        return now_sql(connection), ()


class StatementMilliseconds(NowMilliseconds):
    """The time at which a statement begins: the same wherever it stands in it."""

    def as_sql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,
        *positional: Any,
        **named: Any,
    ) -> tuple[str, Any]:
        return _STATEMENT[connection.vendor], ()
