"""The four steps of the home page: each is ticked by what is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.models import AccessToken, Server, Tool
from mcp_app.models.definitions import Source
from tests.admin.home.pages import home
from tests.published import published
from tests.streams.logging_rows import own_session

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

LOOK, MAKE, LET_IN, CONNECT = range(4)


@pytest.fixture(autouse=True)
def _nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, empty in vars(Registry()).items():
        monkeypatch.setattr(mcp, name, empty)


def done(client: Client) -> list[bool]:
    return [step.is_done for step in home(client).context["steps"]]


def test_a_fresh_site(admin_client: Client) -> None:
    assert done(admin_client) == [False] * 4
    text = home(admin_client).content.decode()
    assert "This site is an MCP server" in text
    assert "A developer writes a function in a file mcp.py" in text


def test_each_step_is_ticked(admin_client: Client, admin_user: User) -> None:
    @mcp.tool
    def hours() -> str:
        """Tell the hours."""
        return ""

    assert done(admin_client)[LOOK]
    Tool.objects.create(name="draft")
    published(Tool(name="of_code", source=Source.CODE, kind="function"))
    assert not done(admin_client)[MAKE]
    published(Tool(name="made", title="Made"))
    assert done(admin_client)[MAKE]
    assert not done(admin_client)[LET_IN]
    AccessToken.objects.make(user=admin_user, name="laptop")
    assert done(admin_client)[LET_IN]
    own_session()
    response = home(admin_client)
    assert response.context["steps"] == []
    assert "?begin" in response.content.decode()
    assert len(home(admin_client, "?begin").context["steps"]) == 4


def test_a_public_server_lets_somebody_in(admin_client: Client) -> None:
    server = Server.objects.get()
    server.access = "public"
    server.save()
    Server.objects.unpublish([server])
    assert not done(admin_client)[LET_IN]
    Server.objects.publish([server])
    assert done(admin_client)[LET_IN]


def test_a_token_that_has_ended_lets_nobody_in(
    admin_client: Client, admin_user: User
) -> None:
    AccessToken.objects.make(user=admin_user, name="laptop")
    AccessToken.objects.update(revoked="2026-01-01T00:00Z")
    assert not done(admin_client)[LET_IN]


def test_a_step_says_which_permission_it_needs(staff: Callable[..., Client]) -> None:
    text = home(staff("view_prompt")).content.decode()
    assert "This needs the right “Can add tool”." in text
    assert "Make an access token" in text
    assert "Make a token: its page shows the address" in text
    assert "mcp-servers" not in text


def test_who_may_not_publish_is_told_whom_to_ask(staff: Callable[..., Client]) -> None:
    text = home(staff("add_tool", "view_tool")).content.decode()
    assert "Publishing needs the right “Can publish and roll back”." in text
