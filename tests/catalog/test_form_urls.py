"""URLs in form questions: where code shows them, and in what is asked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, Final

import pytest
from django import forms
from django.utils.translation import gettext, gettext_lazy
from pydantic import BaseModel, Field

from mcp_app import Context, Elicit, SyncContext
from mcp_app.catalog.form_urls import findings_of, urls_in_question
from mcp_app.catalog.forms import form_schema
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.kinds.survey import code_findings
from tests.catalog.lint_cases import FOUND_OF_FUNCTIONS

PAGE: Final = "https://example.org/pay"


class Linked(BaseModel):
    number: Annotated[str, Field(title="See www.example.org", description=PAGE)]


class Plain(BaseModel):
    number: Annotated[str, Field(description="From your letter.")]


@dataclass
class Bare:
    number: str


class LinkedForm(forms.Form):
    number = forms.CharField(
        label=gettext_lazy("Number"), help_text=gettext_lazy("HTTP://example.org/help")
    )

    def __init__(self, *_: Any) -> None:
        raise AssertionError("A check makes no form.")


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "way": {
            "type": "string",
            "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": PAGE}],
        }
    },
}


def found(function: Any) -> list[str]:
    """Return the messages of the findings, without what they all say."""
    findings = list(findings_of(RegisteredFunction(function)))
    assert all((each.rule, each.field) == ("form-url", "") for each in findings)
    return [each.message.partition(". ")[0] for each in findings]


def told(url: str, member: str) -> str:
    return f"A form question has the URL {url} in its {member}"


# -- what code shows ----------------------------------------------------------------


async def in_message(ctx: Context) -> None:
    await ctx.elicit(f"Pay at https://example.org/{ctx.server}, please.", Plain)


async def in_named_message(ctx: Context) -> None:
    await ctx.elicit(message=gettext(PAGE), form=Bare)


async def in_model(ctx: Context) -> None:
    await ctx.elicit("Which?", Linked)


def in_question(ctx: SyncContext) -> None:
    ctx.ask(one=Elicit("Which?", Linked), two=Elicit("Which?", Bare))


def in_django_form(ctx: SyncContext) -> None:
    ctx.elicit("Which?", LinkedForm)


def in_schema(ctx: SyncContext) -> None:
    ctx.elicit("Which?", SCHEMA)


def in_literal(ctx: SyncContext) -> None:
    ctx.elicit(
        "Which?",
        {
            "type": "object",
            "properties": {"a": {"type": "string", "title": "http://example.org"}},
        },
    )


def clean(ctx: SyncContext) -> None:
    """Look at https://example.org/ for more."""
    ctx.elicit("Which?", Plain)
    ctx.elicit_url("Pay.", PAGE)
    ctx.log("info", PAGE)


def built(ctx: SyncContext) -> None:
    """What is put together shows when it is asked."""
    ctx.elicit("".join(["https:", "//example.org"]), _made())
    ctx.elicit(*_arguments())
    ctx.elicit("Which?", 5)  # type: ignore[arg-type]
    ctx.elicit("Which?", unknown)  # type: ignore[name-defined]  # noqa: F821
    ctx.elicit("Which?", {"type": "object", "properties": 5})


def _made() -> Any:
    return Linked


def _arguments() -> Any:
    return PAGE, Linked


def without_context() -> str:
    return "elicit('https://example.org')"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (in_message, [told("https://example.org/", "message")]),
        (in_named_message, [told(PAGE, "message")]),
        (in_model, [told("www.example.org", "title"), told(PAGE, "description")]),
        (in_question, [told("www.example.org", "title"), told(PAGE, "description")]),
        (in_django_form, [told("HTTP://example.org/help", "description")]),
        (in_schema, [told(PAGE, "title")]),
        (in_literal, [told("http://example.org", "title")]),
        (clean, []),
        (built, []),
        (without_context, []),
    ],
)
def test_what_code_shows(function: Any, expected: list[str]) -> None:
    assert found(function) == expected


def test_a_form_that_the_function_has_from_around_it() -> None:
    form = Linked

    @wraps(clean)
    def outer(ctx: SyncContext) -> Any:
        return inner(ctx)

    def inner(ctx: SyncContext) -> Any:
        return ctx.elicit("Which?", form), later

    assert len(found(inner)) == 2
    assert len(found(partial(inner))) == 2
    later = Plain
    assert len(found(inner)) == 2
    # The innermost function counts, as it does for the docstring.
    assert found(outer) == []


def test_a_function_whose_source_nobody_has() -> None:
    names: dict[str, Any] = {"SyncContext": SyncContext}
    source = f"def made(ctx: SyncContext):\n    ctx.elicit('{PAGE}', dict)\n"
    exec(source, names)  # noqa: S102
    assert found(names["made"]) == []


def test_it_is_a_finding_of_the_definition() -> None:
    for function, rules in FOUND_OF_FUNCTIONS:
        assert [each.rule for each in findings_of(function)] == rules
    registry = Registry()
    registry.tool(read_only=True)(in_schema)
    [about] = [
        each for each in code_findings(registry) if each.finding.rule == "form-url"
    ]
    assert (about.about.name, about.in_code) == ("in_schema", True)  # type: ignore[union-attr]


# -- what is asked ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "form", "members"),
    [
        ("Which?", Plain, []),
        ("See https://example.org/.", Plain, ["message"]),
        (gettext_lazy("See https://example.org/."), Bare, ["message"]),
        ("No.https is not a scheme", Bare, []),
        ("Which?", Linked, ["title", "description"]),
        ("Which?", SCHEMA, ["title"]),
    ],
)
def test_what_is_asked(message: object, form: Any, members: list[str]) -> None:
    assert [*dict(urls_in_question(message, form_schema(form).schema))] == members
