"""What is counted as refused is refused, each time for its own reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import servers
from benchmarks.client import (
    WrongAnswerError,
    checked,
    close_session,
    open_session,
    send,
)
from benchmarks.messages import call, is_sum
from benchmarks.processes import Process
from benchmarks.refused import of_session, oversized, refuse

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with servers.drill() as process:
        yield process


def test_all_kinds(server: Process) -> None:
    kinds = [*of_session(open_session(server.port)), oversized()]
    assert len({each.what for each in kinds}) == len(kinds)
    for each in kinds:
        refuse(server.port, each)


def test_what_is_answered_in_another_way(server: Process) -> None:
    kind, *_ = of_session(open_session(server.port))
    good = replace(kind, body=call("drill_add").body())
    with pytest.raises(WrongAnswerError, match="no JSON is answered with HTTP 200"):
        refuse(server.port, good)
    with pytest.raises(WrongAnswerError, match="HTTP 400"):
        refuse(server.port, replace(kind, answer=b"-32001"))


def test_a_session_is_closed_once(server: Process) -> None:
    session = open_session(server.port)
    request = call("drill_add", session=session)
    checked(server.port, request, is_sum)
    close_session(server.port, session)
    assert send(server.port, request).status == 404
    with pytest.raises(WrongAnswerError, match="HTTP 404"):
        close_session(server.port, session)
