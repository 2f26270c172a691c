"""The order of tests, in a pytest of their own."""

from __future__ import annotations

from pathlib import Path

from tests.apart import pytest_apart

CASES = """
import pytest

@pytest.mark.parametrize("number", range(2))
def test_cases(number):
    print(f"\\n{name} {{number}}")
"""
GROUPED = """
import pytest

@pytest.mark.xdist_group("some")
def test_grouped():
    print("\\ngrouped")
"""
ROWS = """
import pytest

@pytest.fixture
def db():
    pass

@pytest.mark.parametrize("number", range(2))
def test_by_fixture(db, number):
    print(f"\\nfixture {number}")

@pytest.mark.django_db
def test_by_mark():
    print("\\nmark")
"""


def test_rows_then_groups_then_what_takes_long(tmp_path: Path) -> None:
    modules = {
        "test_a.py": CASES.format(name="other"),
        "test_b.py": GROUPED,
        "test_c.py": ROWS,
        "tests/test_databases.py": CASES.format(name="long"),
    }
    for name, source in modules.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    ended = pytest_apart(tmp_path, "-p", "tests.suite.ordering", "-qs")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    words = ("fixture", "mark", "grouped", "long", "other")
    lines = [line for line in ended.stdout.splitlines() if line.startswith(words)]
    assert lines == [
        *("fixture 0", "fixture 1", "mark", "grouped"),
        *("long 0", "long 1", "other 0", "other 1"),
    ]
