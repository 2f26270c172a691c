"""Whether our database is set up for what is promised, and has connections enough."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction

from mcp_app import conf
from mcp_app.models import Server, Worker, durability
from mcp_app.pools import counting


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
            found = durability.doubts(using)
            return [*map(_doubtful, found), *_crowded(using)]
    except Error as error:
        message = f"The database could not be asked how it is set up: {error}"
        return [checks.Info(message, id="mcp_app.I003")]


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
    usual = counting.pooled(pool) if pool else each.usual
    if usual < each.usual:
        yield checks.Warning(
            f"The pool of each process has at most {usual} connections, and our threads"
            f" may use {each.usual} at the same time: some would wait for others.",
            hint=f'Let OPTIONS["pool"] say "max_size": {each.usual}, and more for the'
            " site's own pages.",
            id="mcp_app.W017",
        )
    there, processes = durability.most_connections(using), _processes(using)
    if there is not None and (total := processes * usual) > there:
        yield checks.Warning(
            f"{processes} processes of {usual} connections each are {total}, and the"
            f" database lets you have {there}: who comes too late is refused. The"
            " site's own pages need some, too.",
            hint='Run fewer processes, lower MCP["THREADS"], or raise max_connections,'
            " or the CONNECTION LIMIT that the role or the database has.",
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
