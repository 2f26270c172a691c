"""What one process was told is true in every other, once it was answered."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Final

from mcp_app.server.dispatch import STOPPED
from mcp_app.wakeup.workers import FRESHNESS
from tests.process.clusters import (
    LISTED,
    Cluster,
    listed,
    on_clusters,
    run_command,
    run_python,
)
from tests.process.staff import Staff
from tests.process.streaming import Answer, Session, listening, stateless

URI: Final = "test://static-text"
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
UPDATED: Final = "notifications/resources/updated"

pytestmark = on_clusters("sqlite", "postgresql-redis", "mariadb")


def rounds(cluster: Cluster) -> Iterator[tuple[str, list[str]]]:
    """Yield one process, and the others; each in its turn."""
    return cluster.turns(4 if cluster.kind == "postgresql-redis" else 2)


def test_a_closed_session_is_closed_everywhere(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        calls = [session.at(each).called("drill_sleep", seconds=30) for each in others]
        standing = [session.at(each).standing() for each in others]
        for call in calls:
            call.until(lambda answer: answer.raw)
        assert session.close().whole().status == 204
        for each in cluster.urls:
            assert session.at(each).request("ping").whole().status == 404
        # What ran there has ended, without an answer.
        for answer in (*calls, *standing):
            assert not any("id" in message for message in answer.whole().messages)


def test_what_is_logged_elsewhere_comes_to_the_session(cluster: Cluster) -> None:
    """From a program of the site, at whichever process the client is."""
    session, last = Session(cluster.urls[0]), None
    for number, (here, _) in enumerate(rounds(cluster)):
        stream = session.at(here).standing(last)
        said = f"message {number}"
        run_python(
            cluster.environment,
            "-c",
            "import django; django.setup(); from mcp_app import log;"
            f" log('info', '{said}', server='default')",
        )
        stream.until(lambda answer, said=said: said.encode() in answer.raw)  # type: ignore[misc]
        assert [each["params"]["data"] for each in stream.messages] == [said]
        last = stream.ids[-1]
        stream.leave()
    session.close().whole()


def test_sessions_that_staff_end_are_ended_everywhere(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        calls = [session.at(each).called("drill_sleep", seconds=30) for each in others]
        standing = session.standing()
        for call in calls:
            call.until(lambda answer: answer.raw)
        with closing(Staff(here)) as staff:
            page = staff.get("/admin/mcp_app/session/").text
            keys = re.findall(r'name="_selected_action" value="(\d+)"', page)
            staff.act("mcp_app/session", "end_sessions", *keys)
        for each in cluster.urls:
            assert session.at(each).request("ping").whole().status == 404
        for answer in (*calls, standing):
            assert not any("id" in message for message in answer.whole().messages)


def test_staff_cancel_a_call_wherever_it_runs(cluster: Cluster) -> None:
    for here, others in rounds(cluster):
        session = Session(here)
        calls = [session.at(each).called("drill_sleep", seconds=30) for each in others]
        for call in calls:
            call.until(lambda answer: answer.raw)
        with closing(Staff(here)) as staff:
            assert staff.cancel_calls() == len(calls)
            # It was true when the page answered.
            assert staff.cancel_calls() == 0
        for call in calls:
            assert call.whole().messages[-1]["error"]["message"] == STOPPED
        assert session.request("ping").whole().status == 200
        session.close().whole()


def test_a_revoked_token_lets_nobody_in_anywhere(cluster: Cluster) -> None:
    """From the moment at which the command has returned."""

    def statuses(token: str) -> set[int]:
        header = {"Authorization": f"Bearer {token}"}
        asked = [
            stateless(f"{url}/private", "tools/list", headers=header)
            for url in cluster.urls
        ]
        return {answer.whole().status for answer in asked}

    for number, _ in enumerate(rounds(cluster)):
        new = ("mcp_token", "new", "user0", f"number {number}")
        token = run_command(cluster.environment, *new).strip()
        assert statuses(token) == {200}
        run_command(cluster.environment, "mcp_token", "revoke", token[:10])
        assert statuses(token) == {401}


def test_a_stream_that_comes_back_elsewhere_is_told_what_it_missed_once(
    cluster: Cluster,
) -> None:
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


def test_what_staff_stop_is_stopped_everywhere(cluster: Cluster) -> None:
    for here, _ in rounds(cluster):
        listen = listening(cluster.urls[0], toolsListChanged=True)
        with closing(Staff(here)) as staff:
            key = staff.key("mcp_app/tool", LISTED)
            for action, there in (("stop_chosen", False), ("start_chosen", True)):
                seen = len(listen.messages)
                staff.act("mcp_app/tool", action, key)
                for each in cluster.urls:
                    assert (LISTED in listed(each)) is there
                listen.until(lambda each, seen=seen: len(each.messages) > seen)  # type: ignore[misc]


def settled(listen: Answer) -> int:
    """Return how much was told when nothing more comes of what was before."""
    told = -1
    while told != len(listen.messages):
        told = len(listen.messages)
        time.sleep(4 * FRESHNESS)
    return told
