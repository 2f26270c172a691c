"""A second try: what it forgives, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import once_more

BROKEN = "def test_it():\n    assert False\n"
UNSTEADY = """
from pathlib import Path

def test_it():
    tried = Path("tried")
    again = tried.exists()
    tried.touch()
    assert again
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # What this suite is told is not for that one.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    once_more.FAILED.parent.mkdir(parents=True)
    return tmp_path


def fail(*names: str) -> None:
    once_more.FAILED.write_text(json.dumps(dict.fromkeys(names, True)))


@pytest.mark.parametrize(("source", "ends"), [(UNSTEADY, 0), (BROKEN, 1)])
def test_what_passes_alone_is_named(
    suite: Path, capfd: pytest.CaptureFixture[str], source: str, ends: int
) -> None:
    (suite / "test_some.py").write_text(source)
    (suite / "tried").touch()
    fail("test_some.py::test_it")
    assert once_more.main(1) == ends
    named = "UNSTEADY, to be mended:\n  test_some.py::test_it" in capfd.readouterr().out
    assert named is (ends == 0)


def test_the_group_that_ran_it_is_not_part_of_its_name(suite: Path) -> None:
    fail("test_some.py::test_it@browser", "test_some.py::test_it[a@b]@SDK on clusters")
    fail_alone = ["test_some.py::test_it", "test_some.py::test_it[a@b]"]
    assert once_more.failed() == fail_alone
    fail("test_some.py::test_it[a@b]")
    assert once_more.failed() == ["test_some.py::test_it[a@b]"]


@pytest.mark.parametrize("status", [0, 2, 3, 4, 5])
def test_only_failed_tests_run_again(suite: Path, status: int) -> None:
    (suite / "test_some.py").write_text("def test_it():\n    pass\n")
    fail("test_some.py::test_it")
    assert once_more.main(status) == status


def test_many_failures_are_no_chance(suite: Path) -> None:
    (suite / "test_some.py").write_text("def test_it():\n    pass\n")
    fail(*(f"test_some.py::test_it[{n}]" for n in range(once_more.MOST + 1)))
    assert once_more.main(1) == 1


def test_a_run_that_named_no_test_has_no_second(suite: Path) -> None:
    assert once_more.main(1) == 1
