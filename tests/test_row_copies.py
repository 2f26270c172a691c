from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Model

from mcp_app.models import DefinitionVersion, Server, Tool
from tests.published import published
from tests.row_copies import RowCopy

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

TABLES: list[type[Model]] = [Server.tools.through, Tool, Server, DefinitionVersion]


def _rows() -> list[list[dict[str, Any]]]:
    return [list(model._default_manager.order_by("pk").values()) for model in TABLES]


def test_rows_are_there_again_with_their_keys() -> None:
    tool = published(Tool(name="kept", config='{"content": []}', tags="a é"))
    server = published(Server(slug="kept", selection="chosen"))
    server.tools.add(tool)
    before = _rows()
    assert all(before)
    copy = RowCopy(TABLES)
    tool.delete()
    server.delete()
    published(Tool(name="new", config='{"content": []}'))
    assert _rows() != before
    copy.write()
    assert _rows() == before


def test_keys_go_on_after_those_of_the_copy() -> None:
    kept = published(Tool(name="kept", config='{"content": []}'))
    copy = RowCopy(TABLES)
    Tool.objects.all().delete()
    copy.write()
    assert published(Tool(name="new", config='{"content": []}')).pk > kept.pk
