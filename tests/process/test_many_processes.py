"""What one process was told is true in every other, once it was answered."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

import pytest

from mcp_app.invalidation.workers import FRESHNESS
from mcp_app.server.outcome import STOPPED_CALL
from tests.process.clusters import (
    LISTED,
    Cluster,
    asked_for_secrets,
    on_clusters,
    secrets,
)
from tests.process.operating import Operator
from tests.process.staff import Staff
from tests.process.streaming import Answer, Session, listening, stateless

pytestmark = pytest.mark.programs

URI: Final = "test://static-text"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
UPDATED: Final = "notifications/resources/updated"


def rounds(cluster: Cluster) -> Iterator[tuple[str, list[str]]]:
    return cluster.turns(4 if cluster.kind == "postgresql-redis" else 2)


def asleep(session: Session, urls: list[str]) -> list[Answer]:
    calls = [session.at(each).called("drill_sleep", seconds=30) for each in urls]
    return [call.until(lambda answer: answer.raw) for call in calls]


def assert_ended(cluster: Cluster, session: Session, *answers: Answer) -> None:
    """A session is gone everywhere; what it had open has ended, without an answer."""
    for each in cluster.urls:
        assert session.at(each).request("ping").whole().status == 404
    for answer in answers:
        assert not any("id" in message for message in answer.whole().messages)


@on_clusters("mariadb", others=["sqlite", "postgresql-redis"])
def test_a_closed_session_is_closed_everywhere(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        standing = [session.at(each).standing() for each in others]
        calls = asleep(session, others)
        assert session.close().whole().status == 204
        assert_ended(cluster, session, *calls, *standing)


@on_clusters("sqlite", others=["postgresql-redis", "mariadb"])
def test_what_is_logged_elsewhere_comes(cluster: Cluster, operator: Operator) -> None:
    session, last = Session(cluster.urls[0]), None
    for number, (here, _) in enumerate(rounds(cluster)):
        stream = session.at(here).standing(last)
        said = f"message {number}"
        operator.runs(
            f"from mcp_app import log; log('info', '{said}', server='default')"
        )
        stream.until(lambda answer, said=said: said.encode() in answer.raw)  # type: ignore[misc]
        assert [each["params"]["data"] for each in stream.messages] == [said]
        last = stream.ids[-1]
        stream.leave()
    session.close().whole()


@on_clusters("postgresql-redis", others=["sqlite", "mariadb"])
def test_sessions_that_staff_end_are_ended_everywhere(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        standing = session.standing()
        calls = asleep(session, others)
        with closing(Staff(here)) as staff:
            page = staff.get("/admin/mcp_app/session/live/").text
            for each in re.findall(r'formaction="([^"]+/close/)"', page):
                staff.press_on(each)
        assert_ended(cluster, session, *calls, standing)


@on_clusters("sqlite", others=["postgresql-redis", "mariadb"])
def test_staff_cancel_a_call_wherever_it_runs(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        calls = asleep(session, others)
        with closing(Staff(here)) as staff:
            assert staff.cancel_calls() == len(calls)
            # It was true when the page answered.
            assert staff.cancel_calls() == 0
        for call in calls:
            assert call.whole().messages[-1]["error"]["message"] == STOPPED_CALL
        assert session.request("ping").whole().status == 200
        session.close().whole()


REMOVE: Final = """
from django.contrib.auth.models import Group, User
User.objects.get(username="{user}").groups.{act}(Group.objects.get(name="group0"))
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which a right is taken away, and given back."""

    user: str
    take: Callable[[Staff], object]
    give: Callable[[Staff], object]
    all: bool = False
    """Whether it concerns everybody: who is in a group is not asked."""


def ways(cluster: Cluster, operator: Operator) -> list[Way]:
    """Return what people do: on two pages of the admin, and in code of the site."""

    def on_page(model: str, name: str, user: str, **without: str) -> Way:
        key = str(cluster.keys[model][name])

        def save(staff: Staff, *, may: bool) -> None:
            form = staff.form(model, key)
            if without and not may:
                del form["is_active"]
            staff.give(model, key, form, may=may or bool(without))

        take, give = partial(save, may=False), partial(save, may=True)
        return Way(user, take, give, all=model == "group")

    def in_code(act: str) -> Callable[[Staff], object]:
        code = REMOVE.format(user="member0", act=act)
        return lambda _: operator.runs(code)

    return [
        on_page("user", "user0", "user0"),
        on_page("group", "group0", "member0"),
        Way("member0", in_code("remove"), in_code("add")),
        on_page("user", "user0", "user0", is_active="off"),
    ]


@on_clusters("sqlite", others=["postgresql-redis", "mariadb"])
def test_a_right_that_was_taken_away_is_gone_everywhere(
    cluster: Cluster, operator: Operator
) -> None:
    """Once the page has answered; whom it concerns is told, and nobody else."""
    for here, way in zip(
        [here for here, _ in rounds(cluster)] * 2,
        ways(cluster, operator),
        strict=False,
    ):
        concerned, stranger = (
            listening(f"{here}/private", {"X-Name": user}, toolsListChanged=True)
            for user in (way.user, "user1")
        )
        # What came before may be told to streams that are new.
        before = settled(stranger)
        with closing(Staff(here)) as staff:
            for change, there in ((way.take, False), (way.give, True)):
                told = len(concerned.messages)
                change(staff)
                asked = [asked_for_secrets(each, way.user) for each in cluster.urls]
                seen = [each.whole() for each in asked]
                if there:
                    assert all("secret" in secrets(each) for each in seen)
                else:
                    assert not any(b"secret" in each.raw for each in seen)
                concerned.until(lambda each, told=told: len(each.messages) > told)  # type: ignore[misc]
        if not way.all:
            assert settled(stranger) == before
        concerned.leave()
        stranger.leave()


@on_clusters("postgresql-redis", others=["sqlite", "mariadb"])
def test_a_stream_that_comes_back_is_told_what_it_missed_once(cluster: Cluster) -> None:
    for here, (there, elsewhere, *_) in islice(rounds(cluster), 2):
        session = Session(here)
        session.request("resources/subscribe", uri=URI).whole()
        standing = session.standing()
        touch(there)
        standing.until(updated)
        # The next process announces that, too, when the client is there.
        again = session.at(there).standing(last_id(standing))
        settled(again)
        assert again.messages == []
        again.leave()
        with closing(Staff(there)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for action in ("stop_chosen", "start_chosen"):
                staff.act("mcp_app/tool", action, key)
        # A call has its answer before its change is written.
        watching = listening(here, resourceSubscriptions=[URI])
        for count in (1, 2):
            touch(here)
            watching.until(lambda each, count=count: updated(each) == count)  # type: ignore[misc]
        again = session.at(elsewhere).standing(last_id(again))
        again.until(lambda answer: len(answer.messages) > 1)
        settled(again)
        methods = sorted(message["method"] for message in again.messages)
        assert methods == [UPDATED, TOOLS_CHANGED], again.raw
        for each in cluster.urls:
            again = session.at(each).standing(last_id(again))
            settled(again)
            assert again.messages == []
        # It is the newest of three: the others are told nothing more.
        touch(there)
        again.until(updated)
        settled(again)
        assert (len(again.messages), updated(standing)) == (1, 1)
        watching.leave()
        session.close().whole()


def last_id(answer: Answer) -> str:
    return answer.field("id")[-1]


def touch(url: str) -> None:
    stateless(url, "tools/call", name="drill_touch", arguments={"uri": URI}).whole()


def updated(answer: Answer) -> int:
    methods = [message.get("method") for message in answer.messages]
    return methods.count(UPDATED)


def settled(listen: Answer) -> int:
    """Return how much was told when nothing more comes of what was before."""
    told = -1
    while told != len(listen.messages):
        told = len(listen.messages)
        time.sleep(4 * FRESHNESS)
    return told
