"""The page *What clients see*: whoever may view a server sees its lists."""

from __future__ import annotations

import pytest
from django.db import connections
from django.test import AsyncClient

from mcp_app.admin.trying.tabs import outside_transactions
from mcp_app.models import Server, Tool
from tests.admin.pages import page
from tests.admin.trying.conftest import Login


async def seen(client: AsyncClient, slug: str, **query: str) -> str:
    row = await Server.objects.aget(slug=slug)
    response = await client.get(page("server", "seen", row.pk), query)
    assert response.status_code == 200
    return str(response.content.decode())


async def test_what_nobody_sees_of_a_public_server(login: Login) -> None:
    client = await login("view_server")
    text = await seen(client, "default", who="me")
    row = await Tool.objects.aget(name="drill_add")
    assert "every client sees what nobody sees" in text
    assert f'<a href="{page("tool", "try", row.pk)}">drill_add</a>' in text
    assert "All lists together take ≈" in text


async def test_nobody_is_turned_away_at_a_private_server(login: Login) -> None:
    client = await login("view_server")
    text = await seen(client, "private", who="nobody")
    assert "Clients get 401 here" in text
    assert "<caption>Tools" not in text


async def test_others_are_asked_for_with_the_right_alone(login: Login) -> None:
    some = await login("view_server")
    row = await Server.objects.aget(slug="private")
    query = {"who": "user", "user": "ana0"}
    refused = await some.get(page("server", "seen", row.pk), query)
    assert refused.status_code == 403
    more = await login("view_server", "try_as")
    assert "<caption>Tools" in await seen(more, "private", **query)
    missing = await seen(more, "private", who="user", user="no one")
    assert "There is no active user" in missing


@pytest.mark.parametrize("rights", [("view_tool",), ("try",)])
async def test_it_needs_the_right_to_view_servers(
    login: Login, rights: tuple[str, ...]
) -> None:
    client = await login(*rights)
    row = await Server.objects.aget(slug="default")
    assert (await client.get(page("server", "seen", row.pk))).status_code == 403


# -- tabs ------------------------------------------------------------------------------


def test_a_view_outside_the_transactions_of_all_databases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        connections.settings, "archive", connections.settings["default"]
    )
    view = outside_transactions(lambda request: request)
    assert vars(view)["_non_atomic_requests"] == {"default", "archive"}
