"""Arguments that a model sent as strings: read as JSON if no string is allowed there.

Models sometimes send a number, a boolean, a list or an object as text.  The reader
walks through the arguments beside the schema, and reads text only if the schema allows
no string there.  The validator then says whether the result fits.

The walk ends after `MOST_STEPS`, because with many alternatives in the schema, or with
many texts, it would take seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import InvalidParams, ParseError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schema_graph import resolve_pointer

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import EventEntry, ToolEntry
    from mcp_app.protocol.schemas import Violation

# -- parameters ------------------------------------------------------------------------
# Reading the parameters of a request, with errors that name the member.


def string_member(params: JsonObject, name: str, path: str = "params") -> str:
    """Return a required string."""
    value = params.get(name)
    if type(value) is not str:
        raise InvalidParams(f"{path}.{name} must be a string.")
    return value


def object_member(
    params: JsonObject, name: str, path: str = "params", *, required: bool = False
) -> JsonObject:
    """Return an object; an optional one that is absent, or null, is empty."""
    value = params.get(name)
    if value is None and not required:
        return {}
    if type(value) is not dict:
        raise InvalidParams(f"{path}.{name} must be an object.")
    return value


def strings_member(
    params: JsonObject, name: str, path: str = "params"
) -> dict[str, str]:
    """Return an optional object whose values are strings."""
    values = object_member(params, name, path)
    for key, value in values.items():
        if type(value) is not str:
            raise InvalidParams(f"{path}.{name}[{key!r}] must be a string.")
    return values


# -- coercion --------------------------------------------------------------------------

Schema: TypeAlias = Mapping[str, object]

MOST_STEPS: Final = 400_000
"""Steps of a walk, at most: each value, schema and value within a text is one."""
READING: Final = 5
"""Steps that reading a text takes in addition."""

_ALTERNATIVES: Final = ("anyOf", "oneOf")
_SAME_PLACE: Final = (*_ALTERNATIVES, "allOf")
"""Keywords whose schemas apply to the same value as the schema with the keyword."""


def read_strings(schema: object, arguments: JsonObject) -> JsonObject:
    """Return the arguments with strings read as JSON if no string is allowed there.

    Members of objects and entries of lists are read, too.  References within the
    schema are followed if they are JSON pointers (RFC 6901).  Other references, and
    arguments that would take too many steps, are left alone.
    """
    if not isinstance(schema, dict):
        return arguments
    reader = _Reader(schema)
    try:
        return {
            name: reader.read_value(value, reader.of_member([schema], name))
            for name, value in arguments.items()
        }
    except _TooMany:
        return arguments


def accepted_arguments(
    entry: ToolEntry | EventEntry, arguments: JsonObject, *, coerce: bool
) -> tuple[JsonObject, list[Violation]]:
    """Return arguments that fit the schema, or every violation of those given.

    Models sometimes send numbers, booleans or JSON as strings: those are read, if
    all arguments fit then.
    """
    validator = entry.validator
    if validator.is_valid(arguments):
        return arguments, []
    if coerce:
        coerced = read_strings(entry.definition.input_schema, arguments)
        if coerced != arguments and validator.is_valid(coerced):
            return coerced, []
    judged = entry.runnable.judged
    if judged is None:
        return arguments, validator.violations(arguments)
    # The runnable judges the values; the schema still judges names and nulls.  The high
    # limit keeps errors of values from displacing theirs.
    nulls = {n for n, each in arguments.items() if each is None} - judged
    valueless = {n: None if n in nulls else 0 for n in arguments}
    paths = {"$", *(jsonrpc.path_text([null]) for null in nulls)}
    violations = validator.violations(valueless, 1_000)
    return arguments, [each for each in violations if each.path in paths]


class _TooMany(Exception):
    """The reader has made `MOST_STEPS`."""


class _Reader:
    """Reads values beside the schemas that apply to them."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._strings: dict[int, bool] = {}
        """By the id of a schema, whether it allows strings."""
        self._steps_left = MOST_STEPS

    def _take_steps(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0:
            raise _TooMany

    def read_value(self, value: object, schemas: list[object]) -> object:
        """Return a value with its strings read; `schemas` may apply to it."""
        self._take_steps(1 + len(schemas))
        if isinstance(value, str):
            if not schemas or any(map(self._allows_string, schemas)):
                return value
            text = value.encode()
            self._take_steps(READING + jsonrpc.node_count(text))
            try:
                value = jsonrpc.read(text)
            except ParseError:
                return value
        if isinstance(value, dict):
            return {
                name: self.read_value(member, self.of_member(schemas, name))
                for name, member in value.items()
            }
        if isinstance(value, list):
            return self._read_list(value, schemas)
        return value

    def _read_list(self, values: list[object], schemas: list[object]) -> list[object]:
        applied = [*self._applied_schemas(schemas)]
        prefixes = [_list_or_empty(each.get("prefixItems")) for each in applied]
        longest = max(map(len, prefixes), default=0)
        # The first items have a schema each; all others have the same schemas.
        by_index = [[*_item_schemas(applied, index)] for index in range(longest + 1)]
        return [
            self.read_value(value, by_index[min(index, longest)])
            for index, value in enumerate(values)
        ]

    def of_member(self, schemas: list[object], name: str) -> list[object]:
        """Return the schemas that may apply to a member of an object."""
        return [
            inner
            for schema in self._applied_schemas(schemas)
            for inner in _member_schemas(schema, name)
        ]

    def _applied_schemas(self, schemas: list[object]) -> Iterator[Schema]:
        """Yield the schemas and all that these apply to the same value, each once."""
        pending, visited = [*schemas], set[int]()
        while pending:
            schema = pending.pop()
            if not isinstance(schema, dict) or id(schema) in visited:
                continue
            visited.add(id(schema))
            self._take_steps(1)
            yield schema
            if "$ref" in schema:
                pending.append(self._referenced_schema(schema["$ref"]))
            for keyword in _SAME_PLACE:
                pending.extend(_list_or_empty(schema.get(keyword)))

    def _allows_string(self, schema: object) -> bool:
        key = id(schema)
        if key not in self._strings:
            self._strings[key] = self._may_be_string(schema)
        return self._strings[key]

    def _may_be_string(self, schema: object, above: tuple[int, ...] = ()) -> bool:
        """Whether a schema allows some string; True if that is not known."""
        # `above` has the ids of the schemas around this one: a cycle ends there.
        if not isinstance(schema, dict) or id(schema) in above:
            return schema is not False
        above = (*above, id(schema))
        if not _keywords_allow_string(schema):
            return False
        required = _list_or_empty(schema.get("allOf"))
        if "$ref" in schema:
            required.append(self._referenced_schema(schema["$ref"]))
        return all(self._may_be_string(each, above) for each in required) and all(
            any(
                self._may_be_string(each, above)
                for each in _list_or_empty(schema[keyword])
            )
            for keyword in _ALTERNATIVES
            if keyword in schema
        )

    def _referenced_schema(self, reference: object) -> object:
        """Return the schema that a reference names; without one True: it allows all."""
        # A pointer into this schema is "#", or begins with "#/".
        if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
            return True
        schema = resolve_pointer(self._root, unquote(reference[1:]))
        return True if schema is None else schema


def _keywords_allow_string(schema: Schema) -> bool:
    """Whether `type`, `enum` and `const` allow a string."""
    if "type" in schema and "string" not in (
        _list_or_empty(schema["type"]) or [schema["type"]]
    ):
        return False
    values = _list_or_empty(schema.get("enum"))
    if "const" in schema:
        values.append(schema["const"])
    return not values or any(isinstance(value, str) for value in values)


def _member_schemas(schema: Schema, name: str) -> Iterator[object]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        yield properties[name]
    elif "patternProperties" in schema:
        # Matching these is not worth it: no known generator writes them.
        yield True
    elif "additionalProperties" in schema:
        yield schema["additionalProperties"]


def _item_schemas(schemas: list[Schema], index: int) -> Iterator[object]:
    for schema in schemas:
        prefix = _list_or_empty(schema.get("prefixItems"))
        if index < len(prefix):
            yield prefix[index]
        elif "items" in schema:
            yield schema["items"]


def _list_or_empty(value: object) -> list[object]:
    return [*value] if isinstance(value, list) else []
