"""Messages that are nearly right: made after the official schemas, then changed.

    messages = Mutations("2025-11-25", Random(1))
    body, message = messages.next()

A message is one that a client of the revision may send, with names that this server
knows.  Then up to three of its values are changed, and sometimes its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final, TypeAlias

from tests.asgi_client import CLIENT, PREFIX
from tests.wire.validation import SCHEMAS

JsonObject: TypeAlias = dict[str, Any]
Place: TypeAlias = tuple[Any, Any]
"""An object or array, and a key or index in it."""

STATELESS: Final = "2026-07-28"
DEEPEST: Final = 6
"""Of an object so deep only what is required is made."""

NAMES: Final = (
    *("typed", "loose", "mirrors", "returns", "fails", "reports", "logs", "orders"),
    *("greets", "prompt_asks", "test_prompt_with_arguments", "drill_add"),
)
URIS: Final = (
    *("memo://fixed", "memo://number/7", "memo://value/json", "test://static-text"),
    *("test://template/{id}/data", "file:///etc/passwd", "a:b"),
)
USES: Final = (
    *("CallToolRequest", "GetPromptRequest", "ReadResourceRequest", "CompleteRequest"),
)
"""What does more than others, and is sent more often."""
WORDS: Final = (
    *("a", "count", "kind", "name", "value", "text", "_meta", "1", "[1]", "{}"),
)
JUNK: Final[Sequence[Callable[[], Any]]] = [
    *(lambda value=value: value for value in (None, True, 0, -1, 2**53, 2**70)),
    *(lambda value=value: value for value in (0.5, 1e300, "", "\0", "\N{PARROT}")),
    *(lambda name=name: name for name in (*NAMES, *URIS, *WORDS)),
    lambda: "x" * 2_000,
    lambda: ["x"] * 150,
    dict,
    list,
    lambda: {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    lambda: json.loads("[" * 70 + "]" * 70),
    lambda: {f"n{number}": number for number in range(150)},
]


class Mutations:
    def __init__(self, version: str, random: Random) -> None:
        self._random = random
        self._stateless = version == STATELESS
        self._version = version
        text = (SCHEMAS / f"{version}.json").read_text(encoding="utf-8")
        schema = json.loads(text)
        self._defined: Mapping[str, Any] = schema.get("$defs") or schema["definitions"]
        self._shapes = [
            *self._union("ClientRequest") * 3,
            *(self._resolved(self._defined[each]) for each in USES * 5),
            *self._union("ClientNotification"),
            *({"result": each} for each in self._union("ClientResult")),
        ]
        self._id = 0

    def next(self) -> tuple[bytes, object]:
        """Return a body, and the message that it was before its bytes were changed."""
        message: object = self._message()
        if self._random.random() < 0.1:
            message = [message, *(self._message() for _ in range(2))]
        # What it is made of is shared.
        message = deepcopy(message)
        for _ in range(self._random.randrange(4)):
            self._change(message)
        body = json.dumps(message).encode()
        if self._random.random() < 0.1:
            body = self._random.choice(BYTES)(self._random, body)
        return body, message

    # -- messages after the schema ----------------------------------------------------

    def _union(self, name: str) -> list[JsonObject]:
        union = self._defined[name]
        members: list[JsonObject] = union.get("anyOf", [union])
        return [self._resolved(each) for each in members]

    def _resolved(self, schema: JsonObject) -> JsonObject:
        while "$ref" in schema:
            schema = self._defined[schema["$ref"].rpartition("/")[2]]
        return schema

    def _message(self) -> JsonObject:
        shape = self._random.choice(self._shapes)
        self._id += 1
        message: JsonObject = {"jsonrpc": "2.0", "id": self._id}
        if "result" in shape:
            return {**message, "result": self._value(shape["result"], 1)}
        message |= self._value(shape, 0)
        if shape in self._union("ClientNotification"):
            del message["id"]
        else:
            message["id"] = self._id
        if self._stateless and isinstance(message.get("params"), dict):
            message["params"]["_meta"] = self._meta()
        return message

    def _meta(self) -> JsonObject:
        return {
            f"{PREFIX}protocolVersion": self._version,
            f"{PREFIX}clientInfo": CLIENT,
            f"{PREFIX}clientCapabilities": {},
        }

    def _value(self, schema: Any, depth: int) -> Any:
        schema = self._resolved(schema) if isinstance(schema, dict) else {}
        choices = schema.get("anyOf", schema.get("oneOf"))
        if choices is not None:
            return self._value(self._random.choice(choices), depth + 1)
        constants = [schema["const"]] if "const" in schema else schema.get("enum")
        return self._random.choice(constants or self._simple(schema, depth))

    def _simple(self, schema: JsonObject, depth: int) -> Sequence[Any]:
        """Return some values of the type that a schema names."""
        named = schema.get("type", "object" if "allOf" in schema else "")
        kind = self._random.choice(named) if isinstance(named, list) else named
        if kind == "object":
            return [self._object(schema, depth)]
        if kind == "array":
            count = self._random.randrange(3)
            items = schema.get("items")
            return [[self._value(items, depth + 1) for _ in range(count)]]
        return _TEXTS.get(schema.get("format", ""), _SIMPLE[kind])

    def _object(self, schema: JsonObject, depth: int) -> JsonObject:
        made: JsonObject = {}
        for each in schema.get("allOf", ()):
            made |= self._object(self._resolved(each), depth)
        required = schema.get("required", ())
        for name, inner in schema.get("properties", {}).items():
            wanted = depth < DEEPEST and self._random.random() < 0.4
            if name in required or wanted:
                made[name] = self._value(inner, depth + 1)
        if schema.get("additionalProperties", False) is not False:
            more = self._random.sample(WORDS, self._random.randrange(3))
            made |= {name: self._random.choice(JUNK)() for name in more}
        return made

    # -- changes ----------------------------------------------------------------------

    def _change(self, message: object) -> None:
        places = list(_places(message))
        inside = [each for each in places if each[0] is not message]
        if inside and self._random.random() < 0.8:
            places = inside
        if not places:
            return
        container, key = self._random.choice(places)
        junk = self._random.choice(JUNK)()
        match self._random.randrange(5):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[self._random.choice(WORDS)] = container.pop(key)
            case 2 if isinstance(container, dict):
                container[self._random.choice(WORDS)] = junk
            case 3:
                container[key] = self._random.choice(([container[key]], {"a": junk}))
            case _:
                container[key] = junk


_SIMPLE: Final[Mapping[str, Sequence[Any]]] = {
    "": (None, 1, "a", []),
    "boolean": (True, False),
    "integer": (0, 1, 7),
    "null": (None,),
    "number": (0, 1, 0.5),
    "string": NAMES,
}
_TEXTS: Final[Mapping[str, Sequence[str]]] = {
    "uri": URIS,
    "uri-template": URIS,
    "byte": ("AAAA", ""),
}


def _places(value: object) -> Iterator[Place]:
    members: Any = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        members = enumerate(value)
    for key, member in members:
        yield value, key
        yield from _places(member)


def _cut(random: Random, body: bytes) -> bytes:
    return body[: random.randrange(len(body))]


def _flip(random: Random, body: bytes) -> bytes:
    at = random.randrange(len(body))
    return body[:at] + bytes([body[at] ^ 1 << random.randrange(8)]) + body[at + 1 :]


def _insert(random: Random, body: bytes) -> bytes:
    at, junk = random.randrange(len(body)), (b"\0", b'"', b"\xff", b"\\ud800", b"1e999")
    return body[:at] + random.choice(junk) + body[at:]


def _repeat(random: Random, body: bytes) -> bytes:
    start, end = sorted(random.randrange(len(body)) for _ in range(2))
    return body[:end] + body[start:]


def _name_twice(_: Random, body: bytes) -> bytes:
    return body.replace(b'{"', b'{"id": 1, "', 1)


BYTES: Final = (_cut, _flip, _insert, _repeat, _name_twice)
