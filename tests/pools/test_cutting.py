"""Ending connections of a thread from another one; sockets stand for drivers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.pools import connections
from mcp_app.pools.connections import ConnectionKiller

PATIENCE_S: Final = 60


class Pair:
    """A connection as Django has it, and its other end."""

    def __init__(self) -> None:
        self.here, self.there = socket.socketpair()
        self.there.settimeout(PATIENCE_S)
        self.wrapper: Any = SimpleNamespace(connection=self)

    def fileno(self) -> int:
        return self.here.fileno()

    def cancel_safe(self, timeout: float) -> None:
        """Let the thread end its statement, and give the connection back."""
        self.wrapper.connection = None

    def line(self) -> ConnectionKiller:
        line = ConnectionKiller.of(self.wrapper)
        assert line is not None
        return line

    def is_open(self) -> bool:
        try:
            self.here.send(b"1")
        except BrokenPipeError:
            return False
        return self.there.recv(1) == b"1"


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    with pair.here, pair.there:
        yield pair


def test_a_connection_that_is_shut_breaks(pair: Pair) -> None:
    assert pair.is_open()
    pair.line().shut()
    assert not pair.is_open()


def test_what_went_back_to_a_pool_is_left_alone(pair: Pair) -> None:
    line = pair.line()
    pair.wrapper.connection = None
    line.shut()
    assert pair.is_open()


def test_what_goes_back_while_it_is_cancelled_is_left_alone(pair: Pair) -> None:
    connections._cancel_and_shut(pair.line())
    assert pair.is_open()


def test_what_has_gone_back_is_not_cancelled(pair: Pair) -> None:
    line = pair.line()
    pair.wrapper.connection = another = object()
    connections._cancel_and_shut(line)
    assert pair.wrapper.connection is another


def test_where_no_thread_can_cancel_it_is_shut(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(connections, "_hears_of_cancelling", lambda _: True)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    connections.cut([pair.line()])
    assert not pair.is_open()


def test_what_has_no_socket_cannot_be_cut() -> None:
    assert ConnectionKiller.of(SimpleNamespace(connection=object())) is None
