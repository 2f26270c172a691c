"""The answer of another site as a tree: clients get the ticked parts."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

MAX_LEVELS: Final = 3
MAX_MEMBERS: Final = 60
MAX_PARTS: Final = 12
MAX_ENTRIES: Final = 20
"""The first entries of a list, whose members the tree shows."""
MAX_SAMPLE: Final = 40
MAX_PATH: Final = 200


@dataclass(slots=True)
class Part:
    """A part of the answer that clients may get, or a member of one.

    The `path` of a part begins at the answer; "" is the whole answer. The `path` of a
    member begins at its part. `more` counts the members without a tick: there are too
    many, or a path cannot express their name.
    """

    path: str
    sample: str = ""
    ticked: bool = True
    members: list[Part] = field(default_factory=list)
    more: int = 0

    @property
    def name(self) -> str:
        """The last name of the path."""
        return visible(self.path.rpartition(".")[2])


# -- from an answer --------------------------------------------------------------------


def parts_of_answer(answer: object) -> list[Part]:
    """Return the parts of a JSON answer; the first part is the whole answer."""
    containers = islice(_containers("", answer, MAX_LEVELS), MAX_PARTS)
    return [_part_of(path, value) for path, value in containers]


def _containers(path: str, value: object, levels: int) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict | list):
        return
    yield path, value
    for name, inner in value.items() if isinstance(value, dict) else ():
        if levels > 1 and _is_plain(name):
            yield from _containers(_join_names(path, name), inner, levels - 1)


def _part_of(path: str, value: object) -> Part:
    levels = MAX_LEVELS - len(path.split(".") if path else ())
    part, members_left = Part(path, _sample_of(value)), MAX_MEMBERS
    waiting = deque([(part, "", value)])
    while waiting:
        holder, above, members = waiting.popleft()
        for name, inner in _members_of(members, is_part=holder is part).items():
            inner_path = _join_names(above, name)
            if not members_left or not _is_plain(name) or len(inner_path) > MAX_PATH:
                part.more += 1
                continue
            members_left -= 1
            member = Part(inner_path, _sample_of(inner))
            holder.members.append(member)
            if isinstance(inner, dict) and len(inner_path.split(".")) < levels:
                waiting.append((member, inner_path, inner))
    return part


def _members_of(value: object, *, is_part: bool) -> JsonObject:
    """Return the members of an object, or of the first entries of a list."""
    if not isinstance(value, list) or not is_part:
        return value if isinstance(value, dict) else {}
    # Reversed: the value of a member is that of the first entry that has it.
    entries = [each for each in value[:MAX_ENTRIES] if isinstance(each, dict)]
    return {name: inner for entry in reversed(entries) for name, inner in entry.items()}


def _is_plain(name: str) -> bool:
    """Whether a path can express a name."""
    return bool(name) and "." not in name


def _join_names(above: str, name: str) -> str:
    return f"{above}.{name}" if above else name


def _sample_of(value: object) -> str:
    """Return how a value looks, in a few characters."""
    if isinstance(value, dict):
        count = len(value)
        text = ngettext("an object with %d member", "an object with %d members", count)
        return text % count
    if isinstance(value, list):
        count = len(value)
        return ngettext("a list of %d entry", "a list of %d entries", count) % count
    text = value if isinstance(value, str) else jsonrpc.write(value).decode()
    cut = visible(text[:MAX_SAMPLE]) + ("…" if len(text) > MAX_SAMPLE else "")
    return f"“{cut}”" if isinstance(value, str) else cut


# -- names and ticks -------------------------------------------------------------------


def names_of_parts(parts: Iterable[Part]) -> str:
    """Return the names that a page sends back, as JSON."""
    return json.dumps(
        {part.path: [each.path for each in _all(part.members)] for part in parts}
    )


def parts_of_names(text: str) -> list[Part]:
    """Return the parts that a page has sent back, without samples."""
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(names, dict):
        return []
    parts = []
    for path, members in names.items():
        part, members_of = Part(path), dict[str, list[Part]]()
        for each in members if isinstance(members, list) else ():
            if isinstance(each, str) and each not in members_of:
                member = Part(each)
                members_of[each] = member.members
                # Trees have at most this depth: sent names must not make a deeper one.
                above = each.rpartition(".")[0] if each.count(".") < MAX_LEVELS else ""
                members_of.get(above, part.members).append(member)
        parts.append(part)
    return parts


def tick(parts: list[Part], take: str, keep: Collection[str]) -> None:
    """Tick what a config takes and keeps; add parts that the answer lacks."""
    lacks = _("not in this answer")
    part = next((each for each in parts if each.path == take), None)
    if part is None:
        part = Part(take, lacks)
        parts.append(part)
    for other in parts:
        other.ticked = other is part
    paths = {each.path: each for each in _all(part.members)}
    part.members += [Part(each, lacks) for each in keep if each not in paths]
    # Tick the kept paths, and also what contains them or is inside them.
    for each in _all(part.members):
        each.ticked = not keep or any(
            f"{path}.".startswith(f"{each.path}.")
            or f"{each.path}.".startswith(f"{path}.")
            for path in keep
        )


def paths_to_keep(part: Part, ticked: Collection[str]) -> list[str] | None:
    """Return the paths to keep; [] for all, None for nothing.

    If all members of a member are ticked, it is kept whole, with later members, too.
    """
    for each in _all(part.members):
        each.ticked = each.path in ticked
    if all(each.ticked for each in _all(part.members)):
        return []
    return [*_keep_paths(part.members)] or None


def _keep_paths(members: Iterable[Part]) -> Iterator[str]:
    for member in members:
        if member.ticked and all(inner.ticked for inner in _all(member.members)):
            yield member.path
        elif member.ticked:
            yield from _keep_paths(member.members)


def _all(members: Iterable[Part]) -> Iterator[Part]:
    for member in members:
        yield member
        yield from _all(member.members)
