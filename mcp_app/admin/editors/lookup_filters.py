"""The filters of a query: each is a line that says in words what it does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.choices import flatten_choices
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lines import LineForm, redrawing_field
from mcp_app.admin.editors.lookup_choices import (
    NOT,
    NOT_EMPTY,
    READY,
    Choices,
    comparison_choices,
    filter_and_ready_entries,
    filter_entries,
    grouped_choices,
    ready_filters,
    text_entries,
)
from mcp_app.admin.editors.lookup_values import PK, several_widget, value_fields
from mcp_app.admin.editors.one_form import put_member
from mcp_app.admin.editors.rows import SHOW, LinesField
from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import EMPTY, ENDS, RANGE, SEVERAL
from mcp_app.kinds.query.config import MAX_NAME_LENGTH, MAX_PATHS, NAME_PATTERN
from mcp_app.kinds.query.labels import (
    Spans,
    filter_words,
    label_and_field_of,
    parameter_names,
)
from mcp_app.kinds.query.scoping import Path, resolve_path
from mcp_app.protocol.json_types import JsonObject

BY_CLIENT, FIXED = "client", "fixed"
BY_ROW: Final = ("exact", "in")
"""Comparisons of a relation whose fixed values are rows."""


def check_name(name: str) -> None:
    """Raise ValidationError for what cannot name a parameter or a number."""
    if re.fullmatch(NAME_PATTERN, name):
        return
    rule = _("Only letters without accents, digits and _, beginning with a letter.")
    near = slugify(name).replace("-", "_").strip("_")[:MAX_NAME_LENGTH]
    if re.fullmatch(NAME_PATTERN, near):
        example = _("%(rule)s For example: %(near)s.")
        raise ValidationError(example % {"rule": rule, "near": near})
    raise ValidationError(rule)


class FilterForm(LineForm):
    """A filter: field, comparison, and a fixed value or a parameter for clients."""

    max_lines = 20

    path = redrawing_field(_("Field"))
    lookup = redrawing_field(_("Comparison"))
    source = redrawing_field(
        _("Who says the value"),
        [(BY_CLIENT, _("the client says")), (FIXED, _("fixed"))],
    )
    parameter = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=MAX_NAME_LENGTH,
        validators=[check_name],
    )
    required = forms.BooleanField(label=_("Clients must say it"), required=False)
    description = LinesField(label=_("Description"), rows=1)
    is_unfinished = False
    """Whether only the input for the value is missing on the page that was sent."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        prefix: str,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        if data is not None:
            was, path = (str(data.get(f"{prefix}-{e}", "")) for e in ("was", "path"))
            if was not in ("", path) and self._resolve_path(path):
                # The line now has another field: drop the old choices.
                data, initial = None, self.begin_line(path)
        super().__init__(data, prefix=prefix, initial={**(initial or {})})
        path, code = self.value_text("path"), self.value_text("lookup")
        self.name = self.value_text("parameter").strip() or _usual_name(path)
        self.used_names.add(self.name)
        self.fields["parameter"].widget.attrs["placeholder"] = _usual_name(path)
        self.code, self.comparison = code, code.lstrip(NOT)
        self.excludes = code.startswith(NOT) and code != NOT_EMPTY
        self.is_fixed = code == NOT_EMPTY or self.value_text("source") == FIXED
        # The page sends this back, so that `clean` knows which input it had.
        self.seen = f"{code} {self.is_fixed}"
        self.resolved = field_path = self._resolve_path(path)
        # The path names a relation, and not its key.
        is_row = (
            field_path is not None and field_path.stand_in and not path.endswith(PK)
        )
        self.asks_row = bool(is_row) and self.comparison in BY_ROW
        paths = grouped_choices(
            self.model, self.opened, filter_entries, [path], "filters"
        )
        self.offer_choices("path", paths)
        if (path, code) != (self.initial.get("path"), self.initial.get("lookup")):
            # A value of another field or comparison may be of another type.
            self.initial = {**self.initial, "value": None, "value_to": None}
        if field_path is None:
            self.offer_choices("lookup", [(code, code)])
            self.fields["value"] = forms.Field(required=False, widget=forms.TextInput())
            return
        self.offer_choices("lookup", comparison_choices(field_path.end_field, code))
        if code == NOT_EMPTY:
            # This comparison needs no value.
            self.fields["source"].widget = forms.HiddenInput()
            return
        listed = f"{prefix}-texts" if self.asks_row else ""
        self.fields |= value_fields(field_path, self.comparison, listed)
        if code in SEVERAL and field_path.end_field.kind is FieldKind.TEXT:
            self.fields["others"] = self._others_field()

    def _others_field(self) -> forms.Field:
        chosen = self.initial.get("others", ())
        texts = grouped_choices(
            self.model, self.opened, text_entries, chosen, "filters"
        )
        label = _("Search also in")
        choices: Any = [*flatten_choices(texts)]
        widget = several_widget(choices, label)
        return forms.MultipleChoiceField(
            label=label, choices=choices, widget=widget, required=False
        )

    @classmethod
    def choices_to_add(cls) -> Choices:
        entries = filter_and_ready_entries
        return grouped_choices(cls.model, cls.opened, entries, use="filters")

    @classmethod
    def _resolve_path(cls, path: str) -> Path | None:
        with suppress(KindError):
            return resolve_path(path, cls.model, cls.opened, "filters")
        return None

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        path, is_ready, value = path.partition(READY)
        field_path = resolve_path(path, cls.model, cls.opened, "filters")
        for _words, config in ready_filters(field_path.end_field) if is_ready else ():
            if str(config["value"]) == value:
                return cls.initial_line({"path": path, **config})
        # The first choice is the usual comparison.
        code = comparison_choices(field_path.end_field)[0][0]
        usual = _usual_name(path)
        # At most 80 filters: 37 characters leave two digits room in MAX_NAME_LENGTH.
        names = (usual, *(f"{usual[:37]}_{number}" for number in range(2, 999)))
        name = next(each for each in names if each not in cls.used_names)
        return cls.initial_line({"path": path, "lookup": code, "parameter": name})

    @classmethod
    def initial_line(cls, config: JsonObject) -> dict[str, Any]:
        paths, lookup = config["path"], config["lookup"]
        path, *others = paths if isinstance(paths, list) else [paths]
        is_by_client = "parameter" in config
        value = config.get("default" if is_by_client else "value")
        name = config.get("parameter", "")
        line = {
            **config,
            "config": config,
            "was": path,
            "path": path,
            "others": others,
            "lookup": f"{NOT if config.get('exclude') else ''}{lookup}",
            "source": BY_CLIENT if is_by_client else FIXED,
            "parameter": "" if name == _usual_name(path) else name,
            "value": value,
        }
        field_path = cls._resolve_path(path)
        if lookup == EMPTY and value is False and not is_by_client:
            line["lookup"] = NOT_EMPTY
        if field_path is None or value is None:
            return line
        if lookup == RANGE:
            line["value"], line["value_to"] = value
        elif path.endswith(PK) and lookup in BY_ROW and not is_by_client:
            keys = value if isinstance(value, list) else [value]
            if texts := cls.texts.texts_of(field_path, keys):
                path = path.removesuffix(PK)
                shown = texts if keys is value else texts[0]
                line |= {"was": path, "path": path, "value": shown}
        return line

    # -- what the page shows ----------------------------------------------------------

    @property
    def is_wrong(self) -> bool:
        return super().is_wrong or self.is_unfinished

    def label(self) -> str:
        return label_and_field_of(self.value_text("path"), self.model, self.opened)[0]

    def legend(self) -> str:
        where = str(_("Filter %(number)s, %(field)s"))
        return where % {"number": self.number, "field": self.label()}

    def value_parts(self) -> list[forms.BoundField]:
        return [self[each] for each in ("value", "value_to") if each in self.fields]

    def parameter_words(self) -> list[str]:
        return parameter_names({"parameter": self.name, "lookup": self.comparison})

    def words(self) -> Spans:
        """Return what the line says: “state is one of Booked, Back”."""
        text = ""
        value = self["value"].value() if "value" in self.fields else False
        config = {
            "path": self.value_text("path"),
            "lookup": self.comparison,
            "exclude": self.excludes,
            "value": value,
        }
        if not self.is_wrong:
            config = self.line_config()
        if self.asks_row and self.is_fixed:
            text = str(value or "").replace("\n", ", ")
            config = {**config, "path": self.value_text("path")}
        return filter_words(config, self.model, self.opened, text)

    @cached_property
    def suggestions(self) -> Sequence[str] | None:
        """Texts of rows to offer if the line is open and its value is a row."""
        if not (self.resolved and self.asks_row and (self.is_open or self.is_wrong)):
            return None
        typed = str((self["value"].value() if self.is_bound else None) or "")
        return self.texts.suggest(self.resolved, typed.rpartition("\n")[2])

    # -- what was sent ----------------------------------------------------------------

    def clean_others(self) -> list[str]:
        path = self.cleaned_data.get("path")
        others = [each for each in self.cleaned_data["others"] if each != path]
        if len(others) >= MAX_PATHS:
            most = _("One filter looks at %d fields at most.")
            raise ValidationError(most % MAX_PATHS)
        return others

    def clean(self) -> None:
        if self.resolved is None or self.errors or not self.has_changed():
            return
        try:
            value = self.cleaned_data["value"] = self._clean_value(self.resolved)
        except ValidationError as error:
            self.add_error("value", error)
            return
        if value is None and self.is_fixed:
            is_preview = any(each.startswith(SHOW) for each in self.data)
            is_new_input = self.data.get(self.add_prefix("seen")) != self.seen
            self.is_unfinished = is_preview and is_new_input
            if not self.is_unfinished:
                self.add_error("value", _("Write the value."))

    def _clean_value(self, path: Path) -> Any:
        # "Is not empty" is stored as "is empty" with the value false.
        value: Any = self.code != NOT_EMPTY and self.cleaned_data["value"]
        if self.comparison == RANGE:
            ends = [value, self.cleaned_data["value_to"]]
            return None if ends == [None, None] else ends
        if value is None or not (self.asks_row and self.is_fixed):
            return value
        texts = value if isinstance(value, list) else [value]
        keys = self.texts.keys_of(path, texts)
        return keys if texts is value else keys[0]

    def line_config(self) -> JsonObject:
        stored: JsonObject = self.initial.get("config", {})
        if not self.is_bound or not self.has_changed():
            return stored
        values = self.cleaned_data
        path, others = values["path"], values.get("others")
        config: JsonObject = {
            "path": [path, *others] if others else path,
            "lookup": self.comparison,
        }
        if self.excludes:
            config["exclude"] = True
        if self.is_fixed:
            config["path"] = f"{path}{PK}" if self.asks_row else config["path"]
            return {**config, "value": values["value"]}
        config["parameter"] = self.name
        for name in ("description", "required"):
            put_member(config, name, values[name])
        default = values["value"]
        return config if default is None else {**config, "default": default}


def is_representable(config: JsonObject) -> bool:
    """Return whether inputs can show a filter's value, valid or not."""
    value, lookup = config.get("default", config.get("value")), config["lookup"]
    if lookup == EMPTY and config.get("exclude"):
        return False
    values = value if isinstance(value, list) else [value]
    # If `values is value`, the value is a list.
    if value is not None and (values is value) != (lookup in ("in", RANGE)):
        return False
    if values is value and lookup == RANGE and len(values) != len(ENDS):
        return False
    # A time of day follows the ten characters of a date; the inputs have none.
    if lookup == RANGE and any(str(each)[10:11] in ("T", " ") for each in values):
        return False
    return all(isinstance(each, str | int | float | None) for each in values)


def _usual_name(path: str) -> str:
    return path.replace(".", "_")[:MAX_NAME_LENGTH]
