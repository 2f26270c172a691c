"""Rows that clients see."""

from __future__ import annotations

from typing import TypeVar

from mcp_app.models import PublishedRow, Stop
from mcp_app.models.stops import By, scope_of

Row = TypeVar("Row", bound=PublishedRow)


def published(row: Row) -> Row:
    if row.pk is None:
        row.save()
    row.rows().publish([row])
    return row


def stopped(row: Row) -> Row:
    if row.pk is None:
        row.save()
    Stop.objects.make(scope_of(row), row, by=By("lee"))
    return row


def stops() -> set[int]:
    return {each.pk for each in Stop.objects.on()}


def end_stops(before: set[int]) -> None:
    Stop.objects.end(sorted(stops() - before), by=By("lee"))


def start(row: PublishedRow) -> None:
    keys = [each.pk for each in Stop.objects.of_rows([row])]
    Stop.objects.end(keys, by=By("lee"))
