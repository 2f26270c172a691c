"""The database's clock, which all processes share: integer milliseconds in UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


class NowMilliseconds(models.Func):
    """Milliseconds since 1970 in UTC, on the database's own clock."""

    arity = 0
    output_field = models.BigIntegerField()

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        template = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
        return self.as_sql(compiler, connection, template=template)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        template = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint"
        return self.as_sql(compiler, connection, template=template)

    def as_mysql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **extra: Any
    ) -> tuple[str, Any]:
        # UNIX_TIMESTAMP(NOW()) would be ambiguous when the server's clocks go back.
        template = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000"
        return self.as_sql(compiler, connection, template=template)
