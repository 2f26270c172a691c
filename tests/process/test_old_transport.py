"""HTTP+SSE with several processes: one has the stream, and any gets a message."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Any, Final

import pytest

from tests.drill.databases import PREPARED
from tests.drill.running import THERE, DrillServer, started
from tests.process.clusters import PROCESSES, Cluster, on_clusters, run_python
from tests.process.old_streaming import OldSession
from tests.process.streaming import Session

PATIENCE_S: Final = 60
TOOLS_CHANGED: Final = "notifications/tools/list_changed"
UPDATED: Final = "notifications/resources/updated"
URI: Final = "test://watched-resource"

LEFT: Final = """
import json
import django
django.setup()
from mcp_app.models import Call, Event, Session, Stream
print(json.dumps({
    "sessions": list(Session.objects.values_list("holder", flat=True)),
    "streams": Stream.objects.count(),
    "events": Event.objects.count(),
    "open": Stream.objects.open().count(),
    "calls": list(Call.objects.order_by("pk").values_list("name", "outcome")),
}))
"""

everywhere = on_clusters("sqlite", "postgresql", "postgresql-redis", "mariadb")


def left(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what there is in the database."""
    found: dict[str, Any] = json.loads(run_python(environment, "-c", LEFT))
    return found


def until_left(environment: Mapping[str, str], sessions: int) -> dict[str, Any]:
    """Wait until so many sessions of HTTP+SSE are left."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = left(environment)
        if sum(map(bool, found["sessions"])) == sessions:
            return found
        assert time.monotonic() < deadline, found


@everywhere
def test_messages_come_to_any_process(cluster: Cluster) -> None:
    """All that is said comes once, in its order, and to its own session."""
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
    until_left(cluster.environment, 0)


@everywhere
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


@everywhere
def test_a_call_is_cancelled_at_another_process(cluster: Cluster) -> None:
    here, there, elsewhere, _ = cluster.urls
    session = OldSession(here)
    call = session.at(there).called("drill_sleep", seconds=300)
    cancel = {"method": "notifications/cancelled", "params": {"requestId": call}}
    session.at(elsewhere).say(cancel)
    last = session.at(there).request("ping")
    session.answer(last)
    cancelled(cluster.environment, "drill_sleep", 1)
    assert session.answers(call) == []
    session.close()


def cancelled(environment: Mapping[str, str], tool: str, count: int) -> None:
    """Wait until so many calls of a tool, at least, were cancelled."""
    deadline = time.monotonic() + PATIENCE_S
    while left(environment)["calls"].count([tool, "cancelled"]) < count:
        assert time.monotonic() < deadline, left(environment)


@everywhere
def test_the_end_of_the_stream_is_the_end_everywhere(cluster: Cluster) -> None:
    before = left(cluster.environment)["calls"].count(["drill_sleep_sync", "cancelled"])
    for here, others in islice(cluster.turns(2), 2):
        session, other = OldSession(here), OldSession(here)
        for each in others:
            session.at(each).called("drill_sleep_sync", seconds=300)
        session.close()
        until_left(cluster.environment, 1)
        for each in cluster.urls:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
            assert session.at(each).send(body).status == 404
        before += len(others)
        cancelled(cluster.environment, "drill_sleep_sync", before)
        assert other.answer(other.request("ping"))["result"] == {}
        other.close()
        until_left(cluster.environment, 0)


# -- processes that are killed --------------------------------------------------------


@pytest.fixture(params=PREPARED)
def doomed(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[list[DrillServer], Mapping[str, str]]]:
    """Four that may be killed, and their environment."""
    with ExitStack() as stack:
        url = stack.enter_context(PREPARED[request.param]())
        environment = {"DATABASE_URL": url, **THERE}
        servers = []
        for _ in range(PROCESSES):
            server = started("uvicorn", environment)
            stack.callback(server.kill)
            servers.append(server)
        yield servers, environment


Doomed = tuple[list[DrillServer], Mapping[str, str]]


def test_the_process_with_the_stream_is_killed(doomed: Doomed) -> None:
    """The session ends, and its calls with it; nobody else notices."""
    (holder, *others), environment = doomed
    lost, kept = OldSession(holder.url), OldSession(others[0].url)
    new = Session(others[1].url)
    for each in others:
        lost.at(each.url).called("drill_sleep", seconds=300)
    waiting = kept.at(others[2].url).called("drill_ask", question="Whose?")
    asked = kept.told("elicitation/create")
    question = lost.at(others[0].url).called("drill_ask", question="Who?")
    lost.told("elicitation/create")
    before = lost.stream.messages
    holder.kill()
    lost.stream.until(lambda each: each.ended)
    until_left(environment, 1)
    cancelled(environment, "drill_sleep", len(others))
    cancelled(environment, "drill_ask", 1)
    for each in others:
        ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
        assert lost.at(each.url).send(ping).status == 404
    assert lost.stream.messages == before
    assert lost.answers(question) == []
    # The other one gets all of its own, and nothing of the lost one.
    answer = {"action": "accept", "content": {"answer": "mine"}}
    kept.at(others[0].url).say({"id": asked["id"], "result": answer})
    assert kept.text(waiting) == "mine"
    said = [each.get("method", "") for each in kept.stream.messages]
    assert said == ["", "elicitation/create", ""]
    assert new.request("ping").whole().status == 200
    kept.close()
    found = until_left(environment, 0)
    assert found["open"] == 0


def test_the_process_that_runs_the_call_is_killed(doomed: Doomed) -> None:
    """The client is told that nobody knows what became of it, and goes on."""
    (holder, runner, *others), _ = doomed
    session = OldSession(holder.url)
    at = session.at(runner.url)
    once = at.called("drill_ledger", key="killed", seconds=300)
    again = at.called("drill_sleep", seconds=300)
    elsewhere = session.at(others[0].url).called("drill_ask", question="Which?")
    asked = session.told("elicitation/create")
    runner.kill()
    for request_id, retryable in ((once, False), (again, True)):
        error = session.answer(request_id)["error"]
        assert (error["code"], error["data"]) == (-32603, {"retryable": retryable})
        assert "is gone" in error["message"]
    at = session.at(others[1].url)
    assert session.text(at.called("drill_ledger", key="killed", seconds=0)) == "2"
    answer = {"action": "accept", "content": {"answer": "this"}}
    at.say({"id": asked["id"], "result": answer})
    assert session.text(elsewhere) == "this"
    assert session.stream.messages.count(session.answer(once)) == 1
    session.close()


def test_a_process_that_stops_waits_for_calls_elsewhere(doomed: Doomed) -> None:
    (holder, runner, *_), environment = doomed
    session, idle = OldSession(holder.url), OldSession(holder.url)
    call = session.at(runner.url).called("drill_sleep", seconds=4)
    assert holder.stop() == 0
    idle.stream.whole()
    assert "result" in session.answer(call)
    session.stream.whole()
    assert session.stream.field("retry")
    until_left(environment, 0)
