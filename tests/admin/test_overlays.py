"""The form of what code declares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.test import Client

from mcp_app import Approval
from mcp_app.catalog.registry import mcp
from mcp_app.invalidation.change_reader import ChangeReader
from mcp_app.models import EventType, Prompt, Resource, State, Tool
from mcp_app.process.loading import Catalogs
from mcp_app.publishing.overlays import make_overlays
from mcp_app.publishing.row_findings import store_all_findings
from tests.admin.pages import (
    errors,
    fill_in,
    page,
    page_of,
    save,
    saved,
    text_of,
    words_in,
)
from tests.published import published

pytestmark = pytest.mark.django_db

TABLE = "ui://mcp_app/table"
ORDERS = "ui://shop/orders"
TEXT = '{"content": [{"type": "text", "text": "1"}]}'


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("declared_tools", "prompts", "resources", "templates", "events"):
        monkeypatch.setattr(mcp, name, {})

    @mcp.tool(permission="mcp_app.view_tool", tags=["shop"])
    async def find_orders(customer: str) -> str:
        """Orders of a customer, newest first."""
        return customer

    @mcp.prompt
    async def complain(product: str) -> str:
        """Complains."""
        return product

    @mcp.event("order.paid")
    @dataclass
    class OrderPaid:
        """An order was paid."""

        number: str

    make_overlays(mcp)


def overlay() -> Tool:
    return Tool.objects.get(name="find_orders")


def test_the_form_of_a_skill_says_where_its_folder_is(
    admin_client: Client, tmp_path: Path
) -> None:
    (tmp_path / "refunds").mkdir()
    text = "---\nname: refunds\ndescription: Use it to pay back.\n---\n"
    (tmp_path / "refunds" / "SKILL.md").write_text(text)
    mcp.skills(str(tmp_path))
    make_overlays(mcp)
    shown = text_of(admin_client, Resource.objects.get(name="refunds"))
    assert "<dd>Use it to pay back.</dd>" in shown
    assert "test_overlays.py:" in shown


def test_the_form_says_what_is_inherited(admin_client: Client) -> None:
    text = text_of(admin_client, overlay())
    assert "From code: “Orders of a customer, newest first.”." in text
    assert text.count("the value from the code applies") == 1
    assert "From code: “mcp_app.view_tool”. Your entry here is required" in text
    assert "Changed here" not in text
    for name in ("name", "config", "_saveasnew"):
        assert f'name="{name}"' not in text
    assert "Clients see the definition from the code." in text
    assert "Published" in text
    # It shows its function.
    assert "<code>customer</code>: Text, required" in text
    assert "<code>str</code>" in text
    assert "test_overlays.py:" in text
    own = Tool.objects.create(name="own", config='{"content": []}')
    assert 'name="_saveasnew"' in text_of(admin_client, own)


def test_hidden_characters_of_code_are_shown(admin_client: Client) -> None:
    @mcp.tool
    async def hidden() -> str:
        """Says a\u202eb."""
        return ""

    make_overlays(mcp)
    text = text_of(admin_client, Tool.objects.get(name="hidden"))
    assert "From code: “Says a⟦U+202E⟧b.”" in text
    assert "\u202e" not in text


def test_a_change_is_marked_and_goes_back_with_one_press(admin_client: Client) -> None:
    row = overlay()
    save(admin_client, row, description="Better.", timeout="5")
    assert row.state == State.CHANGED
    assert row.working_content() == {"description": "Better.", "timeout": 5.0}
    text = text_of(admin_client, row)
    assert "Changed here. From code: “Orders of a customer" in text
    assert "Use “Description” from code" in text
    reset = page_of(row, "reset")
    admin_client.post(f"{reset}?field=description")
    assert overlay().working_content() == {"timeout": 5.0}
    admin_client.post(reset)
    assert overlay().working_content() == {}
    assert overlay().state == State.PUBLISHED


def test_an_approval_is_never_weaker_than_the_codes(admin_client: Client) -> None:
    @mcp.tool(approval=Approval(by="other", when=lambda _values, _user: True))
    async def refund() -> str:
        """Pays back."""
        return ""

    make_overlays(mcp)
    row = Tool.objects.get(name="refund")
    said = (
        "“Another person, on this site, for some calls”. The stricter of both applies."
    )
    assert said in text_of(admin_client, row)
    refused = fill_in(admin_client, page_of(row), approval="self")
    assert "self is not one of" in errors(refused)["approval"]
    # What was stored before the code asked for more stays.
    Tool.objects.filter(name="refund").update(approval="self")
    save(admin_client, row, title="Refund")
    assert row.working_content() == {"title": "Refund", "approval": "self"}


def test_staff_say_what_the_answers_of_a_tool_are_shown_as(
    admin_client: Client,
) -> None:
    mcp.app(ORDERS, title="Orders", template=lambda: "<p>Orders")

    @mcp.tool(app=ORDERS)
    async def sales() -> str:
        """Tell what was sold."""
        return ""

    make_overlays(mcp)
    code = Tool.objects.get(name="sales")
    about = {"description": "Say one.", "read_only": True}
    here = published(Tool(name="here", config=TEXT, **about))
    assert "From code: “Orders”." in text_of(admin_client, code)
    catalogs, reader = Catalogs(mcp), ChangeReader()
    for row, chosen, difference, shown in (
        (here, TABLE, "added: Table", TABLE),
        (here, ORDERS, "removed: Table added: Orders", ORDERS),
        (here, "", "removed: Orders", ""),
        (code, TABLE, "Table", TABLE),
        (code, "text", "removed: Table added: Text", ""),
        (code, "", "removed: Text", ORDERS),
    ):
        save(admin_client, row, app=chosen)
        publish = page_of(row, "publish")
        assert f"Shown as {difference}" in words_in(admin_client.get(publish))
        assert saved(fill_in(admin_client, publish))
        catalogs.load_changes(reader.read_changes())
        catalog = catalogs.by_slug["default"]
        assert catalog.tools[row.name].definition.app == shown
        assert (TABLE in catalog.resources) == (shown == TABLE)
    refused = fill_in(admin_client, page_of(here), app="ui://shop/sales")
    assert "ui://shop/sales is not one of" in errors(refused)["app"]


def test_going_back_reaches_clients_when_it_is_published(admin_client: Client) -> None:
    row = overlay()
    row.title = "Better"
    row.save()
    published(row)
    admin_client.post(page_of(row, "reset"))
    row = overlay()
    assert row.state == State.CHANGED
    sent = {"looked_at": row.content_hash, "number": 1}
    admin_client.post(page_of(row, "publish"), sent)
    row = overlay()
    assert row.state == State.PUBLISHED
    assert row.published is not None
    assert row.published.read() == {}


def test_a_prompt_of_code_has_a_form_too(admin_client: Client) -> None:
    row = Prompt.objects.get(name="complain")
    save(admin_client, row, title="Complain")
    assert row.working_content() == {"title": "Complain"}


def test_an_event_of_code_has_a_form_too(admin_client: Client) -> None:
    row = EventType.objects.get(name="order.paid")
    text = text_of(admin_client, row)
    assert "<code>number</code>: Text" in text
    assert "OrderPaid" in text
    save(admin_client, row, description="An order can be packed.", tags="shop")
    assert row.working_content() == {
        "description": "An order can be packed.",
        "tags": "shop",
    }
    published(row)
    catalogs = Catalogs(mcp)
    catalogs.load_changes(ChangeReader().read_changes())
    entry = catalogs.by_slug["default"].events["order.paid"]
    assert entry.definition.description == "An order can be packed."
    assert entry.key == ("eventtype", str(row.pk))
    # It is told by the class, as before.
    assert entry.runnable is mcp.events["order.paid"].run


def test_what_code_declares_cannot_be_deleted_and_what_vanished_can(
    admin_client: Client,
) -> None:
    row = overlay()
    url = page_of(row, "delete")
    assert admin_client.post(url, {"post": "yes"}).status_code == 403
    mcp.tools.clear()
    store_all_findings(mcp)
    assert overlay().state == State.BROKEN
    assert "find_orders is no longer in the code." in text_of(admin_client, row)
    admin_client.post(url, {"post": "yes"})
    assert not Tool.objects.exists()


def test_only_overlays_go_back(admin_client: Client) -> None:
    row = Tool.objects.create(name="made_here", title="Mine")
    assert admin_client.post(page_of(row, "reset")).status_code == 403
    assert admin_client.get(page_of(overlay(), "reset")).status_code == 403
    row.refresh_from_db()
    assert row.title == "Mine"


def test_a_title_of_code_is_shown_everywhere(admin_client: Client) -> None:
    @mcp.tool("roll_dice", title="Roll dice")
    async def roll() -> int:
        """Roll a die."""
        return 4

    make_overlays(mcp)
    row = Tool.objects.get(name="roll_dice")
    assert str(row) == "Roll dice"
    for url in (page("tool"), page_of(row, "who"), page("server", "change", 1)):
        assert "Roll dice" in text_of(admin_client, url), url
