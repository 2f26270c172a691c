"""A document is looked at again: what differs, and what is taken over."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.egress.sites import sites
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import OpenApiDocument, Tool
from mcp_app.publishing.openapi import Standing, compare, make_tools, store, take_over
from tests.published import published
from tests.publishing.openapi.test_documents import DOCUMENT, stored

pytestmark = [pytest.mark.django_db]

CREATE = "POST /tickets"


@pytest.fixture
def row() -> OpenApiDocument:
    row = stored()
    make_tools(row, ["GET /tickets", CREATE], Registry(), None)
    return row


def again(row: OpenApiDocument, change: Any) -> None:
    """Store the document as it is after a change."""
    document = copy.deepcopy(DOCUMENT)
    change(document["paths"])
    store(json.dumps(document).encode(), sites()["helpdesk"], known=row)


def with_urgency(paths: Any) -> None:
    post = paths["/tickets"]["post"]
    post["summary"] = "Open a ticket"
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    schema["properties"]["urgency"] = {"type": "integer"}


def standings(row: OpenApiDocument) -> dict[str, str]:
    return {each.operation.key: each.standing.value for each in compare(row)}


def key_of(row: OpenApiDocument, key: str) -> int:
    return int(row.imported.get(key=key).pk)


def test_nothing_changed(row: OpenApiDocument) -> None:
    again(row, lambda paths: paths.setdefault("/new", {"get": {}}))
    assert standings(row) == {"GET /tickets": "same", CREATE: "same"}


def test_what_changed(row: OpenApiDocument) -> None:
    Tool.objects.filter(name="create_ticket").update(title="My own title")
    again(row, with_urgency)
    assert standings(row) == {"GET /tickets": "same", CREATE: "changed"}
    (changed,) = (each for each in compare(row) if each.standing is Standing.CHANGED)
    found = {each.column: each for each in changed.differences}
    assert [*found] == ["title", "description", "input_schema", "config"]
    title = found["title"]
    assert (title.before, title.now) == ("Create a ticket", "Open a ticket")
    assert (title.yours, title.is_own) == ("My own title", True)
    assert not found["config"].is_own


def test_taking_over(row: OpenApiDocument) -> None:
    tool = published(Tool.objects.get(name="create_ticket"))
    version = tool.published
    tool.title = "My own title"
    tool.save()
    again(row, with_urgency)
    changed, own = take_over(row, [key_of(row, CREATE)], Registry(), None)
    assert changed == [tool]
    assert own == ["create_ticket: title"]
    tool.refresh_from_db()
    assert tool.title == "My own title"
    assert tool.description == "Open a ticket"
    assert "urgency" in tool.json("input_schema")["properties"]
    assert tool.json("config")["body"]["json"]["urgency"] == "{{urgency}}"
    # Clients see what was published.
    assert tool.published == version
    assert standings(row)[CREATE] == "same"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])


def test_json_that_means_the_same_is_not_ones_own(row: OpenApiDocument) -> None:
    tool = Tool.objects.get(name="create_ticket")
    tool.config = json.dumps(tool.json("config"), indent=4)
    tool.save()
    again(row, with_urgency)
    _changed, own = take_over(row, [key_of(row, CREATE)], Registry(), None)
    assert own == []


def test_what_is_gone(row: OpenApiDocument) -> None:
    again(row, lambda paths: paths["/tickets"].pop("post"))
    assert standings(row)[CREATE] == "gone"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])
    assert Tool.objects.filter(name="create_ticket").exists()


def test_what_cannot_be_a_tool_any_more(row: OpenApiDocument) -> None:
    def wants_a_file(paths: Any) -> None:
        paths["/tickets"]["post"]["requestBody"]["content"] = {"image/png": {}}

    again(row, wants_a_file)
    (barred,) = (each for each in compare(row) if each.bar)
    assert barred.bar == "it wants a file"
    assert take_over(row, [key_of(row, CREATE)], Registry(), None) == ([], [])


def test_what_no_column_shows(row: OpenApiDocument) -> None:
    again(row, lambda paths: paths["/tickets"]["post"].update(tags=["new"]))
    assert standings(row)[CREATE] == "same"


def test_only_what_is_chosen(row: OpenApiDocument) -> None:
    again(row, with_urgency)
    chosen = [key_of(row, "GET /tickets"), 10**9]
    assert take_over(row, chosen, Registry(), None) == ([], [])
    assert standings(row)[CREATE] == "changed"


def test_a_document_that_is_gone(row: OpenApiDocument) -> None:
    OpenApiDocument.objects.all().delete()
    with pytest.raises(DocumentError, match="somebody has deleted this document"):
        take_over(row, [1], Registry(), None)
