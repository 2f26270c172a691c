"""Messages after saving and publishing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Server, Tool
from mcp_app.publishing.overlays import make_overlays
from tests.admin.page.test_broken_rows import working
from tests.admin.pages import fill_in, form_page, page, saved
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

CONTENT = '{"content": [{"type": "text", "text": "Nine to five."}]}'


def tool(**columns: Any) -> Tool:
    about = {"description": "Tells when the shop is open.", "read_only": True}
    return Tool(name="hours", title="Hours", config=CONTENT, **about, **columns)


def message(response: Any) -> str:
    (found,) = get_messages(response.wsgi_request)
    return str(found)


def after_save(client: Client, row: Any, **typed: str) -> str:
    kind = row._meta.model_name
    response = fill_in(client, page(kind, "change", row.pk), **typed)
    assert saved(response)
    return message(response)


def test_what_was_published_before(admin_client: Client) -> None:
    row = published(tool())
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. Clients still see version 1. <a href=")
    assert f'href="{page("tool", "publish", row.pk)}"' in said
    assert "Publish “Opening hours”…" in said
    assert after_save(admin_client, row, title="Hours") == (
        "Saved. Clients see exactly this."
    )


def test_what_was_never_published(admin_client: Client) -> None:
    response = fill_in(admin_client, form_page("tool"), name="hours", text="Nine.")
    assert saved(response)
    assert message(response).startswith("Saved. Clients do not see it yet. <a")


def test_what_code_declares(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "tools", {})

    @mcp.tool
    def look() -> str:
        """Look."""
        return ""

    make_overlays(mcp)
    said = after_save(admin_client, Tool.objects.get(), title="A look")
    assert said.startswith("Saved. Clients still see the definition from the code.")


def test_who_may_not_publish_gets_no_link(staff: Callable[..., Client]) -> None:
    row = published(tool())
    client = staff("view_tool", "change_tool")
    said = after_save(client, row, title="Opening hours")
    assert said == "Saved. Clients still see version 1."


@pytest.mark.parametrize("row", [tool(), Server(slug="team", title="Team")])
def test_after_publishing_there_are_links(
    admin_client: Client, row: Tool | Server
) -> None:
    row.pk = None
    row.save(force_insert=True)
    kind = str(row._meta.model_name)
    url = page(kind, "publish", row.pk)
    asked = admin_client.get(url).context["proposal"]
    sent = {"looked_at": asked.content_hash, "number": asked.number}
    said = message(admin_client.post(url, sent))
    assert said.startswith("Version 1 is published. Clients see it now. <a")
    assert page(kind, "seen" if kind == "server" else "who", row.pk) in said
    assert "Connect a client" in said


def test_what_is_stopped_is_not_seen_after_publishing(admin_client: Client) -> None:
    row = published(tool())
    stopped(row)
    row.title = "Opening hours"
    row.save()
    url = page("tool", "publish", row.pk)
    asked = admin_client.get(url).context["proposal"]
    sent = {"looked_at": asked.content_hash, "number": asked.number}
    said = message(admin_client.post(url, sent))
    assert "It is stopped, so clients do not see it" in said


def test_what_is_stopped_or_broken_is_not_said_to_be_seen(admin_client: Client) -> None:
    row = published(tool())
    working("one", row)
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. It is broken, so clients do not see it.")
    stopped(row)
    said = after_save(admin_client, row, title="Hours")
    assert said.startswith("Saved. It is stopped, so clients do not see it.")


def test_what_no_server_offers(admin_client: Client) -> None:
    row = published(tool())
    Server.objects.all().delete()
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. No server offers it, so clients do not see it.")
