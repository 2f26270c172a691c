"""Call a tool of a server as a user, without a port."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import json
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mcp_app.interface.call_record import Outcome
from mcp_app.interface.rules import visible
from mcp_app.management.options import NOT_SERVED, add_caller_options, run_as
from mcp_app.process.current import process
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import UnserializableValue
from mcp_app.transports.in_process import (
    Caller,
    Failure,
    InProcessClient,
    Message,
    check_form,
)
from mcp_app.workbench.trying.listings import listed_items

TOOL_ERROR: Final = 1
BAD_ARGUMENTS: Final = 3
NOT_AGREED: Final = 4
INTERRUPTED: Final = 130
"""What shells report after Ctrl+C: 128, and 2 for SIGINT."""
CAPABILITIES: Final[JsonObject] = {"elicitation": {"form": {}, "url": {}}}


class Command(BaseCommand):
    help = (
        "Calls a tool as a user, in this process: its result goes to standard output,"
        " progress and log messages to standard error. The tool's own options come"
        " after its name, such as `mcp_call order_get --number 7`. The exit status is 1"
        " if the tool fails, 2 if it is not there for this user, 3 if its arguments are"
        " wrong, and 4 if it may change something and nobody agreed."
    )
    requires_system_checks = []

    def create_parser(self, *args: Any, **keywords: Any) -> CommandParser:
        parser = super().create_parser(*args, **keywords)
        # The tool's options are not known before its server has been asked.
        parser.allow_abbrev = False
        parser.parse_args = partial(_parse_known_options, parser)  # type: ignore[assignment]
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="The name of the tool.")
        add_caller_options(parser)
        parser.add_argument(
            "--arguments",
            metavar="JSON",
            help="All arguments as one JSON object; - reads it from standard input.",
        )
        parser.add_argument("--json", action="store_true", help="Print the raw result.")
        parser.add_argument(
            "--yes",
            action="store_true",
            help="Do not ask before a tool changes things.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            # Text that a tool prints is no result.
            with redirect_stdout(sys.stderr):
                answer = run_as(
                    options["user"], CAPABILITIES, partial(self._call_tool, options)
                )
        except (UnserializableValue, Failure) as error:
            raise _usage_error(str(error)) from None
        except KeyboardInterrupt:
            raise CommandError(
                "The call was cancelled.", returncode=INTERRUPTED
            ) from None
        if "error" in answer:
            raise CommandError(
                visible(answer["error"]["message"]), returncode=NOT_SERVED
            )
        self._print_result(answer["result"], as_json=options["json"])
        if answer["result"].get("isError"):
            refused = self._outcome == Outcome.ARGUMENTS
            raise SystemExit(BAD_ARGUMENTS if refused else TOOL_ERROR)

    async def _call_tool(
        self, options: Mapping[str, Any], caller: Caller
    ) -> JsonObject:
        """Return the message that answers the call."""
        client = InProcessClient(
            process(),
            options["server"],
            caller,
            respond=self._answer_question,
            observe=self._show_message,
        )
        await client.check_served()
        tool = await _find_tool(client, options["name"])
        arguments = _read_arguments(options, tool["inputSchema"])
        if not options["yes"]:
            await _confirm_change(tool)
        params: JsonObject = {"name": options["name"], "arguments": arguments}
        answer = await client.converse("tools/call", params)
        self._outcome = client.run.ending.outcome if client.run else ""
        return answer

    async def _answer_question(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the person at the terminal; elsewhere the question is declined."""
        if not _has_terminal():
            self.stderr.write(f"Declined: {visible(params['message'])}")
            return {"action": "decline"}
        self.stderr.write(visible(params["message"]))
        if "url" in params:
            agreed = await _is_agreed(f"Open {visible(params['url'])}?")
            return {"action": "accept" if agreed else "decline"}
        while True:
            content = await _fill_in_form(params["requestedSchema"])
            try:
                check_form(params, content)
            except ValueError as error:
                self.stderr.write(visible(str(error), None))
            else:
                return {"action": "accept", "content": content}

    def _show_message(self, message: Message) -> None:
        """Print progress and log messages."""
        if message.from_client:
            return
        content: JsonObject = json.loads(message.text)
        params = content.get("params", {})
        if content.get("method") == "notifications/progress":
            total = f"/{params['total']:g}" if "total" in params else ""
            text = visible(params.get("message", ""))
            self.stderr.write(f"{params['progress']:g}{total} {text}".rstrip())
        elif content.get("method") == "notifications/message":
            data = params["data"]
            text = data if isinstance(data, str) else json.dumps(data)
            self.stderr.write(f"{params['level']}: {visible(text)}")

    def _print_result(self, result: JsonObject, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
        else:
            for block in result["content"]:
                text = block.get("text")
                shown = json.dumps(block) if text is None else visible(text, None)
                self.stdout.write(shown)


async def _fill_in_form(form: JsonObject) -> JsonObject:
    content: JsonObject = {}
    for name, schema in form.get("properties", {}).items():
        label = visible(schema.get("title", name))
        text = await _ask_line(f"  {label}{_hint(schema)}: ")
        if schema.get("type") == "boolean":
            text = {"y": "true", "yes": "true", "n": "false", "no": "false"}.get(
                text.lower(), text
            )
        if text:
            content[name] = _value_of_text(text, schema)
        elif "default" in schema:
            content[name] = schema["default"]
    return content


async def _confirm_change(tool: JsonObject) -> None:
    """Ask whether a tool that may change something shall run."""
    if tool.get("annotations", {}).get("readOnlyHint"):
        return
    changes, refused = f"{tool['name']} may change something.", "Nothing was called."
    if not _has_terminal():
        refused = f"{changes} Add --yes to call it."
    elif await _is_agreed(f"{changes} Call it?"):
        return
    raise CommandError(refused, returncode=NOT_AGREED)


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def _is_agreed(question: str) -> bool:
    return (await _ask_line(f"{question} [y/N] ")).lower() in ("y", "yes")


def _parse_known_options(
    parser: CommandParser, args: Sequence[str] | None = None
) -> argparse.Namespace:
    """Parse the options of the command; `rest` gets the words for the tool."""
    options, words = argparse.ArgumentParser.parse_known_args(parser, args)
    options.rest = words
    return options


async def _find_tool(client: InProcessClient, name: str) -> JsonObject:
    """Return a tool as it is listed; raise CommandError if it is not offered."""
    tools = [each async for each in listed_items(client, "tools/list", "tools")]
    for tool in tools:
        if tool["name"] == name:
            return tool
    close = difflib.get_close_matches(name, [tool["name"] for tool in tools], 1)
    meant = f" Did you mean {close[0]!r}?" if close else ""
    raise CommandError(
        f"There is no tool {name!r} for this user.{meant} `mcp_list` shows what there"
        " is.",
        returncode=NOT_SERVED,
    )


def _read_arguments(options: Mapping[str, Any], schema: JsonObject) -> JsonObject:
    """Return the tool's arguments; raise CommandError if they cannot be read."""
    properties: JsonObject = schema.get("properties", {})
    arguments = _read_json(options["arguments"])
    texts_by_name: dict[str, list[str]] = {}
    words = deque(options.get("rest") or ())
    while words:
        option, has_value, text = words.popleft().partition("=")
        name = option.removeprefix("--")
        if name not in properties:
            name = name.replace("-", "_")
        if name not in properties or not option.startswith("--"):
            names = ", ".join(f"--{each}" for each in properties) or "none"
            raise _usage_error(
                f"{option} is no option of {options['name']}. It has: {names}."
            )
        if not has_value:
            is_switch = not words or words[0].startswith("--")
            text = "true" if is_switch else words.popleft()
        texts_by_name.setdefault(name, []).append(text)
    for name, texts in texts_by_name.items():
        arguments[name] = _value_of_option(name, texts, properties[name])
    return arguments


def _usage_error(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=BAD_ARGUMENTS)


def _read_json(text: str | None) -> JsonObject:
    """Return the object of `--arguments`."""
    if text is None:
        return {}
    try:
        value = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise _usage_error(f"--arguments is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise _usage_error(
            f"--arguments must be a JSON object, and not {value!r:.100}."
        )
    return value


def _value_of_option(name: str, texts: list[str], schema: object) -> object:
    if "array" in _types_of(schema) and not texts[0].startswith("["):
        items = schema.get("items", {}) if isinstance(schema, dict) else {}
        return [_value_of_text(text, items) for text in texts]
    if len(texts) > 1:
        raise _usage_error(f"--{name} was given {len(texts)} times.")
    return _value_of_text(texts[0], schema)


def _value_of_text(text: str, schema: object) -> object:
    """Return the value that a text stands for; the server judges whether it fits."""
    types = _types_of(schema)
    # The text “null” is a text, unless null is allowed, too.
    if "string" in types and (text != "null" or "null" not in types):
        return text
    if "boolean" in types and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return json.loads(text)
    except ValueError:
        return text


def _types_of(schema: object) -> set[str]:
    """Return the JSON types that a schema allows, as far as it names them."""
    if not isinstance(schema, dict):
        return set()
    stated = schema.get("type", [])
    types = {stated} if isinstance(stated, str) else set(stated)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        types |= _types_of(each)
    if "enum" in schema or "const" in schema:
        values = [*schema.get("enum", ()), schema.get("const")]
        types |= {"string"} if any(isinstance(each, str) for each in values) else set()
    return types


def _hint(schema: JsonObject) -> str:
    """Return the possible answers, in brackets."""
    choices = [*schema.get("enum", ())]
    choices += [each.get("const") for each in schema.get("oneOf", ())]
    parts = ["/".join(map(str, choices)) or str(schema.get("type", ""))]
    if schema.get("type") == "boolean":
        parts = ["y/n"]
    if "default" in schema:
        parts.append(f"default {schema['default']}")
    return f" ({', '.join(parts)})"


async def _ask_line(text: str) -> str:
    """Return a line that a person types, without blocking the call that waits."""
    sys.stderr.write(text)
    sys.stderr.flush()
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(sys.stdin, typed.set_result, None)
    except NotImplementedError:
        # Windows: the line is read in a thread, which Ctrl+C cannot end.
        line: str = await asyncio.to_thread(sys.stdin.readline)
        return line.strip()
    try:
        await typed
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline().strip()
