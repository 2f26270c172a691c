"""Which faults are tried: drawn by a seed, spread over rooms and operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from random import Random
from typing import Final

from tests.suite.faults.listing import Fault
from tests.suite.faults.mutation import candidates, compiles

WEIGHTY: Final = ("admin", "auth", "interface", "publishing", "server", "transports")
"""Rooms that have half of all faults: a hole there is one of rights."""


def drawn(
    root: Path, seed: int, count: int, rooms: Collection[str] = ()
) -> list[Fault]:
    """Return so many faults of a tree, of these rooms or of all, each in its turn.

    Raises `ValueError` for a room that has none.
    """
    by_room = _candidates(root)
    if unknown := sorted(set(rooms) - set(by_room)):
        raise ValueError(
            f"No fault can be in {', '.join(unknown)}: "
            f"the rooms are {', '.join(sorted(by_room))}."
        )
    random = Random(seed)  # noqa: S311 - no secret
    if rooms:
        chosen = {each: by_room[each] for each in rooms}
        return list(islice(_in_turn(chosen, root, random), count))
    weighty: dict[str, list[Fault]] = {
        each: by_room.pop(each) for each in WEIGHTY if each in by_room
    }
    half = list(islice(_in_turn(weighty, root, random), count // 2))
    return [*half, *islice(_in_turn(by_room, root, random), count - len(half))]


def _candidates(root: Path) -> dict[str, list[Fault]]:
    by_room: defaultdict[str, list[Fault]] = defaultdict(list)
    for path in sorted(root.glob("mcp_app/**/*.py")):
        if "migrations" not in path.parts:
            file = path.relative_to(root).as_posix()
            for fault in candidates(file, path.read_text()):
                by_room[fault.room].append(fault)
    return dict(by_room)


def _in_turn(
    by_room: dict[str, list[Fault]], root: Path, random: Random
) -> Iterator[Fault]:
    rooms = random.sample(sorted(by_room), len(by_room))
    for turn in zip_longest(*(_mixed(by_room[each], random) for each in rooms)):
        for each in turn:
            if each is not None and compiles((root / each.file).read_text(), each):
                yield each


def _mixed(faults: list[Fault], random: Random) -> list[Fault]:
    """Return faults in an order in which no operator outnumbers the others.

    Of a line that several can change, one stays.
    """
    shuffled = random.sample(faults, len(faults))
    lines = {(each.file, each.line): each for each in reversed(shuffled)}
    by_operator: defaultdict[str, list[Fault]] = defaultdict(list)
    for each in lines.values():
        by_operator[each.operator].append(each)
    operators = random.sample(sorted(by_operator), len(by_operator))
    turns = chain.from_iterable(zip_longest(*(by_operator[each] for each in operators)))
    return [each for each in turns if each is not None]
