"""The filters of a query as rows of forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_choices import (
    COMPARISONS,
    NONE,
    field_label,
    filter_entry,
    grouped_choices,
    groups_of,
    text_entry,
)
from mcp_app.admin.editors.rows import (
    LinesField,
    NotRepresentable,
    RowForm,
    Rows,
    formset_class_of,
)
from mcp_app.catalog.open_models import FieldKind, OpenField, OpenModel, OpenModels
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import SEVERAL, comparisons_of, value_schema
from mcp_app.kinds.query.config import MAX_NAME_LENGTH, MAX_PATHS, NAME_PATTERN
from mcp_app.kinds.query.scoping import resolve_path
from mcp_app.protocol.json_types import JsonObject

MAX_FILTERS: Final = 20
BY_CLIENT, FIXED = "asked", "fixed"
_BOOLEANS: Final = {"yes": True, "true": True, "no": False, "false": False}


class NameField(forms.CharField):
    """A name that clients read, such as that of a parameter; it may be empty."""

    default_validators = [
        RegexValidator(
            NAME_PATTERN,
            _("Only letters without accents, digits and _, beginning with a letter."),
        )
    ]

    def __init__(self, **options: Any) -> None:
        super().__init__(required=False, max_length=MAX_NAME_LENGTH, **options)


class FilterForm(RowForm):
    """One filter; subclasses know which model it is of."""

    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]

    path = forms.ChoiceField(label=_("Field"), required=False)
    comparison = forms.ChoiceField(
        label=_("Compared how"),
        choices=[NONE, *COMPARISONS.items()],
        required=False,
    )
    given = forms.ChoiceField(
        label=_("Who says the value"),
        choices=[(BY_CLIENT, _("Clients say it")), (FIXED, _("Always this"))],
        initial=BY_CLIENT,
        required=False,
    )
    value = LinesField(
        label=_("Value"),
        rows=1,
        strip=False,
        help_text=_(
            "Several: one on each line. If clients say it, this is what holds when"
            " they say nothing; it may be empty."
        ),
    )
    others = forms.MultipleChoiceField(
        label=_("Look in these fields, too"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )
    parameter = NameField(
        label=_("Name of the parameter"),
        help_text=_("If clients say the value. Empty: the name of the field."),
    )
    required = forms.BooleanField(label=_("Clients must say it"), required=False)
    description = LinesField(label=_("Description of the parameter"), rows=1)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        chosen = [str(self.initial.get("path", ""))]
        groups = [*groups_of(self.model, self.opened, "filters")]
        paths = grouped_choices(groups, filter_entry, chosen)
        self.offer_choices("path", [NONE, *paths])
        chosen = self.initial.get("others", [])
        texts = grouped_choices(groups, text_entry, chosen)
        self.offer_choices("others", texts)

    def legend(self) -> str:
        """Return what the row says: “State is one of”; "" for a new one."""
        path, comparison = self["path"].value(), self["comparison"].value()
        if not path:
            return ""
        try:
            paths = [path, *(self["others"].value() or ())]
            labels = [field_label(self._resolve_field(each)) for each in paths]
        except KindError:
            return str(path)
        how = COMPARISONS.get(str(comparison), "")
        return f"{capfirst(', '.join(labels))} {how}".strip()

    def _resolve_field(self, path: str) -> OpenField:
        return resolve_path(path, self.model, self.opened, "filters").field

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors and self.has_changed():
            self._clean_filter()
        return cleaned

    def _clean_filter(self) -> None:
        values = self.cleaned_data
        if not values["path"]:
            self.add_error("path", _("Choose a field, or remove this filter."))
            return
        try:
            field = self._resolve_field(values["path"])
        except KindError as error:
            self.add_error("path", error.message)
            return
        known = comparisons_of(field)
        if values["others"]:
            known = SEVERAL
            self._clean_others(field)
        values["comparison"] = values["comparison"] or known[0]
        if values["comparison"] not in known:
            names = ", ".join(str(COMPARISONS[each]) for each in known)
            sentence = (
                _("These comparisons can search several fields: %(names)s.")
                if values["others"]
                else _("This field can be compared by: %(names)s.")
            )
            self.add_error("comparison", sentence % {"names": names})
            return
        text = values["value"]
        if values["given"] == FIXED and not text:
            self.add_error("value", _("Write the value."))
        schema = value_schema(field, values["comparison"])
        try:
            values["typed"] = read_text(schema, text) if text else None
        except ValidationError as error:
            self.add_error("value", error)

    def _clean_others(self, field: OpenField) -> None:
        values = self.cleaned_data
        values["others"] = [each for each in values["others"] if each != values["path"]]
        if field.kind is not FieldKind.TEXT:
            self.add_error("others", _("The field chosen above is no text."))
        elif len(values["others"]) >= MAX_PATHS:
            most = _("One filter looks at %d fields at most.") % MAX_PATHS
            self.add_error("others", most)

    def filter_config(self) -> JsonObject:
        """Return the config of the valid row: as it was if nobody changed it."""
        if not self.has_changed():
            return dict(self.initial["filter"])
        values = self.cleaned_data
        config: JsonObject = {"path": values["path"], "lookup": values["comparison"]}
        if values["others"]:
            config["path"] = [values["path"], *values["others"]]
        if values["given"] == FIXED:
            return {**config, "value": values["typed"]}
        config["parameter"] = values["parameter"] or values["path"].replace(".", "_")
        for name in ("description", "required"):
            if values[name]:
                config[name] = values[name]
        if values["typed"] is not None:
            config["default"] = values["typed"]
        return config


def filter_rows(model: OpenModel, opened: OpenModels) -> type[Rows]:
    """Return the formset class for filters of a model."""
    form = type("FilterForm", (FilterForm,), {"model": model, "opened": opened})
    return formset_class_of(form, MAX_FILTERS)


def initial_of(filters: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return the rows that show filters; raise `NotRepresentable`."""
    return [
        {**_initial_row(each), "was": str(at), "filter": each}
        for at, each in enumerate(filters)
    ]


def _initial_row(config: JsonObject) -> dict[str, Any]:
    paths = config["path"]
    path, *others = paths if isinstance(paths, list) else [paths]
    is_by_client = "parameter" in config
    value = config.get("default" if is_by_client else "value")
    text = typed_text(value)
    if value is not None and not text:
        raise NotRepresentable(_("a filter has an empty value"))
    if isinstance(value, list) and _split_lines(text) != [*map(typed_text, value)]:
        raise NotRepresentable(
            _("a value begins or ends with a space, or has line breaks")
        )
    return {
        "path": path,
        "others": others,
        "comparison": config["lookup"],
        "given": BY_CLIENT if is_by_client else FIXED,
        "value": text,
        "parameter": config.get("parameter", ""),
        "required": config.get("required", False),
        "description": config.get("description", ""),
    }


def typed_text(value: object) -> str:
    """Return a JSON value as staff type it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "\n".join(map(typed_text, value))
    return str(value)


def read_text(schema: Mapping[str, Any], text: str) -> Any:
    """Return what was typed as JSON; raise ValidationError for what is none."""
    if "enum" in schema:
        known = {str(each): each for each in schema["enum"]}
        return known.get(text.strip(), text)
    kind = schema.get("type")
    if kind == "array":
        return [read_text(schema["items"], each) for each in _split_lines(text)]
    if kind == "boolean":
        if text.strip().lower() not in _BOOLEANS:
            raise ValidationError(_("Write yes or no."))
        return _BOOLEANS[text.strip().lower()]
    return _parse_number(text) if kind in ("integer", "number") else text


def _split_lines(text: str) -> list[str]:
    return [each.strip() for each in text.split("\n") if each.strip()]


def _parse_number(text: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValidationError(_("Write a number."))
