"""Two people who import at once, each on a connection of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

import pytest
from django.db import connections

from mcp_app.catalog.registry import Registry
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.publishing.openapi import make_tools
from tests.publishing.openapi.test_openapi import BOTH, stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

Value = TypeVar("Value")


def _at_once(work: Callable[[], Value]) -> list[Value]:
    barrier = Barrier(2)

    def beside() -> Value:
        try:
            barrier.wait(60)
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        begun = [threads.submit(beside) for _ in range(2)]
        return [each.result(60) for each in begun]


def test_one_document_is_kept() -> None:
    assert len({each.pk for each in _at_once(stored)}) == 1
    assert OpenApiDocument.objects.count() == 1


def test_each_tool_is_made_once() -> None:
    row = stored()
    made = _at_once(lambda: len(make_tools(row, BOTH, Registry(), None)))
    assert sorted(made) == [0, 2]
    assert {each.name for each in Tool.objects.all()} == {
        "list_tickets",
        "create_ticket",
    }
    assert ImportedOperation.objects.count() == 2


def test_two_documents_make_tools_of_other_names() -> None:
    """A name that one has taken meanwhile, the other one does not get."""
    rows = [stored(), stored(info={"title": "Another"})]

    def make() -> list[str]:
        return [tool.name for tool in make_tools(rows.pop(), BOTH, Registry(), None)]

    names = [name for made in _at_once(make) for name in made]
    assert len(names) == len({*names}) == Tool.objects.count() == 4


def test_a_name_that_somebody_takes_between_look_and_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row, clean = stored(), Tool.full_clean

    def taken_meanwhile(tool: Tool, **options: Any) -> None:
        monkeypatch.undo()
        # In the same transaction: that it begins anew takes this away, too.
        Tool.objects.create(name=tool.name)
        clean(tool, **options)

    monkeypatch.setattr(Tool, "full_clean", taken_meanwhile)
    made = make_tools(row, BOTH, Registry(), None)
    assert {tool.name for tool in made} == {"list_tickets", "create_ticket"}
