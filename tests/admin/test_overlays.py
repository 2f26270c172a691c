"""The form of what code declares."""

from __future__ import annotations

import pytest
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt, State, Tool
from mcp_app.publishing.overlays import make_overlays, store_all_findings
from tests.admin.pages import fill_in, page, saved
from tests.published import published

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tools", "prompts", "resources", "templates"):
        monkeypatch.setattr(mcp, name, {})

    @mcp.tool(permission="mcp_app.view_tool", tags=["shop"])
    async def find_orders(customer: str) -> str:
        """Orders of a customer, newest first."""
        return customer

    @mcp.prompt
    async def complain(product: str) -> str:
        """Complains."""
        return product

    make_overlays(mcp)


def overlay() -> Tool:
    return Tool.objects.get(name="find_orders")


def test_the_form_says_what_is_inherited(admin_client: Client) -> None:
    response = admin_client.get(page("tool", "change", overlay().pk))
    text = response.content.decode()
    assert "From code: “Orders of a customer, newest first.”." in text
    assert text.count("the value from the code applies") == 1
    assert "From code: “mcp_app.view_tool”. Your entry here is required" in text
    assert "Changed here" not in text
    assert 'name="name"' not in text
    assert 'name="config"' not in text
    assert "Clients see the definition from the code." in text
    assert "Published" in text


def test_there_is_nothing_to_copy(admin_client: Client) -> None:
    found = admin_client.get(page("tool", "change", overlay().pk)).content.decode()
    own = Tool.objects.create(name="own", config='{"content": []}')
    ours = admin_client.get(page("tool", "change", own.pk)).content.decode()
    assert [said.count('name="_saveasnew"') for said in (found, ours)] == [0, 1]


def test_hidden_characters_of_code_are_shown(admin_client: Client) -> None:
    @mcp.tool
    async def hidden() -> str:
        """Says a\u202eb."""
        return ""

    make_overlays(mcp)
    row = Tool.objects.get(name="hidden")
    text = admin_client.get(page("tool", "change", row.pk)).content.decode()
    assert "From code: “Says a⟦U+202E⟧b.”" in text
    assert "\u202e" not in text


def test_a_change_is_marked_and_goes_back_with_one_press(admin_client: Client) -> None:
    row = overlay()
    url = page("tool", "change", row.pk)
    assert saved(fill_in(admin_client, url, description="Better.", timeout="5"))
    row = overlay()
    assert (row.state, row.working_content()) == (
        State.CHANGED,
        {"description": "Better.", "timeout": 5.0},
    )
    text = admin_client.get(url).content.decode()
    assert "Changed here. From code: “Orders of a customer" in text
    assert "Use “Description” from code" in text
    reset = page("tool", "reset", row.pk)
    admin_client.post(f"{reset}?field=description")
    assert overlay().working_content() == {"timeout": 5.0}
    admin_client.post(reset)
    assert overlay().working_content() == {}
    assert overlay().state == State.PUBLISHED


def test_going_back_reaches_clients_when_it_is_published(admin_client: Client) -> None:
    row = overlay()
    row.title = "Better"
    row.save()
    published(row)
    admin_client.post(page("tool", "reset", row.pk))
    row = overlay()
    assert row.state == State.CHANGED
    sent = {"looked_at": row.content_hash, "number": 1}
    admin_client.post(page("tool", "publish", row.pk), sent)
    row = overlay()
    assert row.state == State.PUBLISHED
    assert row.published is not None
    assert row.published.read() == {}


def test_a_prompt_of_code_has_a_form_too(admin_client: Client) -> None:
    row = Prompt.objects.get(name="complain")
    url = page("prompt", "change", row.pk)
    assert saved(fill_in(admin_client, url, title="Complain"))
    row.refresh_from_db()
    assert row.working_content() == {"title": "Complain"}


def test_what_code_declares_cannot_be_deleted_and_what_vanished_can(
    admin_client: Client,
) -> None:
    row = overlay()
    url = page("tool", "delete", row.pk)
    assert admin_client.post(url, {"post": "yes"}).status_code == 403
    mcp.tools.clear()
    store_all_findings(mcp)
    assert overlay().state == State.BROKEN
    text = admin_client.get(page("tool", "change", row.pk)).content.decode()
    assert "find_orders is no longer in the code." in text
    admin_client.post(url, {"post": "yes"})
    assert not Tool.objects.exists()


def test_only_overlays_go_back(admin_client: Client) -> None:
    row = Tool.objects.create(name="made_here", title="Mine")
    assert admin_client.post(page("tool", "reset", row.pk)).status_code == 403
    assert admin_client.get(page("tool", "reset", overlay().pk)).status_code == 403
    row.refresh_from_db()
    assert row.title == "Mine"


def test_a_definition_of_code_shows_its_function(admin_client: Client) -> None:
    text = admin_client.get(page("tool", "change", overlay().pk)).content.decode()
    assert "<code>customer</code>: Text, required" in text
    assert "<code>str</code>" in text
    assert "test_overlays.py:" in text


def test_a_title_of_code_is_shown_everywhere(admin_client: Client) -> None:
    @mcp.tool("roll_dice", title="Roll dice")
    async def roll() -> int:
        """Roll a die."""
        return 4

    make_overlays(mcp)
    row = Tool.objects.get(name="roll_dice")
    assert str(row) == "Roll dice"
    pages = [page("tool"), page("tool", "who", row.pk), page("server", "change", 1)]
    for each in pages:
        assert "Roll dice" in admin_client.get(each).content.decode(), each
