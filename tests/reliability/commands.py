"""Commands: once one process has answered, every other one knows.

Several rounds run side by side, all with the same process that is told; so none makes
another process look which would not have looked.  The others are kept busy: so they
look each T/2, and answer from what they have in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.process.clusters import LANES, asked_for_secrets, secrets
from tests.process.staff import Staff
from tests.process.streaming import Answer, Session, stateless
from tests.reliability.clients import Asker, Lister, Stream
from tests.reliability.rounds import Round
from tests.reliability.site import Site


@dataclass(frozen=True, slots=True)
class Lane:
    """A round: its number among those beside it, who is told, and who must know."""

    site: Site
    staff: Staff
    number: int
    here: str
    others: list[str]


def commands(site: Site, name: str, rounds: int) -> Generator[Round]:
    with ThreadPoolExecutor(LANES) as pool:
        turns = site.cluster.turns(-(-rounds // LANES))
        for first, (here, others) in zip(range(0, rounds, LANES), turns, strict=True):
            with ExitStack() as stack:
                staff = stack.enter_context(closing(site.staff.at(here)))
                for url in others:
                    stack.enter_context(Lister(site.changing(url), 0.03))
                lanes = [
                    Lane(site, staff, number, here, others)
                    for number in range(min(LANES, rounds - first))
                ]
                found = list(pool.map(partial(_round, name), lanes))
            yield from found


def _round(name: str, lane: Lane) -> Round:
    held = list(COMMANDS[name](lane))
    return Round(test=name, asked=len(held), wrong=held.count(False))


def _closed(lane: Lane) -> Iterator[bool]:
    session = Session(lane.here)
    for each in _together(_pinged(session, url) for url in lane.others):
        assert each.status == 200
    session.close().whole()
    for each in _together(_pinged(session, url) for url in lane.others):
        yield each.status == 404


def _pinged(session: Session, url: str) -> Answer:
    return session.at(url).request("ping")


def _level(lane: Lane) -> Iterator[bool]:
    session = Session(lane.here)
    for level, heard in (("debug", 1), ("error", 0)):
        _together(_pinged(session, url) for url in lane.others)
        session.request("logging/setLevel", level=level).whole()
        for each in _together(
            session.at(url).called("drill_log", level="info", text="x")
            for url in lane.others
        ):
            yield len(each.messages) == heard + 1
    session.close()


def _subscription(lane: Lane) -> Iterator[bool]:
    """What is said later is told later: so it is known what is not told."""
    watched, other = (f"ledger://line{lane.number + each}" for each in (0, LANES))
    there, elsewhere, _ = lane.others
    session = Session(lane.here)
    with Stream.standing(there, session.at(there)) as stream:
        session.request("resources/subscribe", uri=watched).whole()
        _touch(elsewhere, watched)
        yield stream.hears(watched, 1, lane.site.patience)
        session.request("resources/unsubscribe", uri=watched).whole()
        session.request("resources/subscribe", uri=other).whole()
        _touch(elsewhere, watched)
        _touch(elsewhere, other)
        yield stream.hears(other, 1, lane.site.patience)
        yield stream.told[watched] == 1
    session.close()


def _touch(url: str, uri: str) -> None:
    stateless(url, "tools/call", name="drill_touch", arguments={"uri": uri}).whole()


def _unpublished(lane: Lane) -> Iterator[bool]:
    name = f"changing{lane.number}"
    key = lane.site.key("tool", name)
    askers = [Asker(lane.site.changing(url)) for url in lane.others]

    def listed() -> list[bool]:
        return [each.ask().described(name) is not None for each in askers]

    assert all(listed())
    lane.staff.act("mcp_app/tool", "unpublish_chosen", key)
    yield from (not each for each in listed())
    lane.staff.publish("mcp_app/tool", key, 2)
    yield from listed()
    for each in askers:
        each.close()


def _right(model: str, user: str, lane: Lane) -> Iterator[bool]:
    key = lane.site.key(model, f"{model}{lane.number}")
    name = f"{user}{lane.number}"
    for may in (False, True):
        form = lane.staff.form(model, key)
        # Each has the user's rights in its memory, and has looked just now.
        _together(asked_for_secrets(url, name) for url in lane.others)
        lane.staff.give(model, key, form, may=may)
        for each in _together(asked_for_secrets(url, name) for url in lane.others):
            yield secrets(each) == ({"secret"} if may else set())


def _together(begun: Iterable[Answer]) -> list[Answer]:
    return [each.whole() for each in list(begun)]


COMMANDS: Final[Mapping[str, Callable[[Lane], Iterator[Any]]]] = {
    "DELETE of a session": _closed,
    "level": _level,
    "subscription": _subscription,
    "unpublish": _unpublished,
    "right, by the user's page": partial(_right, "user", "user"),
    "right, by the group's page": partial(_right, "group", "member"),
}
