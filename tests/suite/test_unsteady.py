"""Tests that are run again, in a pytest of their own beside their room."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import pytest

from tests.suite import unsteady
from tests.suite.marks import long_cases
from tests.suite.records import Record
from tests.suite.unsteady import Listed, is_unsteady, listed, note, overdue

COUNTING = """
from pathlib import Path
import pytest

def test_it():
    tried = Path("tried")
    times = int(tried.read_text()) + 1 if tried.exists() else 1
    tried.write_text(str(times))
    {body}

def test_beside():
    Path("beside").touch()
"""
TEST = "tests/room/test_it.py::test_it"


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(unsteady, "ROOT", tmp_path)
    (tmp_path / "tests" / "room").mkdir(parents=True)
    return tmp_path


def judged(suite: Path, body: str) -> bool:
    source = COUNTING.format(body=body)
    (suite / "tests" / "room" / "test_it.py").write_text(source)
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p xdist -p tests.suite.records --rootdir=.",
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    return is_unsteady(TEST, environment)


@pytest.mark.long
def test_five_runs_that_pass(suite: Path) -> None:
    """Each beside the others of its room, from the first on."""
    assert judged(suite, 'assert Path("beside").exists()')
    assert (suite / "tried").read_text() == "5"


@pytest.mark.parametrize(
    ("body", "tries"),
    [
        ("pytest.skip('not now')", "1"),
        *long_cases(
            ("import os; os._exit(0)", "1"),
            ("import atexit, os; atexit.register(os._exit, 3)", "1"),
            ("assert times % 5", "5"),
            ("assert False", "1"),
        ),
    ],
)
def test_one_that_does_not_pass_decides(suite: Path, body: str, tries: str) -> None:
    assert not judged(suite, body)
    assert (suite / "tried").read_text() == tries


@pytest.mark.long
def test_what_hangs_does_not_pass(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsteady, "PATIENCE_S", 3)
    assert not judged(suite, "import time; time.sleep(60)")


def test_the_journal(tmp_path: Path) -> None:
    journal = tmp_path / "results" / "unsteady"
    for name in ("a", "b"):
        note(Record(f"tests/test_it.py::test_{name}", "failed", text="why"), journal)
    lines = journal.read_text().split("\n\n")
    assert [line.split()[-2:] for line in lines[:2]] == [
        ["tests/test_it.py::test_a", "why"],
        ["tests/test_it.py::test_b", "why"],
    ]


# -- those whose cause is not known yet ----------------------------------------------

ENTRY = '[[unsteady]]\ntest = "a::b"\nsince = 2026-01-31\nknown = "nothing"\n'


def test_the_list_is_read(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(ENTRY)
    assert listed(tmp_path / "list.toml") == [
        Listed("a::b", date(2026, 1, 31), "nothing")
    ]


def test_the_list_has_at_most_five(tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text(ENTRY * 6)
    with pytest.raises(ValueError, match="6 tests, more than 5"):
        listed(tmp_path / "list.toml")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("2026-01-31", "9999-01-01", "9999-01-01 of a::b has not come yet"),
        ("2026-01-31", '"2026-01-31"', "needs a test, a date"),
        ('known = "nothing"', "", "needs a test, a date"),
        ("[[unsteady]]", "[[unsteady]", "Expected"),
    ],
)
def test_a_wrong_entry(tmp_path: Path, old: str, new: str, why: str) -> None:
    (tmp_path / "list.toml").write_text(ENTRY.replace(old, new))
    with pytest.raises(ValueError, match=why):
        listed(tmp_path / "list.toml")


def test_our_list_can_be_read() -> None:
    root = Path(__file__).resolve().parents[2]
    for each in listed(unsteady.LISTED):
        assert (root / each.test.partition("::")[0]).exists()


@pytest.mark.parametrize(("day", "late"), [(14, 0), (15, 1)])
def test_what_is_listed_for_too_long(day: int, late: int) -> None:
    entries = [Listed("a::b", date(2026, 1, 1), "nothing")]
    sentences = overdue(entries, date(2026, 1, 1 + day))
    assert len(sentences) == late
    assert all("a::b" in each and "2026-01-01" in each for each in sentences)
