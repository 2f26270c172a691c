"""The kind `text`: content that staff wrote, with `{{name}}` filled in.

Configs, as JSON:

- tool: `{"content": [block, …], "is_error": false, "structured": {…}}`; only
  `content` is required; names are the properties of the input schema;
- resource: `{"text": "…"}`, `{"base64": "…"}` or `{"upload": "<digest>"}`, as it is;
- template: `{"text": "…"}`; names are the template's variables;
- prompt: `{"messages": [{"role": "user", "content": block}, …]}`; `role` may be
  left out; names are the prompt's arguments.

Blocks are those of `mcp_app.kinds.blocks`; placeholders may stand in each string.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.findings import Finding, advice, must_fix
from mcp_app.catalog.runnable import Runnable
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.questions import PromptMessage, PromptOutput, ToolOutput
from mcp_app.interface.rules import visible
from mcp_app.kinds import placeholders
from mcp_app.kinds.blocks import (
    block_from_json,
    block_words,
    content_bytes,
    require_object,
    text_member,
)
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    Description,
    Effect,
    Incomplete,
    Kind,
    KindError,
    Uploads,
    refuse_unknown_members,
)
from mcp_app.protocol.content import Role
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text
from mcp_app.protocol.uri_templates import UriTemplate

Output = TypeVar("Output")
Part = TypeVar("Part")
Values = Mapping[str, object]

# Fills placeholders in checks: it is valid in a URI, and as a whole URI.
_SAMPLE = "a:a"
UNUSED = "parameter-unused"
_ROLES = ("user", "assistant")


class TextKind(Kind):
    """Runs no code of a site: it only fills in names."""

    name = gettext_lazy("Answer with a text")
    guarded = False
    effect = Effect.NOTHING
    examples = {
        ToolDefinition: gettext_lazy(
            "The same text each time, perhaps with the arguments filled"
            " in. Example: “Our opening hours”."
        ),
        ResourceDefinition: gettext_lazy(
            "A text or a file. Examples: “Our returns policy”, a price list."
        ),
        ResourceTemplateDefinition: gettext_lazy(
            "One text for many addresses. Example: “Order {{number}}”."
        ),
        PromptDefinition: gettext_lazy(
            "Messages with gaps to fill in. Example: “Answer a complaint”."
        ),
    }
    forms = {
        ToolDefinition: "mcp_app.admin.forms.tool.TextToolForm",
        ResourceDefinition: "mcp_app.admin.forms.resource.TextResourceForm",
        ResourceTemplateDefinition: "mcp_app.admin.forms.resource.TextTemplateForm",
        PromptDefinition: "mcp_app.admin.forms.prompt.TextPromptForm",
    }

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        return [*_described_parts(config)]

    def tool_runnable(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        _refuse_empty(config, _("Write the text of the answer."))
        refuse_unknown_members(config, "content", "is_error", "structured")
        is_error = config.get("is_error", False)
        if not isinstance(is_error, bool):
            raise KindError("“is_error” must be true or false.")
        names = _Names(properties_of(definition), "parameter")
        block = partial(block_from_json, uploads=uploads)
        items = _required_entries(config, "content")
        blocks = [names.part_builder(item, block) for item in items]
        structured = names.part_builder(config.get("structured"), _structured_content)
        if definition.output_schema and not is_error and not config.get("structured"):
            raise KindError(
                "The output schema requires structured content, but “structured” is"
                " missing.",
                "output_schema",
            )

        def run(values: Values) -> ToolOutput:
            content = [part(values) for part in blocks]
            return ToolOutput(content, structured=structured(values), is_error=is_error)

        return inline_runnable(run)

    def resource_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[object]:
        _refuse_empty(config, _("Write the text, or give a file."))
        refuse_unknown_members(config, "text", "base64", "upload")
        if len(config) != 1:
            raise KindError("Give one of “text”, “base64” and “upload”.")
        content: str | bytes
        if "text" in config:
            content = text_member(config, "text")
        else:
            content = content_bytes(config, "base64", uploads)
        return inline_runnable(lambda values: content)

    def template_runnable(
        self,
        definition: ResourceTemplateDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[object]:
        _refuse_empty(config, _("Write the text of the answer."))
        refuse_unknown_members(config, "text")
        names = _Names(UriTemplate.parse(definition.uri_template).variables, "variable")
        return inline_runnable(names.part_builder(text_member(config, "text"), str))

    def prompt_runnable(
        self,
        definition: PromptDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[PromptOutput]:
        _refuse_empty(config, _("Write at least one message."))
        refuse_unknown_members(config, "messages")
        names = _Names([argument.name for argument in definition.arguments], "argument")
        message = partial(_prompt_message, uploads=uploads)
        items = _required_entries(config, "messages")
        parts = [names.part_builder(item, message) for item in items]

        def run(values: Values) -> PromptOutput:
            messages = [part(values) for part in parts]
            return PromptOutput(messages, definition.description)

        return inline_runnable(run)

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        """Return findings for names that no placeholder uses."""
        names: Iterable[str] = ()
        tell, message = partial(advice, UNUSED, ""), ""
        if isinstance(definition, ToolDefinition):
            message = _(
                "The parameter %(name)s is not used anywhere. Use it in the text, or"
                " remove it."
            )
            names = properties_of(definition)
            tell = partial(must_fix, UNUSED, "input_schema")
        elif isinstance(definition, PromptDefinition):
            names = [argument.name for argument in definition.arguments]
            tell = partial(advice, UNUSED, "arguments")
            message = _("The argument %(name)s is never used.")
        elif isinstance(definition, ResourceTemplateDefinition):
            names = UriTemplate.parse(definition.uri_template).variables
            tell = partial(advice, UNUSED, "uri_template")
            message = _("The variable %(name)s is never used.")
        used = placeholders.names_in_value(config)
        return unused_findings(names, used, tell, message)


def _described_parts(config: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each text, file and message, and all other members as JSON."""
    members = dict(config)
    if isinstance(members.get("text"), str):
        yield _("Text"), members.pop("text")
    blocks, messages = (
        members.pop(name) if isinstance(members.get(name), list) else ()
        for name in ("content", "messages")
    )
    for number, block in enumerate(blocks, 1):
        part = _("Part %(number)d of the answer") % {"number": number}
        is_text = isinstance(block, dict) and block.keys() == {"type", "text"}
        yield _("Text") if is_text and len(blocks) == 1 else part, block_words(block)
    for number, message in enumerate(messages, 1):
        yield _("Message %(number)d") % {"number": number}, _message_words(message)
    if "upload" in members:
        yield _("File"), _("fingerprint %(digest)s") % {"digest": members.pop("upload")}
    if members.pop("is_error", False):
        yield _("The answer is"), _("an error")
    for name, value in members.items():
        yield capfirst(name), pretty_text(value)


def _message_words(message: Any) -> str:
    if not isinstance(message, dict):
        return pretty_text(message)
    role = _("Assistant") if message.get("role") == "assistant" else _("User")
    return f"{role}: {block_words(message.get('content'))}"


class _Names:
    """The names that placeholders may have; `noun` says what they are."""

    def __init__(self, names: Collection[str], noun: str) -> None:
        self._samples = dict.fromkeys(names, _SAMPLE)
        self._noun = noun

    def part_builder(
        self, value: Any, build: Callable[[Any], Part]
    ) -> Callable[[Values], Part]:
        """Return a function that builds a part of the answer from a call's values."""
        is_filled = placeholders.check_placeholders(value, self._samples, self._noun)
        # This also checks the config before any call.
        fixed = build(placeholders.fill_placeholders(value, self._samples))

        def build_filled(values: Values) -> Part:
            if not is_filled:
                return fixed
            try:
                return build(placeholders.fill_placeholders(value, values))
            except KindError as error:
                raise InvalidParams(error.message) from None

        return build_filled


def _refuse_empty(config: JsonObject, message: str) -> None:
    if not config:
        raise Incomplete(message)


def inline_runnable(run: Callable[[Values], Output]) -> Runnable[Output]:
    """Return a runnable that calls our function on the loop, with plain arguments."""
    return Runnable(
        run=run,
        style="inline",
        bind=lambda arguments: {"values": arguments},
        convert=lambda output: cast("Output", output),
    )


def unused_findings(
    names: Iterable[str],
    used: Collection[str],
    tell: Callable[[str], Finding],
    message: str,
) -> list[Finding]:
    """Return a finding for each name that no placeholder uses."""
    unused = (name for name in names if name not in used)
    return [tell(message % {"name": visible(name)}) for name in unused]


def properties_of(definition: ToolDefinition) -> Collection[str]:
    """Return the names of a tool's parameters."""
    properties = definition.input_schema.get("properties")
    return properties if isinstance(properties, dict) else ()


def _required_entries(config: JsonObject, name: str) -> list[Any]:
    items = config.get(name)
    if not isinstance(items, list) or not items:
        raise KindError(f"“{name}” must be a list with at least one entry.")
    return items


def _structured_content(value: Any) -> JsonObject | None:
    return None if value is None else require_object(value, "“structured”")


def _prompt_message(value: Any, uploads: Uploads) -> PromptMessage:
    message = require_object(value, "A message")
    refuse_unknown_members(message, "role", "content")
    role = message.get("role", "user")
    if role not in _ROLES:
        raise KindError("The role of a message must be user or assistant.")
    return PromptMessage(
        block_from_json(message.get("content"), uploads), cast("Role", role)
    )
