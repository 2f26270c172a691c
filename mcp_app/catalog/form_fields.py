"""Fields of a form as the protocol has them: texts, numbers, booleans, choices.

`PrimitiveSchemaDefinition` of client/elicitation, 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp_app.interface.log_secrets import FIELDS, names_secret
from mcp_app.protocol.json_types import JsonObject

FORMATS = frozenset({"email", "uri", "date", "date-time"})

_COMMON = frozenset({"type", "title", "description", "default"})
_TEXT = _COMMON | {"minLength", "maxLength", "pattern", "format"}
_NUMBER = _COMMON | {"minimum", "maximum"}
_CHOICE = _COMMON | {"enum", "enumNames"}
_TITLED_CHOICE = _COMMON | {"oneOf"}
_CHOICES = _COMMON | {"items", "minItems", "maxItems"}
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})

_DEFAULTS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


class UnfitForm(TypeError):
    """A form has a field that clients cannot show."""


def field_schema(name: str, schema: JsonObject, *, exact: bool) -> JsonObject:
    """Return a field as the protocol allows it; raise `UnfitForm` if it cannot.

    If the schema must be `exact`, members that the protocol lacks are refused; else
    they are left out, because the Django form or the Python type checks answers, too.
    A `pattern` stays in an exact schema to check the answer; clients never see it.
    """
    # An empty value of the field's type: a boolean, for instance, is no secret.
    example = _DEFAULTS.get(str(schema.get("type")), (str,))[0]()
    if names_secret(name, example, FIELDS) or schema.get("format") == "password":
        raise UnfitForm(
            f"The field {name} asks for a secret, which a form must not do. Use"
            " elicit_url() instead (client/elicitation)."
        )
    single = _without_null(name, schema)
    if (read := _KINDS.get(str(single.get("type")))) is None:
        raise UnfitForm(
            f"The field {name} is of the type {single.get('type', 'object')!r}; forms "
            "allow texts, numbers, yes or no, and choices."
        )
    allowed = _with_fitting_default(read(name, single))
    _check_counts(name, allowed)
    _check_offered(name, allowed)
    # A `const` became an `enum` with one value.
    lost = single.keys() - allowed.keys() - {"const"}
    if exact and lost:
        raise UnfitForm(
            f"The field {name} has {', '.join(sorted(lost))}, which this kind of"
            " field cannot have."
        )
    if not exact:
        allowed.pop("pattern", None)
    return allowed


def missing_choices(schema: JsonObject) -> list[object]:
    """Return the values in a field's default that are not among its choices."""
    choices_schema, default = schema.get("items", schema), schema.get("default")
    titled = choices_schema.get("oneOf", choices_schema.get("anyOf"))
    if default is None or (titled is None and "enum" not in choices_schema):
        return []
    offered = choices_schema.get("enum") or [choice["const"] for choice in titled]
    chosen = default if isinstance(default, list) else [default]
    return [value for value in chosen if value not in offered]


def _without_null(name: str, schema: JsonObject) -> JsonObject:
    """Return the schema without null: clients leave such a field out instead."""
    if "anyOf" not in schema:
        return schema
    kinds = [each for each in schema["anyOf"] if each.get("type") != "null"]
    if len(kinds) != 1:
        raise UnfitForm(f"The field {name} has several types; forms allow one.")
    others = {member: value for member, value in schema.items() if member != "anyOf"}
    return {**kinds[0], **others}


def _text_field(name: str, schema: JsonObject) -> JsonObject:
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    if "enum" in schema:
        _check_texts(name, schema["enum"])
        return _only_members(_CHOICE, schema)
    if "oneOf" in schema:
        _check_titled(name, schema["oneOf"])
        return _only_members(_TITLED_CHOICE, schema)
    allowed = _only_members(_TEXT, schema)
    if allowed.get("format") not in FORMATS:
        allowed.pop("format", None)
    return allowed


def _plain_field(name: str, schema: JsonObject) -> JsonObject:
    if schema["type"] == "boolean":
        return _only_members(_COMMON, schema)
    if "enum" in schema or "const" in schema:
        raise UnfitForm(f"The choices of the field {name} must be texts.")
    return _only_members(_NUMBER, schema)


def _choices_field(name: str, schema: JsonObject) -> JsonObject:
    items = schema.get("items")
    allowed = _only_members(_CHOICES, schema)
    if isinstance(items, Mapping) and "anyOf" in items:
        _check_titled(name, items["anyOf"])
        return {**allowed, "items": {"anyOf": items["anyOf"]}}
    if not isinstance(items, Mapping) or items.keys().isdisjoint({"enum", "const"}):
        raise UnfitForm(
            f"The field {name} is a list; forms allow lists of given choices only."
        )
    texts = items["enum"] if "enum" in items else [items["const"]]
    _check_texts(name, texts)
    return {**allowed, "items": {"type": "string", "enum": texts}}


_KINDS = {
    "string": _text_field,
    "number": _plain_field,
    "integer": _plain_field,
    "boolean": _plain_field,
    "array": _choices_field,
}


def _only_members(members: frozenset[str], schema: JsonObject) -> JsonObject:
    return {name: value for name, value in schema.items() if name in members}


def _check_counts(name: str, schema: JsonObject) -> None:
    for member in _COUNTS & schema.keys():
        count = schema[member]
        if type(count) is not int or count < 0:
            raise UnfitForm(
                f"The {member} of the field {name} is {count!r}; it must be a whole "
                "number, 0 or more."
            )


def _check_offered(name: str, schema: JsonObject) -> None:
    if wrong := missing_choices(schema):
        raise UnfitForm(
            f"The default of the field {name} is {schema['default']!r}, but "
            f"{wrong[0]!r} is none of its choices."
        )


def _check_texts(name: str, choices: object) -> None:
    if not isinstance(choices, list) or not all(
        isinstance(choice, str) for choice in choices
    ):
        raise UnfitForm(f"The choices of the field {name} must be texts.")


def _check_titled(name: str, choices: object) -> None:
    for choice in choices if isinstance(choices, list) else [None]:
        texts = choice if isinstance(choice, Mapping) else {}
        if texts.keys() != {"const", "title"} or not all(
            isinstance(text, str) for text in texts.values()
        ):
            raise UnfitForm(
                f"Each choice of the field {name} needs a const and a title, both"
                " texts."
            )


def _with_fitting_default(schema: JsonObject) -> JsonObject:
    """Return the schema without its default, if that has a wrong type (a Decimal)."""
    default, wanted = schema.get("default"), _DEFAULTS[schema["type"]]
    if not isinstance(default, wanted) or (
        isinstance(default, bool) and bool not in wanted
    ):
        schema.pop("default", None)
    return schema
