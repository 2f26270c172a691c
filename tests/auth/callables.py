"""Callables for `MCP["AUTHENTICATION"]`, of every kind."""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
from typing import Any, Final

import httpx
from django.contrib.auth import get_user_model
from django.db import OperationalError

from mcp_app import (
    AuthenticationFailed,
    AuthenticationRequest,
    AuthenticationUnavailable,
    Principal,
)

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


def claiming(request: AuthenticationRequest) -> Principal | None:
    """Say a kind, a user and a client as the header has them."""
    parts = (request.headers.get(b"x-claim") or "").split("/")
    return Principal(kind=parts[0], user_id=parts[1], client=parts[2])


answers: Final[list[str]] = []
"""What was asked with `counting`, by its Authorization header."""
PAUSE: tuple[asyncio.Event, asyncio.Event] | None = None
"""Set when `counting` is asked, and what it waits for then."""


async def counting(request: AuthenticationRequest) -> Principal | None:
    name = request.headers.get("Authorization", "")
    answers.append(name)
    if PAUSE is not None:
        entered, go = PAUSE
        entered.set()
        await go.wait()
    if name == "nobody":
        raise AuthenticationFailed
    if not name:
        return None
    return Principal(kind="site", user_name=name, permissions=frozenset())


PLACE: Final = {"port": 0}


def elsewhere(request: AuthenticationRequest) -> Principal | None:
    """Ask a server on this machine who it is."""
    with socket.create_connection(("127.0.0.1", PLACE["port"]), timeout=5) as asked:
        name = asked.recv(100).decode()
    return Principal(kind="elsewhere", user_name=name, permissions=frozenset())


async def async_elsewhere(request: AuthenticationRequest) -> Principal | None:
    """The same with a client that has errors of its own."""
    async with httpx.AsyncClient(timeout=5) as client:
        answer = await client.get(f"http://127.0.0.1:{PLACE['port']}")
    return Principal(kind="elsewhere", user_name=answer.text, permissions=frozenset())


def said_away(request: AuthenticationRequest) -> Principal | None:
    """Say that what knows is away."""
    raise AuthenticationUnavailable("the secret of the site", retry_after=77)


async def hanging(request: AuthenticationRequest) -> Principal | None:
    """Wait for what never comes."""
    await asyncio.Event().wait()
    return None
