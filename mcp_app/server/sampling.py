"""Conversations for sampling, as each revision has them (client/sampling)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from mcp_app.interface.questions import SamplingMessage
from mcp_app.protocol import schemas
from mcp_app.protocol.content import Text, ToolResult, ToolUse, sampling_block_to_wire

if TYPE_CHECKING:
    from mcp_app.interface.definitions import ToolDefinition
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision

MOST_TOOL_ROUNDS: Final = 50
"""How many messages of a conversation may call tools."""


def conversation(
    messages: str | Sequence[SamplingMessage], revision: Revision
) -> list[JsonObject]:
    """Return the messages in the revision's words.

    Raises ValueError if a tool use lacks its result, or a result its tool use.
    """
    if isinstance(messages, str):
        messages = [SamplingMessage(role="user", content=[Text(messages)])]
    _check_tool_uses(messages)
    return [shown for message in messages for shown in _message(message, revision)]


def _message(message: SamplingMessage, revision: Revision) -> list[JsonObject]:
    blocks = [sampling_block_to_wire(each, revision) for each in message.content]
    if len(blocks) > 1 and revision.sampling_content_lists:
        return [{"role": message.role, "content": blocks}]
    # Before 2025-11-25 a message has one block: the others follow it.
    return [{"role": message.role, "content": each} for each in blocks]


def _check_tool_uses(messages: Sequence[SamplingMessage]) -> None:
    """Raise unless the message after a tool use holds exactly its results."""
    wanted: set[str] = set()
    for message in messages:
        given = _results(message)
        if given != wanted:
            raise _unbalanced(given ^ wanted)
        wanted = {each.id for each in message.content if isinstance(each, ToolUse)}
    if wanted:
        raise _unbalanced(wanted)


def _results(message: SamplingMessage) -> set[str]:
    given = [each for each in message.content if isinstance(each, ToolResult)]
    if given and (message.role != "user" or len(given) < len(message.content)):
        raise ValueError(
            "A message with tool results must have the role user and no other content."
        )
    return {each.tool_use_id for each in given}


def check_tools(
    messages: str | Sequence[SamplingMessage], tools: Sequence[ToolDefinition]
) -> None:
    """Raise ValueError if tools were used too often, or a result breaks its schema.

    A loop of tool calls must end (client/sampling, "Security").
    """
    if isinstance(messages, str) or not tools:
        return
    uses = [
        [each for each in message.content if isinstance(each, ToolUse)]
        for message in messages
    ]
    if sum(map(bool, uses)) > MOST_TOOL_ROUNDS:
        raise ValueError(
            f"The model has used tools {MOST_TOOL_ROUNDS} times in this conversation,"
            ' which is the limit. Offer no more tools, or set tool_choice="none".'
        )
    named = {each.id: each.name for some in uses for each in some}
    _check_results(messages, named, {each.name: each.output_schema for each in tools})


def _check_results(
    messages: Sequence[SamplingMessage],
    named: Mapping[str, str],
    output_schemas: Mapping[str, Mapping[str, object] | None],
) -> None:
    for message in messages:
        for each in message.content:
            if not isinstance(each, ToolResult) or each.structured is None:
                continue
            name = named.get(each.tool_use_id, "")
            schema = output_schemas.get(name)
            if schema is not None and not schemas.compile(schema).is_valid(
                each.structured
            ):
                raise ValueError(
                    f"The result {each.tool_use_id!r} does not match the output"
                    f" schema of {name!r}."
                )


def _unbalanced(identifiers: set[str]) -> ValueError:
    return ValueError(
        "Each tool use needs a result in the next message, and each result a tool"
        " use in the message before. These have none:"
        f" {', '.join(sorted(identifiers))}."
    )
