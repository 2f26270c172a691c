"""Looks again: what the document says now, beside what was taken and what is here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from mcp_app.catalog.registry import Registry
from mcp_app.kinds.openapi.offer import Offer
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.models.fields import parse
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.findings import store_findings
from mcp_app.publishing.openapi.documents import lock, offers_in
from mcp_app.publishing.openapi.making import COLUMNS, columns_of


class Standing(StrEnum):
    """How a tool stands to the document of now."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column that the document changed; `is_own` if staff changed it, too."""

    column: str
    before: str
    now: str
    yours: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class ComparedOperation:
    """A tool beside the operation that it was made of."""

    operation: ImportedOperation
    standing: Standing
    differences: Sequence[ColumnDifference] = ()
    bar: str = ""
    """Why the operation of now cannot be a tool."""


def compare(document: OpenApiDocument) -> list[ComparedOperation]:
    """Return each tool of a document with what differs; two queries."""
    offers = offers_in(document)
    operations = document.imported.select_related("tool")
    return [_compared(each, offers.get(each.key)) for each in operations]


def _compared(operation: ImportedOperation, offer: Offer | None) -> ComparedOperation:
    if offer is None:
        return ComparedOperation(operation, Standing.GONE)
    base = Offer.from_json(parse(operation.base))
    if _is_same(jsonrpc.write(offer.to_json()).decode(), operation.base):
        return ComparedOperation(operation, Standing.SAME)
    if offer.bar:
        return ComparedOperation(operation, Standing.CHANGED, bar=offer.bar)
    differences = [*_differences(columns_of(base), columns_of(offer), operation.tool)]
    # What only the document itself shows, such as a tag, is nothing to decide.
    standing = Standing.CHANGED if differences else Standing.SAME
    return ComparedOperation(operation, standing, differences)


def _differences(
    before: Mapping[str, str], now: Mapping[str, str], tool: Tool
) -> Sequence[ColumnDifference]:
    return [
        ColumnDifference(
            column,
            before[column],
            now[column],
            yours := str(getattr(tool, column)),
            is_own=not _is_same(yours, before[column])
            and not _is_same(yours, now[column]),
        )
        for column in COLUMNS
        if not _is_same(before[column], now[column])
    ]


def _is_same(one: str, other: str) -> bool:
    """Whether two texts, or what they say as JSON, are the same."""
    if one == other:
        return True
    try:
        return bool(parse(one) == parse(other))
    except ValueError:
        return False


def take_over(
    document: OpenApiDocument,
    keys: Sequence[int],
    registry: Registry,
    author: AbstractBaseUser | None,
) -> tuple[list[Tool], list[str]]:
    """Write what the document changed into tools, but not over what staff changed.

    Returns the tools, and "tool: column" for each column that keeps its own text.
    Publishes nothing.  Raises `DocumentError` if the document is gone.
    """
    changed: list[Tool] = []
    own: list[str] = []
    with transaction.atomic():
        row = lock(document)
        offers = offers_in(row)
        operations = row.imported.select_related("tool").filter(pk__in=keys)
        for operation in operations:
            compared = _compared(operation, offers.get(operation.key))
            if compared.standing is not Standing.CHANGED or compared.bar:
                continue
            tool = operation.tool
            for each in compared.differences:
                if each.is_own:
                    own.append(f"{tool.name}: {each.column}")
                else:
                    setattr(tool, each.column, each.now)
            tool.updated_by_id = None if author is None else author.pk
            tool.full_clean()
            tool.save()
            taken = offers[operation.key].to_json()
            operation.base = jsonrpc.write(taken).decode()
            operation.save(update_fields=["base"])
            store_findings(tool, registry)
            changed.append(tool)
    return changed, own
