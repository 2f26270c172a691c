"""Turns what functions return into what clients get.

The declared return type decides about structured content, never the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeGuard, cast, get_args

from django.utils.functional import Promise
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from mcp_app.catalog.callables import MISSING
from mcp_app.catalog.json_schemas import json_schema, type_adapter
from mcp_app.catalog.type_hints import (
    SCALARS,
    Annotation,
    ScalarOutput,
    bare_hint,
    hint_origin,
    is_kind,
    scalar_schema,
    union_members,
)
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.questions import (
    Completion,
    PromptMessage,
    PromptOutput,
    ResourceOutput,
    ToolOutput,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Block, ResourceContents, Role, Text
from mcp_app.protocol.errors import ResourceNotFound
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.texts import CleanBlocks, json_text

_ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class ToolReturns:
    """The schema of a tool's structured content, and the function that makes it.

    If `schema` is None, only a `ToolOutput` can bring structured content.  `convert`
    raises TypeError or `UnserializableValue` for a value that has no JSON form; it does
    not check whether the value fits the schema.
    """

    schema: JsonObject | None
    convert: Callable[[object], ToolOutput]


def tool_returns(owner: str, annotation: Annotation) -> ToolReturns:
    """Read a return annotation; raise `RegistrationError` if it has no JSON form."""
    returned = bare_hint(annotation)
    if returned in (MISSING, None, type(None)):
        return ToolReturns(None, content_output)
    if _is_content(returned):
        return ToolReturns(None, partial(content_output, several=True))
    if returned in SCALARS:
        return ToolReturns(scalar_schema(returned), scalar_output)
    try:
        types = type_adapter(owner, annotation)
        schema = json_schema(owner, types, "serialization")
    except RegistrationError:
        # Models can be imported only after Django is set up.
        from mcp_app.catalog.django_types import check_result  # noqa: PLC0415

        check_result(owner, annotation)
        raise
    is_object = schema.get("type") == "object"

    def convert(value: object) -> ToolOutput:
        if isinstance(value, ToolOutput):
            return value
        plain = _dump_value(types, value)
        if not is_object:
            return _result_output(plain)
        structured = cast("Mapping[str, object]", plain)
        return ToolOutput(_json_blocks(plain), structured=structured)

    return ToolReturns(schema if is_object else _wrapped_schema(schema), convert)


def content_output(value: object, *, several: bool = False) -> ToolOutput:
    """Return a result without a declared type as an output: its blocks, or its text.

    With `several` each item of a list becomes a block, also if none is a `Block`.
    """
    if isinstance(value, ToolOutput):
        return value
    if value is None:
        return ToolOutput(())
    if _is_sequence(value) and (several or any(isinstance(i, Block) for i in value)):
        return ToolOutput(tuple(map(_content_block, value)))
    return ToolOutput((_content_block(value),))


def resource_output(
    value: object, *, uri: str, mime_type: str, meta: JsonObject | None = None
) -> ResourceOutput:
    """Return the result of a resource's function, under the URI that was requested.

    Text and bytes become contents, other values become JSON; None means that there is
    no such resource.  `mime_type` is the declared one, "" for none.  Contents that
    this function makes get the `meta`.
    """
    if value is None:
        raise ResourceNotFound(uri)
    if isinstance(value, ResourceOutput):
        return value
    items = value if _is_sequence(value) else (value,)
    contents = tuple(item for item in items if isinstance(item, ResourceContents))
    if contents and len(contents) == len(items):
        return ResourceOutput(contents)
    return ResourceOutput((replace(_build_contents(value, uri, mime_type), meta=meta),))


def prompt_output(value: object) -> PromptOutput:
    """Return the result of a prompt's function; a string is a message of the user."""
    if isinstance(value, PromptOutput):
        return value
    items = value if _is_sequence(value) else (value,)
    return PromptOutput(tuple(map(_prompt_message, items)))


def completion(value: object) -> Completion:
    """Return the result of a completer: the values, best first."""
    if isinstance(value, Completion):
        return value
    if value is None:
        return Completion(())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return Completion([str(item) for item in value])
    return Completion([str(value)])


def jsonable_value(value: object) -> object:
    """Return any value in its JSON form; bytes are base64, querysets lists.

    Raises TypeError if a value has none.
    """
    return to_jsonable_python(
        value, by_alias=True, bytes_mode="base64", fallback=_nearer_to_json
    )


def _is_content(returned: Annotation) -> bool:
    """Whether a hint is of blocks: one, a union, or a sequence, also with texts."""
    alternatives = list(union_members(returned))
    items = [item for alternative in alternatives for item in _item_types(alternative)]
    has_blocks = any(is_kind(item, Block, ToolOutput) for item in items)
    return has_blocks and all(
        is_kind(item, Block, ToolOutput, str, type(None)) for item in items
    )


def _item_types(annotation: Annotation) -> Iterator[Annotation]:
    outer = hint_origin(annotation)
    if not is_kind(outer, Iterable) or is_kind(outer, Mapping):
        yield annotation
        return
    for argument in get_args(annotation):
        if argument is not Ellipsis:
            yield from union_members(argument)


def _wrapped_schema(schema: JsonObject) -> JsonObject:
    inner = dict(schema)
    definitions = inner.pop("$defs", None)
    whole = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return {**whole, "$defs": definitions} if definitions else whole


def scalar_output(value: object) -> ToolOutput:
    """Convert the result of a function whose output is one scalar."""
    if type(value) in SCALARS:
        return ScalarOutput(value)
    if isinstance(value, ToolOutput):
        return value
    return _result_output(jsonable_value(value))


def _result_output(plain: object) -> ToolOutput:
    blocks = (Text(plain),) if isinstance(plain, str) else _json_blocks(plain)
    return ToolOutput(blocks, structured={"result": plain})


def _dump_value(types: TypeAdapter[object], value: object) -> object:
    """Dump a value by the declared type, or by its own type if it does not fit."""
    try:
        return types.dump_python(
            value, mode="json", by_alias=True, warnings=False, fallback=_nearer_to_json
        )
    except (PydanticSerializationError, TypeError, UnicodeDecodeError):
        return jsonable_value(value)


def _nearer_to_json(value: object) -> object:
    """Convert a value that pydantic cannot write: a lazy text, or an iterable."""
    if isinstance(value, Promise):
        return str(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(
        f"A {type(value).__qualname__} cannot be written as JSON. Return only what"
        " the client should get."
    )


def _json_blocks(plain: object) -> CleanBlocks:
    return CleanBlocks((Text(json_text(plain)),))


def _is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _content_block(value: object) -> Block:
    if isinstance(value, Block):
        return value
    plain = jsonable_value(value)
    return Text(plain if isinstance(plain, str) else json_text(plain))


def _build_contents(value: object, uri: str, mime_type: str) -> ResourceContents:
    if isinstance(value, bytes):
        kind = mime_type or "application/octet-stream"
        return ResourceContents(uri=uri, blob=value, mime_type=kind)
    text, kind = jsonable_value(value), "text/plain"
    if not isinstance(text, str):
        text, kind = jsonrpc.write(text).decode(), "application/json"
    return ResourceContents(uri=uri, text=text, mime_type=mime_type or kind)


def _prompt_message(value: object) -> PromptMessage:
    if isinstance(value, PromptMessage):
        return value
    if isinstance(value, str | Block):
        return PromptMessage(_content_block(value))
    if isinstance(value, Mapping) and value.keys() == {"role", "content"}:
        content, role = value["content"], value["role"]
        if role in _ROLES and isinstance(content, str | Block):
            return PromptMessage(_content_block(content), cast("Role", role))
    raise TypeError(
        "A message of a prompt is a string, a block, a PromptMessage, or a mapping of "
        'role ("user" or "assistant") and content (a string or a block), not '
        f"{value!r:.200}."
    )
