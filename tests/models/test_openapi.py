"""What a document offers is kept in one column."""

from __future__ import annotations

import pytest
from django.utils import timezone

from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.models import openapi as module
from mcp_app.models.openapi import TooManyOffers, pack_offers

pytestmark = [pytest.mark.django_db]


def document(title: str = "Shop") -> OpenApiDocument:
    return OpenApiDocument.objects.create(
        title=title,
        site="helpdesk",
        digest="0" * 64,
        offers=pack_offers([{"key": "GET /a", "name": "a"}]),
        operations=1,
        read_at=timezone.now(),
    )


def test_offers_are_kept() -> None:
    document()
    row = OpenApiDocument.objects.get()
    assert str(row) == "Shop"
    assert row.unpack_offers() == [{"key": "GET /a", "name": "a"}]


def test_too_many_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_INFLATED", 10)
    with pytest.raises(TooManyOffers, match="take 1 MiB"):
        pack_offers([{"key": "GET /a"}])


def test_tools_and_documents_end_each_other() -> None:
    row = document()
    tools = [Tool.objects.create(name=name, kind="http") for name in ("a", "b")]
    for tool in tools:
        ImportedOperation.objects.create(
            document=row, key=f"GET /{tool.name}", tool=tool, base="{}"
        )
    assert str(ImportedOperation.objects.first()) == "GET /a"
    tools[0].delete()
    assert row.imported.count() == 1
    row.delete()
    assert Tool.objects.count() == 1
