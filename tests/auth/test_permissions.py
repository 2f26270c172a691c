"""What principals may: Django's permissions, kept for a short while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.db import connection

from mcp_app import Principal
from mcp_app.auth import permissions
from mcp_app.auth.permissions import Permissions, UserRows
from mcp_app.models import Change, Server
from mcp_app.pools.database import reader, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.errors import Unavailable
from tests.asgi_client import Client
from tests.behaviours import SECRET
from tests.scripting import STATEFUL, STATELESS
from tests.serving import Connect

pytestmark = [pytest.mark.usefixtures("served_rows"), pytest.mark.databases]

PERMISSION: Final = "view_secret"


def principal(user: Any, **more: Any) -> Principal:
    return Principal(kind="user", user_id=str(user.pk), **more)


def _users() -> dict[str, Any]:
    """Make users of every kind, and the permission that behaviours ask for."""
    suffix = uuid4().hex[:8]
    made = get_user_model().objects.create_user
    content = ContentType.objects.create(app_label="shop", model=f"secret{suffix}")
    permission = Permission.objects.create(
        codename=PERMISSION, name="Can view", content_type=content
    )
    group = Group.objects.create(name=suffix)
    group.permissions.add(permission)
    users: dict[str, Any] = {
        name: made(f"{name}-{suffix}")
        for name in ("plain", "granted", "member", "superuser", "inactive")
    }
    users["granted"].user_permissions.add(permission)
    users["member"].groups.add(group)
    users["inactive"].user_permissions.add(permission)
    flags = {"superuser": {"is_superuser": True}, "inactive": {"is_active": False}}
    for name, columns in flags.items():
        get_user_model().objects.filter(pk=users[name].pk).update(**columns)
    return {**users, "permission": permission, "group": group, "content": content}


def _erase(users: dict[str, Any]) -> None:
    for each in users.values():
        each.delete()


@pytest.fixture
async def users(served_rows: None) -> AsyncIterator[dict[str, Any]]:
    made = await writer.run(_users)
    yield made
    await writer.run(_erase, made)


@pytest.mark.parametrize(
    ("name", "may"),
    [
        ("plain", False),
        ("granted", True),
        ("member", True),
        ("superuser", True),
        ("inactive", False),
    ],
)
async def test_rights_of_users(users: dict[str, Any], name: str, may: bool) -> None:
    rights = await Permissions().of(principal(users[name]))
    assert (SECRET in rights) is may
    assert ("shop.something_else" in rights) is (name == "superuser")


async def test_who_is_no_user_may_nothing() -> None:
    store = Permissions()
    for nobody in (
        Principal.ANONYMOUS,
        Principal(kind="badge", user_name="7"),
        Principal(kind="user", user_id="0"),
    ):
        assert SECRET not in await store.of(nobody)


async def test_permissions_of_a_principal_stand_for_themselves(
    users: dict[str, Any],
) -> None:
    """A token of a superuser may be for one thing only."""
    narrowed = principal(users["superuser"], permissions=frozenset({"shop.buy"}))
    assert await Permissions().of(narrowed) == {"shop.buy"}


@contextmanager
def statements() -> Iterator[list[str]]:
    """Collect the statements of the reader thread."""
    told: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        told.append(sql)
        return execute(sql, *rest)

    def install() -> None:
        connection.execute_wrappers.append(note)

    def remove() -> None:
        connection.execute_wrappers.remove(note)

    loop = asyncio.new_event_loop()
    raise NotImplementedError((install, remove, loop))
    yield told
