"""The fields of each form: of each kind, each once, and none that the form lacks."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import pytest

from mcp_app.admin.forms import DEFINITIONS, form_of
from mcp_app.admin.forms.fieldsets import fieldsets_of, overlay_fieldsets
from mcp_app.kinds.registry import OURS
from mcp_app.models import Prompt, Resource, Tool
from mcp_app.models.fields import DEMANDS

CASES = [
    (model, kind, rich)
    for model in DEFINITIONS
    for kind in (*OURS, "vanished")
    for rich in ((False, True) if kind == "text" else (False,))
]
RICH = {"content": [{"type": "text", "text": "a", "annotations": {}}], "base64": "YQ=="}
"""A config that says more than the easy fields of any form."""
READ_ONLY = {"created", "updated", "updated_by", "from_code", "function"}


def fieldsets(model: Any, kind: str, *, rich: bool = False) -> list[Any]:
    behind = form_of(model, kind).behind(RICH if rich else None)
    return fieldsets_of(model, behind)


def names(fieldsets: list[Any]) -> list[str]:
    return [*chain.from_iterable(options["fields"] for _, options in fieldsets)]


@pytest.mark.parametrize(("model", "kind", "rich"), CASES)
def test_each_field_stands_once_and_is_there(model: Any, kind: str, rich: bool) -> None:
    found = names(fieldsets(model, kind, rich=rich))
    assert [name for name, count in Counter(found).items() if count > 1] == []
    known = {each.name for each in model._meta.get_fields()}
    known |= {*form_of(model, kind).declared_fields}
    assert set(found) - known - READ_ONLY == set()


@pytest.mark.parametrize(("model", "kind", "rich"), CASES)
def test_every_form_asks_who_and_says_what_clients_see(
    model: Any, kind: str, rich: bool
) -> None:
    found = {*names(fieldsets(model, kind, rich=rich))}
    assert {*DEMANDS, "title", "name", "description", "tags", "timeout"} <= found
    assert {"opened_version", "opened_fields", "kind"} <= found
    assert ("function" in found) is (kind == "function")


@pytest.mark.parametrize("model", [Tool, Resource])
def test_what_says_more_than_easy_fields_is_edited_as_json(model: Any) -> None:
    easy, rich = (fieldsets(model, "text", rich=each) for each in (False, True))
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
