"""Divides JSON into members, so that the changes of two people can be merged.

If each entry of a list has a name or is a text, the entries are members.  Any other
list, such as messages, is one member: its positions shift when an entry is inserted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from mcp_app.admin.editors.json_texts import parse_or_none
from mcp_app.protocol import jsonrpc

SEPARATOR: Final = "\x1f"
"""Stands before each name in the path of a member; no typed name contains it."""
MAX_LEVELS: Final = 2
"""Levels of nested objects and lists; entries of a list are not divided."""
NAMES: Final = ("name", "parameter", "path")
"""An entry of a list is named by the first of these members that it has."""
ABSENT: Final[Any] = object()
"""Stands for a member that is not there."""


def parts_of_json(text: str) -> Mapping[str, object]:
    """Return each member by its path, or the whole text if it is not JSON."""
    value = parse_or_none(text)
    return {"": text.strip()} if value is None else dict(_parts(value, MAX_LEVELS))


def text_on_top(theirs: str, mine: str, touched: Collection[str]) -> str:
    """Return `theirs` with the touched parts of `mine`; `mine` if one is not JSON."""
    values = parse_or_none(theirs), parse_or_none(mine)
    if None in values:
        return mine
    # A path begins with the separator, so the first piece is empty.
    paths = [each.split(SEPARATOR)[1:] for each in touched]
    return jsonrpc.write(_value_on_top(*values, paths, MAX_LEVELS)).decode()


def _parts(value: Any, levels: int, part: str = "") -> Iterator[tuple[str, bytes]]:
    members = _members(value, levels)
    # For an object or a list, compare the names and the order of the members.
    yield part, jsonrpc.canonical(value if members is None else [*members])
    below = levels - 1 if isinstance(value, dict) else 0
    for name, member in (members or {}).items():
        yield from _parts(member, below, f"{part}{SEPARATOR}{name}")


def _members(value: Any, levels: int) -> dict[str, Any] | None:
    """Return the members of a value by name; None if it cannot be divided."""
    if value is ABSENT:
        return {}
    if levels and isinstance(value, dict):
        return value
    if not levels or not isinstance(value, list):
        return None
    members: dict[str, Any] = {}
    for entry in value:
        name = _name_of(entry)
        if not name:
            return None
        # Several filters may have the same field and comparison.
        while name in members:
            name += "+"
        members[name] = entry
    return members


def _name_of(entry: Any) -> str:
    """Return the name that identifies an entry of a list; "" if it has none."""
    if not isinstance(entry, dict):
        return entry if isinstance(entry, str) else ""
    key = next((each for each in NAMES if entry.get(each)), "")
    # A filter with a fixed value has no parameter: use path and comparison.
    keys = ("lookup", "exclude", "unit") if key == "path" else ()
    return " ".join([key, *(str(entry.get(each, "")) for each in (key, *keys))]).strip()


def _value_on_top(
    theirs: Any, mine: Any, touched: Collection[list[str]], levels: int
) -> Any:
    """Return `theirs` with the parts of `mine` whose paths are touched."""
    types = {type(each) for each in (theirs, mine) if each is not ABSENT}
    old, new = _members(theirs, levels), _members(mine, levels)
    if old is None or new is None or len(types) > 1:
        return mine if touched else theirs
    # An empty path means that `mine` changed names or order.
    names = (*new, *old) if [] in touched else (*old, *new)
    paths: dict[str, list[list[str]]] = {name: [] for name in names}
    for name, *inner_path in filter(None, touched):
        paths.setdefault(name, []).append(inner_path)
    members = {}
    for name, inner_paths in paths.items():
        pair = old.get(name, ABSENT), new.get(name, ABSENT)
        member = _value_on_top(*pair, inner_paths, 0 if list in types else levels - 1)
        if member is not ABSENT:
            members[name] = member
    if not members and ABSENT in (theirs, mine):
        return ABSENT
    return [*members.values()] if list in types else members
