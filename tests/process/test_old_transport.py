"""HTTP+SSE with several processes: one has the stream, and any gets a message."""

from __future__ import annotations

from itertools import islice
from typing import Final
from uuid import uuid4

import pytest

from tests.drill.running import DrillServer
from tests.process.clusters import PROCESSES, Cluster, on_clusters
from tests.process.old_streaming import OldSession
from tests.process.rows import one_number, until_number
from tests.process.streaming import Session, encoded

pytestmark = pytest.mark.programs

UPDATED: Final = "notifications/resources/updated"
URI: Final = "test://watched-resource"

HELD: Final = "SELECT count(*) FROM mcp_app_session WHERE holder <> ''"
"""How many sessions of HTTP+SSE there are."""
OPEN: Final = (
    "SELECT count(*) FROM mcp_app_stream WHERE ended_ms IS NULL AND state = 'open'"
)
CANCELLED: Final = (
    "SELECT count(*) FROM mcp_app_call WHERE name = '{}' AND outcome = 'cancelled'"
)


def until_held(cluster: Cluster, sessions: int) -> None:
    until_number(cluster.database, HELD, lambda found: found == sessions)


def cancelled(cluster: Cluster, tool: str) -> int:
    return one_number(cluster.database, CANCELLED.format(tool))


def until_cancelled(cluster: Cluster, tool: str, count: int) -> None:
    statement = CANCELLED.format(tool)
    until_number(cluster.database, statement, lambda found: found >= count)


@on_clusters("postgresql-redis", others=["sqlite", "postgresql", "mariadb"])
def test_messages_come_to_any_process(cluster: Cluster) -> None:
    sessions = [OldSession(url) for url in cluster.urls]
    begun = []
    for number, session in enumerate(sessions):
        for place, url in enumerate(cluster.urls):
            at, n = session.at(url), 10 * number + place + 1
            begun.append((session, n, at.called("drill_add", a=n, b=1000)))
            params = {"n": n, "delay_ms": 1, "payload_bytes": 10}
            counted = at.request(
                "tools/call",
                name="drill_count",
                arguments=params,
                _meta={"progressToken": f"{number}.{n}"},
            )
            assert session.text(counted) == f"done {n}"
    for session, n, request_id in begun:
        assert session.text(request_id) == str(n + 1000)
    for number, session in enumerate(sessions):
        answered = [each["id"] for each in session.stream.messages if "id" in each]
        assert sorted(answered) == list(range(1, 2 * PROCESSES + 2))
        progress: dict[str, list[int]] = {}
        for each in session.stream.messages:
            if each.get("method") == "notifications/progress":
                told = each["params"]
                progress.setdefault(told["progressToken"], []).append(told["progress"])
        assert progress == {
            f"{number}.{n}": list(range(1, n + 1))
            for n in range(10 * number + 1, 10 * number + PROCESSES + 1)
        }
        session.close()
    until_held(cluster, 0)


@on_clusters("postgresql", others=["sqlite", "postgresql-redis", "mariadb"])
def test_questions_and_commands_at_any_process(cluster: Cluster) -> None:
    here, *others = cluster.urls
    session = OldSession(here)
    for number, url in enumerate(others, 1):
        at, elsewhere = session.at(url), session.at(others[number % len(others)])
        call = at.called("drill_ask", question="Which?")
        question = session.told("elicitation/create", number)
        answer = {"action": "accept", "content": {"answer": f"this {number}"}}
        elsewhere.say({"id": question["id"], "result": answer})
        assert session.text(call) == f"this {number}"
        # A level, and what is watched, hold everywhere once they are answered.
        level = at.request("logging/setLevel", level=("error", "info")[number % 2])
        session.answer(level)
        before = len(session.stream.messages)
        session.text(elsewhere.called("drill_log", level="warning", text="warned"))
        said = [each.get("method") for each in session.stream.messages[before:]]
        assert ("notifications/message" in said) == bool(number % 2)
    session.answer(session.at(others[0]).request("resources/subscribe", uri=URI))
    session.text(session.at(others[1]).called("drill_touch", uri=URI))
    assert session.told(UPDATED)["params"] == {"uri": URI}
    session.close()


@on_clusters("mariadb", others=["sqlite", "postgresql", "postgresql-redis"])
def test_a_call_is_cancelled_at_another_process(cluster: Cluster) -> None:
    before = cancelled(cluster, "drill_sleep")
    here, there, elsewhere, _ = cluster.urls
    session = OldSession(here)
    call = session.at(there).called("drill_sleep", seconds=300)
    cancel = {"method": "notifications/cancelled", "params": {"requestId": call}}
    session.at(elsewhere).say(cancel)
    last = session.at(there).request("ping")
    session.answer(last)
    until_cancelled(cluster, "drill_sleep", before + 1)
    assert session.answers(call) == []
    session.close()


@on_clusters("sqlite", others=["postgresql", "postgresql-redis", "mariadb"])
def test_the_end_of_the_stream_is_the_end_everywhere(cluster: Cluster) -> None:
    before = cancelled(cluster, "drill_sleep_sync")
    for here, others in islice(cluster.turns(2), 2):
        session, other = OldSession(here), OldSession(here)
        for each in others:
            session.at(each).called("drill_sleep_sync", seconds=300)
        session.close()
        until_held(cluster, 1)
        for each in cluster.urls:
            ping = encoded(id=1, method="ping")
            assert session.at(each).send(ping).status == 404
        before += len(others)
        until_cancelled(cluster, "drill_sleep_sync", before)
        assert other.answer(other.request("ping"))["result"] == {}
        other.close()
        until_held(cluster, 0)


# -- a process that is killed, or stops -----------------------------------------------


@on_clusters("postgresql-redis", others=["postgresql", "mariadb"])
def test_the_streams_process_is_killed(cluster: Cluster, doomed: DrillServer) -> None:
    others = cluster.urls[1:]
    sleeps, asks = (cancelled(cluster, f"drill_{each}") for each in ("sleep", "ask"))
    before = one_number(cluster.database, OPEN)
    lost, kept = OldSession(doomed.url), OldSession(others[0])
    new = Session(others[1])
    for each in others:
        lost.at(each).called("drill_sleep", seconds=300)
    waiting = kept.at(others[2]).called("drill_ask", question="Whose?")
    asked = kept.told("elicitation/create")
    question = lost.at(others[0]).called("drill_ask", question="Who?")
    lost.told("elicitation/create")
    told = lost.stream.messages
    doomed.kill()
    lost.stream.until(lambda each: each.ended)
    until_held(cluster, 1)
    until_cancelled(cluster, "drill_sleep", sleeps + len(others))
    until_cancelled(cluster, "drill_ask", asks + 1)
    for each in others:
        ping = encoded(id=1, method="ping")
        assert lost.at(each).send(ping).status == 404
    assert lost.stream.messages == told
    assert lost.answers(question) == []
    # The other one gets all of its own, and nothing of the lost one.
    answer = {"action": "accept", "content": {"answer": "mine"}}
    kept.at(others[0]).say({"id": asked["id"], "result": answer})
    assert kept.text(waiting) == "mine"
    said = [each.get("method", "") for each in kept.stream.messages]
    # What an earlier test published may be announced late.
    assert [each for each in said if "changed" not in each] == [
        "",
        "elicitation/create",
        "",
    ]
    assert new.request("ping").whole().status == 200
    kept.close()
    until_held(cluster, 0)
    assert one_number(cluster.database, OPEN) <= before


@on_clusters("sqlite", others=["postgresql", "mariadb"])
def test_the_calls_process_is_killed(cluster: Cluster, doomed: DrillServer) -> None:
    key = uuid4().hex
    holder, *others = cluster.urls
    session = OldSession(holder)
    at = session.at(doomed.url)
    once = at.called("drill_ledger", key=key, seconds=300)
    again = at.called("drill_sleep", seconds=300)
    elsewhere = session.at(others[0]).called("drill_ask", question="Which?")
    asked = session.told("elicitation/create")
    doomed.kill()
    for request_id, retryable in ((once, False), (again, True)):
        error = session.answer(request_id)["error"]
        assert (error["code"], error["data"]) == (-32603, {"retryable": retryable})
        assert "is gone" in error["message"]
    at = session.at(others[1])
    assert session.text(at.called("drill_ledger", key=key, seconds=0)) == "2"
    answer = {"action": "accept", "content": {"answer": "this"}}
    at.say({"id": asked["id"], "result": answer})
    assert session.text(elsewhere) == "this"
    assert session.stream.messages.count(session.answer(once)) == 1
    session.close()


@on_clusters("mariadb", others=["postgresql"])
def test_who_stops_waits_for_calls(cluster: Cluster, doomed: DrillServer) -> None:
    session, idle = OldSession(doomed.url), OldSession(doomed.url)
    call = session.at(cluster.urls[0]).called("drill_sleep", seconds=2)
    assert doomed.stop() == 0
    idle.stream.whole()
    assert "result" in session.answer(call)
    session.stream.whole()
    assert session.stream.field("retry")
    until_held(cluster, 0)
