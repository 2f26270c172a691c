"""What a server process does while a service that it needs is away, and afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import psycopg
import pytest
import redis

from mcp_app.invalidation.doorbell import GROUP
from mcp_app.invalidation.workers import FRESHNESS
from tests.drill.databases import POSTGRES, PREPARED
from tests.drill.ports import HOST
from tests.drill.running import THERE, DrillServer, started
from tests.invalidation.redis_servers import RedisServer
from tests.marks import long_cases
from tests.process.passages import Passage, through
from tests.process.programs import serving
from tests.process.streaming import (
    PATIENCE_S,
    Answer,
    Session,
    called,
    encoded,
    listening,
    stateless,
)

pytestmark = pytest.mark.programs

AWAY_S: Final = 7
"""Longer than from one heartbeat of a process to the next."""
COUNT: Final = 200
DRAIN_S: Final = 25
"""What running calls get at a stop: there are none."""
KEY: Final = "a line of this test"
URI: Final = "test://static-text"
UPDATED: Final = "notifications/resources/updated"
PORTS: Final = {"postgresql": 5432, "mysql": 3306}
LIMITS: Final = {"MCP_LIMITS": json.dumps({"heartbeat": 1, "rates": False})}


def ledger(request_id: str, seconds: float) -> bytes:
    """Return a call that enters a line, sleeps, and counts the lines."""
    params = {"name": "drill_ledger", "arguments": {"key": KEY, "seconds": seconds}}
    return encoded(id=request_id, method="tools/call", params=params)


def count_on(session: Session, delay_ms: int) -> Answer:
    arguments = {"n": COUNT, "delay_ms": delay_ms}
    meta = {"progressToken": "p"}
    name = "drill_count"
    return session.request("tools/call", name=name, arguments=arguments, _meta=meta)


def assert_counted(counting: Answer) -> None:
    *counted, last = counting.whole().messages
    assert [each["params"]["progress"] for each in counted] == [*range(1, COUNT + 1)]
    assert last["result"]["content"][0]["text"] == f"done {COUNT}"


def touch(url: str) -> Answer:
    return stateless(url, "tools/call", name="drill_touch", arguments={"uri": URI})


def eventually(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def at(vendor: str, other: str) -> pytest.MarkDecorator:
    """Run a test with one kind of database, and with the other in `make test-all`."""
    return pytest.mark.parametrize("vendor", [vendor, *long_cases(other)])


@pytest.fixture
def passage(vendor: str) -> Iterator[Passage]:
    passage = Passage((HOST, PORTS[vendor]))
    passage.open()
    yield passage
    passage.cut()


@pytest.fixture
def server(vendor: str, passage: Passage) -> Iterator[DrillServer]:
    with PREPARED[vendor]() as url:
        away = {"DATABASE_URL": through(url, PORTS[vendor], passage), **THERE}
        try:
            with serving("uvicorn", {**away, **LIMITS}) as drill:
                yield drill
        finally:
            # What is stranded may hold a table, without which no database is removed.
            passage.cut()


@at("mysql", "postgresql")
def test_a_database_that_is_away_for_a_while(
    server: DrillServer, passage: Passage
) -> None:
    url, session = server.url, Session(server.url)
    session.request("resources/subscribe", uri=URI).whole()
    streams = [listening(url, resourceSubscriptions=[URI]), session.standing()]
    counting = count_on(session, 1000 * (AWAY_S + 2) // COUNT)
    once = session.send(ledger("once", AWAY_S + 1))
    for each in (counting, once):
        each.until(lambda answer: answer.raw)

    said = [len(each.raw) for each in streams]
    passage.cut()
    end = time.monotonic() + AWAY_S
    # Then nothing is answered any more from what was read before.
    time.sleep(4 * FRESHNESS)
    while time.monotonic() < end:
        all_is_refused(url, session)
        time.sleep(0.5)
    for each, before in zip(streams, said, strict=True):
        # Comments, and no message.
        each.until(
            lambda answer, before=before: (  # type: ignore[misc]
                answer.raw[before:].count(b"\n\n") >= AWAY_S // 2
            )
        )
        assert not each.ended

    passage.open()
    eventually(lambda: stateless(url, "tools/list").whole().status == 200)
    assert_counted(counting)
    # What its own statements came to is the tool's affair; it is not run again.
    (told,) = once.whole().messages
    assert session.send(ledger("once", AWAY_S + 1)).whole().messages == [told]
    (line,) = session.send(ledger("twice", 0)).whole().messages
    assert line["result"]["structuredContent"] == {"result": 2}
    assert touch(url).whole().status == 200
    for each in streams:
        each.until(updated).leave()


def all_is_refused(url: str, session: Session) -> None:
    for refused in (
        stateless(url, "tools/list"),
        stateless(url, "tools/call", name="drill_add", arguments={"a": 1, "b": 1}),
        session.request("ping"),
        session.send(ledger("twice", 0)),
    ):
        refused.until(lambda answer: answer.ended)
        assert refused.status == 503, refused.raw
        assert 1 <= int(refused.headers["retry-after"]) <= 15


@pytest.fixture
def postgresql() -> Iterator[tuple[str, str]]:
    with PREPARED["postgresql"]() as database:
        environment = {"DATABASE_URL": database, **THERE, **LIMITS}
        with serving("uvicorn", environment) as drill:
            yield drill.url, database


def test_a_database_that_is_read_only_for_a_while(postgresql: tuple[str, str]) -> None:
    """As in a fail-over to a standby: it answers, and takes nothing."""
    url, database = postgresql
    session = Session(url)
    counting = count_on(session, 1000 * (AWAY_S + 2) // COUNT)
    once = session.send(ledger("once", AWAY_S + 1))
    for each in (counting, once):
        each.until(lambda answer: answer.raw)
    alter(database, "SET default_transaction_read_only = on")
    end = time.monotonic() + AWAY_S
    while time.monotonic() < end:
        for refused in (
            session.send(ledger("twice", 0)),
            session.request("resources/subscribe", uri=URI),
            session.request("logging/setLevel", level="info"),
            session.close(),
        ):
            refused.until(lambda answer: answer.ended)
            assert refused.status == 503, refused.raw
            assert refused.headers["retry-after"]
            assert b'"code":-32603' in refused.raw
        time.sleep(0.5)
    # By now a heartbeat has failed.
    assert health(url) == 503
    alter(database, "SET default_transaction_read_only = off")
    until_health(url, 200)
    assert_counted(counting)
    (told,) = once.whole().messages
    assert session.send(ledger("once", AWAY_S + 1)).whole().messages == [told]


def health(url: str) -> int:
    return Answer(f"{url}/health", "GET", {}).whole().status


def alter(database: str, what: str) -> None:
    name = database.rpartition("/")[2]
    with psycopg.connect(f"{POSTGRES}/postgres", autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} {what}".encode())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            [name],
        )


def test_a_server_without_its_database(postgresql: tuple[str, str]) -> None:
    url, database = postgresql
    until_health(url, 200)
    alter(database, "WITH ALLOW_CONNECTIONS false")
    refused = until_health(url, 503)
    assert refused.messages == [{"status": "unavailable", "failing": "database"}]
    assert int(refused.headers["retry-after"]) > 0
    alter(database, "WITH ALLOW_CONNECTIONS true")
    assert until_health(url, 200).messages == [{"status": "ok"}]
    assert called(url, "drill_add", a=1, b=1).whole().status == 200


def until_health(url: str, status: int) -> Answer:
    asked: list[Answer] = []

    def answered() -> bool:
        asked.append(Answer(f"{url}/health", "GET", {}).whole())
        return asked[-1].status == status

    eventually(answered)
    return asked[-1]


@at("postgresql", "mysql")
def test_connections_that_say_nothing(server: DrillServer, passage: Passage) -> None:
    url, session = server.url, Session(server.url)
    counting = count_on(session, 50)
    (line,) = session.send(ledger("once", 0)).whole().messages
    counting.until(lambda answer: answer.messages)
    passage.strand()
    eventually(lambda: stateless(url, "tools/list").whole().status == 200)
    eventually(lambda: session.send(ledger("twice", 0)).whole().status == 200)
    assert_counted(counting)
    assert session.send(ledger("once", 0)).whole().messages == [line]
    (line,) = session.send(ledger("thrice", 0)).whole().messages
    assert line["result"]["structuredContent"] == {"result": 3}
    assert health(url) == 200


@at("mysql", "postgresql")
def test_who_is_asked_to_stop_does_not_wait_for_what_says_nothing(
    server: DrillServer, passage: Passage
) -> None:
    session = Session(server.url)
    assert session.send(ledger("once", 0)).whole().status == 200
    passage.strand()
    # Their statements are on their way: one of the log's, one of the writer's.
    waiting = [
        session.send(ledger("twice", 0)),
        session.request("logging/setLevel", level="info"),
    ]
    time.sleep(4 * FRESHNESS)
    began = time.monotonic()
    assert server.stop() == 0, server.output
    assert time.monotonic() - began < DRAIN_S
    assert {each.until(lambda each: each.ended).status for each in waiting} <= {
        200,
        503,
    }


def updated(answer: Answer) -> Any:
    return UPDATED in [message.get("method") for message in answer.messages]


def test_a_doorbell_that_is_away_for_a_while() -> None:
    with ExitStack() as stack:
        bell = RedisServer()
        bell.start()
        stack.callback(bell.kill)
        database = stack.enter_context(PREPARED["postgresql"]())
        both = []
        for _ in range(2):
            given = {"DATABASE_URL": database, "REDIS_URL": bell.url, **THERE}
            both.append(started("uvicorn", given))
            stack.callback(both[-1].kill)
        here, there = (each.url for each in both)
        session = Session(here)
        session.request("resources/subscribe", uri=URI).whole()
        standing = session.at(there).standing()

        bell.kill()
        for number in range(1, 4):
            assert touch(here).whole().status == 200
            standing.until(lambda each, number=number: times(each) == number)  # type: ignore[misc]

        bell.start()
        client: Any = redis.Redis.from_url(bell.url)
        stack.callback(client.close)
        ears = stack.enter_context(client.pubsub())
        ears.psubscribe(f"*{GROUP}*")
        eventually(lambda: rung(ears, here))
        eventually(lambda: members(client) == len(both))
        standing.until(lambda each: times(each) > 3)
        assert [each.stop() for each in both] == [0, 0]


def times(answer: Answer) -> int:
    methods = [message.get("method") for message in answer.messages]
    return methods.count(UPDATED)


def members(client: Any) -> int:
    channels = client.pubsub_channels(f"*{GROUP}*")
    return sum(count for _, count in client.pubsub_numsub(*channels))


def rung(ears: Any, url: str) -> bool:
    """Change something; tell whether it was rung for."""
    touch(url).whole()
    message = ears.get_message(timeout=0.2)
    return message is not None and message["type"] == "pmessage"
