"""What a pytest of its own notes of its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apart import pytest_apart
from tests.suite.marks import long_cases
from tests.suite.records import Cost, Record, by_room, read, read_problems, room_of

SOURCE = """
import os, subprocess, sys, time
import pytest
from tests.suite.programs import starting_for_all

@pytest.fixture
def broken():
    yield
    raise ValueError("the fixture is broken")

def test_passes():
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"])
    with starting_for_all():
        subprocess.run(["true"])
    if not os.fork():
        os._exit(0)
    os.wait()
    os.system("true")

def test_fails():
    assert 1 == 2

def test_skips():
    pytest.skip("there is no Redis")

def test_fails_at_its_end(broken):
    pass

@pytest.mark.xdist_group("some")
def test_of_a_group():
    pass
"""
CRASHES = "\nimport os\ndef test_crashes():\n    os._exit(1)\n"
WORKERS = ("-n", "2", "--dist", "loadgroup")


def records_of(
    folder: Path, source: str, *options: str, **environment: str
) -> dict[str, Record]:
    (folder / "tests" / "room").mkdir(parents=True, exist_ok=True)
    (folder / "tests" / "room" / "test_it.py").write_text(source)
    file = folder / "records"
    plugins = ("xdist", "tests.suite.ordering", "tests.suite.records")
    named = [option for plugin in plugins for option in ("-p", plugin)]
    environment["SUITE_RECORDS"] = str(file)
    pytest_apart(folder, *named, "-q", *options, measured=False, **environment)
    number, records = read(file)
    assert number == len(records)
    assert all(each.test.partition("::")[0].endswith(".py") for each in records)
    return {each.test.partition("::")[2]: each for each in records}


@pytest.mark.parametrize("options", [(), *long_cases((WORKERS,))])
def test_outcomes_and_costs(tmp_path: Path, options: tuple[str, ...]) -> None:
    records = records_of(tmp_path, SOURCE, *options)
    assert {name: record.outcome for name, record in records.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skips": "skipped",
        "test_fails_at_its_end": "failed",
        "test_of_a_group": "passed",
    }
    assert "assert 1 == 2" in records["test_fails"].text
    assert "there is no Redis" in records["test_skips"].text
    assert "the fixture is broken" in records["test_fails_at_its_end"].text
    costs = {name: record.cost for name, record in records.items()}
    assert costs["test_passes"].programs == 3
    assert costs["test_fails"].programs == 0
    # Its child had to add up ten million numbers.
    assert costs["test_passes"].processor > 0.05
    assert {record.room for record in records.values()} == {"room"}


SHARED_PROGRAM = """
import subprocess, sys
import pytest

@pytest.fixture(scope="session")
def program():
    ends = subprocess.PIPE
    busy = "sum(range(20_000_000)); input()"
    with subprocess.Popen([sys.executable, "-c", busy], stdin=ends) as program:
        yield
        program.communicate(b"over")

def test_first(program): pass
def test_last(): pass
"""


@pytest.mark.parametrize("options", [(), *long_cases((("-n", "1"),))])
def test_the_last_is_not_charged_for_what_all_shared(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    costs = records_of(tmp_path, SHARED_PROGRAM, *options)
    # The program had to add up twenty million numbers.
    assert costs.keys() == {"test_first", "test_last"}
    assert sum(record.cost.processor for record in costs.values()) < 0.1


def test_a_test_that_ends_its_worker_has_failed(tmp_path: Path) -> None:
    records = records_of(tmp_path, SOURCE + CRASHES, *WORKERS, "-p", SCHEDULING)
    assert records["test_crashes"].outcome == "failed"
    assert "crashed" in records["test_crashes"].text


SCHEDULING = "tests.suite.scheduling"


@pytest.mark.long
def test_the_group_is_not_part_of_a_name(tmp_path: Path) -> None:
    assert "test_of_a_group" in records_of(tmp_path, SOURCE, *WORKERS)


@pytest.mark.parametrize(
    ("test", "room"),
    [
        ("tests/admin/calls/test_log.py::test_a[x::y]", "admin"),
        ("tests/test_asgi.py::test_a", "tests"),
        ("/elsewhere/tests/wire/test_events.py", "wire"),
    ],
)
def test_rooms(test: str, room: str) -> None:
    assert room_of(test) == room


def test_costs_of_rooms() -> None:
    records = [
        Record("tests/b/test_it.py::test_a", "passed", Cost(1, 2, 3)),
        Record("tests/a/test_it.py::test_a", "failed", Cost(1, 1, 1)),
        Record("tests/b/deep/test_it.py::test_a", "passed", Cost(0.5, 0, 4)),
    ]
    assert by_room(records) == {"a": Cost(1, 1, 1), "b": Cost(1.5, 2, 7)}


@pytest.mark.long
def test_a_pytest_that_a_test_runs_is_not_recorded(tmp_path: Path) -> None:
    source = """
import os
def test_it():
    assert "SUITE_RECORDS" not in os.environ
"""
    for number, options in enumerate(((), WORKERS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert records_of(folder, source, *options)["test_it"].outcome == "passed"


def test_what_is_just_being_written_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "records"
    file.write_text('{"collected": 2}\n{"test": "tests/a.p')
    assert read(file) == (2, [])


def test_no_file_yet(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == (0, [])


# pytest-xdist hears nothing of what a worker does when its last test is over.
ENDING = """
import os

class Late:
    def __del__(self):
        raise ValueError("late")

def pytest_{hook}(config=None):
    if "PYTEST_XDIST_WORKER" in os.environ:
        {what}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("hook", "what", "why"),
    [
        ("sessionfinish", "os._exit(0)", "after its tests, gw0: Not properly"),
        ("sessionfinish", "raise ValueError(1)", "after its tests, gw0: ValueError"),
        ("unconfigure", "raise ValueError(2)", "after its tests, gw0: ValueError"),
        ("unconfigure", "import pytest; pytest.fail('3')", "after its tests, gw0: 3"),
        ("sessionfinish", "a = Late(); a.a = a; del a", "after its tests, gw0: Pyt"),
    ],
)
def test_a_worker_that_ends_badly(
    tmp_path: Path, hook: str, what: str, why: str
) -> None:
    source = ENDING.format(hook=hook, what=what)
    (tmp_path / "conftest.py").write_text(source)
    records = records_of(
        tmp_path, "def test_it():\n    pass\n", "-n", "1", "-W", "error"
    )
    assert records["test_it"].outcome == "passed"
    assert read_problems(tmp_path / "records")[0].startswith(why)


@pytest.mark.long
def test_what_ends_well_or_in_a_test_is_no_bad_end(tmp_path: Path) -> None:
    scheduling = ("-p", "tests.suite.scheduling")
    records = records_of(tmp_path, SOURCE + CRASHES, *scheduling, *WORKERS)
    assert records["test_crashes"].outcome == "failed"
    assert read_problems(tmp_path / "records") == []


@pytest.mark.parametrize("options", [(), *long_cases((WORKERS,))])
def test_what_cannot_be_collected_is_named_beside_what_runs(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    broken = {
        "tests/room/test_broken.py": "import nosuchmodule\n",
        "tests/room/test_left_out.py": "import pytest\n"
        "pytest.skip('there is no Redis', allow_module_level=True)\n",
        "tests/room/deep/conftest.py": "import nosuchmodule\n",
        "tests/room/deep/test_deep.py": "def test_deep():\n    pass\n",
    }
    for name, text in broken.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    source = "def test_it():\n    pass\n"
    late = ("-p", "tests.suite.require_all", "--continue-on-collection-errors")
    records = records_of(tmp_path, source, *late, *options, REQUIRE_ALL="1")
    assert records["test_it"].outcome == "passed"
    assert sorted(set(read_problems(tmp_path / "records"))) == [
        "tests/room/deep cannot be collected.",
        "tests/room/test_broken.py cannot be collected.",
        "tests/room/test_left_out.py cannot be collected.",
    ]


@pytest.mark.long
def test_a_path_may_have_the_sign_of_a_group(tmp_path: Path) -> None:
    (tmp_path / "tests/a@b").mkdir(parents=True)
    (tmp_path / "tests/a@b/test_other.py").write_text("def test_other():\n    pass\n")
    assert {"test_other", "test_of_a_group"} < records_of(
        tmp_path, SOURCE, *WORKERS
    ).keys()


SHARING = """
import pytest

@pytest.fixture(scope="SCOPE")
def broken():
    yield
    raise ValueError("the fixture is broken")

def test_first(broken):
    pass

def test_last(broken):
    pass
"""


OF_A_CLASS = """
import pytest

class TestIt:
    @pytest.fixture(scope="class")
    def shared(self):
        shared = []
        yield shared
        assert not shared

    def test_first(self, shared):
        shared.append(1)

    def test_last(self, shared):
        pass

def test_afterwards():
    pass
"""


def test_what_fails_as_a_class_ends(tmp_path: Path) -> None:
    """What the last test would do alone says nothing of what the first one did."""
    records = records_of(tmp_path, OF_A_CLASS)
    failed = [each for each in records.values() if each.outcome == "failed"]
    assert [(each.test.rpartition("::")[2], each.at_end) for each in failed] == [
        ("test_last", True)
    ]


@pytest.mark.parametrize(
    ("scope", "failed"),
    [
        ("module", {"test_last": True}),
        ("session", {"test_last": True}),
        ("function", {"test_first": False, "test_last": True}),
    ],
)
def test_what_fails_as_shared_fixtures_end(
    tmp_path: Path, scope: str, failed: dict[str, bool]
) -> None:
    """The fixtures of the last one may have been its own, or shared."""
    records = records_of(tmp_path, SHARING.replace("SCOPE", scope))
    at_end = {
        name: each.at_end for name, each in records.items() if each.outcome == "failed"
    }
    assert at_end == failed
