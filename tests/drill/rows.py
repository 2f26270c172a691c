"""The rows of the fixture set, in the order in which clients see them.

Each row is a dict of the columns of its model.  Clients that want a first tool
without arguments, or a first resource that can be read, find one.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from tests.drill.contents import (
    AUDIO,
    EMBEDDED,
    IMAGE,
    LINK,
    MESSAGES,
    MIXED,
    PNG,
    SCHEMA_2020_12,
    SIMPLE,
    TEMPLATE_TEXT,
    JsonObject,
)

Row: TypeAlias = dict[str, Any]


def _row(
    name: str, description: str, kind: str, config: JsonObject, **more: Any
) -> Row:
    return {
        "name": name,
        "description": description,
        "kind": kind,
        "config": json.dumps(config),
        **more,
    }


def _function(name: str, key: str, description: str, **more: Any) -> Row:
    return _row(name, description, "function", {"function": key}, **more)


def _text(name: str, description: str, *content: JsonObject, **more: Any) -> Row:
    return _row(name, description, "text", {"content": list(content)}, **more)


def _reading(name: str, key: str, description: str) -> Row:
    return _function(name, key, description, read_only=True)


def _prompt(name: str, description: str, *arguments: str) -> Row:
    messages = [{"role": "user", "content": block} for block in MESSAGES[name]]
    required = [{"name": argument, "required": True} for argument in arguments]
    return _row(
        name,
        description,
        "text",
        {"messages": messages},
        arguments=json.dumps(required) if required else "",
    )


def plain_tool(number: int) -> Row:
    """A tool that comes after the fixtures and only makes the list longer."""
    return _function(
        f"plain_{number:05}",
        "drill.plain",
        f"Plain tool number {number}.",
        position=1000,
        read_only=True,
    )


SUITE_TOOLS: Final = (
    _text("test_simple_text", "Returns a text.", SIMPLE),
    _text("test_image_content", "Returns an image.", IMAGE),
    _text("test_audio_content", "Returns a recording.", AUDIO),
    _text("test_embedded_resource", "Returns an embedded resource.", EMBEDDED),
    _text("test_multiple_content_types", "Returns three kinds of content.", *MIXED),
    _function("test_error_handling", "conformance.error", "Always fails."),
    _function(
        "test_tool_with_progress", "conformance.progress", "Reports its progress."
    ),
    _function("test_tool_with_logging", "conformance.logging", "Logs what it does."),
    _function("test_sampling", "conformance.sampling", "Asks the client's model."),
    _function("test_elicitation", "conformance.elicitation", "Asks the person."),
    _function(
        "test_elicitation_sep1034_defaults",
        "conformance.elicitation_defaults",
        "Asks the person with a form that is filled in.",
    ),
    _function(
        "test_elicitation_sep1330_enums",
        "conformance.elicitation_choices",
        "Asks the person to choose.",
    ),
    _function(
        "test_reconnection",
        "conformance.reconnection",
        "Sends its client away, which comes back for the answer.",
    ),
    _function(
        "test_missing_capability",
        "conformance.missing_capability",
        "Needs a client that can sample.",
    ),
    _function(
        "test_streaming_elicitation",
        "conformance.streaming_elicitation",
        "Asks the person, in the way of the client's era.",
    ),
    _function(
        "test_logging_tool",
        "conformance.log_unasked",
        "Logs for those clients that want it.",
    ),
    _function(
        "test_trigger_tool_change",
        "conformance.tool_change",
        "Says that the list of tools changed.",
    ),
    _function(
        "test_trigger_prompt_change",
        "conformance.prompt_change",
        "Says that the list of prompts changed.",
    ),
    _function(
        "test_input_required_result_elicitation",
        "conformance.input_elicitation",
        "Needs the person's name.",
    ),
    _function(
        "test_input_required_result_sampling",
        "conformance.input_sampling",
        "Needs the client's model.",
    ),
    _function(
        "test_input_required_result_list_roots",
        "conformance.input_roots",
        "Needs the client's roots.",
    ),
    _function(
        "test_input_required_result_request_state",
        "conformance.input_state",
        "Needs a confirmation, and the state that came with the question.",
    ),
    _function(
        "test_input_required_result_multiple_inputs",
        "conformance.input_multiple",
        "Needs three answers at once.",
    ),
    _function(
        "test_input_required_result_multi_round",
        "conformance.input_rounds",
        "Needs two answers, one after the other.",
    ),
    _function(
        "test_input_required_result_tampered_state",
        "conformance.input_state",
        "Refuses a state that was tampered with.",
    ),
    _function(
        "test_input_required_result_capabilities",
        "conformance.input_capabilities",
        "Asks what this client can answer.",
    ),
    _function(
        "test_x_mcp_header",
        "conformance.mirrored",
        "Has a parameter that a header repeats.",
    ),
    _row(
        "json_schema_2020_12_tool",
        "Has parameters described with draft 2020-12.",
        "text",
        {"content": [SIMPLE]},
        input_schema=json.dumps(SCHEMA_2020_12),
    ),
)

DRILL_TOOLS: Final = (
    _reading("drill_add", "drill.add", "Adds two integers on the event loop."),
    _reading("drill_add_sync", "drill.add_sync", "Adds two integers in a thread."),
    _reading("drill_echo", "drill.echo", "Returns the value as it came."),
    _function("drill_count", "drill.count", "Sends n notifications."),
    _reading("drill_sleep", "drill.sleep", "Sleeps on the event loop."),
    _reading("drill_sleep_sync", "drill.sleep_sync", "Sleeps in a thread."),
    _function(
        "drill_ledger",
        "drill.ledger",
        "Enters one line under the key, sleeps, and counts the key's lines.",
    ),
    _function("drill_ask", "drill.ask", "Asks the person on the event loop."),
    _function("drill_ask_sync", "drill.ask_sync", "Asks the person in a thread."),
    _function(
        "drill_ask_database",
        "drill.ask_database",
        "Asks the person from an async function that uses the database.",
    ),
    _function(
        "drill_ask_atomic",
        "drill.ask_atomic",
        "Asks the person inside a transaction, which is refused.",
    ),
    _function(
        "drill_ask_twice",
        "drill.ask_twice",
        "Asks the person, enters one line under the question, asks again.",
    ),
    _function("drill_touch", "drill.touch", "Says that the resource changed."),
    _function("drill_log", "drill.log", "Sends one log message."),
    _function("drill_fail", "drill.fail", "Fails in the ordered way."),
    _reading("drill_whoami", "drill.whoami", "Says who calls."),
    _function("drill_ask_url", "drill.ask_url", "Sends the person to a page."),
    _function(
        "drill_ask_url_sync",
        "drill.ask_url_sync",
        "Sends the person to a page, from a thread.",
    ),
    _text("test_resource_link", "Returns a link to a resource.", LINK),
)

TOOLS: Final = (*SUITE_TOOLS, *DRILL_TOOLS)

RESOURCES: Final = (
    _row(
        "static-text",
        "A text.",
        "text",
        {"text": "This is the content of the static text resource."},
        uri="test://static-text",
        mime_type="text/plain",
    ),
    _row(
        "static-binary",
        "An image.",
        "text",
        {"base64": PNG},
        uri="test://static-binary",
        mime_type="image/png",
    ),
    _function(
        "watched-resource",
        "conformance.watched",
        "A text to subscribe to.",
        uri="test://watched-resource",
        mime_type="text/plain",
    ),
)

TEMPLATES: Final = (
    _row(
        "template-data",
        "The data of an id.",
        "text",
        {"text": TEMPLATE_TEXT},
        uri_template="test://template/{id}/data",
        mime_type="application/json",
    ),
)

PROMPTS: Final = (
    _prompt("test_simple_prompt", "A prompt without arguments."),
    _prompt("test_prompt_with_arguments", "A prompt with two words.", "arg1", "arg2"),
    _prompt(
        "test_prompt_with_embedded_resource",
        "A prompt about a resource.",
        "resourceUri",
    ),
    _prompt("test_prompt_with_image", "A prompt about an image."),
    _function(
        "test_input_required_result_prompt",
        "conformance.input_prompt",
        "A prompt that needs to know its context.",
    ),
)
