"""A run counts only if every event comes once, in order, and its row is there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from benchmarks import servers
from benchmarks.client import WrongAnswerError
from benchmarks.counting import Body, Callers, Count
from benchmarks.figures.log import SAMPLE, Sampled
from tests.drill.databases import postgresql_database

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (*pieces, b""))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_body_is_taken_apart_wherever_it_is_cut(size: int) -> None:
    raw = HEAD + chunks(b"id: 1\n", b"\r\n", b"x" * 300)
    body = Body()
    found = [body.feed(raw[at : at + size]) for at in range(0, len(raw), size)]
    assert b"".join(found) == b"id: 1\n\r\n" + b"x" * 300
    assert body.ended


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace(b"200 OK", b"503 Service Unavailable"),
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
def test_what_is_no_stream(head: bytes) -> None:
    with pytest.raises(WrongAnswerError, match="No stream of events"):
        Body().feed(head)


def event(number: int, data: str = "", name: str = "s") -> bytes:
    kind = "event: message\n" if data else ""
    return f"id: {name}.{number}\n{kind}data: {data}\n\n".encode()


def progress(number: int) -> str:
    return json.dumps({"params": {"progress": number, "total": 2}}).replace(" ", "")


def answer(identifier: int = 7) -> str:
    content = [{"type": "text", "text": "done 2"}]
    return json.dumps({"id": identifier, "result": {"content": content}})


GOOD = [event(0), event(1, progress(1)), event(2, progress(2)), event(3, answer())]


@pytest.mark.parametrize("size", [1, 10, 1000])
def test_what_is_right(size: int) -> None:
    count, found = Count(7, 2), []
    raw = GOOD[0] + b":\n\n" + b"".join(GOOD[1:])
    for at in range(0, len(raw), size):
        found += count.feed(raw[at : at + size])
    assert found == [("s", 1), ("s", 2), ("s", 3)]
    assert count.answered


@pytest.mark.parametrize(
    "wrong",
    [
        [GOOD[0], GOOD[2]],
        [GOOD[0], GOOD[1], GOOD[1]],
        [GOOD[0], GOOD[1], event(2, progress(2), "t")],
        [GOOD[0], event(1, progress(2))],
        [event(0, "{}")],
        [*GOOD[:3], event(3, progress(3))],
        [*GOOD[:3], event(3, answer(8))],
        [*GOOD, event(4, answer())],
    ],
)
def test_what_is_wrong(wrong: list[bytes]) -> None:
    count = Count(7, 2)
    with pytest.raises(WrongAnswerError):
        count.feed(b"".join(wrong))


@pytest.mark.long
def test_a_server_is_counted() -> None:
    seen: list[tuple[str, int]] = []
    with servers.drill() as server:
        callers = Callers(server, 3, 5)
        callers.run(0.1)
        found = callers.run(0.5, lambda *each: seen.append(each))
    assert found.messages > 0
    assert found.rate > 0
    streams = {name for name, _ in seen}
    # Each call is waited for, so that none is cut.
    assert len(seen) == 6 * len(streams)
    assert {number for _, number in seen} == {1, 2, 3, 4, 5, 6}


@pytest.fixture
def connection() -> Iterator[psycopg.Connection]:
    with (
        postgresql_database() as url,
        psycopg.connect(url, autocommit=True) as opened,
    ):
        opened.execute("CREATE TABLE mcp_app_stream (id int, public_id text)")
        opened.execute("CREATE TABLE mcp_app_event (stream_id int, seq int)")
        opened.execute("INSERT INTO mcp_app_stream VALUES (1, 's')")
        opened.execute("INSERT INTO mcp_app_event VALUES (1, 1)")
        yield opened


def test_an_event_that_is_not_committed_voids_a_run(
    connection: psycopg.Connection,
) -> None:
    sampled = Sampled(connection)
    for _ in range(SAMPLE):
        sampled.seen("s", 1)
    assert sampled.found == 1
    with pytest.raises(WrongAnswerError, match=r"Event s\.2 came and is not committed"):
        sampled.seen("s", 2)
