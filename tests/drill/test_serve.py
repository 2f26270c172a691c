"""The process that serves the fixture set: what it takes and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.drill.calling import Stateless
from tests.drill.ports import claimed, directory_of, free_port
from tests.drill.running import ROOT, started
from tests.drill.serve import PORT_TAKEN, USAGE, WIRE_VIOLATED, Options, UsageError
from tests.drill.servers import SERVERS
from tests.marks import long_cases

OTHERS = [each for each in SERVERS if each not in ("uvicorn", "gunicorn")]
DEFAULTS = Options(port=8765, server="daphne", plain_tools=0, wire=False, report="")

REFUSED: list[tuple[dict[str, str], str]] = [
    ({"PORT": "http"}, "PORT is 'http'"),
    ({"PORT": "65536"}, "up to 65535"),
    ({"PORT": "-1"}, "PORT is '-1'"),
    (
        {"SERVER": "apache"},
        "'daphne' or 'uvicorn' or 'granian' or 'uvicorn-worker' or 'gunicorn'",
    ),
    ({"MOUNT": "middleware"}, "'consumer' or 'view'"),
    ({"NTOOLS": "many"}, "NTOOLS is 'many'"),
    ({"WIRE": "yes"}, "WIRE is 'yes'"),
    ({"JANITOR": "often"}, "JANITOR is 'often'"),
    ({"PATIENCE": "61"}, "PATIENCE is '61'"),
]


def test_defaults() -> None:
    assert Options.read({}) == DEFAULTS
    empty = {"PORT": "", "SERVER": "", "NTOOLS": "", "WIRE": "", "WIRE_REPORT": ""}
    assert Options.read(empty) == DEFAULTS


def test_all_options() -> None:
    environment = {
        "PORT": "9000",
        "SERVER": "granian",
        "NTOOLS": "250",
        "WIRE": "check",
        "WIRE_REPORT": "report.txt",
        "FAULTS": "faults",
        "JANITOR": "60",
        "PATIENCE": "2",
        "ROWS": "there",
    }
    assert Options.read(environment) == Options(
        port=9000,
        server="granian",
        plain_tools=250,
        wire=True,
        report="report.txt",
        faults="faults",
        janitor=60,
        patience=2,
        rows="there",
    )


@pytest.mark.parametrize(("environment", "sentence"), REFUSED)
def test_refused_options(environment: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Options.read(environment)


def serve(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the program where it is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "tests.drill.serve"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_wrong_option_ends_with_a_sentence() -> None:
    finished = serve({"PORT": "x"})
    assert finished.returncode == USAGE
    assert finished.stderr == "PORT is 'x': it must be a number up to 65535.\n"


def test_taken_port_is_refused() -> None:
    port = free_port()
    with claimed(port):
        finished = serve({"PORT": str(port)})
    assert finished.returncode == PORT_TAKEN
    assert f"The port {port} cannot be used" in finished.stderr


@pytest.mark.parametrize("server", ["uvicorn", "gunicorn", *long_cases(*OTHERS)])
def test_serves_until_the_signal_and_leaves_nothing(server: str) -> None:
    drill = started(server, {"NTOOLS": "1"})
    directory = directory_of(drill.port)
    was_there = directory.exists()
    try:
        added = Stateless(drill.url).call("drill_add", a=20, b=22)
        plain = Stateless(drill.url).call("plain_00001", text="hello")
    finally:
        status = drill.stop()
    assert added["structuredContent"] == {"result": 42}
    assert plain["content"] == [{"type": "text", "text": "hello"}]
    assert status == 0, drill.output
    assert was_there
    assert not directory.exists()


def test_killed_server_leaves_no_trace_for_the_next() -> None:
    # It makes its tables and rows itself, as for whoever starts it by hand.
    drill = started("uvicorn", {"ROWS": ""})
    port = drill.port
    Stateless(drill.url).call("drill_ledger", key="before", seconds=0)
    drill.process.kill()
    assert drill.process.wait() == -signal.SIGKILL
    assert directory_of(port).exists()
    again = started("uvicorn", port=port)
    try:
        counted = Stateless(again.url).call("drill_ledger", key="before", seconds=0)
    finally:
        again.stop()
        drill.stop()
    assert counted["structuredContent"] == {"result": 1}


# The program with an application that answers everything with no message at all.
FAULTY = """
import sys
from tests.drill import serve

async def application(scope, receive, send):
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})

serve._application = lambda *_: application
sys.exit(serve.main())
"""


@pytest.mark.parametrize(("wire", "status"), [("check", WIRE_VIOLATED), ("", 0)])
def test_wrong_message_is_told_at_the_end(
    tmp_path: Path, wire: str, status: int
) -> None:
    port, report = free_port(), tmp_path / "report.txt"
    environment = {
        "PORT": str(port),
        "SERVER": "uvicorn",
        "WIRE": wire,
        "WIRE_REPORT": str(report),
    }
    with subprocess.Popen(
        [sys.executable, "-c", FAULTY],
        cwd=ROOT,
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Serving")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=60):
            process.terminate()
        written = process.stderr.read()
    assert process.returncode == status
    assert ("WIRE: GET /mcp" in written) is bool(wire)
    assert report.exists() is bool(wire)
