"""Suggestions from data of the site, as clients get them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pytest_django import DjangoDbBlocker

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ResourceTemplateDefinition,
)
from mcp_app.kinds import serving_problems
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query import suggesting
from mcp_app.kinds.query.suggesting import completers_of, referenced_path
from mcp_app.models import Prompt
from mcp_app.pools.statement_time import TimeIsUp
from tests.drill.functions.shop import FIELDS
from tests.drill.models import Customer, Order
from tests.published import published
from tests.scripting import STATELESS
from tests.serving import Connect

EMAIL: Final = "{{drill.Customer.email}}"
CONFIG: Final = {"messages": [{"content": {"type": "text", "text": "Hi {{who}}"}}]}


def opened(rows: Any = "all") -> Registry:
    """Return a registry whose customers need a permission."""
    registry = Registry()
    for model, fields in FIELDS.items():
        registry.open_model(
            model,
            fields=fields,
            rows=rows if model is Customer else "all",
            permission="shop.customers" if model is Customer else "",
        )
    return registry


def visible_customers(request: Any) -> Any:
    return Customer.objects.exclude(name="hidden")


@pytest.fixture
def served(
    served_rows: None,
    django_db_blocker: DjangoDbBlocker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    registry = opened(visible_customers)
    monkeypatch.setattr("tests.behaviours.registry", registry)
    names = ["ann", "Anna", "joanna", "hidden", "bob%"]
    with django_db_blocker.unblock():
        for name in names:
            Customer.objects.create(name=name, email=f"{name}@example.org")
        suggestions = ["Andrea", EMAIL, "{{drill.Customer.name}}"]
        row = published(
            Prompt(
                name="greet_customer",
                arguments=json.dumps([{"name": "who", "suggestions": suggestions}]),
                config=json.dumps(CONFIG),
                tags="private",
            )
        )
        try:
            yield
        finally:
            row.delete()
            Customer.objects.all().delete()


@pytest.fixture
def suggested(served: None, connect: Connect) -> Any:
    async def suggested(typed: str, may: str = "shop.customers") -> list[str]:
        headers = {"x-user": "1", "x-permissions": may}
        client = await connect(STATELESS, path="/mcp/private", headers=headers)
        outcome = await client.request(
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "greet_customer"},
                "argument": {"name": "who", "value": typed},
            },
        )
        values: list[str] = outcome.result["completion"]["values"]
        return values

    return suggested


@pytest.mark.databases
async def test_values_that_fit(suggested: Any) -> None:
    values = await suggested("an")
    # Databases differ about the order of large and small letters.
    emails, names = values[1:4], values[4:]
    assert values[0] == "Andrea"
    assert {*emails[:2]} == {"Anna@example.org", "ann@example.org"}
    assert emails[2] == "joanna@example.org"
    assert {*names[:2]} == {"Anna", "ann"}
    assert names[2:] == ["joanna"]


async def test_what_is_hidden_is_not_suggested(suggested: Any) -> None:
    assert await suggested("hidden") == []


async def test_no_pattern(suggested: Any) -> None:
    assert await suggested("b%") == ["bob%@example.org", "bob%"]
    assert await suggested("a_n") == []


async def test_short_texts_look_nothing_up(suggested: Any) -> None:
    assert await suggested("a") == ["Andrea"]
    assert await suggested("") == ["Andrea"]


async def test_without_the_permission(suggested: Any) -> None:
    assert await suggested("an", may="") == ["Andrea"]


async def test_what_takes_too_long(
    suggested: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(*_: object) -> Any:
        raise TimeIsUp

    monkeypatch.setattr(suggesting._Looking, "_fitting_values", too_late)
    assert await suggested("an") == ["Andrea"]


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("{{drill.Customer}}", "names no field"),
        ("{{email}}", "names no field"),
        ("{{drill.Gone.name}}", "no code opens the model “drill.Gone”"),
        ("{{drill.Customer.gone}}", "gone"),
        ("{{drill.Order.total}}", "and no text"),
        ("{{drill.Order.invoice}}", "and no text"),
    ],
)
def test_what_names_no_field(reference: str, sentence: str) -> None:
    with pytest.raises(KindError, match=sentence):
        referenced_path(reference, opened().open_models)


@pytest.mark.parametrize(
    ("fields", "filters", "reference", "sentence"),
    [
        (
            ["number"],
            ["number", "note"],
            "note",
            "“note” of drill.Order cannot be shown",
        ),
        (["number", "note"], ["number"], "note", "cannot be asked by"),
    ],
)
def test_a_field_is_opened_to_be_shown_and_asked_by(
    fields: list[str], filters: list[str], reference: str, sentence: str
) -> None:
    registry = Registry()
    registry.open_model(Order, fields=fields, filters=filters, rows="all")
    with pytest.raises(KindError, match=f"{sentence}: no code opens it for that"):
        referenced_path(f"{{{{drill.Order.{reference}}}}}", registry.open_models)


def test_a_field() -> None:
    models = opened().open_models
    path = referenced_path("{{ drill.Customer.email }}", models)
    assert path.owner.model is Customer
    assert referenced_path("{{drill.Order.state}}", models).owner.model is Order


def test_who_makes_one_is_told() -> None:
    argument = PromptArgument(name="who", suggestions=("{{drill.Gone.name}}",))
    prompt = PromptDefinition(name="p", description="d", arguments=(argument,))
    told = serving_problems(prompt, "text", CONFIG, registry=opened())
    assert [each.field for each in told] == ["arguments"]
    template = ResourceTemplateDefinition(
        name="t", uri_template="x:{who}", suggestions={"who": (EMAIL,)}
    )
    config = {"text": "{{who}}"}
    assert serving_problems(template, "text", config, registry=opened()) == []
    assert [*completers_of(template, opened())] == ["who"]
