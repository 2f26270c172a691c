"""Which tests show what the specification demands: coverage.csv and docs/coverage.md.

    python -m tests.conformance.demands            figures; 1 if a file is not as drawn
    python -m tests.conformance.demands --write    draw both anew
    python -m tests.conformance.demands --open L-  the rows without test and reason
    python -m tests.conformance.demands --add FILE take over the rows of a list

A test names what it shows: `@pytest.mark.covers("S-BASE-001", ...)`.  The column
`tests` is drawn from those markers, which are read and not run; the column `reason` is
written by hand and kept.  What enforces a demand stands in guards.py.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import django

from tests.apart import ROOT
from tests.conformance.disabling import all_guards

TABLE: Final = Path(__file__).with_name("coverage.csv")
DOCUMENT: Final = ROOT / "docs" / "coverage.md"

MARKER: Final = "pytest.mark.covers"
STRENGTHS: Final = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "FACT")
STATES: Final = ("named", "reasoned", "planned", "open")
COUNTED: Final = ("named", "proved", *STATES[1:])

PLANNED: Final = frozenset(
    {
        "access",
        "apps",
        "identity of who opens an elicitation URL",
        "tasks",
    }
)
"""The parts that a row may wait for."""

RELEASING: Final = frozenset({"deprecated", "optional", "unsupported"})
"""How a reason begins that releases even from a MUST."""

REASONS: Final = RELEASING | {"client", "note", "planned"}
"""How a reason begins, up to the colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One demand; `document` and `tests` hold names with spaces between them."""

    id: str
    strength: str
    document: str
    tests: str = ""
    reason: str = ""

    @property
    def state(self) -> str:
        if self.tests:
            return "named"
        if self.reason.startswith("planned:"):
            return "planned"
        return "reasoned" if self.reason else "open"

    @property
    def binding(self) -> bool:
        """Whether the demand is a MUST or a MUST NOT."""
        return self.strength.startswith("MUST")


COLUMNS: Final = tuple(Row.__dataclass_fields__)


class MisplacedMarkerError(Exception):
    """The marker stands where no single test of a known name can be meant."""


def read_rows(path: Path = TABLE) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def as_csv(rows: Iterable[Row]) -> str:
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([getattr(row, name) for name in COLUMNS] for row in rows)
    return written.getvalue()


def markers(root: Path = ROOT) -> dict[str, list[str]]:
    """Return the tests that name each id, as pytest calls them, in their order.

    Raises `MisplacedMarkerError` where a marker decorates no test.
    """
    found: dict[str, list[str]] = {}
    for path in sorted((root / "tests").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        # Most modules name nothing, and to parse all of them takes seconds.
        if f"@{MARKER}(" in source:
            _read_module(path.relative_to(root).as_posix(), source, found)
    return found


def _read_module(name: str, source: str, found: dict[str, list[str]]) -> None:
    module = ast.parse(source)
    shown = list(_marked(module.body, name))
    written = sum(_is_marker(node) for node in ast.walk(module))
    if len(shown) != written:
        raise MisplacedMarkerError(f"{name}: a marker decorates no test.")
    for test, count in Counter(test for test, _ in shown).items():
        if count > 1:
            # One of them was for the test that followed.
            raise MisplacedMarkerError(f"{test} has {count} markers.")
    for test, call in shown:
        for argument in call.args:
            found.setdefault(ast.literal_eval(argument), []).append(test)


def _marked(body: list[ast.stmt], name: str) -> Iterator[tuple[str, ast.Call]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _marked(node.body, f"{name}::{node.name}")
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _is_marker(decorator):
                    yield f"{name}::{node.name}", decorator


def _is_marker(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "covers"
        and ast.unparse(node.func) == MARKER
    )


def drawn(rows: Iterable[Row], shown: dict[str, list[str]]) -> list[Row]:
    """Return the rows with the tests that the markers name."""
    return [replace(row, tests=" ".join(shown.get(row.id, ()))) for row in rows]


def counted(
    rows: Iterable[Row], head: str, *, keys: Iterable[str], proved: Container[str]
) -> list[str]:
    """Return a table's lines: for each key how many rows are in each state.

    `head` is "strength" or "document"; a row counts for each of its documents.
    `proved` holds the ids that have a guard: they count besides.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        states = [row.state, "all"]
        if row.state == "named" and row.id in proved:
            states.append("proved")
        own = row.document.split() if head == "document" else [row.strength]
        counts.update((key, state) for key in own for state in states)
    columns = [*COUNTED, "all"]
    lines = [_line([head, *columns]), "|---|" + "---:|" * len(columns)]
    for key in keys:
        if counts[key, "all"]:
            lines.append(_line([key, *(str(counts[key, each]) for each in columns)]))
    return lines


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


INTRODUCTION: Final = """\
# Requirements and their tests

[coverage.csv](../tests/conformance/coverage.csv) has a row for each requirement on a server. The
requirements come from the five revisions of the protocol, its extensions (`ext-`), enhancement
proposals (`sep-`) and the documents with which this project began (`seed-`). `python -m
tests.conformance.demands --write` counts the rows for this page. A test compares both files with
the markers of the tests.

A row is **named** if a test names it (`@pytest.mark.covers("id")`), **reasoned** if it gives a
reason why there is nothing to test, **planned** if it waits for a part that does not exist yet, and
**open** otherwise. The first word of a reason is its kind: `deprecated`, `optional` and
`unsupported` are for parts that a server need not have, `client` is for what concerns clients, and
`note` is for anything else. The reason of a MUST or MUST NOT must be of one of the first three
kinds.

A named row is **proved** if [guards.py](../tests/conformance/guards.py) lists the code that
enforces it: a function, or an entry of a table. `python -m tests.conformance.proving --all`
disables these one at a time. Each time, a test that names the row must fail. This proves that the
test depends on the code, not that it checks every word of the requirement. For other named rows
there is no proof beyond the test itself.
"""  # noqa: E501


def as_markdown(rows: list[Row], proved: Container[str]) -> str:
    documents = sorted({name for row in rows for name in row.document.split()})
    binding = [row for row in rows if row.binding]
    parts = [
        INTRODUCTION.rstrip("\n"),
        "## By strength",
        "Proved rows also count as named. FACT counts the rows whose text has none of"
        " MUST, SHOULD and MAY.",
        "\n".join(counted(rows, "strength", keys=STRENGTHS, proved=proved)),
        "## By document",
        "If several documents contain a row, it counts for each of them.",
        "\n".join(counted(rows, "document", keys=documents, proved=proved)),
        "## MUST and MUST NOT by document",
        "\n".join(counted(binding, "document", keys=documents, proved=proved)),
        "## Planned parts",
        "\n".join(_planned(rows)),
    ]
    return "\n\n".join(parts) + "\n"


def _planned(rows: Iterable[Row]) -> list[str]:
    parts = Counter(
        row.reason.partition(": ")[2] for row in rows if row.state == "planned"
    )
    lines = ["| part | rows |", "|---|---:|"]
    return [*lines, *(_line([part, str(parts[part])]) for part in sorted(parts))]


def faults(rows: Iterable[Row], shown: dict[str, list[str]]) -> list[str]:
    """Return what is wrong with what was written by hand, a sentence each."""
    rows = list(rows)
    counts = Counter(row.id for row in rows)
    return [
        *(f"{id} has {n} rows." for id, n in counts.items() if n > 1),
        *(f"{tests[0]} names {id}, of which there is no row."
          for id, tests in shown.items() if id not in counts),
        *(f"{row.id}: {fault}" for row in rows for fault in _row_faults(row)),
    ]  # fmt: skip


def _row_faults(row: Row) -> Iterator[str]:
    kind, _, text = row.reason.partition(": ")
    if row.strength not in STRENGTHS:
        yield f"There is no strength {row.strength!r}."
    if not row.document:
        yield "It names no document."
    if row.reason and not (kind in REASONS and text):
        yield f"The reason {row.reason!r} does not begin with its kind."
    if kind == "planned" and text not in PLANNED:
        yield f"Nothing may wait for {text!r}."
    if row.state == "reasoned" and row.binding and kind not in RELEASING:
        yield f"No {kind!r} releases from a {row.strength}."


def guard_faults(guarded: Iterable[str], rows: list[Row]) -> list[str]:
    """Return what is wrong with the ids that guards name, a sentence each."""
    counts = Counter(guarded)
    tests = {row.id: row.tests for row in rows}
    return [
        *(f"{id} has {n} guards." for id, n in counts.items() if n > 1),
        *(f"{id} has a guard, and no row." for id in counts if id not in tests),
        *(f"{id} has a guard, and no test names it."
          for id in counts if tests.get(id) == ""),
    ]  # fmt: skip


def added(rows: list[Row], path: Path) -> list[Row]:
    """Return the rows and those of a list of requirements that are not among them.

    The list is a CSV file with the columns id, documents and strength, at least.
    """
    known = {row.id for row in rows}
    with path.open(encoding="utf-8", newline="") as file:
        listed = [
            Row(id=row["id"], strength=row["strength"], document=row["documents"])
            for row in csv.DictReader(file)
        ]
    return [*rows, *(row for row in listed if row.id not in known)]


def guarded() -> list[str]:
    """Return the ids that guards name; Django has to be set up."""
    return [id for guard in all_guards() for id in guard.demands]


def write(rows: list[Row]) -> None:
    TABLE.write_text(as_csv(rows), encoding="utf-8", newline="")
    DOCUMENT.write_text(as_markdown(rows, guarded()), encoding="utf-8")


def as_drawn(rows: list[Row]) -> bool:
    """Whether both files are what the rows say."""
    found = (TABLE.read_text(encoding="utf-8"), DOCUMENT.read_text(encoding="utf-8"))
    return found == (as_csv(rows), as_markdown(rows, guarded()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--open", metavar="BEGINNING")
    parser.add_argument("--add", type=Path, metavar="FILE", action="append", default=[])
    return parser.parse_args()


def main() -> int:
    arguments = _arguments()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    rows = read_rows() if TABLE.exists() else []
    for path in arguments.add:
        rows = added(rows, path)
    rows = drawn(rows, markers())
    if arguments.write:
        write(rows)
    if arguments.open is not None:
        for row in rows:
            if row.state == "open" and row.id.startswith(arguments.open):
                sys.stdout.write(f"{row.id:14} {row.strength:10} {row.document}\n")
        return 0
    lines = counted(rows, "strength", keys=STRENGTHS, proved=guarded())
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if as_drawn(rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
