"""Resources that show a model: watched from a moment in an open transaction on, and
written by many at once."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Final

from tests.process.clusters import LINES
from tests.process.streaming import Session, stateless
from tests.reliability.clients import Stream
from tests.reliability.rounds import Round
from tests.reliability.site import Site

LATE: Final = "late watchers"
BURSTS: Final = "watched model"
WRITERS: Final = 8
LASTS_S: Final = 0.6

_number: Final = count(1)


def late_watchers(site: Site, rounds: int) -> Generator[Round]:
    """Yield rounds: somebody begins to watch while a transaction is open.

    What is read after the subscription was answered is new, or the change is told.
    """
    with ThreadPoolExecutor(8) as pool:
        # No two that run side by side have a line in common, nor two that follow.
        yield from pool.map(
            lambda number: _late(site, f"line{number % (LINES - WRITERS)}"),
            range(rounds),
        )


def _late(site: Site, key: str) -> Round:
    uri, text = f"ledger://{key}", f"writer {next(_number)}"
    at, elsewhere = random.sample(site.cluster.urls, 2)
    watching = random.choice((_listening, _subscribed))
    with ExitStack() as stack:
        committed = site.writer.saves(key, text, random.uniform(0, LASTS_S))
        time.sleep(random.uniform(0, LASTS_S))
        stream = stack.enter_context(watching(at, elsewhere, uri))
        known, heard = _read(elsewhere, uri) == text, 0
        deadlocks = committed.result()
        end = time.monotonic() + site.patience
        while not known and stream.hears(uri, heard + 1, end - time.monotonic()):
            heard = stream.told[uri]
            known = _read(elsewhere, uri) == text
    return Round(test=LATE, asked=1, untold=not known, deadlocks=deadlocks)


@contextmanager
def _listening(at: str, _: str, uri: str) -> Iterator[Stream]:
    with Stream.listen(at, resourceSubscriptions=[uri]) as stream:
        yield stream


@contextmanager
def _subscribed(at: str, elsewhere: str, uri: str) -> Iterator[Stream]:
    """A session whose stream is at one process, and that subscribes at another."""
    session = Session(at)
    with Stream.standing(at, session) as stream:
        session.at(elsewhere).request("resources/subscribe", uri=uri).whole()
        yield stream
    session.close()


def _read(url: str, uri: str) -> str:
    answer = stateless(url, "resources/read", {"Mcp-Name": uri}, uri=uri).whole()
    (content,) = answer.messages[0]["result"]["contents"]
    return str(content["text"])


def bursts(site: Site, rounds: int) -> Generator[Round]:
    """Yield rounds: eight writers save a line each, and every process tells of each."""
    keys = [f"line{number}" for number in range(LINES - WRITERS, LINES)]
    uris = [f"ledger://{key}" for key in keys]
    with ExitStack() as stack:
        streams = [
            stack.enter_context(Stream.listen(url, resourceSubscriptions=uris))
            for url in site.cluster.urls
        ]
        for _ in range(rounds):
            yield _burst(site, keys, [(s, uri) for s in streams for uri in uris])


def _burst(site: Site, keys: list[str], told: list[tuple[Stream, str]]) -> Round:
    before = [stream.told[uri] for stream, uri in told]
    text = f"writer {next(_number)}"
    written = [site.writer.saves(key, text, random.uniform(0, 0.06)) for key in keys]
    deadlocks = sum(each.result() for each in written)
    end = time.monotonic() + site.patience
    heard = [
        stream.hears(uri, known + 1, end - time.monotonic())
        for (stream, uri), known in zip(told, before, strict=True)
    ]
    return Round(
        test=BURSTS, asked=len(told), untold=heard.count(False), deadlocks=deadlocks
    )
