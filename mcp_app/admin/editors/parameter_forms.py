"""A tool's input schema as rows of forms, one for each parameter, without loss.

Rows show schemas whose properties are flat. Any other schema raises
`NotRepresentable`, and staff edit it as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts, parameter_values
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.parameter_values import (
    CHOOSING,
    LABELS,
    LISTS,
    MISSING,
    PATTERNED,
    SHAPES,
    TITLED_OPTIONS,
    TYPES,
    Choice,
    Parameter,
    choices_of_text,
    limit_keywords,
    property_of,
    text_of_choices,
    text_of_value,
    type_label,
    value_of_text,
)
from mcp_app.admin.editors.rows import (
    LinesField,
    NotRepresentable,
    RowForm,
    area_text,
    check_same,
    formset_class_of,
    stored_or_written,
)
from mcp_app.interface.rules import PARAMETER, text_problem, visible
from mcp_app.protocol.json_types import JsonObject

MAX_PARAMETERS: Final = 40
"""With more rows, a form comes near Django's limit of 1,000 fields."""

_SHAPE_MEMBERS: Final = ("type", "format", "contentMediaType", "items")
_REST: Final = ("title", "deprecated", "readOnly", "writeOnly", "$comment")
"""Members of a property that the table keeps but does not show."""
_OF_ALL: Final = ("type", "properties", "required", "additionalProperties")
_REST_OF_ALL: Final = ("$schema", "title", "description", "$comment")
"""Members of the whole schema: `_OF_ALL` are checked, these are only kept."""
_EMPTY: Final = {"description": "", "pattern": "", "uniqueItems": False, "examples": []}
"""Members with the values that mean the same as a missing member."""


def parameters_of(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return the rows that show a schema; raise `NotRepresentable`."""
    for member in schema:
        if member not in _OF_ALL and member not in _REST_OF_ALL:
            raise NotRepresentable(member)
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if schema.get("type", "object") != "object":
        raise NotRepresentable("type")
    if not isinstance(schema.get("additionalProperties", True), bool):
        raise NotRepresentable("additionalProperties")
    if not isinstance(properties, dict):
        raise NotRepresentable("properties")
    names = [*properties]
    if not isinstance(required, list) or any(each not in names for each in required):
        raise NotRepresentable("required")
    if len(properties) > MAX_PARAMETERS:
        raise NotRepresentable(f"{len(properties)} properties")
    return [
        parameter_of(name, about, required=name in required)
        for name, about in properties.items()
    ]


def parameter_of(name: str, schema: object, *, required: bool = False) -> Parameter:
    """Return the row that shows one property; raise `NotRepresentable`."""
    if not isinstance(schema, dict):
        raise NotRepresentable(name)
    if name != _typed_line(name):
        raise NotRepresentable("a name that is not a line of text")
    kind, options = _type_and_options(schema)
    least, most = (
        _typed_value("number", schema.get(member, MISSING))
        for member in limit_keywords(kind) or ("", "")
    )
    examples = schema.get("examples")
    example = examples[0] if isinstance(examples, list) and examples else MISSING
    # Each value is what the form makes of its text: `check_same` finds any loss.
    row = Parameter(
        name=name,
        type=kind,
        required=required,
        description=area_text(schema.get("description", "")),
        default=_typed_value(kind, schema.get("default", MISSING)),
        example=_typed_value(kind, example),
        least=None if least is MISSING else least,
        most=None if most is MISSING else most,
        pattern=_typed_line(schema.get("pattern", "")),
        choices=choices_of_text(text_of_choices(map(_choice_of, options))),
        unique=schema.get("uniqueItems") is True,
        was=name,
    )
    check_same(schema, _property_schema(schema, row), _EMPTY, name)
    return row


def _type_and_options(schema: JsonObject) -> tuple[str, list[Any]]:
    for kind, within in (("choice", schema), ("choices", schema.get("items"))):
        if isinstance(within, dict):
            options = within.get("enum") or within.get(TITLED_OPTIONS[kind])
            if isinstance(options, list) and options:
                return kind, options
    shape = {each: schema[each] for each in _SHAPE_MEMBERS if each in schema}
    kinds = (kind for kind in SHAPES if kind not in CHOOSING and SHAPES[kind] == shape)
    return next(kinds, "json"), []


def _choice_of(option: object) -> Choice:
    if isinstance(option, dict):
        return Choice(str(option.get("const")), str(option.get("title", "")))
    return Choice(str(option))


def _typed_value(kind: str, value: object) -> Any:
    """Return the value after typing it as text; MISSING if that is impossible."""
    try:
        return value_of_text(kind, text_of_value(kind, value))
    except ValueError:
        return MISSING


def _typed_line(text: object) -> str:
    return area_text(text).replace("\n", " ")


def _property_schema(stored: JsonObject, row: Parameter) -> JsonObject:
    """Return the schema of a row; `stored` is the property it replaces, or {}."""
    kept: JsonObject = {member: stored[member] for member in _REST if member in stored}
    return {**kept, **property_of(row)}


def schema_of(
    parameters: Iterable[Parameter], base: Mapping[str, Any] | None = None
) -> JsonObject:
    """Return the schema of a table; change only what differs from `base`.

    `base` is a schema that `parameters_of` accepts. An unchanged parameter keeps its
    exact JSON.
    """
    rows, base = list(parameters), base or {}
    schema: JsonObject = {**base, "type": "object", "properties": {}}
    for row in rows:
        stored = base.get("properties", {}).get(row.was, {})
        written = _property_schema(stored, row)
        schema["properties"][row.name] = stored_or_written(stored, written, _EMPTY)
    # `required` keeps the order that it has in `base`; other names follow.
    places = {name: index for index, name in enumerate(base.get("required", ()))}
    required = [row for row in rows if row.required]
    required.sort(key=lambda row: places.get(row.was, len(places)))
    if required or "required" in base:
        schema["required"] = [row.name for row in required]
    return schema


def summaries(schema: Mapping[str, Any]) -> list[Parameter]:
    """Return a row for each property of any schema, to show it.

    Hidden characters are made visible. `type` is the label of a type.
    """
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    names = required if isinstance(required, list) else []
    return [
        Parameter(
            name=visible(name, None),
            type=type_label(_type_text(about)),
            required=name in names,
            description=_visible_member(about, "description"),
        )
        for name, about in properties.items()
    ]


def _type_text(about: object) -> str:
    """Return one of TYPES or a type of JSON; "json" for a property without a type."""
    try:
        return parameter_of("", about).type
    except NotRepresentable:
        return _visible_member(about, "type") or "json"


def _visible_member(about: object, member: str) -> str:
    text = about.get(member) if isinstance(about, dict) else None
    return visible(text, None) if isinstance(text, str) else ""


class ParameterForm(RowForm):
    """One parameter; fields that its type does not have are ignored."""

    name = forms.CharField(label=_("Name"), required=False)
    type = forms.TypedChoiceField(
        label=_("Type"),
        choices=[(kind, LABELS[kind]) for kind in TYPES],
        initial="text",
        empty_value="text",
        required=False,
    )
    required = forms.BooleanField(label=_("Required"), required=False)
    default = forms.CharField(
        label=_("Value if left out"),
        required=False,
        help_text=_("Empty: none."),
    )
    description = LinesField(label=_("Description for the model"), rows=1)
    choices = LinesField(
        label=_("Choices"),
        rows=4,
        help_text=_("One in each line, perhaps with “= shown text”: c = Celsius."),
    )
    least = forms.CharField(label=_("At least"), required=False)
    most = forms.CharField(label=_("At most"), required=False)
    pattern = forms.CharField(
        label=_("Pattern"),
        required=False,
        strip=False,
        help_text=_("A pattern is for exceptions; prefer “One of a list”."),
    )
    unique = forms.BooleanField(label=_("Each entry only once"), required=False)
    example = forms.CharField(
        label=_("Example"),
        required=False,
        help_text=_("Clients see it in the schema."),
    )

    parameter: Parameter

    def legend(self) -> str:
        return str(self["name"].value() or "")

    def limits(self) -> str:
        """Return the limits of the parameter in words, as the page showed them."""
        row = self.initial.get("row")
        return parameter_values.limits_in_words(row) if row else ""

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if not name:
            raise ValidationError(_("A parameter needs a name."))
        if name == self.data.get(self.add_prefix("was")):
            return name
        if problem := text_problem(name):
            raise ValidationError(problem)
        if not PARAMETER.fullmatch(name):
            raise ValidationError(
                _(
                    "“%(name)s” cannot name a parameter: only letters, digits and "
                    "_ - . are allowed, at most 64."
                ),
                params={"name": visible(name)},
            )
        return name

    def clean_description(self) -> str:
        description = str(self.cleaned_data["description"])
        if problem := text_problem(description, lines=True):
            raise ValidationError(problem)
        return description

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors:
            self.parameter = self._parameter()
        if not self.errors:
            for field, sentence in parameter_values.problems_of_row(self.parameter):
                self.add_error(field, sentence)
        return cleaned

    def _parameter(self) -> Parameter:
        values, kind = self.cleaned_data, self.cleaned_data["type"]
        limited = limit_keywords(kind) is not None
        return Parameter(
            name=values["name"],
            type=kind,
            required=values["required"],
            description=values["description"],
            default=self._parse_field("default", kind),
            example=self._parse_field("example", kind),
            least=self._parse_limit("least") if limited else None,
            most=self._parse_limit("most") if limited else None,
            pattern=values["pattern"] if kind in PATTERNED else "",
            choices=choices_of_text(values["choices"]) if kind in CHOOSING else (),
            unique=values["unique"] and kind in LISTS,
            was=values["was"],
        )

    def _parse_field(self, field: str, kind: str) -> object:
        try:
            return value_of_text(kind, self.cleaned_data[field])
        except ValueError as error:
            self.add_error(field, str(error))
            return None

    def _parse_limit(self, field: str) -> Any:
        number = self._parse_field(field, "number")
        return None if number is MISSING else number


class ParameterSheet(JsonEditor):
    """An input schema; `own` is the schema of the tool's function."""

    formset = formset_class_of(ParameterForm, MAX_PARAMETERS)
    row_template = "mcp_app/widgets/parameter.html"
    words = {
        **WORDS,
        "as_table": _("Edit as a table"),
        "as_json": _("Edit as JSON Schema"),
        "json": _("The same as JSON Schema"),
        "json_label": _("JSON Schema"),
        "add": _("Add a parameter"),
        "new": _("New parameter"),
        "beyond": _(
            "The table cannot show all of this schema (%(reason)s). The schema is"
            " kept exactly as it is; edit it as JSON."
        ),
        "both": _("You changed both the table and the JSON. Choose which to keep."),
        "keep_table": _("Keep the table"),
        "empty": _("No parameters: the tool is called without any."),
        "twice": _("The parameter %(name)s is there more than once."),
    }

    def initial_rows(self, value: Any) -> Initial:
        if not isinstance(value or {}, dict):
            raise NotRepresentable(gettext("it is not a JSON object"))
        return [_initial_row(row) for row in parameters_of(value or {})]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        forms = (form for form in rows if isinstance(form, ParameterForm))
        return schema_of([form.parameter for form in forms], base)

    def parse_typed_json(self, text: str) -> Any:
        return json_texts.check_schema_text(text)

    def summary_of_value(self, value: Any) -> object:
        return summaries(value if isinstance(value, dict) else {})


def _initial_row(row: Parameter) -> dict[str, Any]:
    """Return the initial values of a row's fields; typed values are texts."""
    return {
        **{column.name: getattr(row, column.name) for column in fields(row)},
        "row": row,
        "was": row.name,
        "default": text_of_value(row.type, row.default),
        "example": text_of_value(row.type, row.example),
        "choices": text_of_choices(row.choices),
        "least": "" if row.least is None else str(row.least),
        "most": "" if row.most is None else str(row.most),
    }
