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
    Difference,
    Piece,
    changed_members,
    common_start,
    readable_pair,
)

__all__ = [
    "Difference",
    "Piece",
    "breaking_reasons",
    "common_start",
    "differences",
    "plain_differences",
]


def differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Return what differs between two contents of a row, in the order of columns.

    It is empty only where both are the same JSON.
    """
    changes: list[Difference] = []
    for field, old, new in changed_members(before, after):
        whole = Difference(field, "", *readable_pair(old, new))
        changes += compare_columns(field, old, new) or [whole]
    return changes or list(_order_differences(before, after))


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Do so column by column, for contents that are not what their columns demand."""
    changes = [
        Difference(field, "", *readable_pair(old, new))
        for field, old, new in changed_members(before, after)
    ]
    return changes or list(_order_differences(before, after))


def _order_differences(before: JsonObject, after: JsonObject) -> Iterator[Difference]:
    if list(before) != list(after):
        yield Difference("content", _("order"), ", ".join(before), ", ".join(after))


def breaking_reasons(changes: Sequence[Difference]) -> list[str]:
    """Return why old calls break, each reason once."""
    return list(dict.fromkeys(each.breaks for each in changes if each.breaks))
