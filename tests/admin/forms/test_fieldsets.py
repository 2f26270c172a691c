"""The fields of each form: of each kind, each once, and none that the form lacks."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import chain
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcp_app.admin.forms import DEFINITIONS, form_of
from mcp_app.admin.forms.fieldsets import (
    declared_values,
    fieldsets_of,
    overlay_fieldsets,
)
from mcp_app.catalog.registry import Registry
from mcp_app.kinds.registry import OURS
from mcp_app.models import EventType, Prompt, Resource, Tool

RICH = {"content": [{"type": "text", "text": "a", "annotations": {}}], "base64": "YQ=="}
"""A config that says more than the easy fields of any form."""
READ_ONLY = {"created_at", "updated_at", "updated_by", "from_code", "function"}


def fieldsets(model: Any, kind: str, *, rich: bool = False) -> list[Any]:
    behind = form_of(model, kind).kind_fields(RICH if rich else None)
    return fieldsets_of(model, behind)


def names(fieldsets: list[Any]) -> list[str]:
    return [*chain.from_iterable(options["fields"] for _, options in fieldsets)]


@pytest.mark.parametrize("model", DEFINITIONS)
@pytest.mark.parametrize("kind", [*OURS, "vanished"])
@pytest.mark.parametrize("rich", [False, True])
def test_each_field_stands_once_and_is_there(model: Any, kind: str, rich: bool) -> None:
    """Every form asks who may use it, and says what clients see."""
    found = names(fieldsets(model, kind, rich=rich))
    assert [name for name, count in Counter(found).items() if count > 1] == []
    known = {each.name for each in model._meta.get_fields()}
    known |= {*form_of(model, kind).declared_fields}
    assert set(found) - known - READ_ONLY == set()
    assert {*model.WHO, "title", "name", "description", "tags", "timeout"} <= set(found)
    assert {"opened_version", "opened_fields", "kind"} <= set(found)
    is_function = kind == "function" and model is not EventType
    assert ("function" in found) is is_function


@pytest.mark.parametrize("model", [Tool, Resource])
def test_what_says_more_than_easy_fields_is_edited_as_json(model: Any) -> None:
    easy, rich = (fieldsets(model, "text", rich=each) for each in (False, True))
    assert "text" in names(easy)
    assert "text" not in names(rich)
    # Where the easy fields are, JSON is among what is rarely needed.
    place = [number for number, (_, o) in enumerate(easy) if "config" in o["fields"]]
    assert place == [len(easy) - 1]
    assert names(rich).count("config") == 1


@pytest.mark.parametrize("model", [Tool, Prompt])
def test_an_overlay_shows_all_that_staff_may_change(model: Any) -> None:
    row = model(name="x", source="code", kind="function")
    found = names(overlay_fieldsets(model is Tool))
    assert {*row.content_columns()} <= {*found}
    assert max(Counter(found).values()) == 1
    assert {*Tool.HINTS}.isdisjoint(found) is (model is not Tool)


# -- from code -------------------------------------------------------------------------


registry = Registry()


@registry.function("shop.find")
def find(customer: str) -> list[str]:
    return []


@registry.function("shop.silent")
def silent(a):  # type: ignore[no-untyped-def]
    return a


registry.function("shop.partial")(partial(find, "a"))


def test_what_code_says_of_a_function() -> None:
    assert declared_values("shop.find", registry)["result"] == "list[str]"
    assert declared_values("shop.silent", registry)["result"] == ""
    # What has no place says none.
    assert declared_values("shop.partial", registry)["place"] == ""


def test_nothing_is_hidden_in_what_code_says() -> None:
    hidden = Registry()

    @hidden.function("shop.find")
    def wrong(customer: Annotated[str, Field(description="c\U000e0041")]) -> str:
        """a\u200bb"""
        return customer

    said = declared_values("shop.find", hidden)
    assert said["description"] == "a⟦U+200B⟧b"
    assert said["parameters"][0].description == "c⟦U+E0041⟧"
    assert declared_values("a\u200b", registry)["key"] == "a⟦U+200B⟧"
