from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks import processes
from benchmarks.processes import ServerFailedError, free_port, serving

SERVER = """
import http.server, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(405)
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""


def test_a_server_is_measured_and_ended_with_its_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processes, "STOP_SECONDS", 0.2)
    port = free_port()
    command = [sys.executable, "-c", SERVER]
    with serving(command, port, {"PORT": str(port)}) as server:
        tree = server.tree()
        assert len(tree) == 2
        assert server.resident_kib() > 1_000
        assert server.cpu_seconds() > 0
        assert server.threads() == 2
        assert server.descriptors() >= 6
    assert not any(_runs(pid) for pid in tree)


def test_a_server_gets_only_the_environment_that_it_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://somebody")
    command = [sys.executable, "-c", "import os, sys; sys.exit(str([*os.environ]))"]
    with (
        pytest.raises(ServerFailedError) as failed,
        serving(command, free_port(), {"GIVEN": "yes"}),
    ):
        pass
    assert "'GIVEN'" in str(failed.value)
    assert "DATABASE_URL" not in str(failed.value)


def _runs(pid: int) -> bool:
    """Return whether the process runs; one that nobody has waited for yet does not."""
    for _ in range(50):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        if ") Z " in stat:
            return False
        time.sleep(0.1)
    os.kill(pid, 9)
    return True
