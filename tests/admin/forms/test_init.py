"""The forms of kinds that a site brings: their own, or the JSON of the config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from mcp_app.admin.forms import form_of, kinds_for
from mcp_app.models import Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import (
    Staff,
    add,
    errors,
    fill_in,
    form_page,
    page,
    page_of,
    save,
    text_of,
)
from tests.published import published

pytestmark = pytest.mark.django_db

KINDS = {
    "station": "tests.kinds.stations.Station",
    "any": "tests.kinds.stations.Everywhere",
}


@pytest.fixture(autouse=True)
def _kinds() -> Iterator[None]:
    with override_settings(MCP={"KINDS": KINDS}):
        yield


def test_each_kind_is_offered_for_what_it_can_do(admin_client: Client) -> None:
    ours = ["text", "function", "query", "http", "upstream"]
    assert [*kinds_for(Tool)] == [*ours, "station", "any"]
    assert [*kinds_for(Prompt)] == ["text", "function", "any"]
    shown = text_of(admin_client, page("tool", "add"))
    assert "Ask a weather station" in shown
    assert "What a station measures: “Wind at the harbour”." in shown
    assert "Ask a weather station" not in text_of(admin_client, page("prompt", "add"))


def test_a_tool_is_made_in_the_form_of_its_kind(admin_client: Client) -> None:
    shown = text_of(admin_client, form_page("tool", "station"))
    assert "What it does: Ask a weather station" in shown
    row = add(admin_client, Tool, "station", name="wind", station="hill")
    assert (row.kind, row.json("config")) == ("station", {"station": "hill"})
    save(admin_client, row, station="harbour")
    assert (row.kind, row.json("config")) == ("station", {"station": "harbour"})


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (Tool, {}),
        (Resource, {"uri": "shop://a"}),
        (ResourceTemplate, {"uri_template": "shop://{a}"}),
        (Prompt, {}),
    ],
)
def test_a_kind_without_a_form_is_edited_as_json(
    model: type[Any], more: dict[str, str], admin_client: Client
) -> None:
    url = form_page(str(model._meta.model_name), "any")
    assert "What it does: Say what was asked" in text_of(admin_client, url)
    row = add(admin_client, model, "any", name="a", config='{"b": 1}', **more)
    assert (row.kind, row.json("config")) == ("any", {"b": 1})


def test_what_the_kind_refuses_stands_beside_the_config(admin_client: Client) -> None:
    url = form_page("resource", "station")
    typed = {"name": "a", "uri": "shop://a", "config": '{"station": "moon"}'}
    there = errors(fill_in(admin_client, url, **typed))
    assert there == {"config": "There is no station “moon”."}


def test_a_row_whose_kind_is_gone_keeps_what_it_says(
    admin_client: Client, staff: Staff
) -> None:
    row = published(Tool(name="wind", kind="station", config='{"station": "hill"}'))
    with override_settings(MCP={}):
        shown = text_of(admin_client, row)
        assert "There is no kind “station”." in shown
        assert "&quot;hill&quot;" in shown
        assert fill_in(admin_client, page_of(row), title="Wind").status_code == 200
        assert "station" in text_of(staff("view_tool"), row)
    row.refresh_from_db()
    assert (row.kind, row.title) == ("station", "")


@pytest.mark.parametrize("kind", ["Vague", "OfResources"])
def test_a_form_that_cannot_be_used_leaves_the_json(kind: str) -> None:
    path = f"tests.kinds.stations.{kind}"
    with override_settings(MCP={"KINDS": {"vague": path}}):
        assert "config" in form_of(Tool, "vague").base_fields


@pytest.mark.parametrize("kind", ["Missed", "Unmade"])
def test_a_kind_that_fails_leaves_the_pages_of_others(
    kind: str, admin_client: Client
) -> None:
    row = published(Tool(name="wind", kind="failing", config='{"station": "hill"}'))
    path = f"tests.kinds.stations.{kind}"
    with override_settings(MCP={"KINDS": {"failing": path}}):
        urls = page("tool"), page("tool", "add"), form_page("tool")
        for url in (*urls, page_of(row), page_of(row, "publish")):
            assert admin_client.get(url).status_code == 200


def test_who_only_looks_sees_the_config_and_the_kind_by_its_name(staff: Staff) -> None:
    row = published(Tool(name="wind", kind="station", config='{"station": "hill"}'))
    text = text_of(staff("view_tool"), row)
    assert "Ask a weather station" in text
    assert "&quot;station&quot;: &quot;hill&quot;" in text


@pytest.mark.parametrize(("kind", "is_open"), [("station", False), ("open", True)])
def test_the_right_to_change_what_stands_behind(
    kind: str, is_open: bool, staff: Staff
) -> None:
    kinds = {**KINDS, "open": "tests.kinds.stations.Open"}
    with override_settings(MCP={"KINDS": kinds}):
        row = published(Tool(name="wind", kind=kind, config='{"station": "hill"}'))
        client, url = staff("view_tool", "change_tool"), page_of(row)
        text = text_of(client, url)
        assert ('name="station"' in text) is is_open
        assert ("&quot;hill&quot;" in text) is not is_open
        changed = fill_in(client, url, station="harbour")
        assert changed.status_code == (302 if is_open else 403)
        row.refresh_from_db()
        assert row.json("config") == {"station": "harbour" if is_open else "hill"}


def test_what_is_left_empty_is_left_out_and_what_begins_stays() -> None:
    form = form_of(Tool, "station")
    assert "station" not in form(instance=Tool()).initial
    filled = form(instance=Tool(config='{"station": "hill", "other": 1}'))
    assert filled.initial["station"] == "hill"
    filled.cleaned_data = {"station": None}
    assert filled.column_values()["config"] == '{"other":1}'
