"""What is done with many rows of a list at once."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from mcp_app.admin.page import stop_banner
from mcp_app.models import DefinitionVersion, Stop, Tool
from mcp_app.models.stops import By, is_stopped
from tests.admin.pages import Fields, page, page_of, text_of
from tests.admin.publishing.test_pages import tool
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

STAYS_BROKEN = "It stays broken, so clients do not see it: "


def chosen(action: str, *rows: Tool, **more: Any) -> dict[str, Any]:
    keys = [row.pk for row in rows]
    return {"action": f"{action}_chosen", "_selected_action": keys, **more}


class Ticks(Fields):
    """All values of the fields of the page that starts rows, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.sent: list[tuple[str, str]] = []
        self.feed(text[text.index('name="action" value="start_chosen"') - 100 :])

    def _input(self, name: str, about: dict[str, str | None]) -> None:
        if about.get("type") != "checkbox" or "checked" in about:
            self.sent.append((name, about.get("value") or ""))

    def without(self, *rows: Tool) -> dict[str, list[str]]:
        """Return what is sent where these are not ticked any more."""
        gone = [("_selected_action", str(row.pk)) for row in rows]
        sent: dict[str, list[str]] = {}
        for name, value in self.sent:
            if (name, value) not in gone:
                sent.setdefault(name, []).append(value)
        return sent


def broken(**columns: Any) -> Tool:
    """Return a tool that clients see no more: its function is not in the code."""
    config = '{"function": "shop.gone"}'
    row = tool(kind="function", config=config, **columns)
    version = DefinitionVersion.objects.create(
        kind="tool",
        ref=str(row.pk),
        number=1,
        content=f'{{"name":"{row.name}","kind":"function","config":{config}}}',
        created=row.created,
    )
    Tool.rows().filter(pk=row.pk).update(published=version)
    row.refresh_from_db()
    return row


def serving() -> list[str]:
    rows = Tool.objects.filter(~is_stopped(Tool))
    return sorted(rows.values_list("name", flat=True))


def test_starting_says_first_what_stays_broken(admin_client: Client) -> None:
    rows = [published(tool(name="a", title="A")), broken(name="b", title="B")]
    admin_client.post(page("tool"), chosen("stop", *rows))
    assert serving() == []
    asked = admin_client.post(page("tool"), chosen("start", *rows)).content.decode()
    for said in ("Clients see version 1 again.", STAYS_BROKEN, "shop.gone"):
        assert said in asked
    assert serving() == []
    done = admin_client.post(page("tool"), Ticks(asked).without(), follow=True)
    text = done.content.decode()
    assert "2 were started." in text
    assert serving() == ["a", "b"]


def test_one_that_stays_broken_is_told_too(admin_client: Client) -> None:
    row = stopped(broken())
    [stop] = Stop.objects.of_rows([row])
    url = stop_banner.start_url(stop_banner.target_of(row), back=stop_banner.ROW)
    assert "It stays broken" in text_of(admin_client, url)
    sent = {"stop": [stop.pk], "back": "row"}
    done = admin_client.post(url, sent, follow=True)
    assert done.redirect_chain == [(page_of(row), 302)]
    assert STAYS_BROKEN in done.content.decode()


@pytest.fixture
def many() -> list[Tool]:
    """Stopped rows, one more than a page names, and the last one is broken."""
    rows = [Tool(name=f"t{number:03}") for number in range(101)]
    rows[-1].broken = "It is gone."
    Tool.objects.bulk_create(rows)
    made = list(Tool.objects.order_by("name"))
    Stop.objects.make_many(made, by=By("lee"))
    return made


@pytest.mark.parametrize("across", ["0", "1"])
def test_a_page_names_a_hundred(
    admin_client: Client, many: list[Tool], across: str
) -> None:
    url = f"{page('tool')}?all="
    ticked = many[:1] if across == "1" else many
    sent = chosen("start", *ticked, select_across=across)
    asked = admin_client.post(url, sent).content.decode()
    assert asked.count('name="shown"') == 100
    assert "And 1 more, which starts together with them." in asked
    assert asked.index("It stays broken") < asked.index("It is not published")
    admin_client.post(url, Ticks(asked).without(many[0], many[-1]))
    # The one that had no place is started, too.
    assert serving() == [f"t{number:03}" for number in range(1, 100)]


def test_what_nobody_looked_at_is_not_started(
    admin_client: Client, many: list[Tool]
) -> None:
    sent = chosen("start", many[0], select_across="1")
    asked = admin_client.post(page("tool"), sent).content.decode()
    stopped(Tool(name="later"))
    again = admin_client.post(page("tool"), Ticks(asked).without()).content.decode()
    assert "The list of stopped definitions has changed" in again
    assert serving() == []
    admin_client.post(page("tool"), Ticks(again).without(*many))
    # Nothing of what was named is ticked, and two had no place.
    assert len(serving()) == 2
    sent = {**Ticks(again).without(), "shown": ["x", "1" * 30], "count": ["100"]}
    admin_client.post(page("tool"), sent)
    assert len(serving()) == 102
