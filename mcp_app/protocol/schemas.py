"""JSON Schema through jsonschema-rs: nothing is fetched, and no check runs for long.

A schema is refused if it cannot be checked within limits.  If only some values would
take long, only those values count as wrong.  An example is a recursive schema that
reaches a place in two ways: each level doubles the work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

import jsonschema_rs
from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schema_graph import (
    DEEPEST_VALUE,
    EXPANSION,
    SchemaError,
    SchemaGraph,
    every_subschema,
)

# -- violations ------------------------------------------------------------------------
# What is wrong with a value, in sentences that describe a right one.

MAX_MESSAGE: Final = 500
EXAMPLES: Final[JsonObject] = {
    "boolean": True,
    "integer": 3,
    "number": 1.5,
    "base64url": "aGVsbG8=",
    "date": "2026-11-18",
    "date-time": "2026-11-18T14:00:00Z",
    "duration": "PT1H30M",
    "email": "ana@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "regex": "^[a-z]+$",
    "time": "14:00:00",
    "uri": "https://example.com/",
    "uuid": "12345678-1234-5678-1234-567812345678",
}
"""Right values by type and format."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a value breaks.

    `path` is the place in the value, like `$.items[3].price`; `rule` the keyword;
    `message` a sentence that does not repeat the value.
    """

    path: str
    rule: str
    message: str


def describe_errors(
    errors: Iterable[ValidationError], schema: Any
) -> Iterator[Violation]:
    """Yield a violation for each error; for a union, those of its nearest branch."""
    for error in errors:
        if isinstance(error.kind, Kind.AnyOf | Kind.OneOfNotValid):
            yield from _describe_union(error, error.kind.context, schema)
        elif options := _allowed_values(error):
            yield _violation(error, _other_than(options), schema)
        else:
            yield _violation(error, error.message, schema)


def _describe_union(
    union: ValidationError, branches: list[list[ValidationError]], schema: Any
) -> Iterator[Violation]:
    """Yield the violations of the branch of a union that fits the value best.

    A branch is near if it allows the value's type.  A tag is a member of the value that
    tells by its own value which branch is meant.
    """

    def is_type_error(error: ValidationError) -> bool:
        return error.kind.name == "type" and error.instance_path == union.instance_path

    types = [each for branch in branches for each in filter(is_type_error, branch)]
    near = [branch for branch in branches if not any(map(is_type_error, branch))]
    tags = [
        {tuple(e.instance_path): e for e in each if _allowed_values(e)} for each in near
    ]
    common = set(tags[0]).intersection(*tags[1:]) if tags else ()
    if not near:
        names = [name for each in types for name in each.kind.value]
        message = f"the value is not of type {_alternatives(names)}"
        yield _violation(types[0], message, schema)
    elif common and len(near) > 1:
        path = min(common, key=len)
        options = [value for each in tags for value in _allowed_values(each[path])]
        yield _violation(tags[0][path], _other_than(options), schema)
    else:
        # The best branch has the fewest wrong tags, then the fewest errors.
        wrong = [(len(tag), len(each)) for tag, each in zip(tags, near, strict=True)]
        yield from describe_errors(near[wrong.index(min(wrong))], schema)


def _allowed_values(error: ValidationError) -> list[object]:
    if isinstance(error.kind, Kind.Enum):
        return list(error.kind.options)
    return [error.kind.value] if isinstance(error.kind, Kind.Constant) else []


def _other_than(options: list[object]) -> str:
    return f"the value is not one of {_alternatives(options)}"


def _alternatives(values: Iterable[object]) -> str:
    *first, last = dict.fromkeys(jsonrpc.write(value).decode() for value in values)
    return f"{', '.join(first)} or {last}" if first else last


def _violation(error: ValidationError, message: str, schema: Any) -> Violation:
    if error.kind.name in ("format", "type"):
        # A wrong schema of another site gives no example.
        with suppress(AttributeError, LookupError, TypeError):
            # The last step of the path is the keyword in the schema.
            for key in error.schema_path[:-1]:
                schema = schema[key]
            message = with_example(message, schema)
    return Violation(
        path=jsonrpc.path_text(error.instance_path)[:MAX_MESSAGE],
        rule=error.kind.name,
        message=f"{message[:1].upper()}{message[1:MAX_MESSAGE]}.",
    )


def with_example(sentence: str, schema: JsonObject) -> str:
    """Return a sentence with ", such as" and a value that fits the schema, if known."""
    schema = schema.get("anyOf", [schema])[0]
    usual = EXAMPLES.get(str(schema.get("format", schema.get("type"))))
    example = next(iter(schema.get("examples", ())), usual)
    suffix = "" if example is None else f", such as {_alternatives([example])}"
    return sentence + suffix


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return a value that should fit a schema; None if nothing indicates one."""
    schema = schema.get("anyOf", [schema])[0]
    values = [schema[each] for each in ("default", "const") if each in schema]
    values += [*schema.get("examples", ()), *schema.get("enum", ())]
    if not values and "properties" in schema:
        return {name: example_of(each) for name, each in schema["properties"].items()}
    name = str(schema.get("format", schema.get("type")))
    return values[0] if values else {"string": "", "array": [], **EXAMPLES}.get(name)


# -- schemas ---------------------------------------------------------------------------

__all__ = ["SchemaError", "SchemaLimits", "Validator", "Violation", "check_schema"]

# How many subschemas one check may apply at most, at about 10 ns each.
_EVALUATIONS = 20_000_000
# The same limit if every failure is described, at about 10 µs each.
_DESCRIBED = 10_000
_DESCRIBED_PER_PLACE = 1_000
# The most nodes of a value that a client sends (`jsonrpc.ReadLimits`).
_NODES = 100_000

_DIALECTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
)


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """`size` in bytes of compact JSON; `depth` in schemas within schemas."""

    size: int = 256 * 1024
    depth: int = 32
    subschemas: int = 2_000


DEFAULT_LIMITS = SchemaLimits()


class Validator:
    """A compiled schema; made by `compile_schema`."""

    __slots__ = ("_growth", "_measured", "_schema", "_source")

    def __init__(
        self,
        source: JsonObject,
        schema: jsonschema_rs.Validator,
        growth: tuple[int, ...],
    ) -> None:
        self._source = source
        self._schema = schema
        self._growth = growth
        # Whether a value could take too long: then each one is measured first.
        self._measured = growth[-1] * _NODES > _EVALUATIONS

    def is_valid(self, value: object) -> bool:
        """Whether a value fits; one that is no JSON, or takes too long, does not."""
        try:
            if self._measured and self._evaluations(value)[0] > _EVALUATIONS:
                return False
            return self._schema.is_valid(value)
        except ValueError:
            return False

    def violations(self, value: object, limit: int = 20) -> list[Violation]:
        """Return the first rules that the value breaks, by place; empty if it fits.

        If the value is large for its schema, only the first broken rule is named, or
        only the schema itself.
        """
        if self.is_valid(value):
            return []
        try:
            total, per_place = self._evaluations(value)
            if total <= _DESCRIBED:
                errors = sorted(self._schema.iter_errors(value), key=_error_order)
                return list(describe_errors(errors, self._source))[:limit]
            if total > _EVALUATIONS or per_place > _DESCRIBED_PER_PLACE:
                return [_UNDESCRIBED]
            self._schema.validate(value)
        except ValidationError as error:
            return list(describe_errors([error], self._source))[:limit]
        except ValueError as error:
            reason = str(error).rstrip(".")
            return [Violation("$", "json", f"The value is not JSON: {reason}.")]
        return []

    def _evaluations(self, value: object) -> tuple[int, int]:
        """Return at most how many schemas are applied: in total, and to one place."""
        text = jsonrpc.write(value)
        depth = jsonrpc.nesting_depth(text, DEEPEST_VALUE)
        per_place = self._growth[min(depth, len(self._growth) - 1)]
        return (1 + jsonrpc.node_count(text)) * per_place, per_place


_UNDESCRIBED = Violation(
    "$",
    "schema",
    "The value does not match the schema, or is too deep to be checked in time.",
)


def _error_order(error: ValidationError) -> tuple[object, ...]:
    path = [(isinstance(key, str), key) for key in error.instance_path]
    return path, error.kind.name, error.message


def compile_schema(schema: Mapping[str, object]) -> Validator:
    """Return a validator for the schema; raise SchemaError.

    Schemas with the same content share one validator, in any order of their keys.
    """
    return _compile_text(_canonical_text(schema))


@lru_cache(maxsize=512)
def _compile_text(text: bytes) -> Validator:
    schema = cast("JsonObject", json.loads(text))
    _check_dialect(schema)
    graph = SchemaGraph(schema)
    if graph.expansion() > EXPANSION:
        raise SchemaError(
            f"The schema expands to more than {EXPANSION} subschemas for one value."
        )
    return Validator(schema, _build_validator(schema), graph.growth_by_depth())


def _build_validator(schema: JsonObject) -> jsonschema_rs.Validator:
    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=True,
            mask="the value",
            pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000),
            offline=True,
        )
    except ValueError as error:
        # It is a ValidationError, or a limit of the compiler, which names no place.
        path = getattr(error, "instance_path", ())
        reason = getattr(error, "message", str(error))[:MAX_MESSAGE]
        raise SchemaError(
            f"The schema is wrong at {jsonrpc.path_text(path)}: {reason}."
        ) from None


def check_schema(
    schema: Mapping[str, object], limits: SchemaLimits = DEFAULT_LIMITS
) -> None:
    """Raise SchemaError if the schema breaks the limits or cannot be compiled."""
    text = _canonical_text(schema)
    if len(text) > limits.size:
        raise SchemaError(
            f"The schema has {len(text)} bytes; the limit is {limits.size}."
        )
    for count, (path, depth, _) in enumerate(every_subschema(json.loads(text))):
        if count > limits.subschemas:
            raise SchemaError(
                f"The schema has more than {limits.subschemas} subschemas."
            )
        if depth > limits.depth:
            raise SchemaError(
                f"The schema nests schemas more than {limits.depth} deep, at"
                f" {jsonrpc.path_text(path[:8])}…"
            )
    _compile_text(text)


def _canonical_text(schema: Mapping[str, object]) -> bytes:
    if not isinstance(schema, Mapping):
        raise SchemaError("A schema must be a JSON object.")
    try:
        return jsonrpc.canonical(schema)
    except jsonrpc.UnserializableValue as error:
        raise SchemaError(f"The schema is not JSON: {error}") from None


def _check_dialect(schema: JsonObject) -> None:
    dialect = schema.get("$schema", _DIALECTS[0])
    if not isinstance(dialect, str) or dialect.removesuffix("#") not in _DIALECTS:
        raise SchemaError(
            f"The dialect {str(dialect)[:80]!r} is not supported. Supported are:"
            f" {', '.join(_DIALECTS)}."
        )
    # Draft 4 calls it `id`.
    id_keyword = "id" if dialect.removesuffix("#") == _DIALECTS[-1] else "$id"
    for path, _, inner in every_subschema(schema):
        if path and inner.get("$schema", dialect) != dialect:
            raise SchemaError(
                f"The dialect changes at {jsonrpc.path_text(path)}; a schema can have"
                " only one."
            )
        identifier = inner.get(id_keyword)
        if path and isinstance(identifier, str) and not identifier.startswith("#"):
            raise SchemaError(
                f"The {id_keyword!r} at {jsonrpc.path_text(path)} would change the"
                " meaning of '#'; only the whole schema can have one."
            )
