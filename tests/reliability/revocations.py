"""Tokens that are revoked: once that was answered, nobody is let in by them anywhere.

At each process somebody listens by the token; a session has a standing stream, and a
call that runs.  All of that must end; what another token has open goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from tests.process.clusters import GUARDED
from tests.process.operating import SHOWN
from tests.process.staff import Staff
from tests.process.streaming import Answer, Session, listening, stateless
from tests.reliability.rounds import Round
from tests.reliability.site import FRESHNESS, Site

TEST: Final = "revocations"
BOUND_S: Final = 2 * FRESHNESS
"""So soon after the answer the last stream is to end."""
USER: Final = "user0"
OK: Final = 200
UNAUTHORIZED: Final = 401
LISTED: Final = re.compile(r"/admin/mcp_app/accesstoken/(\d+)/change/")

Revoke = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who shows a token, at all processes."""

    urls: list[str]
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def statuses(self, session: Session | None = None) -> list[int]:
        """Ask each process, all at the same time, and return the statuses."""
        asked = [stateless(url, "tools/list", self.headers) for url in self.urls]
        if session is not None:
            asked += [session.at(url).request("ping") for url in self.urls]
        return [each.whole().status for each in asked]

    def listens(self) -> list[Answer]:
        return [listening(u, self.headers, toolsListChanged=True) for u in self.urls]


def revocations(site: Site, rounds: int) -> Generator[Round]:
    """Yield rounds: in each a token is made, used and revoked.

    In turn by `mcp_token`, and on the page of a process.
    """
    urls = [f"{url}/{GUARDED}" for url in site.cluster.urls]
    operator = site.operator
    other = Bearer(urls, operator.token(USER, "another one"))
    going_on = other.listens()
    for number in range(rounds):
        own = Bearer(urls, operator.token(USER, f"round {number}"))
        here = site.cluster.urls[number // 2 % len(urls)]
        with closing(site.staff.at(here)) as staff:
            revoke = _on_page(staff, own.token) if number % 2 else operator.revokes
            found = _round(own, revoke, number, site.patience)
        held = [*found.held, *(not each.ended for each in going_on)]
        yield Round(
            test=TEST,
            asked=len(held),
            wrong=held.count(False),
            untold=found.open,
            ended=found.seconds,
        )
    for each in going_on:
        each.leave()


def _on_page(staff: Staff, token: str) -> Revoke:
    """Look for the token, so that all that is left is to press the button."""
    page = staff.get("/admin/mcp_app/accesstoken/", params={"q": token[:SHOWN]}).text
    key = LISTED.search(page)
    assert key is not None, page
    return lambda _: staff.press_on(f"/admin/mcp_app/accesstoken/{key[1]}/revoke/")


@dataclass(frozen=True, slots=True)
class Found:
    """What held, how many streams stayed open, and when the last one ended."""

    held: list[bool]
    open: int
    seconds: float


def _round(own: Bearer, revoke: Revoke, number: int, patience: float) -> Found:
    """Have something open everywhere, and let it be revoked."""
    at = number % len(own.urls)
    session = Session(own.urls[at], own.headers)
    streams = [
        *own.listens(),
        session.at(own.urls[at - 1]).standing(),
        session.at(own.urls[at - 2]).called("drill_sleep", seconds=600),
    ]
    streams[-1].until(lambda each: each.raw)
    # Each process has the token in its memory.
    assert set(own.statuses(session)) == {OK}
    revoke(own.token)
    answered = time.monotonic()
    held = [each == UNAUTHORIZED for each in own.statuses(session)]
    for each in streams:
        each.wait(within=max(0, answered + patience - time.monotonic()))
    still = [each.leave() for each in streams if not each.ended]
    last = max(each.over for each in streams)
    return Found(held, len(still), max(0.0, last - answered))
