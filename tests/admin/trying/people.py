"""People who log in to the admin of the process that serves a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

from mcp_app.process.runtime import Process

Login: TypeAlias = Callable[..., Awaitable[AsyncClient]]


@pytest.fixture
async def login(process: Process) -> AsyncIterator[Login]:
    """Log in somebody with these rights, or a superuser if none is named."""
    made: list[User] = []

    def somebody(*codenames: str) -> User:
        user = User.objects.create_user(
            f"ana{len(made)}", is_staff=True, is_superuser=not codenames
        )
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        made.append(user)
        return user

    async def logged_in(*codenames: str, **options: Any) -> AsyncClient:
        client = AsyncClient(**options)
        await client.aforce_login(await sync_to_async(somebody)(*codenames))
        return client

    yield logged_in
    for each in made:
        await sync_to_async(each.delete)()
