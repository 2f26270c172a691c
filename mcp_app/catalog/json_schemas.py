"""JSON Schema 2020-12 of type hints, as short as it can be for a model to read."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Literal, TypeAlias

from django.conf import settings
from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError, core_schema
from typing_extensions import TypeAliasType

from mcp_app.catalog.type_hints import Annotation, for_pydantic
from mcp_app.interface.errors import RegistrationError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.portable_schemas import inline_references
from mcp_app.protocol.schemas import EXAMPLES

Mode: TypeAlias = Literal["validation", "serialization"]

# NaN stays NaN: as null it would become another value without an error.
_EXACTLY = ConfigDict(ser_json_inf_nan="constants")
_DEFINITIONS = "#/$defs/"
NAIVE = "2026-11-18T14:00:00"
"""An example of a date and time without a zone."""
_NARROW = ("date-time", "duration", "email", "ipv6", "regex", "time", "uri", "uuid")
"""Formats of JSON Schema that allow fewer values than the Python types."""
_UNKNOWN = ("schema-for-unknown-type", "invalid-for-json-schema")
"""Codes of pydantic's errors for types that have no JSON form."""
_ADVICE = "Use built-in types, a dataclass, a TypedDict or a pydantic model."


class ShortJsonSchema(GenerateJsonSchema):
    """Leaves out the titles that repeat the names of fields and classes."""

    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def sort(
        self, value: JsonSchemaValue, parent_key: str | None = None
    ) -> JsonSchemaValue:
        return value  # in the order of the function, with the type first

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        zone = schema.get("tz_constraint")
        if zone is None:
            return super().datetime_schema(schema)
        example = NAIVE if zone == "naive" else EXAMPLES["date-time"]
        return {"type": "string", "examples": [example]}

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        values = [member.value for member in schema["members"]]
        if self.mode == "validation" and not all(
            isinstance(value, str | int | float | None) for value in values
        ):
            # Pydantic would refuse the values that the schema lists.
            name = schema["cls"].__name__
            raise PydanticUserError(
                f"As a parameter, the enumeration {name} needs values that JSON has:"
                " texts, numbers, booleans.",
                code=None,
            )
        return super().enum_schema(schema)

    def tagged_union_schema(
        self, schema: core_schema.TaggedUnionSchema
    ) -> JsonSchemaValue:
        written = super().tagged_union_schema(schema)
        # JSON Schema has no such keyword; autogen expects references beside it.
        written.pop("discriminator", None)
        return written

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _without_class_name(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _without_class_name(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        written = super().typed_dict_schema(schema)
        return _without_class_name(written, schema.get("cls", dict))


def choice_titles(choices: Iterable[tuple[object, object]]) -> str:
    """Return a sentence with the titles of choices that differ from their values."""
    titles = [
        f"{value}: {title}"
        for value, title in choices
        if str(title).lower() != str(value).lower()
    ]
    return f"{'; '.join(titles)}." if titles else ""


def text_like(name: str) -> JsonObject:
    """Return the schema of texts that are close to a format of JSON Schema.

    It has an example instead of the format; a date-time has a zone if USE_TZ is on.
    """
    is_naive = name == "date-time" and not settings.USE_TZ
    return {"type": "string", "examples": [NAIVE if is_naive else EXAMPLES[name]]}


def bytes_config(*annotations: Annotation) -> ConfigDict:
    """Return the config for bytes: base64, unless a type encodes them itself."""
    if "EncodedBytes" in repr(annotations):
        return ConfigDict()
    return ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def type_adapter(owner: str, annotation: Annotation) -> TypeAdapter[object]:
    """Return the adapter that validates and dumps a type; refuse types without JSON."""
    readable = for_pydantic(annotation)
    try:
        return _build_adapter(readable)
    except PydanticUserError as error:
        raise _unserialisable(owner, type_text(annotation), error) from None
    except SchemaError as error:
        raise RegistrationError(f"{owner}: {error}. Correct its Field(…).") from None
    except (AttributeError, NameError, TypeError) as error:
        raise RegistrationError(
            f"{owner}: {type_text(annotation)} cannot be read as a type: {error}."
        ) from None


def json_schema(
    owner: str,
    types: TypeAdapter[object],
    mode: Mode,
    generator: type[GenerateJsonSchema] = ShortJsonSchema,
) -> JsonObject:
    """Return the schema; only definitions that contain themselves stay references."""
    try:
        schema = types.json_schema(schema_generator=generator, mode=mode)
    except PydanticUserError as error:
        text = str(types).removeprefix("TypeAdapter(").removesuffix(")")
        raise _unserialisable(owner, text, error) from None
    # The title of an enumeration or a union repeats the name of its class.
    for each in (schema, *schema.get("$defs", {}).values()):
        if not {"enum", "oneOf"}.isdisjoint(each):
            each.pop("title", None)
    if "$ref" in schema:
        # The protocol wants the type at the root, not behind a reference.
        name = schema["$ref"].removeprefix(_DEFINITIONS)
        schema = {**schema["$defs"][name], "$defs": schema["$defs"]}
    schema = inline_references(schema)
    # Forms keep their formats, by which clients choose the input field.
    return _with_examples(schema) if generator is ShortJsonSchema else schema


def _with_examples(node: Annotation) -> Annotation:
    """Replace formats that are too narrow by examples, at any depth."""
    if isinstance(node, list):
        return [_with_examples(each) for each in node]
    if not isinstance(node, dict):
        return node
    schema = {}
    if node.get("format") in _NARROW:
        node = dict(node)
        schema = text_like(node.pop("format"))
    return {**schema, **{name: _with_examples(each) for name, each in node.items()}}


def _build_adapter(annotation: Annotation) -> TypeAdapter[object]:
    config: ConfigDict = {**_EXACTLY, **bytes_config(annotation)}
    try:
        return TypeAdapter(annotation, config=config)
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
    # Pydantic applies this config to a class only if the class is inside another type.
    inside: Annotation = TypeAliasType("Value", annotation)
    return TypeAdapter(inside, config=config)


def type_text(annotation: Annotation) -> str:
    """Return a type hint as it is written in code."""
    return inspect.formatannotation(annotation)


def _unserialisable(
    owner: str, text: str, error: PydanticUserError
) -> RegistrationError:
    unknown = error.code in _UNKNOWN
    reason = _ADVICE if unknown else str(error.message).partition("\n")[0]
    return RegistrationError(f"{owner}: {text} cannot be written as JSON. {reason}")


def _without_class_name(schema: JsonSchemaValue, cls: type) -> JsonSchemaValue:
    if schema.get("title") == cls.__name__:
        del schema["title"]
    return schema
