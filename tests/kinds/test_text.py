from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import PromptMessage, PromptOutput, ToolOutput
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.text import TextKind
from mcp_app.protocol.content import EmbeddedResource, Image, ResourceContents, Text
from mcp_app.protocol.errors import InvalidParams

KIND = TextKind()
SCHEMA = {"type": "object", "properties": {"city": {}, "days": {}}}
TOOL = ToolDefinition(name="t", input_schema=SCHEMA)
RESOURCE = ResourceDefinition(name="r", uri="x:r")
TEMPLATE = ResourceTemplateDefinition(name="t", uri_template="x:{id}/{part}")
PROMPT = PromptDefinition(
    name="p",
    description="Writes.",
    arguments=[PromptArgument(name="order"), PromptArgument(name="uri")],
)


def answer(runnable: Runnable[Any], **arguments: object) -> Any:
    assert runnable.style == "inline"
    return runnable.convert(runnable.run(**runnable.bind(arguments)))


def text(said: str) -> dict[str, str]:
    return {"type": "text", "text": said}


def test_a_tool_answers_with_its_blocks() -> None:
    runnable = KIND.tool_runnable(
        TOOL, {"content": [text("{{days}} days in {{city}}"), text("Fixed.")]}
    )
    expected = ToolOutput([Text("3 days in Lisbon"), Text("Fixed.")])
    assert answer(runnable, city="Lisbon", days=3) == expected


def test_a_tool_has_structured_content_and_an_error_mark() -> None:
    config = {
        "content": [text("a")],
        "structured": {"city": "{{city}}", "n": 1},
        "is_error": True,
    }
    expected = ToolOutput(
        [Text("a")], structured={"city": "Lisbon", "n": 1}, is_error=True
    )
    assert answer(KIND.tool_runnable(TOOL, config), city="Lisbon") == expected


def test_uploads_are_answered() -> None:
    config = {"content": [{"type": "image", "upload": "d", "mimeType": "image/png"}]}
    runnable = KIND.tool_runnable(TOOL, config, {"d": b"\xff"})
    assert answer(runnable) == ToolOutput([Image(b"\xff", "image/png")])


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"text": "{{as}} it is {% x %}"}, "{{as}} it is {% x %}"),
        ({"base64": "AP8="}, b"\x00\xff"),
        ({"upload": "d"}, b"\xff"),
    ],
)
def test_a_resource_is_answered_as_it_is(
    config: dict[str, str], expected: str | bytes
) -> None:
    assert answer(KIND.resource_runnable(RESOURCE, config, {"d": b"\xff"})) == expected


def test_a_template_knows_its_variables() -> None:
    runnable = KIND.template_runnable(
        TEMPLATE, {"text": '{"id":"{{id}}","p":"{{part}}"}'}
    )
    assert answer(runnable, id="123", part="a") == '{"id":"123","p":"a"}'


def test_a_prompt_fills_in_texts_and_uris() -> None:
    config = {
        "messages": [
            {"role": "user", "content": text("Order {{order}}")},
            {
                "content": {
                    "type": "resource",
                    "resource": {"uri": "{{uri}}", "text": "t"},
                }
            },
            {"role": "assistant", "content": text("Yes?")},
        ]
    }
    expected = PromptOutput(
        [
            PromptMessage(Text("Order 7")),
            PromptMessage(EmbeddedResource(ResourceContents(uri="x:a", text="t"))),
            PromptMessage(Text("Yes?"), "assistant"),
        ],
        "Writes.",
    )
    assert (
        answer(KIND.prompt_runnable(PROMPT, config), order="7", uri="x:a") == expected
    )


def test_a_value_that_makes_no_uri_is_the_callers_mistake() -> None:
    link = {"type": "resource_link", "uri": "x:{{order}}", "name": "n"}
    runnable = KIND.prompt_runnable(PROMPT, {"messages": [{"content": link}]})
    with pytest.raises(InvalidParams, match="not an absolute URI"):
        answer(runnable, order="a b")


def test_a_value_is_never_looked_at_again() -> None:
    runnable = KIND.tool_runnable(TOOL, {"content": [text("{{city}}")]})
    said = answer(runnable, city="{{days}} {% x %}", days="3")
    assert said == ToolOutput([Text("{{days}} {% x %}")])


@override_settings(MCP={"LIMITS": {"text": 100}})
def test_one_answer_has_one_limit() -> None:
    runnable = KIND.tool_runnable(TOOL, {"content": [text("{{city}}")]})
    assert answer(runnable, city="x" * 100) == ToolOutput([Text("x" * 100)])
    with pytest.raises(InvalidParams, match="longer than 100"):
        answer(runnable, city="x" * 101)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "Write the text of the answer."),
        ({"is_error": True}, "“content” must be a list"),
        ({"content": []}, "at least one entry"),
        ({"content": [text("{{cty}}")]}, "Did you mean {{city}}?"),
        ({"content": [text("{{city.__class__}}")]}, "is not understood"),
        ({"content": [{"type": "{{city}}"}]}, "must be one of"),
        (
            {"content": [{"type": "image", "data": "{{city}}", "mimeType": "a/b"}]},
            "not base64",
        ),
        ({"content": [text("a")], "is_error": 1}, "“is_error”"),
        ({"content": [text("a")], "structured": []}, "“structured”"),
        ({"content": [text("a")], "isError": True}, "“isError” is not allowed here"),
    ],
)
def test_tools_that_cannot_be_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(KindError) as caught:
        KIND.tool_runnable(TOOL, config)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "Write the text, or give a file."),
        ({"text": "a", "base64": ""}, "Give one of"),
        ({"text": 1}, "not a text"),
        ({"upload": "x"}, "No uploaded file has the digest x."),
        ({"base64": "x"}, "not base64"),
        ({"content": []}, "“content” is not allowed here"),
    ],
)
def test_resources_that_cannot_be_made(config: dict[str, Any], said: str) -> None:
    with pytest.raises(KindError) as caught:
        KIND.resource_runnable(RESOURCE, config)
    assert said in caught.value.message


def test_a_template_that_cannot_be_made() -> None:
    with pytest.raises(KindError, match="is not a variable"):
        KIND.template_runnable(TEMPLATE, {"text": "{{order}}"})


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([], "at least one entry"),
        (["a"], "A message must be a JSON object"),
        ([{"role": "system", "content": text("a")}], "user or assistant"),
        ([{"role": "{{order}}", "content": text("a")}], "user or assistant"),
        ([{"content": text("a"), "x": 1}], "“x” is not allowed here"),
        ([{"content": text("{{ordr}}")}], "Did you mean {{order}}?"),
    ],
)
def test_prompts_that_cannot_be_made(messages: list[Any], said: str) -> None:
    with pytest.raises(KindError) as caught:
        KIND.prompt_runnable(PROMPT, {"messages": messages})
    assert said in caught.value.message
