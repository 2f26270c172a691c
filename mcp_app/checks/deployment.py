"""Settings of the site that close the endpoint, open it too far, or turn calls away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction
from django.db.migrations.recorder import MigrationRecorder

from mcp_app import conf
from mcp_app.checks.settings import Aliases, Messages, advising_check
from mcp_app.invalidation.doorbell import shared_layer
from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.models import Server, Worker, durability
from mcp_app.pools.database import connections_of_process, pool_size


@advising_check
def check_hosts(app_configs: object, **_: Any) -> Messages:
    """Report that every request is refused, even without the option `--deploy`."""
    with suppress(ImproperlyConfigured):
        if not settings.DEBUG and conf.refuses_every_host(conf.current_settings()):
            message, hint = conf.EVERY_HOST_REFUSED, conf.NAME_HOSTS_HINT
            return [checks.Warning(message, hint=hint, id="mcp_app.W005")]
    return []


def check_deployment(app_configs: object, **_: Any) -> Messages:
    """Report settings that make the endpoint refuse everything, or let in too much."""
    try:
        current = conf.current_settings()
    except ImproperlyConfigured:
        # `check_settings` reports it.
        return []
    messages: Messages = []
    if conf.refuses_every_host(current):
        message, hint = conf.EVERY_HOST_REFUSED, conf.NAME_HOSTS_HINT
        messages.append(checks.Error(message, hint=hint, id="mcp_app.E005"))
    if "*" in (current.hosts or ()) or "*" in (current.origins or ()):
        messages.append(
            checks.Error(
                'MCP["HOSTS"] and MCP["ORIGINS"] must not have "*", because a page of'
                " any site could then call the endpoint.",
                id="mcp_app.E006",
            )
        )
    messages += [
        checks.Warning(
            f"{setting} redirects clients that call the MCP endpoint at another"
            " address, and most clients lose the body of their request in a redirect.",
            hint='Set MCP["PUBLIC_URL"] to the address that clients should use.',
            id="mcp_app.W018",
        )
        for setting in _redirecting(current.public_url or "")
    ]
    # `check_settings` reports a layer that cannot be made.
    with suppress(ImproperlyConfigured):
        if shared_layer(current.doorbell) is None:
            messages.append(_local_layer_info(current.doorbell))
    return messages


def _redirecting(public_url: str) -> Iterator[str]:
    """Yield the settings that redirect calls to another address of the endpoint.

    If `public_url` is such an address already, its calls are not redirected.
    """
    url = urlsplit(public_url)
    if settings.SECURE_SSL_REDIRECT and url.scheme != "https":
        yield "SECURE_SSL_REDIRECT"
    if settings.PREPEND_WWW and not (url.hostname or "").startswith("www."):
        yield "PREPEND_WWW"


def _local_layer_info(alias: str) -> checks.CheckMessage:
    return checks.Info(
        f"The channel layer {alias!r} reaches this process only. If you run several"
        f" workers, each checks the database for changes every {FRESHNESS / 2:g} s"
        " while it serves. This works, but changes arrive a moment later than with a"
        " shared layer.",
        hint='Set MCP["DOORBELL"] to a Redis layer'
        " (channels_redis.pubsub.RedisPubSubChannelLayer).",
        id="mcp_app.I001",
    )


# -- databases -------------------------------------------------------------------------
# Whether our database is set up for what is promised, and has connections enough.

OLD_MIGRATION: Final = ("mcp_app", "0001_initial")
"""Only databases from before the first release have it."""


@advising_check
def check_databases(
    app_configs: object, databases: Aliases = None, **_: Any
) -> Messages:
    """Report settings of our database that break what is promised.

    The database is asked only if `--database` names it.
    """
    using = router.db_for_write(Server)
    if using not in (databases or ()):
        return []
    try:
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=using):
            recorder = MigrationRecorder(connections[using])
            if OLD_MIGRATION in recorder.applied_migrations():
                name = connections[using].settings_dict["NAME"]
                message = (
                    f"The database {name} was made by a development version of"
                    " django-mcp-app, which this version cannot upgrade. Use an empty"
                    " database, or delete this one if you do not need its data."
                )
                return [checks.Error(message, id="mcp_app.E020")]
            doubts: Messages = [
                checks.Warning(
                    each.sentence, hint=each.remedy, id=f"mcp_app.W{each.kind.value:03}"
                )
                for each in durability.doubts(using)
            ]
            return [*doubts, *_connection_warnings(using)]
    except Error as error:
        message = f"The settings of the database could not be read: {error}"
        return [checks.Info(message, id="mcp_app.I003")]


def _connection_warnings(using: str) -> Iterator[checks.CheckMessage]:
    """Yield a warning if all processes may need more connections than there are."""
    try:
        threads = conf.current_settings().threads
    except ImproperlyConfigured:
        # `check_settings` reports it.
        return
    needed = connections_of_process(threads)
    pool = connections[using].settings_dict["OPTIONS"].get("pool")
    usual = pool_size(pool) if pool else needed.usual
    if usual < needed.usual:
        yield checks.Warning(
            f"The pool of each process has at most {usual} connections, but mcp_app's"
            f" threads may use {needed.usual} at the same time, so some would wait for"
            " others.",
            hint=f'Set "max_size" in OPTIONS["pool"] to at least {needed.usual}; add'
            " some for the site's own pages.",
            id="mcp_app.W017",
        )
    limit, processes = durability.most_connections(using), _processes(using)
    if limit is not None and (total := processes * usual) > limit:
        yield checks.Warning(
            f"{processes} processes with {usual} connections each need {total}, but"
            f" the database allows {limit}; it refuses any more. The site's own pages"
            " need some, too.",
            hint='Run fewer processes, lower MCP["THREADS"], or raise max_connections'
            " or the CONNECTION LIMIT of the role or the database.",
            id="mcp_app.W016",
        )


def _processes(using: str) -> int:
    configured, live = os.environ.get("WEB_CONCURRENCY", ""), 0
    # `migrate` runs the checks before it makes our tables.
    if Worker._meta.db_table in connections[using].introspection.table_names():
        live = Worker.objects.using(using).live().count()
    return max(1, int(configured) if configured.isdecimal() else 0, live)
