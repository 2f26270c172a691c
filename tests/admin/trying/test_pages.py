"""The page *Try it*: what a person presses, and what a client gets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from html import unescape
from typing import Any, TypeAlias

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient

from mcp_app.models import Prompt, Resource, ResourceTemplate, Tool
from mcp_app.process.runtime import Process
from tests.admin.pages import Fields, page

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

    async def logged_in(*codenames: str) -> AsyncClient:
        client = AsyncClient()
        await client.aforce_login(await sync_to_async(somebody)(*codenames))
        return client

    yield logged_in
    for each in made:
        await sync_to_async(each.delete)()


async def url_of(model: Any, **which: Any) -> str:
    row = await model.objects.aget(**which)
    return page(row.kind_of_row, "try", row.pk)


async def typed(client: AsyncClient, url: str, **values: Any) -> dict[str, Any]:
    """Return what the page would send, with values for these arguments."""
    response = await client.get(url)
    fields = Fields()
    fields.feed(response.content.decode())
    arguments = response.context["arguments"].fields or []
    names = {each.key: each.name for each in arguments}
    given = {names.get(name, name): value for name, value in values.items()}
    return {**fields.values, **given}


async def run(client: AsyncClient, url: str, **values: Any) -> Any:
    response = await client.post(url, await typed(client, url, **values))
    assert response.status_code == 200
    return response


def text_of(response: Any) -> str:
    return unescape(response.content.decode())


async def test_a_tool_is_run(login: Login) -> None:
    client = await login()
    url = await url_of(Tool, name="drill_add")
    response = await run(client, url, a="2", b="3")
    shown = response.context["shown"]
    assert (shown.look, [each.text for each in shown.parts][0]) == ("good", "5")
    assert "Fits the answer's shape" in text_of(response)
    assert "no-store" in response["Cache-Control"]
