"""The servers of the home page, with addresses to copy."""

from __future__ import annotations

import pytest
from django.test import Client

from mcp_app.admin.home import attention
from mcp_app.models import Server
from tests.admin.home.pages import home
from tests.admin.pages import page_of
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


def test_addresses_states_and_ways_in(admin_client: Client) -> None:
    default = Server.objects.get()
    Server.objects.publish([default])
    stopped(published(Server(slug="team", title="For the team", access="public")))
    lines = home(admin_client).context["servers"]
    public = "Public: anyone on the internet, without signing in"
    assert [(each.address, each.state.label, each.ways) for each in lines] == [
        ("http://testserver/mcp", "Published", "Access token"),
        ("http://testserver/mcp/team", "Stopped", public),
    ]


def test_the_site_may_name_its_address(admin_client: Client, settings: object) -> None:
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}  # type: ignore[attr-defined]
    (line,) = home(admin_client).context["servers"]
    assert line.address == "https://shop.example.com/mcp"


def test_many_servers(admin_client: Client) -> None:
    Server.objects.bulk_create(
        Server(slug=f"s{n}") for n in range(attention.MAX_SERVERS)
    )
    response = home(admin_client)
    assert len(response.context["servers"]) == attention.MAX_SERVERS
    assert "All servers" in response.content.decode()


def test_each_server_links_to_its_pages(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {"history": "History", "who": "Who can see it"}
    monkeypatch.setattr(attention, "PAGES", pages)
    server = Server.objects.get()
    response = home(admin_client)
    (line,) = response.context["servers"]
    links = [("History", "history"), ("Who can see it", "who")]
    urls = [(label, page_of(server, name)) for label, name in links]
    assert line.links == urls
    text = response.content.decode()
    assert all(f'<a href="{url}">{label}' in text for label, url in urls)
