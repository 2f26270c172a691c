"""Operations become tools: all that are chosen or none, and none is published."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from mcp_app.catalog.registry import Registry
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.publishing.openapi import columns_of, make_tools, offers_in
from tests.publishing.openapi.test_documents import stored

pytestmark = [pytest.mark.django_db]

BOTH = ["GET /tickets", "POST /tickets"]


def made(keys: list[str] = BOTH, **changes: Any) -> list[Tool]:
    return make_tools(stored(**changes), keys, Registry(), None)


def test_tools_are_made() -> None:
    author = User.objects.create_user("lee")
    row = stored()
    listing, creating = make_tools(row, BOTH, Registry(), author)
    assert (listing.name, creating.name) == ("list_tickets", "create_ticket")
    assert (listing.kind, listing.tags) == ("http", "tickets")
    assert listing.published is None
    assert listing.updated_by == author
    assert (listing.read_only, listing.idempotent) == (True, True)
    assert (creating.read_only, creating.destructive) == (False, False)
    assert creating.title == "Create a ticket"
    assert creating.json("config")["body"] == {"json": {"subject": "{{subject}}"}}
    assert creating.json("input_schema")["required"] == ["subject"]
    # Lint has looked at them: one that has no description cannot be published.
    assert listing.to_fix == 1
    assert creating.to_fix == 0
    assert {each.key for each in row.imported.all()} == {*BOTH}


def test_what_is_left_out() -> None:
    keys = ["GET /tickets", "POST /upload", "GET /gone", "GET /tickets"]
    assert [each.name for each in made(keys)] == ["list_tickets"]
    assert [each.name for each in made(BOTH)] == ["create_ticket"]
    assert made(BOTH) == []


def test_names_that_are_taken() -> None:
    Tool.objects.create(name="list_tickets")
    registry = Registry()
    registry.tool("list_tickets_2")(lambda: "")
    (tool,) = make_tools(stored(), ["GET /tickets"], registry, None)
    assert tool.name == "list_tickets_3"


@pytest.mark.parametrize(
    ("method", "hints"),
    [
        ("put", (False, False, True)),
        ("patch", (False, False, None)),
        ("delete", (False, True, True)),
    ],
)
def test_what_methods_change(method: str, hints: tuple[Any, ...]) -> None:
    paths = {"/x": {method: {"summary": "X"}}}
    (tool,) = made([f"{method.upper()} /x"], paths=paths)
    assert (tool.read_only, tool.destructive, tool.idempotent) == hints


def test_tags() -> None:
    tags = ["Orders & Invoices", "a b", "x" * 90, *[f"{n}" * 60 for n in range(9)]]
    (tool,) = made(["GET /x"], paths={"/x": {"get": {"tags": tags}}})
    assert tool.tags.startswith("orders-invoices a-b xxx")
    assert len(tool.tags) <= 500


def test_texts_without_hidden_characters() -> None:
    get = {"summary": "A\u200bB\nC", "description": "D\u202eE\nF\x00"}
    row = stored(paths={"/x": {"get": get}})
    (offer,) = offers_in(row).values()
    columns = columns_of(offer)
    assert columns["title"] in ("AB C", "ABC")
    assert columns["description"] == "DE\nF"
    (tool,) = make_tools(row, ["GET /x"], Registry(), None)
    tool.full_clean()


def test_all_or_none() -> None:
    row = stored()
    # What was stored by hand, or by an older version, may be refused.
    offers = row.unpack()
    offers[1]["input_schema"] = {"type": "string"}
    from mcp_app.models.openapi import pack  # noqa: PLC0415

    row.offers = pack(offers)
    row.save()
    with pytest.raises(DocumentError, match="POST /tickets cannot become a tool"):
        make_tools(row, BOTH, Registry(), None)
    assert not Tool.objects.exists()
    assert not ImportedOperation.objects.exists()


def test_a_document_that_is_gone() -> None:
    row = stored()
    OpenApiDocument.objects.all().delete()
    with pytest.raises(DocumentError, match="somebody has deleted this document"):
        make_tools(row, BOTH, Registry(), None)


def test_many_operations_of_one_name() -> None:
    paths: Any = {f"/{'a' * 200}/{n}": {"get": {}} for n in range(30)}
    names = [each.name for each in made([f"GET {each}" for each in paths], paths=paths)]
    assert len({*names}) == 30
