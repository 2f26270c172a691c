"""What the drill tools do, seen from outside, in both eras."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

from tests.clients.facts import SIGN_IN
from tests.drill.contents import LINK
from tests.drill.functions.drills import EXIT_STATUS
from tests.drill.running import running, started
from tests.process.streaming import (
    CLIENT,
    META,
    STATEFUL,
    STATELESS,
    Caller,
    Session,
    Stateless,
    called,
)

JsonObject: TypeAlias = dict[str, Any]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running("uvicorn") as url:
        yield url


@pytest.fixture(params=[Stateless, Session])
def client(request: pytest.FixtureRequest, url: str) -> Caller:
    made: Caller = request.param(url)
    return made


@pytest.fixture
def stateless(url: str) -> Stateless:
    return Stateless(url)


def said(result: JsonObject) -> str:
    assert not result.get("isError"), result
    (block,) = result["content"]
    text: str = block["text"]
    return text


@pytest.mark.parametrize("tool", ["drill_add", "drill_add_sync"])
def test_add(client: Caller, tool: str) -> None:
    result = client.call(tool, a=20, b=22)
    assert said(result) == "42"
    assert result["structuredContent"] == {"result": 42}


@pytest.mark.parametrize(
    ("value", "text"),
    [("a text", "a text"), ([1, {"b": None}], '[1,{"b":null}]'), (None, "null")],
)
def test_echo(client: Caller, value: object, text: str) -> None:
    result = client.call("drill_echo", value=value)
    assert said(result) == text
    assert result["structuredContent"] == {"result": value}


def test_count_tells_its_progress(client: Caller) -> None:
    arguments = {"n": 150, "delay_ms": 0, "payload_bytes": 3}
    *told, last = client.messages("drill_count", arguments, {"progressToken": "t"})
    assert [each["params"] for each in told] == [
        {"progressToken": "t", "progress": i, "total": 150, "message": "xxx"}
        for i in range(1, 151)
    ]
    assert said(last["result"]) == "done 150"


def test_count_logs_where_no_token_came(client: Caller) -> None:
    meta = {f"{META}logLevel": "info"} if isinstance(client, Stateless) else {}
    *told, last = client.messages("drill_count", {"n": 2, "delay_ms": 0}, meta)
    data = [each["params"]["data"] for each in told]
    assert data == [{"i": 1, "pad": ""}, {"i": 2, "pad": ""}]
    assert said(last["result"]) == "done 2"


@pytest.mark.parametrize("tool", ["drill_sleep", "drill_sleep_sync"])
def test_sleep(client: Caller, tool: str) -> None:
    assert said(client.call(tool, seconds=0.01)) == "slept 0.01 s"


def test_ledger_counts_the_lines_of_its_key(client: Caller) -> None:
    key = uuid4().hex
    lines = [
        client.call("drill_ledger", key=key, seconds=0)["structuredContent"]["result"]
        for _ in range(2)
    ]
    assert lines == [1, 2]


def test_ledger_is_written_before_the_sleep(stateless: Stateless) -> None:
    key = uuid4().hex
    sleeper = threading.Thread(
        target=stateless.call, args=("drill_ledger",), kwargs={"key": key, "seconds": 1}
    )
    sleeper.start()
    counted = 0
    while sleeper.is_alive() and counted < 2:
        result = stateless.call("drill_ledger", key=key, seconds=0)
        counted = result["structuredContent"]["result"]
    assert counted >= 2
    sleeper.join()


def retry(client: Stateless, tool: str, asked: JsonObject, reply: str) -> JsonObject:
    assert asked["resultType"] == "input_required", asked
    (key,) = asked["inputRequests"]
    message = client.messages(
        tool,
        {"question": "Why?"},
        {},
        inputResponses={key: {"action": "accept", "content": {"answer": reply}}},
        requestState=asked["requestState"],
    )[-1]
    result: JsonObject = message["result"]
    return result


def question(asked: JsonObject) -> str:
    (request,) = asked["inputRequests"].values()
    text: str = request["params"]["message"]
    return text


@pytest.mark.parametrize("tool", ["drill_ask", "drill_ask_sync", "drill_ask_database"])
def test_ask(stateless: Stateless, tool: str) -> None:
    asked = stateless.call(tool, question="Why?")
    assert question(asked) == "Why?"
    assert said(retry(stateless, tool, asked, "Because.")) == "Because."


@pytest.mark.parametrize("tool", ["drill_ask_url", "drill_ask_url_sync"])
@pytest.mark.parametrize(
    ("action", "outcome"),
    [("accept", "accepted"), ("decline", "declined"), ("cancel", "cancelled")],
)
def test_ask_url(url: str, tool: str, action: str, outcome: str) -> None:
    client = Stateless(url, {"elicitation": {"url": {}}})
    asked = client.call(tool)
    request = {"method": "elicitation/create", "params": SIGN_IN}
    assert asked["inputRequests"] == {"sign_in": request}
    answers, state = {"sign_in": {"action": action}}, asked["requestState"]
    last = client.messages(tool, {}, {}, inputResponses=answers, requestState=state)[-1]
    assert said(last["result"]) == outcome


def test_ask_in_a_transaction_is_refused(stateless: Stateless) -> None:
    assert stateless.call("drill_ask_atomic", question="Why?")["isError"] is True


def test_ask_twice_enters_one_line(stateless: Stateless) -> None:
    before = stateless.call("drill_ledger", key="Why?", seconds=0)
    asked = stateless.call("drill_ask_twice", question="Why?")
    again = retry(stateless, "drill_ask_twice", asked, "One")
    assert question(again) == "Why? (again)"
    # A retry that lacks its answer runs the steps again, and the line only once.
    params = {"question": "Why?"}
    state = again["requestState"]
    stateless.messages("drill_ask_twice", params, {}, requestState=state)
    result = retry(stateless, "drill_ask_twice", again, "two")
    assert said(result) == "One two"
    after = stateless.call("drill_ledger", key="Why?", seconds=0)
    lines = [each["structuredContent"]["result"] for each in (before, after)]
    # The line of drill_ask_twice, and the one that the last count entered.
    assert lines[1] - lines[0] == 2


@pytest.mark.parametrize("version", ["2025-06-18", STATEFUL])
def test_resource_link(url: str, version: str) -> None:
    result = Session(url, version=version).call("test_resource_link")
    assert result["content"] == [LINK]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26"])
def test_resource_link_in_the_words_of_older_revisions(url: str, version: str) -> None:
    result = Session(url, version=version).call("test_resource_link")
    assert said(result) == (f"{LINK['title']} <{LINK['uri']}>: {LINK['description']}")


def test_touch(client: Caller) -> None:
    assert said(client.call("drill_touch", uri="test://a")) == "touched test://a"


def test_log(client: Caller) -> None:
    meta = {f"{META}logLevel": "debug"} if isinstance(client, Stateless) else {}
    arguments = {"level": "warning", "text": "Mind the gap."}
    told, last = client.messages("drill_log", arguments, meta)
    assert told["params"] == {"level": "warning", "data": "Mind the gap."}
    assert said(last["result"]) == "logged at warning"


def test_fail_with_an_error_for_the_model(client: Caller) -> None:
    result = client.call("drill_fail", kind="tool_error")
    assert result["isError"] is True
    assert result["content"][0]["text"] == "This error was ordered by the caller."


def test_fail_with_an_exception_tells_nothing_of_it(client: Caller) -> None:
    result = client.call("drill_fail", kind="exception")
    assert result["isError"] is True
    assert "ordered" not in result["content"][0]["text"]


def test_fail_with_the_end_of_the_process() -> None:
    drill = started("uvicorn")
    try:
        cut = called(drill.url, "drill_fail", kind="exit")
        assert cut.until(lambda answer: answer.ended).error is not None
        assert drill.process.wait(60) == EXIT_STATUS
    finally:
        drill.kill()


@pytest.mark.parametrize(
    ("era", "revision", "session"),
    [(Stateless, STATELESS, False), (Session, STATEFUL, True)],
)
def test_whoami(
    url: str, era: type[Stateless | Session], revision: str, session: bool
) -> None:
    assert era(url).call("drill_whoami")["structuredContent"] == {
        "user": "",
        "client": CLIENT["name"],
        "revision": revision,
        "session": session,
    }
