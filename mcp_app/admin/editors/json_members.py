"""JSON member by member, so that the changes of two people fit together.

Entries of a list are members where texts or names tell them apart.  Of others, such as
messages, the list is one member: by its place alone an entry is another one as soon as
somebody puts one above it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from mcp_app.admin.editors.json_texts import parse_or_none
from mcp_app.protocol import jsonrpc

SEPARATOR: Final = "\x1f"
"""Stands before each name that leads to a member; no name that people type has it."""
MAX_LEVELS: Final = 2
"""Of members in members; entries of a list have none."""
NAMES: Final = ("name", "parameter", "path")
"""The first of these that an entry of a list has is its name."""
ABSENT: Final[Any] = object()
"""Stands for a member that is not there."""


def parts_of_json(text: str) -> Mapping[str, object]:
    """Return each member by the names that lead to it; the text if it is no JSON."""
    value = parse_or_none(text)
    return {"": text.strip()} if value is None else dict(_parts(value, MAX_LEVELS))


def text_on_top(theirs: str, mine: str, touched: Collection[str]) -> str:
    """Return the JSON of theirs with the parts that I touched; mine if one is none."""
    values = parse_or_none(theirs), parse_or_none(mine)
    if None in values:
        return mine
    paths = [each.split(SEPARATOR)[1:] for each in touched]
    return jsonrpc.write(_value_on_top(*values, paths, MAX_LEVELS)).decode()


def _parts(value: Any, levels: int, part: str = "") -> Iterator[tuple[str, bytes]]:
    members = _members(value, levels)
    # For an object or a list it is the order of its members.
    yield part, jsonrpc.canonical(value if members is None else [*members])
    below = levels - 1 if isinstance(value, dict) else 0
    for name, member in (members or {}).items():
        yield from _parts(member, below, f"{part}{SEPARATOR}{name}")


def _members(value: Any, levels: int) -> dict[str, Any] | None:
    """Return what a value holds, by name; None if it is one member."""
    if value is ABSENT or (levels and isinstance(value, dict)):
        return {} if value is ABSENT else value
    if not levels or not isinstance(value, list):
        return None
    members: dict[str, Any] = {}
    for entry in value:
        name = _name_of(entry)
        if not name:
            return None
        # Several filters may say the same of one field.
        while name in members:
            name += "+"
        members[name] = entry
    return members


def _name_of(entry: Any) -> str:
    """Return what tells an entry of a list from others; "" if nothing does."""
    if not isinstance(entry, dict):
        return entry if isinstance(entry, str) else ""
    key = next((each for each in NAMES if entry.get(each)), "")
    # A value that is fixed has no name of its own.
    rest = ("lookup", "exclude", "unit") if key == "path" else ()
    return " ".join([key, *(str(entry.get(each, "")) for each in (key, *rest))]).strip()


def _value_on_top(
    theirs: Any, mine: Any, touched: Collection[list[str]], levels: int
) -> Any:
    types = {type(each) for each in (theirs, mine) if each is not ABSENT}
    old, new = _members(theirs, levels), _members(mine, levels)
    if old is None or new is None or len(types) > 1:
        return mine if touched else theirs
    names = (*new, *old) if [] in touched else (*old, *new)
    inside: dict[str, list[list[str]]] = {name: [] for name in names}
    for name, *rest in filter(None, touched):
        inside.setdefault(name, []).append(rest)
    members = {}
    for name, parts in inside.items():
        both = old.get(name, ABSENT), new.get(name, ABSENT)
        member = _value_on_top(*both, parts, 0 if list in types else levels - 1)
        if member is not ABSENT:
            members[name] = member
    if not members and ABSENT in (theirs, mine):
        return ABSENT
    return [*members.values()] if list in types else members
