"""Round trips: state that comes back, keys, steps done once, and deadlines."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from mcp_app.pools.database import reader
from mcp_app.process.runtime import Process
from mcp_app.protocol.revisions import STATEFUL
from mcp_app.server.round_trip import target_of
from tests.asgi_client import Client, JsonObject, Outcome, outcome
from tests.behaviours import Stage
from tests.drill.models import Ledger
from tests.serving import Connect, counted

NEWEST: Final = "2026-07-28"
ASKING: Final = ("2025-06-18", "2025-11-25", NEWEST)
ACCEPTED: Final[JsonObject] = {"action": "accept", "content": {"item": "tea"}}


async def call(client: Client, tool: str, **more: Any) -> Outcome:
    params = {"name": tool, "arguments": {}, **more}
    return await client.request("tools/call", params)


async def questions(client: Client, tool: str, **more: Any) -> JsonObject:
    result = (await call(client, tool, **more)).result
    assert result["resultType"] == "input_required"
    return result


def refused(found: Outcome) -> JsonObject:
    assert (found.status, found.error["code"]) == (200, -32602)
    return found.error


# -- keys -----------------------------------------------------------------------


async def test_keys_of_questions(client: Client) -> None:
    asked = await questions(client, "orders")
    assert list(asked["inputRequests"]) == ["question_1"]
    asked = await questions(client, "orders", arguments={"key": "mine"})
    assert list(asked["inputRequests"]) == ["mine"]
    asked = await questions(client, "asks_many")
    assert list(asked["inputRequests"]) == ["order", "pay", "words", "places"]


@pytest.mark.parametrize("version", ASKING)
async def test_one_question_after_the_other(client: Client) -> None:
    params = {"name": "asks_twice", "arguments": {}}
    found = await client.talk("tools/call", params, lambda method, params: ACCEPTED)
    assert found.text == "1 tea, 1 tea"
    messages = [each["params"]["message"] for each in found.questions]
    assert messages == ["First?", "After 1 tea?"]


@pytest.mark.parametrize("version", ASKING)
async def test_a_key_is_used_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    params = {"name": "asks_one_key_twice", "arguments": {}}
    found = await client.talk("tools/call", params, lambda method, params: ACCEPTED)
    assert found.result["isError"] is True
    assert "has already used the key 'one' for a question" in caplog.text


async def test_some_answers_of_several(client: Client) -> None:
    """What was answered is remembered in the state; the rest is asked again."""
    asked = await questions(client, "asks_many")
    brought = {"order": ACCEPTED, "places": {"roots": []}}
    asked = await questions(
        client, "asks_many", inputResponses=brought, requestState=asked["requestState"]
    )
    assert list(asked["inputRequests"]) == ["pay", "words"]
    brought = {
        "pay": {"action": "accept"},
        "words": {
            "role": "user",
            "model": "m",
            "content": {"type": "text", "text": ""},
        },
    }
    found = await call(
        client, "asks_many", inputResponses=brought, requestState=asked["requestState"]
    )
    assert found.text == "order:Accepted,pay:Accepted,words:SamplingResult,places:list"


# -- answers without, and against, the state ------------------------------------


async def test_a_form_may_be_answered_at_once(client: Client) -> None:
    found = await call(client, "orders", inputResponses={"question_1": ACCEPTED})
    assert found.text == "1 tea"
    wrong = {"action": "accept", "content": {"item": 7}}
    asked = await questions(client, "orders", inputResponses={"question_1": wrong})
    assert list(asked["inputRequests"]) == ["question_1"]


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("visits", {"action": "accept"}),
        ("roots", {"roots": []}),
        (
            "samples",
            {"role": "user", "model": "m", "content": {"type": "text", "text": "x"}},
        ),
    ],
)
async def test_nothing_else_may_be(
    client: Client, tool: str, answer: JsonObject
) -> None:
    brought = {"question_1": answer}
    asked = await questions(client, tool, inputResponses=brought)
    found = await call(
        client, tool, inputResponses=brought, requestState=asked["requestState"]
    )
    assert found.result["resultType"] == "complete"


async def test_a_question_that_changed_is_asked_again(
    client: Client, stage: Stage
) -> None:
    """The answer belongs to what was asked, not to the key."""
    asked = await questions(client, "asks_changing")
    brought = {"inputResponses": {"order": ACCEPTED}}
    again = await questions(
        client, "asks_changing", requestState=asked["requestState"], **brought
    )
    message = again["inputRequests"]["order"]["params"]["message"]
    assert message == "Question 2?"
    stage.told.clear()
    stage.told.append("as before")
    found = await call(
        client, "asks_changing", requestState=again["requestState"], **brought
    )
    assert found.text == "1 tea"


@pytest.mark.parametrize("answer", [None, 7, [], "accept"])
async def test_an_answer_is_an_object(client: Client, answer: Any) -> None:
    asked = await questions(client, "orders", inputResponses={"question_1": answer})
    assert list(asked["inputRequests"]) == ["question_1"]


async def test_unknown_answers_are_ignored(client: Client) -> None:
    brought = {"question_1": ACCEPTED, "made_up": {"action": "accept"}}
    found = await call(client, "orders", inputResponses=brought)
    assert found.text == "1 tea"


async def test_sessions_have_no_retries(stateful: Client) -> None:
    arguments = {"a": 1, "b": 2}
    found = await call(
        stateful, "drill_add", arguments=arguments, requestState=7, inputResponses=[]
    )
    assert found.text == "3"


# -- whose state it is ----------------------------------------------------------


async def test_state_is_bound(connect: Connect) -> None:
    """To principal, server, method, target and arguments; to all else it is waste."""
    owner = await connect(NEWEST, path="/mcp/private", headers={"x-user": "a"})
    asked = await questions(owner, "asks_in_private", arguments={"line": "x"})
    brought: JsonObject = {
        "inputResponses": {"order": ACCEPTED},
        "requestState": asked["requestState"],
    }
    bodies = set()
    for headers, tool, arguments in (
        ({"x-user": "b"}, "asks_in_private", {"line": "x"}),
        ({"x-user": "a", "x-client": "c"}, "asks_in_private", {"line": "x"}),
        ({"x-user": "a"}, "asks_in_private", {"line": "y"}),
        ({"x-user": "a"}, "asks_in_private", {}),
        ({"x-user": "a"}, "open_to_all", {}),
    ):
        client = await connect(NEWEST, path="/mcp/private", headers=headers)
        params = {"name": tool, "arguments": arguments, **brought}
        found = await client.request("tools/call", params, id=7)
        refused(found)
        bodies.add(found.raw)
    assert len(bodies) == 1
    found = await call(owner, "asks_in_private", arguments={"line": "x"}, **brought)
    assert found.text == "1 tea"


async def test_the_order_of_arguments_does_not_matter(client: Client) -> None:
    asked = await questions(client, "orders", arguments={"question": "A?", "key": "k"})
    found = await call(
        client,
        "orders",
        arguments={"key": "k", "question": "A?"},
        requestState=asked["requestState"],
        inputResponses={"k": ACCEPTED},
    )
    assert found.text == "1 tea"


@pytest.mark.parametrize("mcp", [{"LIMITS": {"request_state_size": 400}}])
async def test_state_that_grows_too_large(client: Client) -> None:
    content = {"item": "x" * 400}
    long = {"first": {"action": "accept", "content": content}}
    found = await call(client, "asks_twice", inputResponses=long)
    assert (found.status, found.error["code"]) == (200, -32603)
    assert "400 are allowed" in found.error["message"]


@pytest.mark.parametrize("mcp", [{"LIMITS": {"tool_rate": 2, "tool_burst": 2}}])
async def test_answers_that_do_not_fit_are_calls_of_the_rate(connect: Connect) -> None:
    client = await connect(NEWEST, path="/mcp/private", headers={"x-user": "a"})
    wrong = {"order": {"action": "accept", "content": {"item": 7}}}
    for _ in range(2):
        asked = await questions(client, "asks_in_private", inputResponses=wrong)
        assert list(asked["inputRequests"]) == ["order"]
    found = await call(client, "asks_in_private", inputResponses=wrong)
    assert found.result["isError"] is True
    assert found.text.startswith("You call asks_in_private too often")


# -- steps ----------------------------------------------------------------------


async def lines(key: str) -> int:
    return await reader.run(Ledger.objects.filter(key=key).count)


@pytest.mark.parametrize("tool", ["steps", "steps_sync"])
@pytest.mark.parametrize("version", ASKING)
async def test_a_step_is_done_once(client: Client, version: str, tool: str) -> None:
    params = {"name": tool, "arguments": {"line": f"{version} {tool}"}}
    found = await client.talk("tools/call", params, lambda method, params: ACCEPTED)
    assert found.text == "line 1"
    assert await lines(f"{version} {tool}") == 1
    # Another round trip has steps of its own.
    found = await client.talk("tools/call", params, lambda method, params: ACCEPTED)
    assert found.text == "line 2"


async def test_many_retries_of_one_state(client: Client) -> None:
    arguments = {"line": "many"}
    asked = await questions(client, "steps_sync", arguments=arguments)
    brought = {
        "requestState": asked["requestState"],
        "inputResponses": {"question_1": ACCEPTED, "sure": ACCEPTED},
    }
    found = await asyncio.gather(
        *(call(client, "steps_sync", arguments=arguments, **brought) for _ in range(12))
    )
    assert {tuple(each.result["inputRequests"]) for each in found} == {("really",)}
    assert await lines("many") == 1
    assert (await counted())["Once"] == 1


# -- transactions and deadlines -------------------------------------------------


@pytest.mark.parametrize("version", [each for each in STATEFUL if each >= "2025-06-18"])
@pytest.mark.parametrize("tool", ["orders", "orders_sync"])
async def test_a_call_that_is_cancelled_while_it_asks(
    client: Client, process: Process, tool: str
) -> None:
    visit = client.begin("tools/call", {"name": tool}, id=7)
    question = await visit.message()
    assert question is not None
    await client.notify("notifications/cancelled", {"requestId": 7})
    found = await outcome(visit)
    # The client is told that the question is off.
    (cancelled,) = found.notifications("notifications/cancelled")
    assert cancelled["requestId"] == question["id"]
    assert (await client.reply(question["id"], ACCEPTED)).status == 202
    assert not process.running


async def test_another_session_cannot_answer(connect: Connect) -> None:
    client, other = await connect("2025-11-25"), await connect("2025-11-25")
    visit = client.begin("tools/call", {"name": "orders"})
    question = await visit.message()
    assert question is not None
    assert (await other.reply(question["id"], ACCEPTED)).status == 400
    assert (await client.reply(question["id"], ACCEPTED)).status == 202
    assert (await client.reply(question["id"], ACCEPTED)).status == 202
    assert (await outcome(visit)).text == "1 tea"


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_a_broad_except_does_not_swallow_a_question(client: Client) -> None:
    params = {"name": "swallows", "arguments": {}}
    found = await client.talk("tools/call", params, lambda method, params: ACCEPTED)
    assert found.text == "1 tea"


def test_targets() -> None:
    assert target_of({"name": "a", "uri": "b"}) == "a"
    assert target_of({"uri": "b"}) == "b"
    assert target_of({}) == ""


# -- URLs in forms --------------------------------------------------------------


@pytest.mark.parametrize("version", ASKING)
async def test_a_form_question_with_a_url_is_logged_once_without_its_text(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    for tool, told in (
        ("asks_with_url", ["its message and its title."]),
        ("orders", []),
        ("visits", []),
    ):
        if tool == "visits" and "url" not in client.revision.elicitation_modes:
            continue
        caplog.clear()
        params = {"name": tool, "arguments": {}}
        found = await client.talk("tools/call", params, lambda *_: {"action": "cancel"})
        assert found.questions
        lines = [
            each.getMessage()
            for each in caplog.records
            if "has a URL" in each.getMessage()
        ]
        assert [
            each.partition(" in ")[2].partition(" Clients")[0] for each in lines
        ] == told
        assert all(each.startswith(f"A form question of {tool} ") for each in lines)
        assert "example.org" not in caplog.text
