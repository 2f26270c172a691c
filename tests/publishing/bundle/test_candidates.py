"""Rows as a file would have them: what is set, and why they could not be saved."""

from __future__ import annotations

from typing import Any

from mcp_app.models import Server, Tool
from mcp_app.publishing.bundle.candidates import (
    apply_entry,
    row_problems,
    server_demands,
    server_limits,
    unsaved_row,
)
from mcp_app.publishing.bundle.format import Entry


def entry(model: Any = Tool, key: str = "a", **more: Any) -> Entry:
    given = {"working": {}, **more}
    return Entry(place="here", model=model, key=key, **given)


def server(**more: Any) -> Entry:
    return entry(Server, "shop", **more)


def test_what_holds_without_being_published_is_a_servers() -> None:
    row = Server(slug="shop", access="token,public", permission="shop.old", rule="r")
    before = row.access
    apply_entry(
        row,
        server(
            working={"title": "Shop", "chosen": {"tools": ["a"]}},
            access=("token", "public"),
            demands={"groups": "Support"},
            page_size=7,
        ),
    )
    assert (row.title, row.page_size) == ("Shop", 7)
    assert server_demands(row) == {"groups": "Support"}
    # The same ways, however they are written, are no change.
    assert row.access == before
    apply_entry(row, server(access=("public", "token"), page_size=7))
    assert row.access == "public token"
    assert server_limits(row) == {"access": ["public", "token"], "page_size": 7}


def test_what_code_declares_needs_a_name() -> None:
    row = unsaved_row(entry(key="a b", source="code", name="a b"))
    assert any(each.startswith("name: ") for each in row_problems(row))
