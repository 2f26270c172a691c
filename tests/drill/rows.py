"""The rows of the fixture set, in the order in which clients see them.

Each row is a dict of the columns of its model.  Clients that want a first tool
without arguments, or a first resource that can be read, find one.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias

from tests.drill import contents

Row: TypeAlias = dict[str, Any]


def _row(
    name: str, words: str, kind: str, config: contents.JsonObject, **more: Any
) -> Row:
    made = {"name": name, "description": words, "kind": kind}
    return {**made, "config": json.dumps(config), **more}


def _function(name: str, key: str, description: str, **more: Any) -> Row:
    return _row(name, description, "function", {"function": key}, **more)


def _text(
    name: str, description: str, *content: contents.JsonObject, **more: Any
) -> Row:
    return _row(name, description, "text", {"content": list(content)}, **more)


def _suite(name: str, key: str, description: str) -> Row:
    return _function(f"test_{name}", f"conformance.{key}", description)


def _input(name: str, key: str, description: str) -> Row:
    return _suite(f"input_required_result_{name}", f"input_{key}", description)


def _drill(key: str, description: str, **more: Any) -> Row:
    return _function(f"drill_{key}", f"drill.{key}", description, **more)


def _reading(key: str, description: str) -> Row:
    return _drill(key, description, read_only=True)


def _prompt(name: str, description: str, *names: str) -> Row:
    messages = [{"role": "user", "content": block} for block in contents.MESSAGES[name]]
    required = [{"name": each, "required": True} for each in names]
    arguments = json.dumps(required) if required else ""
    return _row(name, description, "text", {"messages": messages}, arguments=arguments)


def plain_tool(number: int) -> Row:
    return _function(
        f"plain_{number:05}",
        "drill.plain",
        f"Plain tool number {number}.",
        position=1000,
        read_only=True,
    )


SUITE_TOOLS: Final = (
    _text("test_simple_text", "Returns a text.", contents.SIMPLE),
    _text("test_image_content", "Returns an image.", contents.IMAGE),
    _text("test_audio_content", "Returns a recording.", contents.AUDIO),
    _text("test_embedded_resource", "Returns an embedded resource.", contents.EMBEDDED),
    _text(
        "test_multiple_content_types",
        "Returns three kinds of content.",
        *contents.MIXED,
    ),
    _suite("error_handling", "error", "Always fails."),
    _suite("tool_with_progress", "progress", "Reports its progress."),
    _suite("tool_with_logging", "logging", "Logs what it does."),
    _suite("sampling", "sampling", "Asks the client's model."),
    _suite("elicitation", "elicitation", "Asks the person."),
    _suite(
        "elicitation_sep1034_defaults",
        "elicitation_defaults",
        "Asks the person with a form that is filled in.",
    ),
    _suite(
        "elicitation_sep1330_enums", "elicitation_choices", "Asks the person to choose."
    ),
    _suite(
        "reconnection",
        "reconnection",
        "Sends its client away, which comes back for the answer.",
    ),
    _suite(
        "missing_capability", "missing_capability", "Needs a client that can sample."
    ),
    _suite(
        "streaming_elicitation",
        "streaming_elicitation",
        "Asks the person, in the way of the client's era.",
    ),
    _suite("logging_tool", "log_unasked", "Logs for those clients that want it."),
    _suite(
        "trigger_tool_change", "tool_change", "Says that the list of tools changed."
    ),
    _suite(
        "trigger_prompt_change",
        "prompt_change",
        "Says that the list of prompts changed.",
    ),
    _input("elicitation", "elicitation", "Needs the person's name."),
    _input("sampling", "sampling", "Needs the client's model."),
    _input("list_roots", "roots", "Needs the client's roots."),
    _input(
        "request_state",
        "state",
        "Needs a confirmation, and the state that came with the question.",
    ),
    _input("multiple_inputs", "multiple", "Needs three answers at once."),
    _input("multi_round", "rounds", "Needs two answers, one after the other."),
    _input("tampered_state", "state", "Refuses a state that was tampered with."),
    _input("capabilities", "capabilities", "Asks what this client can answer."),
    _suite("x_mcp_header", "mirrored", "Has a parameter that a header repeats."),
    _row(
        "json_schema_2020_12_tool",
        "Has parameters described with draft 2020-12.",
        "text",
        {"content": [contents.SIMPLE]},
        input_schema=json.dumps(contents.SCHEMA_2020_12),
    ),
)

DRILL_TOOLS: Final = (
    _reading("add", "Adds two integers on the event loop."),
    _reading("add_sync", "Adds two integers in a thread."),
    _reading("echo", "Returns the value as it came."),
    _drill("count", "Sends n notifications."),
    _reading("sleep", "Sleeps on the event loop."),
    _reading("sleep_sync", "Sleeps in a thread."),
    _drill(
        "ledger", "Enters one line under the key, sleeps, and counts the key's lines."
    ),
    _drill("ask", "Asks the person on the event loop."),
    _drill("ask_sync", "Asks the person in a thread."),
    _drill(
        "ask_database", "Asks the person from an async function that uses the database."
    ),
    _drill("ask_atomic", "Asks the person inside a transaction, which is refused."),
    _drill(
        "ask_twice", "Asks the person, enters one line under the question, asks again."
    ),
    _drill("touch", "Says that the resource changed."),
    _drill("log", "Sends one log message."),
    _drill("fail", "Fails in the ordered way."),
    _reading("whoami", "Says who calls."),
    _drill("ask_url", "Sends the person to a page."),
    _drill("ask_url_sync", "Sends the person to a page, from a thread."),
    _text("test_resource_link", "Returns a link to a resource.", contents.LINK),
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
        {"base64": contents.PNG},
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
        {"text": contents.TEMPLATE_TEXT},
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
    _input("prompt", "prompt", "A prompt that needs to know its context."),
)
