"""A fault of one line, and lists of them as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import Final

from tests.suite.rooms import room

NEAR: Final = 15
"""Lines that others may have added or removed above a fault since it was listed."""
OWN_ROOM: Final = ("conf",)
"""Modules at the top of mcp_app/ that are rooms by themselves."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of a file, a path from the root, and what stands there instead."""

    file: str
    line: int
    operator: str
    before: str
    after: str

    @property
    def room(self) -> str:
        """The room of the app, or "top"."""
        stem = Path(self.file).stem
        return room(self.file) or (stem if stem in OWN_ROOM else "top")

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line}  {self.operator}\n"
            f"  - {self.before.strip()}\n  + {self.after.strip()}"
        )


def planted(source: str, fault: Fault) -> str | None:
    """Return the source with the fault, or None where it does not apply.

    Its line must be there once: in the file, or else near its number.
    """
    lines = source.split("\n")
    at = [number for number, line in enumerate(lines, 1) if line == fault.before]
    if len(at) > 1:
        at = [number for number in at if abs(number - fault.line) <= NEAR]
    if len(at) != 1:
        return None
    lines[at[0] - 1] = fault.after
    return "\n".join(lines)


def write(path: Path, faults: Iterable[Fault]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(asdict(each))}\n" for each in faults))


def read(path: Path) -> list[Fault]:
    """Return a list; of each entry only file, before and after must be there.

    Raises `KeyError`, `TypeError` and `ValueError` for what is no such entry.
    """
    return [_fault(json.loads(line)) for line in path.read_text().splitlines()]


def _fault(entry: dict[str, str]) -> Fault:
    path = PurePath(entry["file"])
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} is no path from the root of the checkout.")
    return Fault(
        entry["file"],
        int(entry.get("line", 0)),
        entry.get("operator", "as listed"),
        entry["before"],
        entry["after"],
    )


def plant(root: Path, faults: Iterable[Fault]) -> Iterator[tuple[Fault, str]]:
    """Write the first fault of each room into a tree.

    Yield each with "planted", or why it was not.
    """
    rooms: set[str] = set()
    for fault in faults:
        path = root / fault.file
        source = planted(path.read_text(), fault) if path.exists() else None
        if source is None:
            yield fault, "does not apply any more"
        elif fault.room in rooms:
            yield fault, "left out: its room has one"
        else:
            rooms.add(fault.room)
            path.write_text(source)
            yield fault, "planted"
