"""Values of a config that become parameters, so that each call can change them."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from mcp_app.kinds.placeholders import names_in_value, only_name
from mcp_app.protocol.json_types import JsonObject

Place: TypeAlias = "tuple[str | int, ...]"
"""The keys that lead to a value in a config; in the path, a segment's number."""

MAX_PARTS: Final = 60
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""A name that is valid for both a placeholder and a parameter."""
NUMBERS: Final = (int, float)


@dataclass(frozen=True, slots=True)
class CallPart:
    """A plain value of a call; `label` says where it stands.

    `place` is () for a placeholder that stands only inside texts.
    """

    place: Place
    label: str
    value: object

    @property
    def name(self) -> str:
        """The name of the parameter, "" if the value is fixed."""
        return only_name(self.value) if isinstance(self.value, str) else ""

    @property
    def is_in_path(self) -> bool:
        return self.place[:1] == ("path",)


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part that becomes the parameter `name`; "" makes it fixed again."""

    part: CallPart
    name: str
    description: str = ""
    is_optional: bool = False
    """Whether clients may leave it out; in a path they never may."""


def parts_of_call(config: JsonObject) -> list[CallPart]:
    """Return the values that can change, then the names within other texts."""
    parts = [*_plain_values(config)][:MAX_PARTS]
    plain_names = {part.name for part in parts}
    names = sorted(names_in_value(config) - plain_names)
    return [*parts, *(CallPart((), "", f"{{{{{each}}}}}") for each in names)]


def _plain_values(config: JsonObject) -> Iterator[CallPart]:
    segments = str(config.get("path", "")).split("/")
    for at, segment in enumerate(segments):
        if segment:
            yield CallPart(("path", at), f"path, {at}", segment)
    body = config.get("body") or {}
    for label, place, pairs in (
        ("?", ("query",), config.get("query", ())),
        ("header", ("headers",), config.get("headers", ())),
        ("form", ("body", "form"), body.get("form", ())),
    ):
        for at, pair in enumerate(pairs):
            value_place = (*place, at, "value")
            yield CallPart(value_place, f"{label} {pair['name']}", pair["value"])
    if "json" in body:
        yield from _json_values(("body", "json"), "", body["json"])


def _json_values(place: Place, label: str, value: object) -> Iterator[CallPart]:
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in members:
            inner_label = f"{label}.{name}" if label else str(name)
            yield from _json_values((*place, name), inner_label, inner)
    elif value is not None:
        yield CallPart(place, f"body {label}".strip(), value)


def name_parts(
    config: JsonObject, schema: JsonObject, named: Iterable[NamedPart]
) -> tuple[JsonObject, JsonObject]:
    """Return config and input schema, in which these parts are parameters.

    A new parameter has the old value as its example.  A parameter that no part uses any
    more is removed.  If the value of a part has changed meanwhile, it stays unchanged.
    """
    config, schema = copy.deepcopy(config), copy.deepcopy(schema)
    # A place in the path is the number of a segment: split the path until the end.
    config["path"] = str(config.get("path", "")).split("/")
    properties: JsonObject = schema.setdefault("properties", {})
    schema.setdefault("type", "object")
    for each in named:
        part, old = each.part, each.part.name
        if part.place and not _put(config, part, _new_value(each, properties)):
            continue
        is_gone = old and old != each.name and old not in names_in_value(config)
        about = properties.pop(old, None) if is_gone else None
        if is_gone and old in schema.get("required", ()):
            schema["required"].remove(old)
        if not each.name:
            continue
        if each.name not in properties:
            properties[each.name] = about or _property_of(part)
        if each.description:
            properties[each.name]["description"] = each.description
        is_in_path = each.name in names_in_value(config["path"])
        required = [n for n in schema.get("required", ()) if n != each.name]
        schema["required"] = required
        if is_in_path or not each.is_optional:
            required.append(each.name)
    config["path"] = "/".join(map(str, config["path"]))
    return config, schema


def _new_value(named: NamedPart, properties: JsonObject) -> object:
    if named.name:
        return f"{{{{{named.name}}}}}"
    examples = properties.get(named.part.name, {}).get("examples") or [""]
    return examples[0]


def _property_of(part: CallPart) -> JsonObject:
    value = part.value
    # Of a placeholder, no value is known.
    if part.name:
        return {"type": "string"}
    kind = "number" if isinstance(value, NUMBERS) else "string"
    return {"type": "boolean" if isinstance(value, bool) else kind, "examples": [value]}


def _put(config: JsonObject, part: CallPart, value: object) -> bool:
    """Replace the value of a part; return False if the part has changed."""
    holder: Any = config
    *steps, last = part.place
    try:
        for step in steps:
            holder = holder[step]
        is_unchanged = holder[last] == part.value
    except (LookupError, TypeError):
        return False
    if is_unchanged:
        holder[last] = value
    return bool(is_unchanged)
