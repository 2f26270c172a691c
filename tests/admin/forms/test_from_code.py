from __future__ import annotations

import json
from functools import partial
from typing import Annotated

import pytest
from pydantic import Field

from mcp_app.admin.forms.fieldsets import declared_values, own_arguments, own_schema
from mcp_app.catalog.registry import Registry


class Own:
    """It has no JSON form."""


registry = Registry()


@registry.function("shop.find")
def find(customer: str, limit: int = 10) -> list[str]:
    """Orders of a customer.

    Args:
        customer: The number on the bill.
    """
    return []


@registry.function("shop.nothing")
def nothing() -> None: ...


@registry.function("shop.silent")
def silent(a):  # type: ignore[no-untyped-def]
    return a


registry.function("shop.partial")(partial(find, limit=3))


def test_what_code_says_of_a_function() -> None:
    said = declared_values("shop.find", registry)
    assert said["description"] == "Orders of a customer."
    assert [(each.name, each.required, kind) for each, kind in said["parameters"]] == [
        ("customer", True, "Text"),
        ("limit", False, "Whole number"),
    ]
    assert said["result"] == "list[str]"
    assert said["name"].endswith("test_from_code.find")
    path, line = said["place"].rsplit(":", 1)
    assert path == __file__
    assert int(line) > 1


@pytest.mark.parametrize(
    ("key", "result"), [("shop.nothing", "None"), ("shop.silent", "")]
)
def test_what_a_function_gives(key: str, result: str) -> None:
    assert declared_values(key, registry)["result"] == result


def test_what_has_no_place_says_none() -> None:
    assert declared_values("shop.partial", registry)["place"] == ""


def test_nothing_is_hidden_in_what_code_says() -> None:
    hidden = Registry()

    @hidden.function("shop.find")
    def wrong(customer: Annotated[str, Field(description="c\U000e0041")]) -> str:
        """a\u200bb"""
        return customer

    said = declared_values("shop.find", hidden)
    assert said["description"] == "a⟦U+200B⟧b"
    assert said["parameters"][0][0].description == "c⟦U+E0041⟧"
    assert declared_values("a\u200b", registry)["key"] == "a⟦U+200B⟧"


def test_a_function_that_is_gone() -> None:
    assert declared_values("shop.gone", registry) == {
        "key": "shop.gone",
        "is_there": False,
    }
    assert own_schema("shop.gone", registry) == ""
    assert own_arguments("", registry) == ""


def test_what_an_empty_column_stands_for() -> None:
    assert list(json.loads(own_schema("shop.find", registry))["properties"]) == [
        "customer",
        "limit",
    ]
    assert json.loads(own_arguments("shop.find", registry)) == [
        {
            "name": "customer",
            "description": "The number on the bill.",
            "required": True,
        },
        {"name": "limit"},
    ]
    assert own_arguments("shop.nothing", registry) == ""


def test_a_function_whose_result_has_no_json_form_has_nothing_of_its_own() -> None:
    broken = Registry()

    @broken.function("shop.own")
    def own() -> Own:
        return Own()

    assert own_schema("shop.own", broken) == ""
