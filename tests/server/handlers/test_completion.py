"""completion/complete."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from mcp_app.models import Prompt, ResourceTemplate
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from tests.asgi_client import Client, JsonObject, Outcome
from tests.behaviours import SECRET
from tests.marks import NEWEST_FIRST
from tests.published import published
from tests.serving import Connect

PROMPT: Final = {"type": "ref/prompt", "name": "greets"}
TEMPLATE: Final = {"type": "ref/resource", "uri": "memo://value/{which}"}


async def complete(
    client: Client, ref: Any, name: Any, value: Any = "", **more: Any
) -> Outcome:
    argument = {"name": name, "value": value}
    params = {"ref": ref, "argument": argument, **more}
    return await client.request("completion/complete", params)


async def completed(client: Client, *given: Any, **more: Any) -> JsonObject:
    found: JsonObject = (await complete(client, *given, **more)).result["completion"]
    return found


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_complete(client: Client) -> None:
    assert await completed(client, PROMPT, "name", "A") == {
        "values": ["Ada", "Alan"],
        "total": 2,
        "hasMore": False,
    }
    context = {"arguments": {"friend": "Abel"}}
    found = await completed(client, PROMPT, "name", "A", context=context)
    assert found["values"] == ["Ada", "Alan", "Abel"]
    found = await completed(client, PROMPT, "times")
    assert found == {"values": ["1", "2"], "total": 9, "hasMore": True}
    result = (await complete(client, PROMPT, "name")).result
    assert ("resultType" in result) == client.revision.stateless


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_hundred_values_are_sent(client: Client) -> None:
    for uri in ("memo://value/{which}", "memo://value/json"):
        ref = {"type": "ref/resource", "uri": uri}
        found = await completed(client, ref, "which")
        assert found["values"] == [f"{number:03}" for number in range(100)]
        assert (found["total"], found["hasMore"]) == (150, True)


async def test_what_nobody_completes(stateful: Client) -> None:
    for ref, name in ((PROMPT, "nothing"), (TEMPLATE, "nothing")):
        found = await completed(stateful, ref, name, "x")
        assert found == {"values": [], "total": 0, "hasMore": False}


async def test_a_completer_of_a_row(stateful: Client) -> None:
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    found = await completed(stateful, ref, "arg1", "testV")
    assert found["values"] == ["testValue1", "testValue2"]


ARGUMENT: Final = {"name": "a", "value": "b"}
WRONG_REFERENCES: Final[list[object]] = [
    *(None, {"type": "ref/other"}, {"type": 7}, {"type": "ref/prompt"}),
    *({"type": "ref/resource"}, {"type": "ref/prompt", "name": "no_way"}),
    {"type": "ref/resource", "uri": "no://way"},
]
WRONG: Final[list[JsonObject]] = [
    {},
    {"ref": PROMPT},
    {"argument": ARGUMENT},
    *({"ref": each, "argument": ARGUMENT} for each in WRONG_REFERENCES),
    {"ref": PROMPT, "argument": []},
    {"ref": PROMPT, "argument": {"value": "b"}},
    {"ref": PROMPT, "argument": {"name": "a"}},
    {"ref": PROMPT, "argument": {"name": "a", "value": 7}},
    {"ref": PROMPT, "argument": ARGUMENT, "context": []},
    {"ref": PROMPT, "argument": ARGUMENT, "context": {"arguments": {"a": 1}}},
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_wrong_params(client: Client) -> None:
    for params in WRONG:
        found = await client.request("completion/complete", params)
        assert (found.status, found.error["code"]) == (200, -32602)


async def test_hidden_prompts_complete_nothing(connect: Connect) -> None:
    ref = {"type": "ref/prompt", "name": "secret_prompt"}
    few = await connect("2025-11-25", path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for name in ("secret_prompt", "no_way"):
        found = await complete(few, {**ref, "name": name}, "word")
        assert found.error["code"] == -32602
        answers.append(found.error["message"].replace(name, "NAME"))
    assert answers[0] == answers[1]
    rights = {"x-user": "a", "x-permissions": SECRET}
    many = await connect("2025-11-25", path="/mcp/private", headers=rights)
    assert (await completed(many, ref, "word"))["values"] == ["gold"]


async def test_hidden_templates_complete_as_unknown_ones(connect: Connect) -> None:
    """Though another one, which is seen, fits the text of both."""
    few = await connect("2025-11-25", path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for uri in ("cellar://rack/{name}", "cellar://rock/{name}"):
        ref = {"type": "ref/resource", "uri": uri}
        answers.append((await completed(few, ref, "rest"))["values"])
    assert answers == [["wine"], ["wine"]]


async def test_a_completer_that_fails(stateful: Client) -> None:
    ref = {"type": "ref/prompt", "name": "prompt_fails"}
    found = await complete(stateful, ref, "anything")
    assert found.error["code"] == -32603
    assert "secret" not in found.error["message"]


COLOURS: Final = ["Red", "dark red", "green", "Infrared"]


@pytest.fixture
async def colours(process: Process) -> AsyncIterator[None]:
    """A prompt of staff with suggestions; code completes one of its arguments."""
    arguments = [
        {"name": "arg1", "suggestions": ["testVal never"]},
        {"name": "colour", "suggestions": COLOURS},
        {"name": "free"},
    ]
    row = Prompt(
        name="colours",
        arguments=json.dumps(arguments),
        config='{"messages":[{"content":{"type":"text","text":"{{colour}}"}}]}',
    )
    completers = process.catalogs._completers
    completers["colours", "arg1"] = completers["test_prompt_with_arguments", "arg1"]
    await writer.run(published, row)
    yield
    del completers["colours", "arg1"]
    await writer.run(row.delete)


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_what_staff_suggest(client: Client) -> None:
    ref = {"type": "ref/prompt", "name": "colours"}
    assert await completed(client, ref, "colour", "RED") == {
        "values": ["Red", "dark red", "Infrared"],
        "total": 3,
        "hasMore": False,
    }
    assert (await completed(client, ref, "colour"))["values"] == COLOURS
    for name in ("free", "unknown"):
        assert (await completed(client, ref, name))["values"] == []
    # What code completes it completes alone.
    assert (await completed(client, ref, "arg1", "testV"))["values"] == [
        "testValue1",
        "testValue2",
    ]


async def test_what_staff_suggest_for_variables(connect: Connect) -> None:
    row = ResourceTemplate(
        name="painted",
        uri_template="painted://{colour}",
        suggestions=json.dumps({"colour": COLOURS}),
        config='{"text": "{{colour}}"}',
    )
    await writer.run(published, row)
    client = await connect("2025-11-25")
    for uri in (row.uri_template, "painted://blue"):
        ref = {"type": "ref/resource", "uri": uri}
        found = await completed(client, ref, "colour", "re")
        assert found["values"] == COLOURS
    result = (await client.request("resources/templates/list")).result
    await writer.run(row.delete)
    assert "painted://{colour}" in json.dumps(result)
    assert "Infrared" not in json.dumps(result)


@pytest.mark.usefixtures("colours")
@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_lists_have_no_suggestions(client: Client) -> None:
    result = (await client.request("prompts/list")).result
    [row] = [each for each in result["prompts"] if each["name"] == "colours"]
    assert row["arguments"][1] == {"name": "colour", "required": False}
    assert "suggestions" not in json.dumps(result)
