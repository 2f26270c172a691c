"""The table of what is shown: drawn from the markers, complete, and honest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.demands import (
    MisplacedMarkerError,
    Row,
    added,
    as_csv,
    as_drawn,
    as_markdown,
    counted,
    drawn,
    faults,
    guard_faults,
    guarded,
    markers,
    read_rows,
)

MOST_OPEN = 0
"""Rows with neither test nor reason: may only shrink, and goes when it is 0."""

TAKEN = {"S": 731, "L": 855}
"""How many rows the two lists of requirements have: none may get lost."""


@pytest.fixture(scope="module")
def shown() -> dict[str, list[str]]:
    return markers()


def test_the_table_is_what_the_markers_say(shown: dict[str, list[str]]) -> None:
    assert as_drawn(drawn(read_rows(), shown)), (
        "Run `python -m tests.conformance.demands --write`."
    )


def test_the_table_has_no_faults(shown: dict[str, list[str]]) -> None:
    assert faults(read_rows(), shown) == []


def test_what_has_a_guard_has_a_row_and_a_test() -> None:
    assert guard_faults(guarded(), read_rows()) == []


def test_no_row_was_opened_again() -> None:
    still_open = [row.id for row in read_rows() if row.state == "open"]
    assert len(still_open) == MOST_OPEN, "Say the smaller number in MOST_OPEN."


def test_no_row_was_lost() -> None:
    ids = [row.id for row in read_rows()]
    for list_, number in TAKEN.items():
        assert sum(id.startswith(f"{list_}-") for id in ids) >= number


def test_a_named_test_is_one_that_pytest_runs(shown: dict[str, list[str]]) -> None:
    # What `on_*.py` holds is run by a test of its folder, or of test_databases.py.
    names = {name for tests in shown.values() for name in tests}
    files = {Path(name.partition("::")[0]).name for name in names}
    assert all(file.startswith(("test_", "on_")) for file in files)


# -- how it is drawn ---------------------------------------------------------------

SHOWN_AND_NOT = """
import pytest

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.covers("A-1", "A-2")
async def test_both(n): ...

class TestClass:
    @pytest.mark.covers("A-2")
    def test_one(self): ...

def test_nothing(): ...
"""


def in_tests(root: Path, source: str) -> Path:
    (root / "tests" / "deep").mkdir(parents=True)
    (root / "tests" / "deep" / "test_it.py").write_text(source)
    return root


def test_markers(tmp_path: Path) -> None:
    assert markers(in_tests(tmp_path, SHOWN_AND_NOT)) == {
        "A-1": ["tests/deep/test_it.py::test_both"],
        "A-2": [
            "tests/deep/test_it.py::test_both",
            "tests/deep/test_it.py::TestClass::test_one",
        ],
    }


@pytest.mark.parametrize(
    "source",
    [
        '@pytest.mark.covers("A-1")\ndef helper(): ...\n',
        '@pytest.mark.covers("A-1")\nclass TestIt: ...\n',
        '@pytest.mark.covers("A-1")\n@pytest.mark.covers("A-2")\ndef test(): ...\n',
        '@pytest.mark.covers("A-1")\ndef test(): ...\nmark = pytest.mark.covers("A")\n',
    ],
)
def test_a_marker_of_no_single_test(tmp_path: Path, source: str) -> None:
    with pytest.raises(MisplacedMarkerError, match=r"tests/deep/test_it\.py"):
        markers(in_tests(tmp_path, source))


def row(**members: str) -> Row:
    return Row(**{"id": "A-1", "strength": "MUST", "document": "one"} | members)


def test_what_was_written_by_hand_is_kept() -> None:
    kept = row(tests="gone.py::test", reason="note: since then")
    assert drawn([kept], {"A-1": ["a.py::test", "b.py::test"]}) == [
        row(tests="a.py::test b.py::test", reason="note: since then")
    ]
    assert drawn([kept], {})[0].tests == ""


@pytest.mark.parametrize(
    ("members", "state"),
    [
        ({}, "open"),
        ({"reason": "planned: tasks"}, "planned"),
        ({"reason": "optional: there is no such part"}, "reasoned"),
        ({"reason": "optional: there is no such part", "tests": "a.py::b"}, "named"),
    ],
)
def test_states(members: dict[str, str], state: str) -> None:
    assert row(**members).state == state


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"strength": "WISH"}, "There is no strength 'WISH'."),
        ({"document": ""}, "It names no document."),
        ({"reason": "because", "strength": "MAY"},
         "The reason 'because' does not begin with its kind."),
        ({"reason": "planned: later"}, "Nothing may wait for 'later'."),
        ({"reason": "note: so"}, "No 'note' releases from a MUST."),
        ({"reason": "client: so", "strength": "MUST NOT"},
         "No 'client' releases from a MUST NOT."),
    ],
)  # fmt: skip
def test_faults_of_a_row(members: dict[str, str], fault: str) -> None:
    assert faults([row(**members)], {}) == [f"A-1: {fault}"]


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"reason": "planned: tasks"},
        {"reason": "deprecated: so"},
        {"reason": "note: so", "strength": "FACT"},
        {"reason": "note: so", "tests": "a.py::test"},
    ],
)
def test_no_faults(members: dict[str, str]) -> None:
    assert faults([row(**members)], {"A-1": ["a.py::test"]}) == []


def test_faults_of_ids() -> None:
    assert faults([row(), row()], {"A-2": ["a.py::test"]}) == [
        "A-1 has 2 rows.",
        "a.py::test names A-2, of which there is no row.",
    ]


def test_faults_of_guards() -> None:
    rows = [row(tests="a.py::test"), row(id="A-2")]
    assert guard_faults(["A-1", "A-2", "A-3", "A-1"], rows) == [
        "A-1 has 2 guards.",
        "A-3 has a guard, and no row.",
        "A-2 has a guard, and no test names it.",
    ]
    assert guard_faults(["A-1"], rows) == []


def test_figures() -> None:
    rows = [
        row(document="one two", tests="a.py::test"),
        row(document="two", tests="a.py::test", id="A-2"),
        row(document="two", reason="planned: tasks", strength="MAY", id="A-3"),
    ]
    # What no test names is not proved.
    proved = ("A-1", "A-3")
    keys = ("one", "two", "three")
    assert counted(rows, "document", keys=keys, proved=proved) == [
        "| document | named | proved | reasoned | planned | open | all |",
        "|---|---:|---:|---:|---:|---:|---:|",
        "| one | 1 | 1 | 0 | 0 | 0 | 1 |",
        "| two | 2 | 1 | 0 | 1 | 0 | 3 |",
    ]
    assert "| MAY | 0 | 0 | 0 | 1 | 0 | 1 |" in as_markdown(rows, proved)
    assert "| tasks | 1 |" in as_markdown(rows, proved)


def test_there_and_back(tmp_path: Path) -> None:
    rows = [row(reason='note: "quoted", with a comma'), row(id="A-2")]
    (tmp_path / "table.csv").write_text(as_csv(rows))
    assert read_rows(tmp_path / "table.csv") == rows


def test_a_list_is_taken_over_once(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(
        "id,documents,section,strength\nA-1,one,x,MAY\nA-2,one two,x,MUST\n"
    )
    assert added([row()], path) == [row(), row(id="A-2", document="one two")]
