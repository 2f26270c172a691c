"""Differences as the forms call things: never names of columns, types or keys."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.publishing.comparison import labeled_differences
from mcp_app.models import (
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.publishing.differences import differences

pytestmark = pytest.mark.django_db

Said = tuple[str, str | None, str | None]


def said(row: PublishedRow, before: Any, after: Any) -> list[Said]:
    shown = labeled_differences(row, differences(before, after))
    return [(each.label, each.before, each.after) for each in shown]


PARAMETERS = {
    "type": "object",
    "properties": {"day": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["day"],
}


@pytest.mark.parametrize(
    ("row", "before", "after", "expected"),
    [
        (
            Tool(),
            {},
            {"read_only": True, "idempotent": False, "open_world": False},
            [
                ("Only reads", None, "yes"),
                ("Twice does the same as once", None, "no"),
                ("Reaches outside this site", None, "no"),
            ],
        ),
        (
            Tool(),
            {},
            {"input_schema": {"type": "object"}},
            [("Parameters", None, "none")],
        ),
        (Tool(), {"input_schema": {}}, {}, [("Parameters", "none", None)]),
        (
            Tool(),
            {},
            {"input_schema": PARAMETERS},
            [
                ("Parameter day", None, "type: Text"),
                ("Parameter count", None, "type: Whole number"),
            ],
        ),
        (
            Tool(kind="function"),
            {},
            {"config": {"function": "shop.find_orders"}},
            [("Function", None, "shop.find_orders")],
        ),
        (
            Tool(kind="text"),
            {},
            {"config": {"content": [{"type": "text", "text": "Nine to five."}]}},
            [("Text", None, "Nine to five.")],
        ),
        (
            ResourceTemplate(),
            {},
            {"uri_template": "shop://{a}"},
            [("Address pattern", None, "shop://{a}")],
        ),
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
        (
            Resource(),
            {"ttl_ms": 500},
            {"ttl_ms": 60_000},
            [("May be kept for", "0.5", "60")],
        ),
        (
            Prompt(),
            {},
            {"arguments": [{"name": "order", "required": True}]},
            [("Argument order", None, "order (required)")],
        ),
        (
            Server(),
            {"selection": "tags"},
            {"selection": "chosen"},
            [
                (
                    "What it offers",
                    "Everything with these tags",
                    "Only the ones chosen here",
                )
            ],
        ),
        (
            Server(),
            {"access": "token"},
            {"access": "token public partner"},
            [
                (
                    "Who may come in",
                    "Access token",
                    "Access token\nPublic: anyone on the internet, without signing in\n"
                    "partner",
                )
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
    after: dict[str, list[int]] = {"tools": []}
    assert said(Server(), {"chosen": before}, {"chosen": after}) == [
        ("Tools", "Opening hours\none that was deleted", "")
    ]


def test_what_only_json_tells_apart_is_shown() -> None:
    found = said(
        Resource(),
        {"annotations": {"audience": ["user", "assistant"]}},
        {"annotations": {"audience": ["assistant", "user"]}},
    )
    assert [label for label, *_ in found] == ["For"]
    assert found[0][1] != found[0][2]
