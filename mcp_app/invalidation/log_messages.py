"""Log messages to clients, from a view, a command, Celery or the shell."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.db import router, transaction
from django.db.models import Q

from mcp_app.conf import mcp_settings
from mcp_app.interface.context import LEVELS, Level
from mcp_app.interface.log_secrets import log_secrets
from mcp_app.models import LoggedMessage, Session
from mcp_app.models.sessions import SessionQuerySet
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.envelope import notification_message
from mcp_app.protocol.json_types import JsonObject

DEFAULT: Level = "info"
"""The least severe level for a session that has not set one."""


def log(
    level: Level,
    data: object,
    *,
    user: object = None,
    server: str | None = None,
    logger: str | None = None,
) -> int:
    """Send a log message to the sessions of a user, of a server, or of both.

    It is a row in the caller's own transaction.  It goes out on the standing stream of
    each session that has had one and wants messages of this level, in any process; a
    client that is away gets it if it comes back within an hour.

    `user` is a Django user or its primary key, `server` a slug, `data` any JSON.
    Returns the number of sessions that get it.  Raises ValueError for an unknown level,
    for data that is not JSON or larger than `LIMITS["text"]`, and if neither user nor
    server is given.  Secrets in the data are replaced as in `ctx.log`.  Clients of the
    stateless era have no such streams: they only get the messages of their own calls.
    """
    if level not in LEVELS:
        raise ValueError(f"{level!r} is not a level. Use one of {', '.join(LEVELS)}.")
    if user is None and server is None:
        words = "Name a user or a server, whose sessions should get the message."
        raise ValueError(words)
    params: JsonObject = {"level": level, "data": log_secrets.remove_secrets(data)}
    if logger is not None:
        params["logger"] = logger
    payload = jsonrpc.write(notification_message("notifications/message", params))
    limit = mcp_settings.limits.text
    if len(payload) > limit:
        raise ValueError(
            f"The log message has {len(payload):,} bytes, but"
            f' MCP["LIMITS"]["TEXT"] allows {limit:,}.'
        )
    using = router.db_for_write(LoggedMessage)
    wanting = _sessions_wanting(Session.objects.using(using), level, server)
    session_keys = _session_keys(wanting, user)
    if session_keys:
        with transaction.atomic(using=using, savepoint=False):
            LoggedMessage.objects.using(using).log(session_keys, payload.decode())
    return len(session_keys)


def _session_keys(sessions: SessionQuerySet, user: object) -> list[int]:
    if user is None:
        return list(sessions.values_list("pk", flat=True))
    key = str(getattr(user, "pk", user))
    # A principal's key has three parts with \x1f between; the second is the user's.
    candidates = sessions.filter(principal_key__contains=f"\x1f{key}\x1f")
    return [row.pk for row in candidates.only("principal_key") if row.user_id == key]


def _sessions_wanting(
    sessions: SessionQuerySet, level: Level, server: str | None
) -> SessionQuerySet:
    severity = LEVELS.index(level)
    condition = Q(log_level__lte=severity)
    if severity >= LEVELS.index(DEFAULT):
        condition |= Q(log_level=None)
    limits = mcp_settings.limits
    alive = sessions.alive(idle_s=limits.session_idle, age_s=limits.session_age)
    matching = alive.filter(condition, streams__gt=0)
    return matching.filter(server=server) if server is not None else matching


async def alog(
    level: Level,
    data: object,
    *,
    user: object = None,
    server: str | None = None,
    logger: str | None = None,
) -> int:
    """`log` for async code."""
    return await sync_to_async(log)(
        level, data, user=user, server=server, logger=logger
    )
