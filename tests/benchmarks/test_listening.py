"""Streams that are told something are told it once, and nobody else is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from benchmarks import servers
from benchmarks.client import WrongAnswerError, checked, open_session
from benchmarks.listening import Audience, standing
from benchmarks.messages import call, stateless
from benchmarks.processes import Process

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[Process]:
    with servers.drill() as process:
        yield process


def listens(server: Process, what: str) -> bytes:
    params = {"notifications": {f"{what}ListChanged": True}}
    return stateless("subscriptions/listen", params).raw(server.port)


def change(server: Process) -> None:
    """Let a tool say that the list of tools has changed."""
    request = call("test_trigger_tool_change", {})
    checked(server.port, request, lambda result: not result.get("isError"))


def test_those_are_told_who_want_to_hear(server: Process) -> None:
    audience = Audience()
    session = open_session(server.port)
    wanting = [listens(server, "tools"), standing(server.port, session)]
    with (
        audience.joined(server.port, wanting) as told,
        audience.joined(server.port, [listens(server, "prompts")]) as others,
    ):
        assert all(each.open for each in [*told, *others])
        audience.quiet(0.1)
        change(server)
        assert len(audience.told(told)) == 2
        audience.quiet(0.1)


def test_what_is_told_to_somebody_else_voids_a_run(server: Process) -> None:
    audience = Audience()
    with (
        audience.joined(server.port, [listens(server, "tools")]),
        audience.joined(server.port, [listens(server, "prompts")]) as others,
    ):
        change(server)
        with pytest.raises(WrongAnswerError, match="came where it must not"):
            audience.told(others)


def test_what_nobody_changed_voids_a_run(server: Process) -> None:
    audience = Audience()
    with audience.joined(server.port, [listens(server, "tools")]):
        change(server)
        with pytest.raises(WrongAnswerError, match="Told what nobody changed"):
            audience.quiet(30)


def test_a_stream_that_ends_voids_a_run() -> None:
    audience = Audience()
    with ExitStack() as stack:
        with servers.drill() as process:
            request = listens(process, "tools")
            stack.enter_context(audience.joined(process.port, [request]))
        with pytest.raises(WrongAnswerError, match=r"The server (ended|closed)"):
            audience.quiet(30)
