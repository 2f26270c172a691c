"""Servers that one process forks: each as if it were a program of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.drill.calling import Stateless
from tests.drill.ports import claimed, free_port
from tests.drill.prefork import Forked, Prefork, PreforkEnded
from tests.drill.running import ROOT, DrillServer, inherited, running, started
from tests.drill.serve import PORT_TAKEN, USAGE
from tests.process.streaming import stateless

PATIENCE_S: Final = 120
NO_ROWS: Final = {"ROWS": "there", "DATABASE_URL": "sqlite://:memory:"}
"""For a server that is asked nothing."""


@pytest.fixture(scope="module")
def prefork() -> Iterator[Prefork]:
    """One of this module's own, which begins again if a test has ended it."""
    with closing(Prefork(inherited)) as prefork:
        yield prefork


@pytest.fixture
def output(tmp_path: Path) -> Path:
    path = tmp_path / "output"
    path.touch()
    return path


def added(server: DrillServer) -> object:
    return Stateless(server.url).call("drill_add", a=1, b=2)["structuredContent"]


def test_servers_that_are_killed_and_started_again() -> None:
    first, second = started("uvicorn"), started("uvicorn")
    try:
        assert added(first) == added(second) == {"result": 3}
        assert first.process.pid != second.process.pid
        first.kill()
        assert first.process.poll() == -signal.SIGKILL
        assert added(second) == {"result": 3}
        with pytest.raises(subprocess.TimeoutExpired):
            second.process.wait(0.01)
        first = started("uvicorn", port=first.port)
        assert added(first) == {"result": 3}
        assert first.stop() == 0
        assert "Traceback" not in first.output
    finally:
        for each in (first, second):
            each.kill()


def test_each_has_its_own_database_and_settings() -> None:
    with (
        running("uvicorn", {"MCP_COERCE": "false"}) as strict,
        running("uvicorn") as usual,
    ):
        for url in (strict, usual):
            counted = Stateless(url).call("drill_ledger", key="own", seconds=0)
            assert counted["structuredContent"] == {"result": 1}
        refused, coerced = (
            Stateless(url).call("drill_add", a="1", b=2) for url in (strict, usual)
        )
    assert refused["isError"] is True
    assert coerced["structuredContent"] == {"result": 3}


def test_what_it_declares_depends_on_its_environment() -> None:
    with running("uvicorn", {"LEDGER": "bound"}) as bound, running("uvicorn") as usual:
        templates = [
            stateless(url, "resources/templates/list").whole().messages[-1]["result"]
            for url in (bound, usual)
        ]
    listed = ["ledger://{key}" in json.dumps(each) for each in templates]
    assert listed == [True, False]


def test_what_cannot_be_read_again_makes_it_a_program() -> None:
    server = started("uvicorn", {"DEBUG": "true"})
    try:
        assert added(server) == {"result": 3}
        command = Path(f"/proc/{server.process.pid}/cmdline").read_text()
        assert "tests.drill.serve" in command
    finally:
        assert server.stop() == 0


@pytest.mark.long
def test_a_port_that_is_taken(prefork: Prefork, output: Path) -> None:
    port = free_port()
    with claimed(port):
        process = prefork.launched({**inherited(), "PORT": str(port)}, output)
        assert process.wait(PATIENCE_S) == process.poll() == PORT_TAKEN
    assert f"The port {port} cannot be used" in output.read_text()


@pytest.mark.long
def test_an_error_has_its_traceback(prefork: Prefork, output: Path) -> None:
    wrong = {**inherited(), **NO_ROWS, "PORT": "0", "MCP_LIMITS": "{"}
    assert prefork.launched(wrong, output).wait(PATIENCE_S) == 1
    assert "The environment variable MCP_LIMITS has the value" in output.read_text()


def test_signals_and_streams_are_as_usual() -> None:
    server = started("uvicorn", NO_ROWS)
    pid = server.process.pid
    try:
        streams = [os.readlink(f"/proc/{pid}/fd/{each}") for each in range(3)]
        assert streams == [os.devnull, str(server._path), str(server._path)]
        assert os.getpgid(pid) == os.getpgid(0)
        assert not ignored(pid) & ~ignored(os.getpid())
    finally:
        assert server.stop() == 0


def ignored(pid: int) -> int:
    """Return the signals that a process ignores, a bit for each."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    [mask] = [each for each in lines if each.startswith("SigIgn:")]
    return int(mask.removeprefix("SigIgn:"), 16)


def serving(prefork: Prefork, output: Path) -> Forked:
    given = {**inherited(), **NO_ROWS, "PORT": "0", "SERVER": "uvicorn"}
    process = prefork.launched(given, output)
    end = time.monotonic() + PATIENCE_S
    while "Serving" not in output.read_text():
        assert time.monotonic() < end, output.read_text()
        time.sleep(0.02)
    return process


@pytest.mark.long
def test_servers_end_with_it_and_it_with_its_input(
    prefork: Prefork, output: Path
) -> None:
    process = serving(prefork, output)
    prefork.close()
    assert not Path(f"/proc/{process.pid}").exists()
    other = prefork.launched({**inherited(), "PORT": "x"}, output)
    assert other.wait(PATIENCE_S) == USAGE


# A process of the tests that is killed while a server of its runs.
KILLED: Final = f"""
import os, signal
from tests.drill.running import started
print(started("uvicorn", {NO_ROWS}).process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.long
def test_no_server_outlives_a_process_that_is_killed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", KILLED],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    end = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{int(ended.stdout)}").exists():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.long
def test_who_has_ended_answers_no_more(prefork: Prefork, output: Path) -> None:
    process = serving(prefork, output)
    assert prefork._process is not None
    prefork._process.kill()
    process.kill()
    with pytest.raises(PreforkEnded, match="-9"):
        process.wait(PATIENCE_S)
    prefork.close()
