"""Saying that something changed, from a view, a command, Celery or the shell.

The change is a row in the caller's own transaction: it is told when that commits.
"""

from __future__ import annotations

from hashlib import sha256

from asgiref.sync import sync_to_async

from mcp_app.models import Change
from mcp_app.models.clock import NowMilliseconds

RESOURCE = "uri"
LIST = "list"
LISTS = ("tools", "prompts", "resources")
EVERYWHERE = "*"
KEPT_MS = 600_000


def changed(uri: str) -> None:
    """Say that the resource with this URI has other contents now."""
    Change.objects.record(RESOURCE, sha256(uri.encode()).hexdigest())


def notify(what: str, server: str | None = None) -> None:
    """Say that a list has changed: "tools", "prompts" or "resources".

    `server` is a slug; None stands for all servers.
    """
    if what not in LISTS:
        raise ValueError(f"{what!r} is no list: use one of {', '.join(LISTS)}.")
    Change.objects.record(LIST, f"{what}:{server or EVERYWHERE}")


async def achanged(uri: str) -> None:
    """`changed` for async code."""
    await sync_to_async(changed)(uri)


async def anotify(what: str, server: str | None = None) -> None:
    """`notify` for async code."""
    await sync_to_async(notify)(what, server)


def told(what: str, server: str) -> None:
    """Record what `ctx.changed` names: a list of that server, or a URI."""
    if what in LISTS:
        notify(what, server)
    else:
        changed(what)


def prune() -> None:
    """Delete changes that every process has seen long ago; blocks."""
    before = NowMilliseconds() - KEPT_MS
    Change.objects.filter(created_ms__lt=before).delete()
