"""Conversations for sampling, as each revision has them."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.questions import SamplingMessage
from mcp_app.protocol.content import Audio, Image, Text, ToolResult, ToolUse
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.conversation import MAX_TOOL_ROUNDS, check_tools, conversation
from tests.behaviours import CONVERSATION

USE: Final = SamplingMessage(role="assistant", content=[ToolUse("1", "find", {})])
RESULT: Final = SamplingMessage(role="user", content=[ToolResult("1", [Text("tea")])])
SAID: Final = SamplingMessage(role="user", content=[Text("hello")])
BOTH: Final = SamplingMessage(
    role="assistant", content=[ToolUse("1", "find", {}), ToolUse("2", "find", {})]
)


@pytest.mark.parametrize("version", REVISIONS)
def test_a_text_is_a_message_of_the_user(version: str) -> None:
    content = {"type": "text", "text": "Hi"}
    found = conversation("Hi", REVISIONS[version])
    assert found == [{"role": "user", "content": content}]


@pytest.mark.parametrize("version", REVISIONS)
def test_several_blocks(version: str) -> None:
    revision = REVISIONS[version]
    blocks = [Text("Look:"), Image(b"\0", "image/png"), Audio(b"\0", "audio/wav")]
    message = SamplingMessage(role="assistant", content=blocks)
    found = conversation([message], revision)
    assert {each["role"] for each in found} == {"assistant"}
    kinds = [
        each["type"]
        for message in found
        for each in (
            message["content"]
            if revision.sampling_content_lists
            else [message["content"]]
        )
    ]
    assert len(found) == (1 if revision.sampling_content_lists else 3)
    assert kinds[:2] == ["text", "image"]
    assert kinds[2] == ("audio" if "audio" in revision.sampling_content else "text")


@pytest.mark.parametrize("version", REVISIONS)
def test_tools_in_a_conversation(version: str) -> None:
    revision = REVISIONS[version]
    found = conversation(CONVERSATION, revision)
    contents = [each["content"] for each in found]
    words = [each["text"] for each in contents if "text" in each]
    if "tool_use" in revision.sampling_content:
        assert {"tool_use", "tool_result"} <= {
            each["type"] for each in contents if isinstance(each, dict)
        }
    else:
        assert "[tool use use-1: find]" in words
        assert "[tool result use-1]\ngreen tea" in words


@pytest.mark.parametrize(
    "messages", [[], [SAID], [USE, RESULT], [SAID, USE, RESULT, SAID, USE, RESULT]]
)
def test_balanced(messages: list[SamplingMessage]) -> None:
    for revision in REVISIONS.values():
        assert len(conversation(messages, revision)) == len(messages)


@pytest.mark.parametrize(
    "messages",
    [
        [USE],
        [RESULT],
        [USE, SAID],
        [USE, SAID, RESULT],
        [USE, RESULT, RESULT],
        [USE, SamplingMessage(role="user", content=[ToolResult("2", [])])],
        [BOTH, RESULT],
        [SamplingMessage(role="assistant", content=[ToolResult("1", [])])],
        [
            USE,
            SamplingMessage(role="user", content=[ToolResult("1", []), Text("more")]),
        ],
    ],
)
def test_unbalanced(messages: list[SamplingMessage]) -> None:
    for revision in REVISIONS.values():
        with pytest.raises(ValueError, match="tool"):
            conversation(messages, revision)


FIND: Final = ToolDefinition(
    name="find", output_schema={"type": "object", "required": ["tea"]}
)


def test_a_loop_over_tools_ends() -> None:
    check_tools([SAID, *[USE, RESULT] * MAX_TOOL_ROUNDS], [FIND])
    with pytest.raises(ValueError, match='tool_choice="none"'):
        check_tools([SAID, *[USE, RESULT] * (MAX_TOOL_ROUNDS + 1)], [FIND])
    check_tools([SAID, *[USE, RESULT] * (MAX_TOOL_ROUNDS + 1)], [])
    check_tools("Find tea.", [FIND])


def test_what_a_tool_gave_fits_its_output_schema() -> None:
    def given(identifier: str, **structured: str) -> SamplingMessage:
        result = ToolResult(identifier, [], structured or None)
        return SamplingMessage(role="user", content=[result])

    check_tools([USE, given("1", tea="green")], [FIND])
    check_tools([USE, given("1")], [FIND])
    check_tools([USE, given("1", milk="no")], [ToolDefinition(name="find")])
    check_tools([USE, given("1", milk="no")], [ToolDefinition(name="other")])
    with pytest.raises(
        ValueError, match="'1' does not match the output schema of 'find'"
    ):
        check_tools([USE, given("1", milk="no")], [FIND])
