"""The client that the tests of several processes have."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.process.streaming import Answer

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"


@pytest.fixture
def says(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that answers so, and closes the connection."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(request.param)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        thread.join()


@pytest.mark.parametrize(
    ("says", "whole"),
    [
        (WHOLE, False),
        (WHOLE + b"th", False),
        (WHOLE + b"this", True),
        (CHUNKED, False),
        (CHUNKED + b"4\r\nth", False),
        (CHUNKED + b"4\r\nthis\r\n0\r\n\r\n", True),
    ],
    indirect=["says"],
)
def test_an_answer_that_was_cut_is_told_from_a_whole_one(
    says: str, whole: bool
) -> None:
    answer = Answer(says, "GET", {}).until(lambda each: each.ended)
    assert answer.status == 200
    if whole:
        assert answer.whole().raw == b"this"
    else:
        assert isinstance(answer.error, http.client.IncompleteRead)
