"""Stale reads: whoever was told of a change lists at another process.

Four processes, each with a part: one publishes; at the second somebody listens; the
third lists in a loop that begins before; at the fourth a client lists that has begun
to listen at the second while the change was on its way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from typing import Final

from tests.drill.switches import SLOW_CHECKS, SLOW_S
from tests.reliability.clients import TOOLS, Asker, Lister, Page, Stream
from tests.reliability.rounds import Round
from tests.reliability.site import FRESHNESS, Site

TEST: Final = "stale reads"
SLOWED: Final = "stale reads, slow checks"
BLOCK: Final = 5
"""Rounds after which the processes change their parts."""
NAME: Final = "changing0"
MODEL: Final = "mcp_app/tool"
VERSIONS: Final = {1: "version 1", 2: "version 2"}


def stale_reads(site: Site, rounds: int, *, slowed: bool = False) -> Generator[Round]:
    """Yield rounds; `slowed` lets each check of the database take 0.4 s."""
    with site.cluster.faulty(SLOW_CHECKS) if slowed else nullcontext():
        for first in range(0, rounds, BLOCK):
            turn = first // BLOCK
            urls = site.cluster.urls
            parts = [urls[(turn + each) % len(urls)] for each in range(len(urls))]
            with _Block(site, parts, slowed) as block:
                for _ in range(min(BLOCK, rounds - first)):
                    yield block.round()


class _Block:
    def __init__(self, site: Site, urls: list[str], slowed: bool) -> None:
        here, self._there, elsewhere, apart = urls
        self._site = site
        self._slowed = slowed
        self._staff = site.staff.at(here)
        self._key = site.key("tool", NAME)
        self._stack = ExitStack()
        self._lister = Lister(site.changing(elsewhere))
        self._elsewhere = Asker(site.changing(elsewhere))
        self._apart = Asker(site.changing(apart))

    def __enter__(self) -> _Block:
        stack = self._stack
        stack.callback(self._elsewhere.close)
        stack.callback(self._apart.close)
        stack.callback(self._staff.close)
        stack.enter_context(self._lister)
        self._pool = stack.enter_context(ThreadPoolExecutor(2))
        self._stream = stack.enter_context(self._listening())
        # What was changed before is announced before.
        time.sleep(2 * FRESHNESS + 2 * SLOW_S * self._slowed)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _listening(self) -> Stream:
        return Stream.listen(self._there, toolsListChanged=True)

    def round(self) -> Round:
        """Publish the version that is not published."""
        site, stream = self._site, self._stream
        version, number = self._next()
        self._lister.taken()
        time.sleep(random.uniform(0, FRESHNESS / 2))
        if not self._slowed:
            # Whoever has just looked need not look again.
            self._apart.ask()
        before = stream.told[TOOLS]
        publishing = self._pool.submit(self._publish, version, number)
        late = self._pool.submit(self._late, VERSIONS[version])
        told = stream.hears(TOOLS, before + 1, site.patience)
        announced = time.monotonic()
        pages = self._lists(announced) if told else []
        sent, answered = publishing.result()
        late_pages, late_wrong, late_untold = late.result()
        every = {*self._lister.taken(), *pages, *late_pages}
        old = [page for page in pages if page.is_old(NAME, VERSIONS[version])]
        return Round(
            test=SLOWED if self._slowed else TEST,
            asked=len(pages) + len(late_pages),
            wrong=len(old) + late_wrong,
            unanswered=sum(page.status != 200 for page in every) + (not answered),
            untold=(not told) + late_untold,
            announced=stream.last - sent if told else None,
        )

    def _lists(self, announced: float) -> list[Page]:
        # The loop has begun one before, which may take as long as a check.
        at_once = self._elsewhere.ask()
        more = [] if self._slowed else self._lister.since(announced, 2)
        return [at_once, *more]

    def _next(self) -> tuple[int, str]:
        for version in VERSIONS:
            number = self._staff.offered(MODEL, self._key, version)
            if number is not None:
                return version, number
        raise AssertionError("Each version is published.")

    def _publish(self, version: int, number: str) -> tuple[float, bool]:
        sent = time.monotonic()
        done = self._staff.press(MODEL, self._key, version, number)
        return sent, "rollback" not in done.headers.get("location", "rollback")

    def _late(self, text: str) -> tuple[list[Page], int, int]:
        """Begin to listen while the change is on its way, and list elsewhere at once.

        Return the list, whether it was old after an announcement, and whether it was
        old and no announcement came.
        """
        time.sleep(random.uniform(0, 2 * FRESHNESS + SLOW_S * self._slowed))
        with self._listening() as stream:
            told = stream.told[TOOLS]
            page = self._apart.ask()
            if not page.is_old(NAME, text):
                return [page], 0, 0
            if told:
                return [page], 1, 0
            return [page], 0, not stream.hears(TOOLS, 1, self._site.patience)
