"""A doorbell that fails while calls are read at other processes than run them.

Four processes with a Redis, which is restarted, away, emptied, or full.  Whatever
becomes of a ring, each message comes once, in order and without a gap, and each change
is announced; afterwards every process hears the bell again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import cycle
from typing import Any, Final

import redis

from tests.invalidation.redis_servers import RedisServer
from tests.process.streaming import Session, called
from tests.reliability.clients import TOOLS, Stream
from tests.reliability.resuming import PATIENCE_S, RETRY_S, Told, read_on, request
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "Redis fails"
READERS: Final = 8
DELAY_MS: Final = 40
"""Eight calls that say something each 40 ms: 200 messages a second."""
BESIDE_S: Final = 1.5
"""By so much a call lasts longer than a fault does."""
BEAT_S: Final = 0.1
RESTARTS: Final = 3
CAPACITY: Final = ("maxclients", "maxmemory", "maxmemory-clients")
GROUP: Final = "mcp_app.changes"
"""As in `mcp_app.invalidation.doorbell`, which needs a configured Django."""
URI: Final = "test://static-text"
WATCHED: Final = {URI: URI, "tools": TOOLS}

Fault = Callable[[RedisServer, float], None]
"""Lets a Redis fail for so many seconds, and be well again."""


def _restarted(server: RedisServer, seconds: float) -> None:
    for _ in range(RESTARTS):
        server.kill()
        server.start()
        time.sleep(seconds / RESTARTS)


def _absent(server: RedisServer, seconds: float) -> None:
    server.kill()
    time.sleep(seconds)
    server.start()


def _emptied(server: RedisServer, seconds: float) -> None:
    with _connected(server) as client:
        for _ in range(int(seconds / BEAT_S)):
            client.flushall()
            time.sleep(BEAT_S)


def _full(server: RedisServer, seconds: float) -> None:
    """Let it take no keys, end the connections of its clients, and take no others."""
    with _connected(server) as client:
        client.client_no_evict("ON")
        before = {name: client.config_get(name)[name] for name in CAPACITY}
        for name in CAPACITY:
            client.config_set(name, 1)
        time.sleep(seconds)
        for name, value in before.items():
            client.config_set(name, value)


FAULTS: Final[Mapping[str, Fault]] = {
    "restarted": _restarted,
    "absent": _absent,
    "flushed": _emptied,
    "over capacity": _full,
}


@contextmanager
def _connected(server: RedisServer) -> Iterator[Any]:
    client: Any = redis.Redis.from_url(server.url, single_connection_client=True)
    with closing(client):
        yield client


def heard(server: RedisServer, processes: int, within: float) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        with suppress(redis.RedisError), _connected(server) as client:
            channels = client.pubsub_channels(f"*{GROUP}*")
            if sum(each for _, each in client.pubsub_numsub(*channels)) >= processes:
                return True
        time.sleep(RETRY_S)
    return False


def _read_elsewhere(
    here: str, there: str, messages: int, reading: threading.Barrier
) -> Told:
    session = Session(here)
    told, body = Told(messages), request(messages, DELAY_MS)
    answer = session.send(body)
    answer.wait(lambda each: each.messages)
    answer.leave()
    told.take_of(answer)
    reading.wait(PATIENCE_S)
    read_on(session, there, told, body)
    session.close().wait()
    return told


def _listeners(stack: ExitStack, urls: list[str]) -> list[Stream]:
    _, there, elsewhere, apart = urls
    session = Session(there)
    session.request("resources/subscribe", uri=URI).whole()
    watched = {"toolsListChanged": True, "resourceSubscriptions": [URI]}
    streams = [
        Stream.standing(elsewhere, session),
        Stream.listen(there, **watched),
        Stream.listen(apart, **watched),
    ]
    for each in streams:
        stack.enter_context(each)
    stack.callback(lambda: session.close().wait())
    return streams


def _announced(
    url: str, streams: list[Stream], until: Future[None], patience: float
) -> Iterator[bool]:
    """Change something until all was changed once more after the fault.

    Yield whether each stream was told.
    """
    afterwards = 0
    for what, told in cycle(WATCHED.items()):
        before = [each.told[told] for each in streams]
        afterwards += until.done()
        called(url, "drill_touch", uri=what).whole()
        for each, already in zip(streams, before, strict=True):
            yield each.hears(told, already + 1, patience)
        if afterwards == len(WATCHED):
            return


def doorbells(site: Site, rounds: int, seconds: float = 5.0) -> Generator[Round]:
    faults = list(FAULTS.values())
    for number in range(rounds):
        yield _round(site, number, faults[number % len(faults)], seconds)


def _round(site: Site, number: int, fault: Fault, seconds: float) -> Round:
    urls, server = site.cluster.urls, site.cluster.redis
    assert server is not None
    urls = urls[number % len(urls) :] + urls[: number % len(urls)]
    reading = threading.Barrier(READERS + 1)
    messages = int(1000 * (seconds + BESIDE_S) / DELAY_MS)
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(READERS + 1))
        streams = _listeners(stack, urls)
        readers = [
            pool.submit(_read_elsewhere, here, there, messages, reading)
            for here, there in _pairs(urls)
        ]
        reading.wait(PATIENCE_S)
        ended = pool.submit(fault, server, seconds)
        told = list(_announced(urls[0], streams, ended, site.patience))
        ended.result()
        found = [each.result().judged(0, may_fail=False) for each in readers]
        again = heard(server, len(urls), site.patience)
    return Round(
        test=TEST,
        asked=len(told) + sum(each.asked for each in found),
        wrong=sum(each.wrong for each in found),
        unanswered=sum(each.unanswered for each in found) + (not again),
        untold=told.count(False),
        resumes=sum(each.resumes for each in found),
    )


def _pairs(urls: list[str]) -> Iterator[tuple[str, str]]:
    """Yield for each reader the process of the call, and the one where it reads."""
    for number in range(READERS):
        away = 1 + number // len(urls) % (len(urls) - 1)
        yield urls[number % len(urls)], urls[(number + away) % len(urls)]
