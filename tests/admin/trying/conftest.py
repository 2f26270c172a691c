"""Who tries, and what there is to try."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, Tool
from mcp_app.process.runtime import Process
from tests import behaviours
from tests.admin.pages import page
from tests.admin.trying.console import url_of
from tests.published import end_stops, published, stops

Login: TypeAlias = Callable[..., Awaitable[AsyncClient]]
Offer = Callable[..., Awaitable[str]]
"""Takes a name, a function, and columns; returns the address of its page."""


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


@pytest.fixture
async def client(login: Login) -> AsyncClient:
    """A superuser's browser."""
    return await login()


@pytest.fixture
async def adder(process: Process) -> str:
    """The page of a tool that adds two numbers."""
    return await url_of(Tool, name="drill_add")


@pytest.fixture
async def asker(process: Process) -> str:
    """The page of a tool that asks a question."""
    return await url_of(Tool, name="drill_ask")


@pytest.fixture
async def offer(process: Process) -> AsyncIterator[Offer]:
    """Make a definition with a function behind it, and publish it."""
    before = await sync_to_async(stops)()
    made: list[DefinitionRow] = []
    keys: list[str] = []

    def make(
        name: str,
        function: Callable[..., Any],
        model: type[DefinitionRow],
        publish: bool,
        columns: dict[str, Any],
    ) -> str:
        key = f"trying.{name}"
        mcp.function(key)(function)
        behaviours.registry.functions[key] = mcp.functions[key]
        keys.append(key)
        config = f'{{"function": "{key}"}}'
        row = model(name=name, kind="function", config=config, **columns)
        row.save()
        made.append(row)
        if publish:
            published(row)
        return page(row.kind_of_row, "try", row.pk)

    async def offered(
        name: str,
        function: Callable[..., Any],
        model: type[DefinitionRow] = Tool,
        publish: bool = True,
        **columns: Any,
    ) -> str:
        columns.setdefault("tags", "private")
        url = await sync_to_async(make)(name, function, model, publish, columns)
        await process.gate.wait_for_check()
        return url

    yield offered
    for row in made:
        await sync_to_async(row.delete)()
    for key in keys:
        del mcp.functions[key], behaviours.registry.functions[key]
    await sync_to_async(end_stops)(before)
    await process.gate.wait_for_check()
