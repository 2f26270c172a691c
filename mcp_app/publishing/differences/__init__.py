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
    common_start,
    is_same_json,
    readable_pair,
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
    changes: list[Difference] = []
    for field, old, new in _changed_columns(before, after):
        changes += compare_columns(field, old, new) or _value_differences(
            field, old, new
        )
    return changes or list(_order_differences(before, after))


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Do so column by column, for contents that are not what their columns demand."""
    changes = [
        difference
        for field, old, new in _changed_columns(before, after)
        for difference in _value_differences(field, old, new)
    ]
    return changes or list(_order_differences(before, after))


def _changed_columns(
    before: JsonObject, after: JsonObject
) -> Iterator[tuple[str, object, object]]:
    for field in dict.fromkeys((*before, *after)):
        old, new = before.get(field, ABSENT), after.get(field, ABSENT)
        if not is_same_json(old, new):
            yield field, old, new


def _order_differences(before: JsonObject, after: JsonObject) -> Iterator[Difference]:
    """Yield a difference where the same members stand in another order."""
    if list(before) != list(after):
        yield Difference("content", _("order"), ", ".join(before), ", ".join(after))


def breaking_reasons(changes: Sequence[Difference]) -> list[str]:
    """Return why old calls break, each reason once."""
    return list(dict.fromkeys(each.breaks for each in changes if each.breaks))


def _value_differences(field: str, old: object, new: object) -> list[Difference]:
    return [Difference(field, "", *readable_pair(old, new))]
