from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.definitions import (
    Definition,
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
    content = [text("{{days}} days in {{city}}"), text("Fixed.")]
    runnable = KIND.tool_runnable(TOOL, {"content": content})
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
    resource = {"type": "resource", "resource": {"uri": "{{uri}}", "text": "t"}}
    config = {
        "messages": [
            {"role": "user", "content": text("Order {{order}}")},
            {"content": resource},
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
    runnable = KIND.prompt_runnable(PROMPT, config)
    assert answer(runnable, order="7", uri="x:a") == expected


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
    ("definition", "config", "said"),
    [
        (RESOURCE, {}, "Write the text, or give a file."),
        (RESOURCE, {"text": "a", "base64": ""}, "Give one of"),
        (RESOURCE, {"text": 1}, "not a text"),
        (RESOURCE, {"upload": "x"}, "No uploaded file has the digest x."),
        (RESOURCE, {"base64": "x"}, "not base64"),
        (RESOURCE, {"content": []}, "“content” is not allowed here"),
        (TEMPLATE, {"text": "{{order}}"}, "is not a variable"),
        (PROMPT, {"messages": []}, "at least one entry"),
        *(
            (PROMPT, {"messages": [message]}, said)
            for message, said in (
                ("a", "A message must be a JSON object"),
                ({"role": "system", "content": text("a")}, "user or assistant"),
                ({"role": "{{order}}", "content": text("a")}, "user or assistant"),
                ({"content": text("a"), "x": 1}, "“x” is not allowed here"),
                ({"content": text("{{ordr}}")}, "Did you mean {{order}}?"),
            )
        ),
    ],
)
def test_others_that_cannot_be_made(
    definition: Definition, config: dict[str, Any], said: str
) -> None:
    with pytest.raises(KindError) as caught:
        KIND.definition_runnable(definition, config)
    assert said in caught.value.message
