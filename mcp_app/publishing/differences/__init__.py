"""What is different between two contents of a row, field by field, in words.

Parameters of a schema are matched by their names: to move one is no rewrite.  Contents
are the same only where their JSON is: what differs in a type, in the order of members,
or in being empty instead of missing, is never shown as no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences.columns import compare_columns
from mcp_app.publishing.differences.difference import (
    ABSENT,
    Difference,
    Piece,
    both,
    common_start,
    same,
)

__all__ = [
    "Difference",
    "Piece",
    "breaking",
    "common_start",
    "differences",
    "plain_differences",
]


def differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Return what differs between two contents of a row, in the order of columns.

    It is empty only where both are the same JSON.
    """
    found: list[Difference] = []
    for field, old, new in _changed(before, after):
        found += compare_columns(field, old, new) or _values(field, old, new)
    return found or list(_order(before, after))


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Do so column by column, for contents that are not what their columns demand."""
    found = [
        difference
        for field, old, new in _changed(before, after)
        for difference in _values(field, old, new)
    ]
    return found or list(_order(before, after))


def _changed(
    before: JsonObject, after: JsonObject
) -> Iterator[tuple[str, object, object]]:
    for field in dict.fromkeys((*before, *after)):
        old, new = before.get(field, ABSENT), after.get(field, ABSENT)
        if not same(old, new):
            yield field, old, new


def _order(before: JsonObject, after: JsonObject) -> Iterator[Difference]:
    """Yield a difference where the same members stand in another order."""
    if list(before) != list(after):
        yield Difference("content", _("order"), ", ".join(before), ", ".join(after))


def breaking(found: Sequence[Difference]) -> list[str]:
    """Return why old calls break, each reason once."""
    return list(dict.fromkeys(each.breaks for each in found if each.breaks))


def _values(field: str, old: object, new: object) -> list[Difference]:
    return [Difference(field, "", *both(old, new))]
