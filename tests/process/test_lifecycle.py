"""How a server process stops: in order, with every stream and call told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any, Final

import pytest

from tests.drill.running import ROOT, started
from tests.marks import long_cases
from tests.process.programs import program
from tests.process.stopping import CASES
from tests.process.streaming import Answer, Session, called, listening, stateless

pytestmark = pytest.mark.programs

DRAIN_S: Final = 4
SHORT_S: Final = 1.2
"""A call becomes a stream after a second; it has all of the drain for the rest."""
LIMITS: Final = {"MCP_LIMITS": json.dumps({"drain": DRAIN_S})}
DRAINED: Final = ["process drains", "process has drained", "process closes"]


def last(answer: Answer) -> dict[str, Any]:
    return answer.whole().messages[-1]


def lasting(*answers: Answer) -> tuple[Answer, ...]:
    for each in answers:
        each.until(lambda answer: answer.raw)
    return answers


def health(url: str) -> tuple[int, Any]:
    asked = Answer(f"{url}/health", "GET", {}).whole()
    short = Answer(f"{url}/health", "HEAD", {}).whole()
    assert (short.status, short.raw) == (asked.status, b"")
    assert short.headers["content-length"] == str(len(asked.raw))
    return asked.status, json.loads(asked.raw)


@pytest.mark.parametrize(
    "server", ["uvicorn", *long_cases("daphne", "granian", "uvicorn-worker")]
)
def test_stop(server: str) -> None:
    drill = started(server, LIMITS)
    try:
        assert health(drill.url) == (200, {"status": "ok"})
        session = Session(drill.url)
        listen = listening(drill.url, toolsListChanged=True)
        standing = session.standing()
        short, *long = lasting(
            called(drill.url, "drill_sleep", seconds=SHORT_S),
            called(drill.url, "drill_sleep", seconds=60),
            called(drill.url, "drill_sleep_sync", seconds=60),
            session.called("drill_sleep", seconds=60),
        )

        drill.process.send_signal(signal.SIGTERM)

        assert last(listen)["result"]["resultType"] == "complete"
        assert standing.whole().messages == []
        (retry,) = standing.field("retry")
        assert 2_000 <= int(retry) <= 5_000
        refused = stateless(drill.url, "tools/list").whole()
        assert refused.status == 503
        assert 2 <= int(refused.headers["retry-after"]) <= 5
        stopping = {"status": "unavailable", "failing": "stopping"}
        assert health(drill.url) == (503, stopping)
        assert last(short)["result"]["content"][0]["text"] == "slept 1.2 s"
        for each in long:
            assert "stopped before the call was done" in last(each)["error"]["message"]
        assert drill.process.wait(DRAIN_S + 60) == 0, drill.output
    finally:
        drill.kill()


@pytest.mark.parametrize(
    "server", ["gunicorn", *long_cases("daphne", "uvicorn", "granian")]
)
def test_interrupted_command(server: str) -> None:
    """As Ctrl+C does it: every process of the command gets the signal at once."""
    with program(server, LIMITS) as running:
        listens = [listening(running.url, toolsListChanged=True) for _ in range(3)]
        short, long = lasting(
            called(running.url, "drill_sleep", seconds=SHORT_S),
            called(running.url, "drill_sleep", seconds=60),
        )

        os.killpg(running.process.pid, signal.SIGINT)

        for each in listens:
            assert "result" in last(each)
        assert last(short)["result"]["content"][0]["text"] == "slept 1.2 s"
        assert "stopped before the call was done" in last(long)["error"]["message"]
        assert running.process.wait(DRAIN_S + 60) == 0, running.output


def test_nothing_is_waited_for_where_nothing_runs() -> None:
    drill = started("uvicorn", {"MCP_LIMITS": json.dumps({"drain": 30})})
    try:
        listen = listening(drill.url, toolsListChanged=True)
        drill.process.send_signal(signal.SIGTERM)
        assert "result" in last(listen)
        assert drill.process.wait(60) == 0, drill.output
    finally:
        drill.kill()


HELD_BACK: Final = ["process drains", "another signal", *DRAINED[1:], "server stops"]
STOPS_TWICE: Final = [*DRAINED, "server stops", "server stops"]


def drained(name: str) -> list[str]:
    return [each.replace("process", name) for each in DRAINED]


OUTPUTS: Final[dict[str, tuple[list[str], int]]] = {
    "asyncio": (HELD_BACK, 0),
    "uvloop": (HELD_BACK, 0),
    "python": (STOPS_TWICE, 0),
    "python on uvloop": (STOPS_TWICE, 0),
    "default": (DRAINED, -signal.SIGTERM),
    "ignored": ([], 0),
    "hurry": (
        [
            *("process drains", "server gets SIGTERM"),
            *("server gets SIGINT", "process closes"),
        ],
        0,
    ),
    "thread": (["handler SIG_DFL"], 0),
    "twice": ([*drained("second"), "server stops"], 0),
    "beside": (drained("second"), 0),
    "late": (["server stops"], 0),
    "fork": (
        [
            *(*drained("child"), "child stops", "child ended by 7"),
            *(*drained("parent"), "parent stops"),
        ],
        0,
    ),
}


@pytest.fixture(scope="module")
def written() -> dict[str, tuple[list[str], int]]:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.process.stopping"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (finished.stderr, finished.returncode) == ("", 0)
    found, said = {}, list[str]()
    for line in finished.stdout.splitlines():
        name, _, status = line.partition(": ")
        if name in CASES:
            found[name] = said, int(status)
            said = []
        else:
            said.append(line)
    return found


@pytest.mark.xdist_group("stopping")
@pytest.mark.parametrize("case", CASES)
def test_order(written: dict[str, tuple[list[str], int]], case: str) -> None:
    assert written[case] == OUTPUTS[case]
