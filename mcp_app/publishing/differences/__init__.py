"""What is different between two contents of a row, column by column, in words.

Contents are the same only if their JSON is.  Other types, another order of members, and
an empty value instead of a missing one are differences, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from django.utils.translation import gettext as _

from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences.breaking import breaking_reasons
from mcp_app.publishing.differences.difference import (
    ABSENT,
    Difference,
    changed_members,
    common_start,
    is_same_json,
    readable_pair,
)
from mcp_app.publishing.differences.lines import (
    CHANGES,
    ClientView,
    client_view,
    hint_words,
)

__all__ = [
    "CHANGES",
    "ClientView",
    "Difference",
    "breaking_reasons",
    "client_view",
    "common_lines",
    "common_start",
    "differences",
    "hint_words",
    "plain_differences",
]


def differences(before: ClientView, after: ClientView) -> list[Difference]:
    """Return what differs between two contents of a row, in the order of columns.

    It is empty only if both are the same JSON.
    """
    changes: list[Difference] = []
    for field in dict.fromkeys((*before.content, *after.content)):
        lines = list(_line_differences(field, before, after))
        sides = [each.content.get(field, ABSENT) for each in (before, after)]
        same_description = field == "config" and before.description == after.description
        if not lines and not same_description and not is_same_json(*sides):
            lines = [Difference(field, "", *readable_pair(*sides))]
        changes += lines
    return changes or plain_differences(before.content, after.content)


def _line_differences(
    field: str, before: ClientView, after: ClientView
) -> Iterator[Difference]:
    was, now = before.lines_of(field), after.lines_of(field)
    for part in dict.fromkeys(each.part for each in (*was, *now)):
        old, new = ({e.key: e for e in each if e.part == part} for each in (was, now))
        pairs = [(old[key], new[key]) for key in old if key in new]
        removed = (each for key, each in old.items() if key not in new)
        added = (each for key, each in new.items() if key not in old)
        # A removed line stands beside an added one, which may replace it.
        for one, other in [*pairs, *zip_longest(removed, added)]:
            if one != other:
                texts = (None if each is None else each.text for each in (one, other))
                yield Difference(field, part, *texts)


def common_lines(before: ClientView, after: ClientView) -> list[Difference]:
    """Return the lines that both contents have, each with two equal sides."""
    return [
        Difference(field, line.part, line.text, line.text)
        for field in after.content
        for line in after.lines_of(field)
        if line in before.lines_of(field)
    ]


def plain_differences(before: JsonObject, after: JsonObject) -> list[Difference]:
    """Return differences by column, for contents that do not fit their columns."""
    changes = [
        Difference(field, "", *readable_pair(old, new))
        for field, old, new in changed_members(before, after)
    ]
    if not changes and list(before) != list(after):
        names = ", ".join(before), ", ".join(after)
        changes = [Difference("content", _("order"), *names)]
    return changes
