"""Differences as the forms call things: never names of columns, types or keys."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.publishing.difference_labels import labeled_differences
from mcp_app.catalog.registry import mcp
from mcp_app.models import (
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.publishing.differences import client_view, differences

pytestmark = pytest.mark.django_db

Said = tuple[str, str | None, str | None]


def said(row: PublishedRow, before: Any, after: Any) -> list[Said]:
    contents = (client_view(row, each, mcp) for each in (before, after))
    shown = labeled_differences(row, differences(*contents))
    return [(each.label, each.before, each.after) for each in shown]


PARAMETERS = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["day"],
}


EMPTY = {"type": "object"}
FIND = {"function": "shop.do"}
TEXT = {"content": [{"type": "text", "text": "Nine to five."}]}
TEMPLATE = {"uri_template": "x:{a}"}
MINUTE = ("May be kept for", "0.5", "60")


@pytest.mark.parametrize(
    ("row", "before", "after", "expected"),
    [
        (
            Tool(),
            {},
            {"read_only": True, "idempotent": False, "open_world": False},
            [("What it changes", None, "only reads · stays inside this site")],
        ),
        (Tool(), {}, {"input_schema": EMPTY}, [("Parameters", None, "none")]),
        (Tool(), {}, {"kind": "text"}, [("What it does", None, "Answer with a text")]),
        (
            Tool(),
            {},
            {"input_schema": PARAMETERS},
            [
                ("Parameters", None, "day: text, required"),
                ("Parameters", None, "count: whole number, not required"),
            ],
        ),
        (Tool(kind="function"), {}, {"config": FIND}, [("Function", None, "shop.do")]),
        (Tool(kind="text"), {}, {"config": TEXT}, [("Text", None, "Nine to five.")]),
        (ResourceTemplate(), {}, TEMPLATE, [("Address pattern", None, "x:{a}")]),
        (Resource(), {}, {"uri": "shop://a"}, [("Address", None, "shop://a")]),
        (
            Resource(),
            {},
            {"annotations": {"audience": ["assistant", "user"], "priority": 0.75}},
            [("For", None, "People and models"), ("Importance", None, "High")],
        ),
        (
            Resource(),
            {"annotations": {"lastModified": "2026-01-01"}},
            {},
            [("Annotations, lastModified", "2026-01-01", None)],
        ),
        (Resource(), {"ttl_ms": 500}, {"ttl_ms": 60_000}, [MINUTE]),
        (
            Prompt(),
            {},
            {"arguments": [{"name": "order", "required": True}]},
            [("Arguments", None, "order: required")],
        ),
        (
            Server(),
            {"selection": "tags", "access": "token"},
            {"selection": "chosen", "access": "token public partner"},
            [
                (
                    "What it offers",
                    "Everything with these tags",
                    "Only the ones chosen here",
                ),
                (
                    "Who may come in",
                    "Access token",
                    "Access token\nPublic: anyone on the internet, without signing in\n"
                    "partner",
                ),
            ],
        ),
    ],
)
def test_labels_and_words(
    row: PublishedRow, before: Any, after: Any, expected: list[Said]
) -> None:
    assert said(row, before, after) == expected


def test_what_a_server_chose_has_its_title() -> None:
    hours = Tool.objects.create(name="hours", title="Opening hours")
    before = {"tools": [hours.pk, 2**40]}
    titles = "Opening hours\none that was deleted"
    shown = said(Server(), {"chosen": before}, {"chosen": {"tools": []}})
    assert shown == [("Tools", titles, "")]


def test_what_only_json_tells_apart_is_shown() -> None:
    people = ["user", "assistant"]
    orders = people, people[::-1]
    before, after = ({"annotations": {"audience": each}} for each in orders)
    [(label, *values)] = said(Resource(), before, after)
    assert label == "Annotations"
    assert values[0] != values[1]
