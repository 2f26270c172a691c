"""The columns that say who may use a definition, or a server.

`groups` has the names of Django's groups, one in each line: a user is in one of them.
`rule` is the key of a function that code registered (`mcp.rule`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from mcp_app.interface.rules import permission_problem, text_problem, visible
from mcp_app.models.listings import lines

DEMANDS: Final = ("permission", "groups", "rule")


class Demanding(Protocol):
    """A row with these columns."""

    permission: str
    groups: str
    rule: str


def named_groups(text: str) -> tuple[str, ...]:
    """Return the lines of a column of groups, as they are; () only for nothing.

    Where they name nothing, that is still no demand that everybody meets.
    """
    given = tuple(line for line in text.split("\n") if line)
    return given if given or not text else (text,)


def group_problem(name: str) -> str | None:
    """Say why a group cannot be chosen: its name would be read as another one's."""
    if lines(name) == (name,):
        return None
    return (
        f"The group “{visible(name)}” cannot be chosen, because its name is empty,"
        " has a line break, or begins or ends with a blank. Give the group another"
        " name first."
    )


def demand_problems(row: Demanding) -> Iterator[tuple[str, str]]:
    """Yield (column, sentence) for what these columns cannot have."""
    if problem := permission_problem(row.permission):
        yield "permission", problem
    for name in named_groups(row.groups):
        if problem := text_problem(name) or group_problem(name):
            yield "groups", problem
    if problem := text_problem(row.rule):
        yield "rule", problem
