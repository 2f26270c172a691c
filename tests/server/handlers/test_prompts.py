"""prompts/get."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.protocol.revisions import REVISIONS
from tests.asgi_client import PREFIX, Client, Outcome
from tests.behaviours import BLOCKS, SECRET
from tests.marks import NEWEST_FIRST
from tests.serving import Connect

NEWEST: Final = "2026-07-28"


async def get(client: Client, name: Any, **params: Any) -> Outcome:
    return await client.request("prompts/get", {"name": name, **params})


def refused(found: Outcome, code: int = -32602) -> str:
    assert (found.status, found.error["code"]) == (200, code)
    message: str = found.error["message"]
    return message


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_get(connect: Connect, version: str) -> None:
    client = await connect(version)
    result = (await get(client, "greets", arguments={"name": "Ada"})).result
    content = {"type": "text", "text": "Hello, Ada! "}
    assert result["messages"] == [{"role": "user", "content": content}]
    assert result["description"] == "Greets somebody."
    assert ("resultType" in result) == client.revision.stateless
    meta = result.get("_meta", {})
    assert (f"{PREFIX}serverInfo" in meta) == client.revision.stateless


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_arguments_are_texts(connect: Connect, version: str) -> None:
    """They are read by the types of the function."""
    client = await connect(version)
    arguments = {"name": "Ada", "times": "2"}
    result = (await get(client, "greets", arguments=arguments)).result
    assert result["messages"][0]["content"]["text"] == "Hello, Ada! Hello, Ada! "


@pytest.mark.parametrize("version", REVISIONS)
async def test_every_block(connect: Connect, version: str) -> None:
    client = await connect(version)
    result = (await get(client, "prompt_blocks")).result
    assert result["description"] == "All kinds of blocks."
    assert [each["role"] for each in result["messages"]] == ["assistant"] * len(BLOCKS)
    kinds = [each["content"]["type"] for each in result["messages"]]
    known = client.revision.content
    assert kinds == [each.type if each.type in known else "text" for each in BLOCKS]


WRONG: Final[list[tuple[Any, dict[str, Any], str]]] = [
    ("greets", {}, "'name'"),
    ("greets", {"arguments": {}}, "'name'"),
    ("greets", {"arguments": {"name": "a", "extra": "b"}}, "'extra'"),
    ("greets", {"arguments": {"name": "a", "times": "many"}}, "times"),
    ("greets", {"arguments": {"name": 7}}, "'name'"),
    ("greets", {"arguments": {"name": None}}, "'name'"),
    ("greets", {"arguments": []}, "arguments"),
    ("greets", {"arguments": None}, "'name'"),
    (None, {}, "name"),
    (7, {}, "name"),
]


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_wrong_arguments(connect: Connect, version: str) -> None:
    client = await connect(version)
    for name, params, member in WRONG:
        assert member in refused(await get(client, name, **params))


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_unknown_and_hidden_prompts_are_the_same(
    connect: Connect, version: str
) -> None:
    client = await connect(version, path="/mcp/private", headers={"x-user": "a"})
    answers = []
    for name in ("secret_prompt", "no_way"):
        params = {"name": name, "arguments": {"word": "x"}}
        found = await client.request("prompts/get", params, id=7)
        refused(found)
        answers.append(found.raw.replace(name.encode(), b"NAME"))
    assert answers[0] == answers[1]
    rights = {"x-user": "a", "x-permissions": SECRET}
    client = await connect(version, path="/mcp/private", headers=rights)
    found = await get(client, "secret_prompt", arguments={"word": "x"})
    assert found.result["messages"][0]["content"]["text"] == "x"


@pytest.mark.parametrize("version", ["2025-11-25", NEWEST])
async def test_failures(connect: Connect, version: str) -> None:
    client = await connect(version)
    for name in ("prompt_fails", "prompt_refuses"):
        said = refused(await get(client, name), -32603)
        assert name in said
        assert "secret" not in said
    said = refused(await get(client, "hanging_prompt"), -32603)
    assert "0.03 seconds" in said
    assert "failed" in refused(await get(client, "prompt_surrogate"), -32603)


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_prompt_that_asks(connect: Connect, version: str) -> None:
    """A client that cannot be asked gets the error of its revision."""
    client = await connect(version, capabilities={})
    found = await get(client, "prompt_asks")
    if client.revision.stateless:
        assert (found.status, found.error["code"]) == (400, -32021)
    else:
        assert "elicitation" in refused(found, -32600)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", NEWEST])
async def test_a_prompt_gets_its_answer(connect: Connect, version: str) -> None:
    client = await connect(version)
    answer = {"action": "accept", "content": {"item": "tea", "count": 2}}
    found = await client.talk(
        "prompts/get", {"name": "prompt_asks"}, lambda method, params: answer
    )
    assert found.result["messages"][0]["content"]["text"] == "2 tea"
    assert len(found.questions) == 1


async def test_a_text_prompt(connect: Connect) -> None:
    client = await connect("2025-11-25")
    arguments = {"arg1": "{{arg2}}", "arg2": "<b>"}
    result = (
        await get(client, "test_prompt_with_arguments", arguments=arguments)
    ).result
    # One pass: what an argument says is not filled in again.
    assert result["messages"][0]["content"]["text"] == (
        "Prompt with arguments: arg1='{{arg2}}', arg2='<b>'"
    )
