"""The order of tests, and which of them are measured, in a pytest of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apart import pytest_apart

CASES = """
import coverage
import pytest

def measured():
    return coverage.Coverage.current() is not None

@pytest.mark.parametrize("number", range({cases}))
def test_cases(number):
    print(f"{{number}} {{measured()}}")

def test_alone():
    print(f"alone {{measured()}}")
"""
GROUPED = """
import coverage
import pytest

@pytest.mark.xdist_group("some")
def test_grouped():
    print(f"grouped {coverage.Coverage.current() is not None}")
"""


ROWS = """
import coverage
import pytest

@pytest.fixture
def db():
    pass

def said(number):
    print(f"rows {number} {coverage.Coverage.current() is not None}")

@pytest.mark.parametrize("number", range(5))
def test_by_fixture(db, number):
    said(number)

@pytest.mark.django_db
@pytest.mark.parametrize("number", range(5))
def test_by_mark(number):
    said(number)
"""


def said(folder: Path) -> list[str]:
    """Run a pytest that is measured, and return what its tests printed."""
    ended = pytest_apart(folder, "-p", "tests.ordering", "-qs", measured=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = (line.lstrip(".") for line in ended.stdout.splitlines())
    return [line for line in lines if line.endswith(("True", "False"))]


@pytest.mark.parametrize(
    ("cases", "measured", "others"),
    [(1, "0", ""), (2, "01", ""), (3, "012", ""), (6, "025", "134")],
)
def test_the_first_the_middle_and_the_last_case_are_measured(
    tmp_path: Path, cases: int, measured: str, others: str
) -> None:
    (tmp_path / "test_it.py").write_text(CASES.format(cases=cases))
    assert said(tmp_path) == [
        *(f"{number} True" for number in measured),
        "alone True",
        *(f"{number} False" for number in others),
    ]


def test_what_drives_programs_runs_between(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(GROUPED)
    (tmp_path / "test_b.py").write_text(CASES.format(cases=4))
    driving, long = tmp_path / "browser", tmp_path / "tests"
    for folder, module in ((driving, "test_c.py"), (long, "test_databases.py")):
        folder.mkdir()
        (folder / module).write_text(CASES.format(cases=1))
    assert said(tmp_path) == [
        *("0 True", "1 True", "3 True", "alone True"),
        "grouped False",
        # The long ones, and then as they were found: a folder comes before files.
        *("0 False", "alone False"),
        *("0 False", "alone False"),
        "2 False",
    ]


def test_tests_with_rows_are_measured_and_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(ROWS)
    (tmp_path / "test_b.py").write_text(CASES.format(cases=4))
    assert said(tmp_path) == [
        *(f"rows {number} True" for number in range(5)),
        *(f"rows {number} True" for number in range(5)),
        *("0 True", "1 True", "3 True", "alone True", "2 False"),
    ]


def test_nothing_is_measured_where_nobody_asks(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CASES.format(cases=1))
    ended = pytest_apart(tmp_path, "-p", "tests.ordering", "-q")
    assert ended.returncode == 0, ended.stdout
