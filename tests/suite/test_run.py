"""Whole runs of small suites: what they print, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.suite.marks import long_cases
from tests.suite.processes import processes_of_runs
from tests.suite.rooms import ROOT

PATIENCE_S = 60

MAIN = """
import os, signal, sys
from pathlib import Path
from tests.suite import budget, processes, run, unsteady, yardstick, __main__
from tests.suite.parts import Part

folder = Path(os.environ["FOLDER"])
# Whoever runs the tests may have had it ignored, by `nohup` say.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
yardstick.ROUNDS = 1_000
run.NEWS_S = 0.1
processes.PATIENCE_S = 3
run.RESULTS = folder / "results"
unsteady.ROOT = folder
unsteady.JOURNAL = folder / "results" / "unsteady"
budget.TABLE = folder / "budget.csv"

def shell(name, script):
    return Part(name, ["sh", "-c", script])

def tests(*options):
    return Part(
        "tests",
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        has_tests=True,
    )

os.chdir(folder)
sys.argv[1:] = ["test"]
__main__.FORMS["test"] = lambda: {stages}
sys.exit(__main__.main())
"""
UNSTEADY = """
from pathlib import Path

def test_it():
    tried = Path("tried")
    again = tried.exists()
    tried.touch()
    assert again, "not the first time"
"""
BROKEN = "def test_it():\n    assert False\n"
GOOD = "def test_it():\n    pass\n"
ENDS = "import os\ndef test_it():\n    os._exit(0)\n"


def start(folder: Path, stages: str, **environment: str) -> subprocess.Popen[str]:
    (folder / "tests" / "room").mkdir(parents=True, exist_ok=True)
    (folder / "budget.csv").write_text("room,programs,seconds\nroom,0,10\n")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "SUITE_", "ALLOW_"))
    }
    return subprocess.Popen(
        [sys.executable, "-c", MAIN.replace("{stages}", stages)],
        env={
            **inherited,
            "FOLDER": str(folder),
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p xdist -p tests.suite.records --rootdir=.",
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ran(folder: Path, stages: str, **environment: str) -> tuple[int, list[str]]:
    process = start(folder, stages, **environment)
    output, _ = process.communicate(timeout=PATIENCE_S)
    return process.returncode, output.splitlines()


def write(folder: Path, source: str) -> None:
    (folder / "tests" / "room").mkdir(parents=True)
    (folder / "tests" / "room" / "test_it.py").write_text(source)


def test_all_is_well(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    status, lines = ran(
        tmp_path, "(((shell('one', 'echo hello'), tests()), (shell('two', ''),)),)"
    )
    assert status == 0, lines
    assert {"== one", "hello", "== two", "== tests"} <= set(lines)
    assert lines[-1] == "1 passed, 0 failed, 0 skipped"
    assert any(" of 1,580 processor seconds" in line for line in lines)
    named = [line.split()[2] for line in lines if len(line.split()) > 2]
    assert {"one", "two", "tests", "room"} <= set(named)


@pytest.mark.long
def test_stages_follow_each_other_and_lanes_do_not(tmp_path: Path) -> None:
    wait = "while ! test -e there; do sleep 0.05; done; echo met"
    status, lines = ran(
        tmp_path,
        f"(((shell('a', '{wait}'),), (shell('b', 'touch there'),)),"
        " ((shell('c', 'cat there'),),))",
    )
    assert (status, "met" in lines) == (0, True)
    order = [line for line in lines if line.startswith("== ")]
    assert (sorted(order[:2]), order[2:]) == (["== a", "== b"], ["== c"])


@pytest.mark.long
def test_a_second_run_in_a_checkout_does_not_begin(tmp_path: Path) -> None:
    wait = "touch there; while ! test -e over; do sleep 0.05; done"
    with start(tmp_path, f"(((shell('a', '{wait}'),),),)") as first:
        while not (tmp_path / "there").exists():
            time.sleep(0.05)
        status, lines = ran(tmp_path, "(((shell('b', 'echo second'),),),)")
        (tmp_path / "over").touch()
        output, _ = first.communicate(timeout=PATIENCE_S)
    assert (status, first.returncode) == (1, 0), output
    assert lines == [
        f"Another run of the suite writes to {tmp_path / 'results'}."
        " Wait for its end, or use another checkout."
    ]


def test_a_part_that_fails_is_named_and_the_rest_runs(tmp_path: Path) -> None:
    status, lines = ran(
        tmp_path, "(((shell('one', 'exit 3'), shell('two', 'echo hello')),),)"
    )
    assert status == 1
    assert {"one ended with 3.", "hello"} <= set(lines)


@pytest.mark.parametrize(
    ("source", "allowed", "status", "last"),
    [
        (UNSTEADY, "", 1, "FAILED tests/room/test_it.py::test_it"),
        *long_cases(
            (
                UNSTEADY,
                "1",
                0,
                "UNSTEADY, to be mended: tests/room/test_it.py::test_it",
            ),
            (BROKEN, "1", 1, "FAILED tests/room/test_it.py::test_it"),
        ),
    ],
)
def test_a_failed_test(
    tmp_path: Path, source: str, allowed: str, status: int, last: str
) -> None:
    write(tmp_path, source)
    found, lines = ran(tmp_path, "(((tests(),),),)", ALLOW_UNSTEADY=allowed)
    assert (found, last in lines) == (status, True), lines
    journal = tmp_path / "results" / "unsteady"
    assert journal.exists() is (status == 0)
    if status == 0:
        assert "not the first time" in journal.read_text()


@pytest.mark.long
def test_a_test_that_ends_its_worker_is_named(tmp_path: Path) -> None:
    write(tmp_path, ENDS)
    status, lines = ran(tmp_path, "(((tests('-n', '1'),),),)")
    assert status == 1
    assert "FAILED tests/room/test_it.py::test_it" in lines


@pytest.mark.long
def test_a_test_that_hangs_is_named(tmp_path: Path) -> None:
    write(tmp_path, "import time\ndef test_it():\n    time.sleep(600)\n")
    limit = "'faulthandler_timeout=2', '-o', 'faulthandler_exit_on_timeout=true'"
    status, lines = ran(tmp_path, f"(((tests('-n', '1', '-o', {limit}),),),)")
    assert status == 1
    assert "FAILED tests/room/test_it.py::test_it" in lines


@pytest.mark.long
def test_a_test_that_ends_pytest_is_no_pass(tmp_path: Path) -> None:
    write(tmp_path, ENDS)
    status, lines = ran(tmp_path, "(((tests(),),),)")
    assert status == 1
    assert "tests: 1 of 1 tests did not end." in lines


@pytest.mark.long
def test_a_room_above_its_programs(tmp_path: Path) -> None:
    write(tmp_path, "import subprocess\ndef test_it():\n    subprocess.run(['true'])\n")
    status, lines = ran(tmp_path, "(((tests(),),),)")
    assert status == 1
    assert "room started 1 programs; tests/budget.csv allows 0." in lines


def test_what_is_missing_is_named_once(tmp_path: Path) -> None:
    skip = "    import pytest; pytest.skip('There is no Redis here.')\n"
    write(tmp_path, f"def test_it():\n{skip}def test_other():\n{skip}")
    status, lines = ran(tmp_path, "(((tests(),),),)")
    assert status == 0
    (line,) = [line for line in lines if "NOT RUN" in line]
    assert line.startswith("NOT RUN, 2 tests:")
    assert "There is no Redis here." in line


def runs_named(folder: Path) -> set[int]:
    """Return the processes of runs in a folder."""
    return {
        pid
        for pid, _ in processes_of_runs()
        if f"FOLDER={folder}".encode()
        in (Path("/proc") / str(pid) / "environ").read_bytes().split(b"\0")
    }


ENDLESS = """
import subprocess, tempfile
from pathlib import Path

def test_it():
    Path("folder").write_text(tempfile.gettempdir())
    subprocess.run(["sleep", "600"])
"""


def begun(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a run whose test sleeps; return it with its temporary folder."""
    write(folder, ENDLESS)
    process = start(folder, "(((tests('-n', '1'),), (shell('s', 'sleep 600'),)),)")
    written = folder / "folder"
    deadline = time.monotonic() + PATIENCE_S
    while not (written.exists() and written.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    temporary = Path(written.read_text())
    assert temporary.is_dir()
    return process, temporary


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *long_cases(signal.SIGINT, signal.SIGHUP)]
)
def test_an_interrupt_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    process, temporary = begun(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    assert not temporary.exists()
    assert runs_named(tmp_path) == set()


@pytest.mark.long
def test_the_next_run_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    process, temporary = begun(tmp_path)
    process.kill()
    process.wait()
    assert runs_named(tmp_path)
    assert temporary.exists()
    (tmp_path / "tests" / "room" / "test_it.py").write_text(GOOD)
    status, lines = ran(tmp_path, "(((tests(),),),)")
    assert status == 0, lines
    assert not temporary.exists()
    assert runs_named(tmp_path) == set()
    if process.stdout is not None:
        process.stdout.close()
