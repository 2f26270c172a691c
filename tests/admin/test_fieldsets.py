"""The fields of each form: of each kind, each once, and none that the form lacks."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest

from mcp_app.admin.fieldsets import fieldsets_of, overlay_fieldsets
from mcp_app.admin.forms import FORMS
from mcp_app.models import Prompt, Resource, Tool
from mcp_app.models.demands import DEMANDS

CASES = [
    (model, kind, rich)
    for model, kinds in FORMS.items()
    for kind in kinds
    for rich in ((False, True) if kind == "text" else (False,))
]
READ_ONLY = {"created", "updated", "updated_by", "from_code", "function"}


def names(fieldsets: list[Any]) -> list[str]:
    return [*chain.from_iterable(options["fields"] for _, options in fieldsets)]


@pytest.mark.parametrize(("model", "kind", "rich"), CASES)
def test_each_field_stands_once_and_is_there(model: Any, kind: str, rich: bool) -> None:
    found = names(fieldsets_of(model, kind, rich=rich))
    assert [name for name, count in Counter(found).items() if count > 1] == []
    known = {each.name for each in model._meta.get_fields()}
    known |= {*FORMS[model][kind].declared_fields}
    assert set(found) - known - READ_ONLY == set()


@pytest.mark.parametrize(("model", "kind", "rich"), CASES)
def test_every_form_asks_who_and_says_what_clients_see(
    model: Any, kind: str, rich: bool
) -> None:
    found = {*names(fieldsets_of(model, kind, rich=rich))}
    assert {*DEMANDS, "title", "name", "description", "tags", "timeout"} <= found
    assert {"opened_version", "opened_fields", "kind"} <= found
    assert ("function" in found) is (kind == "function")


@pytest.mark.parametrize("model", [Tool, Resource])
def test_what_says_more_than_easy_fields_is_edited_as_json(model: Any) -> None:
    easy, rich = (fieldsets_of(model, "text", rich=each) for each in (False, True))
    assert "text" in names(easy)
    assert "text" not in names(rich)
    # Where the easy fields are, JSON is among what is rarely needed.
    place = [number for number, (_, o) in enumerate(easy) if "config" in o["fields"]]
    assert place == [len(easy) - 1]
    assert names(rich).count("config") == 1


def test_only_a_tool_has_hints() -> None:
    assert {*Tool.HINTS} <= {*names(overlay_fieldsets(True))}
    assert {*Tool.HINTS}.isdisjoint(names(overlay_fieldsets(False)))
    for is_tool in (True, False):
        assert max(Counter(names(overlay_fieldsets(is_tool))).values()) == 1


@pytest.mark.parametrize("model", [Tool, Prompt])
def test_an_overlay_shows_all_that_staff_may_change(model: Any) -> None:
    row = model(name="x", source="code", kind="function")
    found = {*names(overlay_fieldsets(model is Tool))}
    assert {*row.content_columns()} <= found
