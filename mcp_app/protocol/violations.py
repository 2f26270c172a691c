"""What is wrong with a value, in sentences that say what a right one looks like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from jsonschema_rs import ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

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
"""Right values by types and formats."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a value breaks.

    `path` is the place in the value, like `$.items[3].price`; `rule` the keyword;
    `message` a sentence that does not repeat the value.
    """

    path: str
    rule: str
    message: str


def describe(errors: Iterable[ValidationError], schema: Any) -> Iterator[Violation]:
    """Yield what the errors of a schema say; of a union those of its nearest branch."""
    for error in errors:
        if isinstance(error.kind, Kind.AnyOf | Kind.OneOfNotValid):
            yield from _describe_union(error, error.kind.context, schema)
        elif options := _options(error):
            yield _violation(error, _other_than(options), schema)
        else:
            yield _violation(error, error.message, schema)


def _describe_union(
    union: ValidationError, branches: list[list[ValidationError]], schema: Any
) -> Iterator[Violation]:
    """Branches of another type are not near, nor those with another tag.

    A tag is a member by whose values branches are told apart.
    """

    def is_type(error: ValidationError) -> bool:
        here = union.instance_path
        return error.kind.name == "type" and error.instance_path == here

    types = [each for branch in branches for each in filter(is_type, branch)]
    near = [branch for branch in branches if not any(map(is_type, branch))]
    tags = [{tuple(e.instance_path): e for e in each if _options(e)} for each in near]
    common = set(tags[0]).intersection(*tags[1:]) if tags else ()
    if not near:
        names = [name for each in types for name in each.kind.value]
        said = f"the value is not of type {_alternatives(names)}"
        yield _violation(types[0], said, schema)
    elif common and len(near) > 1:
        place = min(common, key=len)
        options = [value for each in tags for value in _options(each[place])]
        yield _violation(tags[0][place], _other_than(options), schema)
    else:
        far = [(len(tag), len(each)) for tag, each in zip(tags, near, strict=True)]
        yield from describe(near[far.index(min(far))], schema)


def _options(error: ValidationError) -> list[object]:
    """Return the values that an error allows, none if it is about something else."""
    if isinstance(error.kind, Kind.Enum):
        return list(error.kind.options)
    return [error.kind.value] if isinstance(error.kind, Kind.Constant) else []


def _other_than(options: list[object]) -> str:
    return f"the value is not one of {_alternatives(options)}"


def _alternatives(values: Iterable[object]) -> str:
    *first, last = dict.fromkeys(jsonrpc.write(each).decode() for each in values)
    return f"{', '.join(first)} or {last}" if first else last


def _violation(error: ValidationError, said: str, schema: Any) -> Violation:
    if error.kind.name in ("format", "type"):
        # Schemas of strangers may have odd members there.
        with suppress(AttributeError, LookupError, TypeError):
            for key in error.schema_path[:-1]:
                schema = schema[key]
            said = with_example(said, schema)
    return Violation(
        path=jsonrpc.place(error.instance_path)[:MAX_MESSAGE],
        rule=error.kind.name,
        message=f"{said[:1].upper()}{said[1:MAX_MESSAGE]}.",
    )


def with_example(said: str, schema: JsonObject) -> str:
    """Return the beginning of a sentence with a value that is right by a schema."""
    schema = schema.get("anyOf", [schema])[0]
    known = EXAMPLES.get(str(schema.get("format", schema.get("type"))))
    example = next(iter(schema.get("examples", ())), known)
    return said if example is None else f"{said}, such as {_alternatives([example])}"
