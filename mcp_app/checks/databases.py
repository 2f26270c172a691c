"""Whether our database is set up for what is promised, and has connections enough."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction
from django.db.migrations.recorder import MigrationRecorder

from mcp_app import conf
from mcp_app.checks.advice import advising
from mcp_app.models import Server, Worker, durability
from mcp_app.pools import counting

OLD_MIGRATION: Final = ("mcp_app", "0001_initial")
"""Only databases that a version before the first release made have it."""


@advising
def check_databases(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[checks.CheckMessage]:
    """Report settings of our database with which what is promised does not hold.

    It is asked only where `--database` names it.
    """
    using = router.db_for_write(Server)
    if using not in (databases or ()):
        return []
    try:
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=using):
            if (
                OLD_MIGRATION
                in MigrationRecorder(connections[using]).applied_migrations()
            ):
                return [_of_development(using)]
            found = durability.doubts(using)
            return [*map(_doubtful, found), *_crowded(using)]
    except Error as error:
        message = f"The settings of the database could not be read: {error}"
        return [checks.Info(message, id="mcp_app.I003")]


def _of_development(using: str) -> checks.CheckMessage:
    name = connections[using].settings_dict["NAME"]
    return checks.Error(
        f"The database {name} was made by a development version of django-mcp-app,"
        " which this version cannot upgrade. Use an empty database, or delete this"
        " one if you do not need its data.",
        id="mcp_app.E020",
    )


def _doubtful(doubt: durability.Doubt) -> checks.CheckMessage:
    return checks.Warning(
        doubt.said, hint=doubt.remedy, id=f"mcp_app.W{doubt.kind.value:03}"
    )


def _crowded(using: str) -> Iterator[checks.CheckMessage]:
    """Yield a warning where all processes may need more connections than there are."""
    try:
        threads = conf.current().threads
    except ImproperlyConfigured:
        # `check_settings` tells.
        return
    each = counting.of_process(threads)
    pool = connections[using].settings_dict["OPTIONS"].get("pool")
    usual = counting.pool_size(pool) if pool else each.usual
    if usual < each.usual:
        yield checks.Warning(
            f"The pool of each process has at most {usual} connections, but mcp_app's"
            f" threads may use {each.usual} at the same time, so some would wait for"
            " others.",
            hint=f'Set "max_size" in OPTIONS["pool"] to at least {each.usual}; add'
            " some for the site's own pages.",
            id="mcp_app.W017",
        )
    there, processes = durability.most_connections(using), _processes(using)
    if there is not None and (total := processes * usual) > there:
        yield checks.Warning(
            f"{processes} processes with {usual} connections each need {total}, but"
            f" the database allows {there}; it refuses any more. The site's own pages"
            " need some, too.",
            hint='Run fewer processes, lower MCP["THREADS"], or raise max_connections'
            " or the CONNECTION LIMIT of the role or the database.",
            id="mcp_app.W016",
        )


def _processes(using: str) -> int:
    """Return how many serve now, or how many WEB_CONCURRENCY says are to serve."""
    said = os.environ.get("WEB_CONCURRENCY", "")
    return max(
        1,
        int(said) if said.isdecimal() else 0,
        # `migrate` runs the checks before it makes our tables.
        Worker.objects.using(using).live().count()
        if Worker._meta.db_table in connections[using].introspection.table_names()
        else 0,
    )
