from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.drill.prefork import Prefork
from tests.drill.running import ROOT, DrillServer, environment_of, started
from tests.process.streaming import stateless


def said(server: DrillServer) -> object:
    answer = stateless(
        server.url, "tools/call", name="drill_add", arguments={"a": 1, "b": 2}
    )
    return answer.whole().messages[-1]["result"]["structuredContent"]


def test_servers_that_are_killed_and_started_again(tmp_path: Path) -> None:
    database = {"DATABASE_URL": f"sqlite:///{tmp_path}/db.sqlite3"}
    prefork = Prefork(environment_of("uvicorn", database))
    start = partial(started, launch=prefork.launched)
    first, second = start(), start()
    try:
        assert said(first) == said(second) == {"result": 3}
        assert first.process.pid != second.process.pid
        first.kill()
        assert first.process.poll() == 1
        assert said(second) == {"result": 3}
        with pytest.raises(subprocess.TimeoutExpired):
            second.process.wait(0.01)
        first = start(port=first.port)
        assert said(first) == {"result": 3}
        prefork.close()
        # They live on without it.
        assert said(first) == said(second) == {"result": 3}
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(60) == 1
        assert "Traceback" not in first.output
    finally:
        for each in (first, second):
            each.kill()


def test_a_database_must_be_named() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.drill.prefork"],
        cwd=ROOT,
        env=environment_of("uvicorn", {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert "DATABASE_URL is missing" in finished.stderr
