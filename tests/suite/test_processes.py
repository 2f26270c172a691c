"""Programs that a run starts, and that none of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.invalidation.redis_servers import RedisServer
from tests.newcomer.programs import shell_environment
from tests.suite import template_databases
from tests.suite.owners import owned_name
from tests.suite.processes import (
    RUN,
    descendants,
    end_programs_of_killed_runs,
    processes_of_runs,
)
from tests.suite.rooms import ROOT

PATIENCE_S = 30

RUNNING = """
import sys
from pathlib import Path
from tests.suite.processes import Programs, adopt_orphans
adopt_orphans()
programs = Programs()
{body}
"""
ORPHAN = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "sum(range(20_000_000))"])
"""
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(["sleep", "600"])
print("ready", flush=True)
time.sleep(600)
"""


def run(folder: Path, body: str) -> str:
    """Return what a program prints that starts others; it has the names below."""
    done = subprocess.run(
        [sys.executable, "-c", RUNNING.format(body=body), ORPHAN, STUBBORN],
        cwd=ROOT,
        env={**os.environ, "OUTPUT": str(folder / "output")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_what_an_orphan_needs_is_counted(tmp_path: Path) -> None:
    body = """
import os, time
command = [sys.executable, "-c", sys.argv[1]]
pid = programs.start(command, os.environ, Path(os.environ["OUTPUT"]))
ended = []
while len(ended) < 2:
    one = programs.ended()
    ended += [] if one is None else [one]
    time.sleep(0.01)
parent, orphan = ended
print(parent.pid == pid, parent.status, orphan.processor > 0.1)
"""
    assert run(tmp_path, body) == "True 0 True\n"


def test_what_may_not_be_killed_is_left(tmp_path: Path) -> None:
    """Nobody waits for another user's program for ever."""
    body = """
import os
from tests.suite import processes
command = [sys.executable, "-c", "import time; time.sleep(2)"]
programs.start(command, os.environ, Path(os.environ["OUTPUT"]))
processes.PATIENCE_S = 0.2
processes._signal = lambda *_: None
programs.end()
print(len(processes.descendants(os.getpid())))
"""
    assert run(tmp_path, body) == "1\n"


def test_what_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    body = """
import os, time
from tests.suite import processes
from tests.suite.processes import descendants
processes.PATIENCE_S = 0.5
output = Path(os.environ["OUTPUT"])
programs.start([sys.executable, "-c", sys.argv[2]], os.environ, output)
while "ready" not in output.read_text():
    time.sleep(0.01)
print(len(descendants(os.getpid())))
programs.end()
print(len(descendants(os.getpid())))
"""
    assert run(tmp_path, body) == "2\n0\n"


def test_a_status(tmp_path: Path) -> None:
    body = """
import os, time
output = Path(os.environ["OUTPUT"])
programs.start(["sh", "-c", "echo written; echo wrong >&2; exit 3"], {}, output)
while (ended := programs.ended()) is None:
    time.sleep(0.01)
print(ended.status, output.read_text().split())
"""
    assert run(tmp_path, body) == "3 ['written', 'wrong']\n"


@pytest.fixture
def name_of_an_ended_run() -> str:
    """Return the name of a process that has ended."""
    source = "from tests.suite.owners import owned_name; print(owned_name())"
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_programs_of_a_killed_run(name_of_an_ended_run: str) -> None:
    names = (name_of_an_ended_run, owned_name())
    left, own = (
        subprocess.Popen(["sleep", "600"], env={**os.environ, RUN: name})
        for name in names
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        # Until the program is there, it has the environment of its parent.
        while not {left.pid, own.pid} <= {pid for pid, _ in processes_of_runs()}:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        end_programs_of_killed_runs()
        assert left.wait(PATIENCE_S) == -signal.SIGKILL
        assert own.poll() is None
    finally:
        for each in (left, own):
            each.kill()
            each.wait()


def test_descendants() -> None:
    child = subprocess.Popen(["sh", "-c", "sleep 600 & wait"])
    try:
        deadline = time.monotonic() + PATIENCE_S
        while len(descendants(child.pid)) < 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        (grandchild,) = descendants(child.pid)
        assert {child.pid, grandchild} <= set(descendants(os.getpid()))
        os.kill(grandchild, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


def test_programs_with_little_of_our_environment_belong_to_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who looks for what a killed run left finds them, too."""
    monkeypatch.setenv(RUN, "name")
    assert shell_environment()[RUN] == "name"
    assert RUN.startswith(template_databases.INHERITED)


def test_a_redis_of_a_test_belongs_to_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes over its environment, unless it is told not to."""
    monkeypatch.setenv(RUN, name := owned_name())
    redis = RedisServer()
    redis.start()
    try:
        assert name in {run for _, run in processes_of_runs()}
    finally:
        redis.kill()
