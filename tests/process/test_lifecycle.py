"""How a server process stops: in order, with every stream and call told."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.drill.running import DrillServer, started
from tests.drill.servers import SERVERS
from tests.process.streaming import Answer, Session, called, listening, stateless

DRAIN_S = 2
LIMITS = {"MCP_LIMITS": json.dumps({"drain": DRAIN_S})}


@contextmanager
def serving(server: str) -> Iterator[DrillServer]:
    """Run a server that the test ends."""
    drill = started(server, LIMITS)
    try:
        yield drill
    finally:
        drill.kill()


def last(answer: Answer) -> dict[str, object]:
    """The last message of an answer that was not cut."""
    return answer.whole().messages[-1]


@pytest.mark.parametrize("server", SERVERS)
def test_stop(server: str) -> None:
    with serving(server) as drill:
        session = Session(drill.url)
        listen = listening(drill.url, toolsListChanged=True)
        standing = session.standing()
        short = called(drill.url, "drill_sleep", seconds=2)
        long = called(drill.url, "drill_sleep", seconds=60)
        thread = called(drill.url, "drill_sleep_sync", seconds=60)
        sessions = session.called("drill_sleep", seconds=60)
        for each in (short, long, thread, sessions):
            # A second of silence is over: the answer has become a stream.
            each.until(lambda answer: answer.raw)

        drill.process.send_signal(signal.SIGTERM)

        assert last(listen)["result"]["resultType"] == "complete"  # type: ignore[index]
        assert standing.whole().messages == []
        (retry,) = standing.field("retry")
        assert 2_000 <= int(retry) <= 5_000
        refused = stateless(drill.url, "tools/list").whole()
        assert refused.status == 503
        assert 2 <= int(refused.headers["retry-after"]) <= 5
        assert last(short)["result"]["content"][0]["text"] == "slept 2 s"  # type: ignore[index]
        for each in (long, thread, sessions):
            assert "stopped before the call was done" in last(each)["error"]["message"]  # type: ignore[index]
        assert drill.process.wait(DRAIN_S + 10) == 0, drill.output


@pytest.mark.parametrize("server", SERVERS)
def test_stop_of_an_idle_process_is_quick(server: str) -> None:
    with serving(server) as drill:
        listen = listening(drill.url, toolsListChanged=True)
        drill.process.send_signal(signal.SIGTERM)
        assert "result" in last(listen)
        assert drill.process.wait(DRAIN_S) == 0, drill.output
