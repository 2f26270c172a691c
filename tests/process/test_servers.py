"""What each server can, and what none does: the table of docs/reliability.md, tried."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.marks import long_cases
from tests.process.programs import Command, program
from tests.process.raw_requests import (
    ODD,
    UPGRADE,
    connected,
    post_head,
    status,
    statuses,
)
from tests.process.streaming import (
    PATIENCE_S,
    Session,
    called,
    listening,
    stateless,
    stateless_request,
)

pytestmark = pytest.mark.programs

LIMITS: Final = {"MCP_LIMITS": json.dumps({"drain": 5})}
WORKERS: Final = 2
STREAMS: Final = 4
AT_ONCE: Final = 6
PIECE: Final = 40
NOTICED_S: Final = 60 + PATIENCE_S
"""uvicorn waits so long for a worker that is killed while its health is asked for."""


@pytest.mark.parametrize(
    "server", ["gunicorn", *long_cases("daphne", "uvicorn", "granian")]
)
def test_what_a_server_can(server: str) -> None:
    with program(server, LIMITS) as running:
        assert b"200 OK" in in_pieces(running.url)
        # To no server does a client that has sent all it will still listen.
        assert half_closed(running.url) == b""
        assert statuses(running.url) == ODD
        assert status(running.url, *UPGRADE) == 403
        assert "Traceback" not in running.output
        killed = set()
        if server != "daphne":
            session = Session(running.url)
            killed = one_is_killed(running, session)
            all_are_renewed(running, session)
        listens = [listening(running.url, toolsListChanged=True) for _ in range(2)]
        running.process.send_signal(signal.SIGTERM)
        for each in listens:
            assert "result" in each.whole().messages[-1]
        assert running.process.wait(PATIENCE_S) == 0, running.output
        assert set(running.workers()) <= killed


def one_is_killed(running: Command, session: Session) -> set[str]:
    """The others serve on, its sessions too, and another takes its place."""
    eventually(lambda: serves(running, session) and len(live(running)) == WORKERS)
    before = running.workers()
    listens = [listening(running.url, toolsListChanged=True) for _ in range(STREAMS)]
    victim, pid = before.popitem()
    os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: serves(running, session) and len(set(live(running)) - {victim}) == 2,
        NOTICED_S,
    )
    for each in listens:
        assert not each.ended or each.error is not None
        if not each.ended:
            each.leave()
    assert set(before) < set(running.workers())
    return {victim}


def all_are_renewed(running: Command, session: Session) -> None:
    """At SIGHUP each worker is replaced by another, and nothing that is open is cut."""
    before = live(running)
    listens = [listening(running.url, toolsListChanged=True) for _ in range(STREAMS)]
    calls = [called(running.url, "drill_sleep", seconds=1.5) for _ in range(STREAMS)]
    for each in calls:
        each.until(lambda answer: answer.raw)
    running.process.send_signal(signal.SIGHUP)
    eventually(
        lambda: serves(running, session) and not any(map(alive, before.values()))
    )
    assert not set(before) & set(running.workers())
    assert serves(running, session)
    for each in listens:
        assert "result" in each.whole().messages[-1]
    for each in calls:
        content = each.whole().messages[-1]["result"]["content"]
        assert content[0]["text"] == "slept 1.5 s"


def live(running: Command) -> dict[str, int]:
    return {key: pid for key, pid in running.workers().items() if alive(pid)}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def serves(running: Command, session: Session) -> bool:
    """Make requests, each by a new connection; tell whether all were served.

    A process that drains says when to come back.  What waits to be accepted by one
    that ends in this moment is reset.  Several at once, that no process takes them all:
    each begins with its first request.
    """
    begun = [stateless(running.url, "tools/list") for _ in range(AT_ONCE)]
    begun.append(session.request("ping"))
    for answer in begun:
        answer.until(lambda each: each.ended)
        assert answer.status in (200, 503) or isinstance(answer.error, ConnectionError)
        assert answer.status != 503 or "retry-after" in answer.headers
    return all(answer.status == 200 for answer in begun)


def eventually(true: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def in_pieces(url: str) -> bytes:
    head, body = _call(url, seconds=0)
    chunks = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
    with connected(url) as client:
        client.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for chunk in [*chunks, b""]:
            client.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        return client.recv(65_536)


def half_closed(url: str) -> bytes:
    head, body = _call(url, seconds=0.3)
    with connected(url) as client:
        client.sendall(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        client.shutdown(socket.SHUT_WR)
        return client.recv(65_536)


def _call(url: str, seconds: float) -> tuple[bytes, bytes]:
    headers, body = stateless_request(
        "tools/call", name="drill_sleep", arguments={"seconds": seconds}
    )
    return post_head(url, headers), body


@pytest.mark.long
def test_a_worker_that_ends_after_a_number_of_requests() -> None:
    """The application is not told: what is open is cut."""
    options = ["--max-requests", "10", "--timeout", "3"]
    with program("gunicorn", LIMITS, *options) as running:
        listen = listening(running.url, toolsListChanged=True)

        def cut() -> bool:
            if not listen.ended:
                asked(running.url)
            return listen.ended

        eventually(cut)
        assert listen.error is not None


def asked(url: str) -> bool:
    return stateless(url, "tools/list").until(lambda each: each.ended).status == 200


@pytest.mark.long
def test_granian_ends_with_one_of_its_workers_unless_told_to_start_another() -> None:
    with program("granian", LIMITS, "--no-respawn-failed-workers") as running:
        # One that is told to stop before it has started does not hear it.
        eventually(lambda: asked(running.url) and len(running.workers()) == WORKERS)
        os.kill(next(iter(running.workers().values())), signal.SIGKILL)
        assert running.process.wait(PATIENCE_S) == 1, running.output
