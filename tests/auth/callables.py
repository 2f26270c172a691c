"""Callables for `MCP["AUTHENTICATION"]`, of every kind."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db import OperationalError

from mcp_app import AuthenticationFailed, AuthenticationRequest, Principal

requests: Final[list[AuthenticationRequest]] = []
threads: Final[list[str]] = []


def by_name(request: AuthenticationRequest) -> Principal | None:
    """Believe the header: a user of the database by name, with Django's rights."""
    requests.append(request)
    threads.append(threading.current_thread().name)
    name = request.headers.get(b"x-name")
    if name is None:
        return None
    user: Any = get_user_model().objects.filter(username=name).first()
    if user is None:
        raise AuthenticationFailed("There is no such user.")
    return Principal(kind="user", user_id=str(user.pk), user_name=name)


async def by_badge(request: AuthenticationRequest) -> Principal | None:
    """Believe the header, without a user; async."""
    await asyncio.sleep(0)
    badge = request.headers.get(b"x-badge")
    if badge is None:
        return None
    if badge == "lost":
        raise AuthenticationFailed
    return Principal(kind="badge", user_name=badge, permissions=frozenset())


by_lost_badge = functools.partial(by_badge)


class ByBadge:
    """A callable object with an async call, which no inspection recognises."""

    async def __call__(self, request: AuthenticationRequest) -> Principal | None:
        return await by_badge(request)


by_object = ByBadge()


def outage(request: AuthenticationRequest) -> Principal | None:
    """The database is away."""
    raise OperationalError("The connection is gone.")


async def async_outage(request: AuthenticationRequest) -> Principal | None:
    """The database is away."""
    raise OperationalError("The connection is gone.")


def wrong(request: AuthenticationRequest) -> Any:
    """Return what is no principal."""
    return "admin"


def broken(request: AuthenticationRequest) -> Principal | None:
    """Raise what is no answer."""
    raise LookupError("the secret of the site")


HOLD: Final = {"entered": threading.Event(), "go": threading.Event()}


def slowly(request: AuthenticationRequest) -> Principal | None:
    """Block until the test says so."""
    HOLD["entered"].set()
    HOLD["go"].wait(60)
    return Principal(kind="slow", permissions=frozenset())
