"""Tokens that are revoked and apps that are ended: nobody is let in by them anywhere.

That holds once it was answered.  At each process somebody listens by the token; a
session has a standing stream, and a call that runs.  All of that must end; what another
token has open goes on.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.process.apps import sign_in
from tests.process.clusters import GUARDED
from tests.process.operating import SHOWN
from tests.process.staff import Staff
from tests.process.streaming import Answer, Session, listening, stateless
from tests.reliability.rounds import Round
from tests.reliability.site import FRESHNESS, Site

TEST: Final = "revocations"
ENDS: Final = "ends of connected apps"
BOUND_S: Final = 2 * FRESHNESS
"""So soon after the answer the last stream is to end."""
USER: Final = "user0"
REVOKE: Final = "/admin/mcp_app/accesstoken/{}/revoke/"

Make = Callable[[Site, Staff, int], tuple[str, Callable[[], object]]]
"""Makes what is shown in one round; returns it, and how it is ended."""


@dataclass(frozen=True, slots=True)
class Bearer:
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
    return _rounds(TEST, _token, site, rounds)


def ends(site: Site, rounds: int) -> Generator[Round]:
    """Yield rounds: in each a program signs in, and its app is used and ended.

    In turn on the page of its person, in the admin, and by `mcp_token`.
    """
    return _rounds(ENDS, _app, site, rounds)


def _rounds(test: str, make: Make, site: Site, rounds: int) -> Generator[Round]:
    urls = [f"{url}/{GUARDED}" for url in site.cluster.urls]
    other = Bearer(urls, site.operator.token(USER, f"another one, for {test}"))
    going_on = other.listens()
    for number in range(rounds):
        here = site.cluster.urls[number // 2 % len(urls)]
        with closing(site.staff.at(here)) as staff:
            token, revoke = make(site, staff, number)
            own = Bearer(urls, token)
            held, left, last = _round(own, revoke, number, site.patience)
        held += [not each.ended for each in going_on]
        yield Round(
            test=test, asked=len(held), wrong=held.count(False), untold=left, ended=last
        )
    for each in going_on:
        each.leave()


def _token(site: Site, staff: Staff, number: int) -> tuple[str, Callable[[], object]]:
    token = site.operator.token(USER, f"round {number}")
    if number % 2 == 0:
        return token, partial(site.operator.revokes, token)
    # Look for the token, so that all that is left is to press the button.
    page = staff.get("/admin/mcp_app/accesstoken/", params={"q": token[:SHOWN]}).text
    key = re.search(r"/admin/mcp_app/accesstoken/(\d+)/change/", page)
    assert key is not None, page
    return token, partial(staff.press_on, REVOKE.format(key[1]))


def _app(site: Site, staff: Staff, number: int) -> tuple[str, Callable[[], object]]:
    app = sign_in(staff, f"program {number}")
    ways: list[Callable[[], object]] = [
        partial(staff.press_on, f"/account/tokens/{app.key}/delete/"),
        partial(staff.press_on, REVOKE.format(app.key)),
        partial(site.operator.types, "mcp_token", "revoke", app.handle),
    ]
    return app.access, ways[number % len(ways)]


def _round(
    own: Bearer, revoke: Callable[[], object], number: int, patience: float
) -> tuple[list[bool], int, float]:
    """Return what held, how many streams stayed open, and when the last one ended."""
    at = number % len(own.urls)
    session = Session(own.urls[at], own.headers)
    streams = [
        *own.listens(),
        session.at(own.urls[at - 1]).standing(),
        session.at(own.urls[at - 2]).called("drill_sleep", seconds=600),
    ]
    streams[-1].until(lambda each: each.raw)
    # Each process has the token in its memory.
    assert set(own.statuses(session)) == {200}
    revoke()
    answered = time.monotonic()
    held = [each == 401 for each in own.statuses(session)]
    for each in streams:
        each.wait(within=max(0, answered + patience - time.monotonic()))
    still = [each.leave() for each in streams if not each.ended]
    last = max(each.over for each in streams)
    return held, len(still), max(0.0, last - answered)
