"""Results in the form of each revision: `resultType`, caching hints, lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp_app.protocol.apps import tool_meta
from mcp_app.protocol.negotiation import SERVER_INFO, SUBSCRIPTION_ID
from mcp_app.protocol.tasks import FORBIDDEN, OPTIONAL

if TYPE_CHECKING:
    from mcp_app.protocol.json_types import JsonObject
    from mcp_app.protocol.revisions import Revision


# -- meta ------------------------------------------------------------------------------
# Which keys `_meta` may have (basic, "`_meta`", 2026-07-28).

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = re.compile(
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?"
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?"
)
_RESERVED_LABELS = frozenset({"modelcontextprotocol", "mcp"})
_RESERVED_KEYS = frozenset({"progressToken"})


class ReceivedMeta(dict[str, object]):
    """A `_meta` from the other side, which is sent back unchanged."""


def meta_key_problem(key: str) -> str | None:
    """Return a sentence if we may not write this key of `_meta`, else None.

    The keys of OpenTelemetry (`traceparent` and others) have no prefix and are fine.
    """
    match = _KEY.fullmatch(key)
    if match is None:
        return (
            f"{key[:80]!r} cannot be a key of _meta. Use a name of letters A-Z and"
            " a-z, digits and _ - . that begins and ends with a letter or digit,"
            " with or without a prefix such as com.example/."
        )
    # A prefix is reserved if its second label is, such as com.mcp.tools/.
    second_label = (match["prefix"] or "").lower().split(".")[1:2]
    if key in _RESERVED_KEYS or not _RESERVED_LABELS.isdisjoint(second_label):
        return (
            f"The key {key[:80]!r} of _meta is reserved for the protocol: use a prefix"
            " of your own, such as com.example/."
        )
    return None


def check_meta(meta: Mapping[str, object]) -> None:
    """Raise ValueError if a `_meta` that we write has a key that we may not write."""
    if isinstance(meta, ReceivedMeta):
        return
    for problem in filter(None, map(meta_key_problem, meta)):
        raise ValueError(problem)


# -- results ---------------------------------------------------------------------------

CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
CAPABILITIES_WHOLE: Mapping[str, Mapping[str, bool]] = {
    name: {} for name in ("tools", "resources", "prompts", "completions")
}
"""The capabilities if no stream can be kept open, and so nothing can be announced."""


@dataclass(frozen=True, slots=True)
class CacheHint:
    """`ttl_ms` is in milliseconds; `public` results do not depend on the user."""

    ttl_ms: int
    public: bool

    def to_wire(self) -> JsonObject:
        return {
            "ttlMs": self.ttl_ms,
            "cacheScope": "public" if self.public else "private",
        }


def complete_result(
    result: JsonObject,
    revision: Revision,
    server_info: object,
    hint: CacheHint | None = None,
) -> JsonObject:
    """Add the members that the revision wants in every result; return the result.

    `server_info` is JSON, or already encoded (`orjson.Fragment`).
    """
    if revision.result_type:
        result.setdefault("resultType", "complete")
    if hint is not None and revision.cache_hints:
        result.update(hint.to_wire())
    if revision.server_info_in_results:
        result["_meta"] = {**(result.get("_meta") or {}), SERVER_INFO: server_info}
    return result


def input_required(questions: JsonObject, state: str) -> JsonObject:
    """Return an `InputRequiredResult` (2026-07-28, basic/patterns/mrtr)."""
    return {
        "resultType": "input_required",
        "inputRequests": questions,
        "requestState": state,
    }


def capabilities(
    revision: Revision, *more: Mapping[str, Any], streams: bool = True
) -> JsonObject:
    """Return the capabilities of this server, in the form of that revision.

    `more` are members for further capabilities: tasks, events.
    """
    base = CAPABILITIES if streams else CAPABILITIES_WHOLE
    extensions = {
        key: value
        for members in more
        for key, value in members.get("extensions", {}).items()
    }
    added = {key: value for members in more for key, value in members.items()}
    added |= {"extensions": extensions} if extensions else {}
    return revision.known_members("capabilities", {**base, **added})


def subscription_meta(
    subscription: str | int, params: Mapping[str, object]
) -> JsonObject:
    """Return notification parameters with the id of their `subscriptions/listen`."""
    return {**params, "_meta": {SUBSCRIPTION_ID: subscription}}


# -- lists -----------------------------------------------------------------------------
# Definitions in the form of the lists of each revision.

Definition: TypeAlias = Any
"""A definition of `interface.definitions`, which this room does not import."""


def _describe_members(definition: Definition, **members: object) -> JsonObject:
    described = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "_meta": dict(definition.meta),
        **members,
        "icons": [icon.to_wire() for icon in definition.icons],
    }
    # Empty texts, lists and objects are left out; schemas are never empty.
    return {
        name: value
        for name, value in described.items()
        if value not in ("", [], {}, None)
    }


def tool_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Tool`."""
    hints = definition.hints.to_wire()
    if definition.title and "title" not in revision.fields["tool"]:
        # 2025-03-26 knows a tool's title as an annotation only.
        hints["title"] = definition.title
    app_meta = tool_meta(definition.app, app_only=definition.app_only)
    members = _describe_members(
        definition,
        _meta={**app_meta, **definition.meta},
        inputSchema=input_schema(definition.input_schema, revision),
        outputSchema=output_schema(definition),
        annotations=hints,
        execution=None
        if definition.task_support == FORBIDDEN
        else {"taskSupport": definition.task_support},
    )
    return revision.known_members("tool", members)


def input_schema(schema: Mapping[str, object], revision: Revision) -> JsonObject:
    """Return a tool's schema in the form that the revision's own schema requires.

    Until 2025-11-25, the schema of a property is an object: `true` becomes `{}`.
    """
    result = {"type": "object", **schema}
    properties = schema.get("properties")
    if revision.boolean_subschemas or not isinstance(properties, Mapping):
        return result
    objects: dict[bool, JsonObject] = {True: {}, False: {"not": {}}}
    result["properties"] = {
        name: objects[value] if isinstance(value, bool) else value
        for name, value in properties.items()
    }
    return result


STILL_RUNS_MEMBER: Final = "still_runs"
"""A member of a call's answer if its task still runs: how to get the result."""
_STILL_RUNS: Final = {
    "type": "object",
    "properties": {STILL_RUNS_MEMBER: {"type": "string"}},
    "required": [STILL_RUNS_MEMBER],
    "additionalProperties": False,
}
_OF_ROOT: Final = ("$schema", "$defs", "definitions")
"""Members that stay at the root of a schema, where references find them."""


def output_schema(definition: Definition) -> Mapping[str, object] | None:
    """Return the schema of a tool's answers: a result, or that its task still runs."""
    schema: Mapping[str, object] | None = definition.output_schema
    # For a client without tasks, such a tool is a plain call, and has no task.
    at_once = definition.ask_first and definition.approval is None
    if schema is None or definition.task_support != OPTIONAL or at_once:
        return schema
    root = {name: schema[name] for name in _OF_ROOT if name in schema}
    result = {name: each for name, each in schema.items() if name not in root}
    return {"type": "object", "anyOf": [result, _STILL_RUNS], **root}


def _readable_members(definition: Definition, **members: object) -> JsonObject:
    return _describe_members(
        definition,
        mimeType=definition.mime_type,
        annotations=definition.annotations and definition.annotations.to_wire(),
        **members,
    )


def _filter_members(kind: str, members: JsonObject, revision: Revision) -> JsonObject:
    wire = revision.known_members(kind, members)
    if isinstance(annotations := wire.get("annotations"), dict):
        wire["annotations"] = revision.known_members("annotations", annotations)
    return wire


def resource_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Resource`."""
    members = _readable_members(definition, uri=definition.uri, size=definition.size)
    return _filter_members("resource", members, revision)


def template_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `ResourceTemplate`."""
    members = _readable_members(definition, uriTemplate=definition.uri_template)
    return _filter_members("template", members, revision)


def prompt_to_wire(definition: Definition, revision: Revision) -> JsonObject:
    """Return a `Prompt`."""
    arguments = [_argument_to_wire(each, revision) for each in definition.arguments]
    return revision.known_members(
        "prompt", _describe_members(definition, arguments=arguments)
    )


def _argument_to_wire(argument: Definition, revision: Revision) -> JsonObject:
    members = {
        "name": argument.name,
        "title": argument.title,
        "description": argument.description,
        "required": argument.required,
    }
    non_empty = {name: value for name, value in members.items() if value != ""}
    return revision.known_members("prompt_argument", non_empty)
