"""What the specification demands, and the tests that show it: coverage.csv.

    python -m tests.conformance.demands    count its rows for docs/coverage.md

The table is written by hand; docs/coverage.md says what it holds.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import django

from tests.apart import ROOT
from tests.conformance.disabling import all_guards

TABLE: Final = Path(__file__).with_name("coverage.csv")
DOCUMENT: Final = ROOT / "docs" / "coverage.md"
FIGURES: Final = "## By strength"
"""From this heading on, the document is drawn."""
COUNTED: Final = ("named", "proved", "reasoned", "planned", "all")

STRENGTHS: Final = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "FACT")
RELEASING: Final = ("deprecated", "optional", "unsupported", "planned")
"""How a reason begins that releases even from a MUST."""
REASONS: Final = (*RELEASING, "client", "note")
PLANNED: Final = ("apps", "identity of who opens an elicitation URL")
"""The parts that a row may wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One demand; `document` and `tests` hold names with spaces between them."""

    id: str
    strength: str
    document: str
    tests: str = ""
    reason: str = ""

    @property
    def binding(self) -> bool:
        return self.strength.startswith("MUST")


def read_rows() -> list[Row]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def guarded() -> list[str]:
    return [id for guard in all_guards() for id in guard.demands]


def is_there(test: str) -> bool:
    path, *names = test.split("::")
    source = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else None
    return source is not None and all(
        name.lower().startswith("test")
        and re.search(rf"^ *(async def|def|class) {name}\b", source, re.MULTILINE)
        for name in names
    )


def faults(rows: list[Row], guarded: Iterable[str]) -> list[str]:
    """Return what is wrong with the rows and the ids of guards, a sentence each."""
    named = {row.id for row in rows if row.tests}
    rows_of, guards_of = Counter(row.id for row in rows), Counter(guarded)
    return [
        *(f"{row.id}: {fault}" for row in rows for fault in _row_faults(row)),
        *(f"{id} has {n} rows." for id, n in rows_of.items() if n > 1),
        *(f"{id} has {n} guards." for id, n in guards_of.items() if n > 1),
        *(f"{id} has a guard, and no test." for id in guards_of if id not in named),
    ]


def _row_faults(row: Row) -> Iterator[str]:
    kind, _, text = row.reason.partition(": ")
    if row.strength not in STRENGTHS:
        yield f"There is no strength {row.strength!r}."
    if not row.document:
        yield "It names no document."
    if not (row.tests or row.reason):
        yield "It has neither a test nor a reason."
    elif row.reason and not (kind in REASONS and text):
        yield f"The reason {row.reason!r} does not begin with its kind."
    elif row.binding and not row.tests and kind not in RELEASING:
        yield f"No {kind!r} releases from a {row.strength}."
    if kind == "planned" and text not in PLANNED:
        yield f"Nothing may wait for {text!r}."
    tests = row.tests.split()
    yield from (f"There is no {test}." for test in tests if not is_there(test))


def drawn(document: str, rows: list[Row], proved: Container[str]) -> str:
    """Return the document with the figures of today; `proved` has the ids of guards."""
    documents = sorted({name for row in rows for name in row.document.split()})
    parts = (
        document.partition(FIGURES)[0] + FIGURES,
        _figures(rows, STRENGTHS, proved),
        "## By document",
        _figures(rows, documents, proved),
        "## MUST and MUST NOT by document",
        _figures([row for row in rows if row.binding], documents, proved),
    )
    return "\n\n".join(parts) + "\n"


def _figures(rows: Iterable[Row], keys: Iterable[str], proved: Container[str]) -> str:
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        kind = "planned" if row.reason.startswith("planned:") else "reasoned"
        states = ["all", "named" if row.tests else kind]
        states += ["proved"] if row.id in proved else []
        own = (row.strength, *row.document.split())
        counts.update((key, state) for key in own for state in states)
    lines = [("", *COUNTED), ("---", *["---:"] * len(COUNTED))]
    for key in keys:
        if counts[key, "all"]:
            lines.append((key, *(str(counts[key, each]) for each in COUNTED)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    text = drawn(DOCUMENT.read_text("utf-8"), read_rows(), guarded())
    DOCUMENT.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
