"""Clients that lose their connection, or their process, and go on elsewhere."""

from __future__ import annotations

from itertools import cycle
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.drill.running import DrillServer
from tests.process.clusters import Cluster, on_clusters
from tests.process.streaming import Answer, Session, encoded

pytestmark = pytest.mark.programs

COUNT: Final = 40


@pytest.fixture
def urls(cluster: Cluster) -> list[str]:
    return cluster.urls[:2]


@on_clusters("mariadb", others=["postgresql"])
def test_a_client_goes_from_process_to_process(urls: list[str]) -> None:
    session = Session(urls[0])
    answer = session.request(
        "tools/call",
        name="drill_count",
        arguments={"n": COUNT, "delay_ms": 30},
        _meta={"progressToken": "p"},
    )
    answer.until(lambda each: each.messages)
    messages: list[dict[str, Any]] = []
    ids: list[str] = []
    for url in cycle(reversed(urls)):
        answer.until(lambda each: len(each.messages) > 2 or each.ended)
        if not answer.ended:
            answer.leave()
        messages += answer.messages
        ids += answer.ids
        if "method" not in messages[-1]:
            break
        answer = session.at(url).standing(ids[-1])
    counted = [each["params"]["progress"] for each in messages[:-1]]
    assert counted == list(range(1, COUNT + 1))
    assert messages[-1]["result"]["content"][0]["text"] == f"done {COUNT}"
    name = ids[0].partition(".")[0]
    assert ids == [f"{name}.{number}" for number in range(COUNT + 2)]


@on_clusters("mariadb", others=["postgresql"])
def test_a_process_is_killed_in_a_call(urls: list[str], doomed: DrillServer) -> None:
    survivor, key = urls[0], uuid4().hex
    session = Session(doomed.url)
    body = ledger("seven", key=key, seconds=300)
    answer = session.send(body).until(lambda each: each.raw)
    waiting = session.at(survivor).send(body).until(lambda each: each.raw)
    doomed.kill()
    answer.until(lambda each: each.ended)
    assert answer.messages == []
    session = session.at(survivor)
    (told,) = waiting.whole().messages
    assert (told["id"], told["error"]["code"]) == ("seven", -32603)
    assert told["error"]["data"] == {"retryable": False}
    assert "is gone" in told["error"]["message"]
    resumed = session.standing(answer.ids[-1]).whole()
    again = session.send(body).whole()
    assert resumed.messages == again.messages == [told]
    other = session.send(ledger("eight", key=key, seconds=0)).whole()
    assert lines(other) == 2


def ledger(request_id: str, **arguments: Any) -> bytes:
    """Return a call that enters a line, sleeps, and counts the lines."""
    params = {"name": "drill_ledger", "arguments": arguments}
    return encoded(id=request_id, method="tools/call", params=params)


def lines(answer: Answer) -> int:
    (message,) = answer.messages
    return int(message["result"]["structuredContent"]["result"])


@on_clusters("postgresql-redis", others=["postgresql", "mariadb"])
def test_a_client_that_is_sent_away_goes_to_another_process(urls: list[str]) -> None:
    here, there = urls
    session = Session(here)
    for elsewhere in (there, here):
        answer = session.called("test_reconnection").whole()
        (primed,) = answer.field("id")
        assert answer.messages == []
        assert answer.field("retry") == ["50"]
        (message,) = session.at(elsewhere).standing(primed).whole().messages
        text = message["result"]["content"][0]["text"]
        assert text == "Reconnection test completed successfully."


@on_clusters("postgresql", others=["mariadb"])
def test_a_question_is_answered_at_another_process(urls: list[str]) -> None:
    here, there = urls
    session = Session(here)
    answer = session.called("drill_ask_twice", question="Which?")
    for count, text in ((1, "this"), (2, "that")):
        answer.until(lambda each, count=count: len(each.messages) == count)  # type: ignore[misc]
        question = answer.messages[-1]
        assert question["method"] == "elicitation/create"
        reply = {"action": "accept", "content": {"answer": text}}
        body = encoded(id=question["id"], result=reply)
        for _ in range(2):
            assert session.at(there).send(body).whole().status == 202
        foreign = Session(there).send(body).whole()
        assert foreign.status == 400
    (*_, last) = answer.whole().messages
    assert last["result"]["content"][0]["text"] == "this that"


@on_clusters("sqlite", others=["postgresql", "mariadb"])
def test_a_call_is_cancelled_at_another_process(urls: list[str]) -> None:
    here, there = urls
    session = Session(here)
    params = {"name": "drill_sleep", "arguments": {"seconds": 300}}
    call = encoded(id="seven", method="tools/call", params=params)
    answer = session.send(call)
    answer.until(lambda each: each.raw)
    about = {"requestId": "seven"}
    cancel = encoded(method="notifications/cancelled", params=about)
    sent = session.at(there).send(cancel)
    assert sent.whole().status == 202
    assert answer.whole().messages == []
