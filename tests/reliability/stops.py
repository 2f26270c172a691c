"""Stops: once the command has answered, no process serves what it names.

All processes are kept busy meanwhile: so they look each T/2, and answer from what they
have in memory.  The command runs in a program of its own, as an operator types it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from itertools import cycle
from typing import Any, Final, Self

from tests.process.clusters import CHANGING, LISTED, Cluster
from tests.process.operating import Operator
from tests.process.streaming import Answer, called, stateless
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "stops"
UNHEARD: Final = "stops, with Redis away"


class Knocker(threading.Thread):
    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.03):
            _called(self._url).whole()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()


def stops(site: Site, rounds: int, test: str = TEST) -> Generator[Round]:
    cluster = site.cluster
    with ExitStack() as stack:
        for url in cluster.urls:
            stack.enter_context(Knocker(url))
        for _, (what, served) in zip(range(rounds), cycle(WHAT), strict=False):
            held = [*_tried(site.operator, cluster, what, served)]
            yield Round(test=test, asked=len(held), wrong=held.count(False))


def unheard(site: Site, rounds: int) -> Generator[Round]:
    with _away(site.cluster):
        yield from stops(site, rounds, UNHEARD)


@contextmanager
def _away(cluster: Cluster) -> Iterator[None]:
    assert cluster.redis is not None
    cluster.redis.kill()
    try:
        yield
    finally:
        cluster.redis.start()


Served = Callable[[str], Iterator[bool]]


def _tried(
    operator: Operator, cluster: Cluster, what: tuple[str, ...], served: Served
) -> Iterator[bool]:
    reason = f"round {time.time()}"
    operator.types("mcp_stop", "stop", *what, "--by", "kim", "--reason", reason)
    for url in cluster.urls:
        yield from (not each for each in served(url))
        yield from _others(what, url)
    operator.types("mcp_stop", "start", *what)
    for url in cluster.urls:
        yield from served(url)


def _called(url: str, tool: str = LISTED, **arguments: Any) -> Answer:
    return called(url, tool, **(arguments or {"a": 1, "b": 2}))


def _runs(url: str, tool: str = LISTED, **arguments: Any) -> bool:
    """Whether a tool does what it does, and not only says that it is off."""
    answer = _called(url, tool, **arguments).whole()
    if answer.status != HTTPStatus.OK:
        return False
    return not answer.messages[-1]["result"].get("isError", False)


def _lists(url: str, name: str = "") -> bool:
    answer = stateless(url, "tools/list").whole()
    if answer.status != HTTPStatus.OK:
        assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE, answer.raw
        assert answer.headers["retry-after"]
        return False
    tools = {each["name"] for each in answer.messages[0]["result"]["tools"]}
    return name in tools if name else bool(tools)


def _everything(url: str) -> Iterator[bool]:
    yield _lists(url)
    yield _lists(f"{url}/{CHANGING}")
    yield _runs(url)


def _changes(url: str) -> Iterator[bool]:
    yield _runs(url, "drill_ledger", key="stopped", seconds=0)
    yield _lists(url, "drill_ledger")


def _server(url: str) -> Iterator[bool]:
    yield _lists(f"{url}/{CHANGING}")


def _tool(url: str) -> Iterator[bool]:
    yield _lists(url, LISTED)
    yield _runs(url)


def _others(what: tuple[str, ...], url: str) -> Iterator[bool]:
    if what[0] == "changes":
        yield _runs(url)
    elif what[0] != "everything":
        yield _lists(url)


WHAT: Final[list[tuple[tuple[str, ...], Served]]] = [
    (("everything",), _everything),
    (("changes",), _changes),
    (("server", CHANGING), _server),
    (("tool", LISTED), _tool),
]
