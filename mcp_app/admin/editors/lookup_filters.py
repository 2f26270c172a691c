"""The filters of a query: one line for each, which says in words what it does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.utils.text import slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lines import LineForm, Lines, is_same, with_values
from mcp_app.admin.editors.lookup_choices import (
    NOT,
    comparison_choices,
    filter_entry,
    grouped_choices,
    text_entry,
)
from mcp_app.admin.editors.lookup_values import (
    RowTexts,
    TypedField,
    has_many,
    read_typed,
    schema_of,
    target_of,
    typed_text,
    value_fields,
)
from mcp_app.admin.editors.rows import LinesField, NotRepresentable, stored_or_written
from mcp_app.catalog.open_models import FieldKind, OpenModel, OpenModels
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import (
    EMPTY,
    SEVERAL,
    Unfit,
    clean_value,
    comparisons_of,
)
from mcp_app.kinds.query.config import MAX_NAME_LENGTH, MAX_PATHS, NAME_PATTERN
from mcp_app.kinds.query.labels import Spans, filter_words, label_and_field_of
from mcp_app.kinds.query.scoping import Path, resolve_path
from mcp_app.protocol.json_types import JsonObject

MAX_FILTERS: Final = 20
BY_CLIENT, FIXED = "asked", "fixed"
PK: Final = ".pk"
REDRAW: Final = {"data-mcp-redraw": "config"}
_SAYS_NOTHING: Final[JsonObject] = {"description": "", "required": False}


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

    def run_validators(self, value: Any) -> None:
        try:
            super().run_validators(value)
        except ValidationError as error:
            near = slugify(value).replace("-", "_").strip("_")[:MAX_NAME_LENGTH]
            if not re.fullmatch(NAME_PATTERN, near):
                raise
            offer = _("%(rule)s For example: %(near)s.")
            details = {"rule": " ".join(error.messages), "near": near}
            raise ValidationError(offer % details) from None


class FilterForm(LineForm):
    """One filter; subclasses know which model it is of, and who sees which rows."""

    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]
    texts: ClassVar[RowTexts]
    used_names: ClassVar[set[str]]
    """The names of parameters that other lines have."""

    path = forms.ChoiceField(
        label=_("Field"), widget=forms.Select({"aria-label": _("Field"), **REDRAW})
    )
    lookup = forms.ChoiceField(
        label=_("Comparison"),
        widget=forms.Select({"aria-label": _("Comparison"), **REDRAW}),
    )
    given = forms.ChoiceField(
        label=_("Who says the value"),
        choices=[(BY_CLIENT, _("the client says")), (FIXED, _("fixed"))],
        widget=forms.Select({"aria-label": _("Who says the value"), **REDRAW}),
    )
    others = forms.MultipleChoiceField(
        label=_("Search also in"),
        widget=forms.CheckboxSelectMultiple({"class": "mcp-ticked"}),
        required=False,
    )
    parameter = NameField(label=_("Name"))
    required = forms.BooleanField(label=_("Clients must say it"), required=False)
    description = LinesField(label=_("Description"), rows=1)

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        prefix: str,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        if data is not None:
            data = self._with_usual_values(data, prefix)
        super().__init__(data, prefix=prefix, initial={**(initial or {})})
        path, code = self.value_text("path"), self.value_text("lookup")
        if self.is_bound:
            self.used_names.add(self.value_text("parameter"))
        self.found = self._resolve_path(path)
        chosen = [path, *self.initial.get("others", ())]
        paths = self.model, self.opened
        fields = grouped_choices(*paths, filter_entry, chosen[:1], "filters")
        self.offer_choices("path", fields)
        texts = grouped_choices(*paths, text_entry, chosen[1:], "filters")
        self.offer_choices("others", texts)
        shown = self.initial.get("typed")
        if self.found is None:
            self.offer_choices("lookup", [(code, code)])
            self.fields["value"] = TypedField(forms.TextInput())
            return
        field = self.found.end_field
        self.offer_choices("lookup", comparison_choices(field, code))
        listed = f"{prefix}-texts" if self.asks_row else ""
        self.fields |= value_fields(self.found, code.lstrip(NOT), shown, listed)
        if not self.is_wide or field.kind is not FieldKind.TEXT:
            del self.fields["others"]

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        found = resolve_path(path, cls.model, cls.opened, "filters")
        name = cls.free_name(_usual_name(path))
        code = comparison_choices(found.end_field)[0][0]
        return _initial_line(cls, {"path": path, "lookup": code, "parameter": name})

    def _resolve_path(self, path: str) -> Path | None:
        try:
            return resolve_path(path, self.model, self.opened, "filters")
        except KindError as error:
            self.path_problem = error.message
            return None

    def _with_usual_values(
        self, data: Mapping[str, Any], prefix: str
    ) -> Mapping[str, Any]:
        """Return what was sent, with what fits where the page had another field."""

        def sent(name: str) -> str:
            return str(data.get(f"{prefix}-{name}", ""))

        path, before = sent("path"), sent("was").partition(" ")
        found = self._resolve_path(path)
        if found is None or sent("was") == f"{path} {sent('lookup')}":
            return data
        offered = [code for code, _label in comparison_choices(found.end_field)]
        code = sent("lookup") if sent("lookup") in offered else offered[0]
        values: dict[str, Any] = {"lookup": code, "given": sent("given") or BY_CLIENT}
        old = self._resolve_path(before[0]) if before[0] else None
        if sent("parameter") in ("", _usual_name(before[0])):
            values["parameter"] = self.free_name(_usual_name(path))
        changed = with_values(data, prefix, **values)
        if before[0] and (old is None or not _is_alike(old, before[2], found, code)):
            begin = f"{prefix}-value"
            for name in [each for each in changed if each.startswith(begin)]:
                del changed[name]
        return changed

    @classmethod
    def free_name(cls, name: str) -> str:
        """Return a name for a parameter that no other line has."""
        names = (name, *(f"{name[:37]}_{number}" for number in range(2, 999)))
        return next(each for each in names if each not in cls.used_names)

    # -- what the page shows ----------------------------------------------------------

    @property
    def code(self) -> str:
        return self.value_text("lookup")

    @property
    def is_wide(self) -> bool:
        """Whether it can search several texts."""
        return self.code in SEVERAL

    @property
    def is_fixed(self) -> bool:
        return self.value_text("given") == FIXED

    @property
    def asks_row(self) -> bool:
        """Whether its value are rows that a relation leads to, by their texts."""
        if self.found is None or self.code.lstrip(NOT) == EMPTY:
            return False
        return bool(self.found.stand_in) and not self.found.text.endswith(PK)

    @property
    def picks_rows(self) -> bool:
        """Whether it keeps their keys: those are fixed."""
        return self.asks_row and self.is_fixed

    @property
    def was_value(self) -> str:
        return f"{self.value_text('path')} {self.code}"

    def label(self) -> str:
        return label_and_field_of(self.value_text("path"), self.model, self.opened)[0]

    def value_parts(self) -> list[forms.BoundField]:
        return [self[each] for each in ("value", "value_to") if each in self.fields]

    def parameter_words(self) -> list[str]:
        name = self.value_text("parameter")
        is_range = self.code.lstrip(NOT) == "range"
        return [f"{name}_from", f"{name}_to"] if is_range else [name]

    def words(self) -> Spans:
        """Return what the line says: “state is one of Booked, Back”."""
        config = {} if self.is_wrong else self.line_config()
        if not config:
            config = {
                "path": self.value_text("path"),
                "lookup": self.code.lstrip(NOT),
                "exclude": self.code.startswith(NOT),
                "value": self["value"].value(),
            }
        shown = self["value"].value() if self.picks_rows else ""
        text = ", ".join(shown) if isinstance(shown, list) else str(shown or "")
        path = config["path"]
        if self.picks_rows and isinstance(path, str):
            config = {**config, "path": path.removesuffix(PK)}
        return filter_words(config, self.model, self.opened, text)

    @cached_property
    def suggestions(self) -> Sequence[str]:
        """Texts of rows to offer, where the value is one of a relation."""
        if self.found is None or not self.asks_row:
            return ()
        typed = (self["value"].value() if self.is_bound else "") or ""
        last = typed if isinstance(typed, str) else typed[-1]
        return self.texts.suggest(target_of(self.found), last)

    def error_places(self, number: str) -> Any:
        where = _("Filter %(number)s, %(field)s")
        row = str(where) % {"number": number, "field": self.label()}
        for _row, bound, message in super().error_places(number):
            yield row, bound, message

    # -- what was sent ----------------------------------------------------------------

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.found is None:
            self.add_error("path", self.path_problem)
        elif not self.errors:
            self._clean_value(self.found)
            self._clean_others()
        return cleaned

    def _clean_value(self, found: Path) -> None:
        values = self.cleaned_data
        try:
            values["typed"] = self._read_value(found)
        except ValidationError as error:
            self.add_error("value", error)
            return
        if values["typed"] is None and self.is_fixed:
            self.add_error("value", _("Write the value."))

    def _read_value(self, found: Path) -> Any:
        values, lookup = self.cleaned_data, self.code.lstrip(NOT)
        schema = schema_of(found, lookup)
        if lookup == "range":
            sent = values["value"], values["value_to"]
            ends: list[Any] = [read_typed(schema, e) if e else None for e in sent]
            if None not in ends and _is_backwards(found, ends):
                raise ValidationError(_("The first one is after the second one."))
            return None if ends == [None, None] else ends
        typed = values["value"]
        if not typed or not self.picks_rows:
            return read_typed(schema, typed) if typed else None
        target = target_of(found)
        if isinstance(typed, list):
            return [self.texts.key_of(target, each) for each in typed]
        return self.texts.key_of(target, typed)

    def _clean_others(self) -> None:
        values = self.cleaned_data
        others = [each for each in values.get("others", ()) if each != values["path"]]
        values["others"] = others
        if len(others) >= MAX_PATHS:
            most = _("One filter looks at %d fields at most.") % MAX_PATHS
            self.add_error("others", most)

    def line_config(self) -> JsonObject:
        stored: JsonObject = self.initial.get("config", {})
        if not self.is_bound:
            return stored
        values = self.cleaned_data
        config: JsonObject = {
            "path": values["path"],
            "lookup": self.code.lstrip(NOT),
        }
        if self.code.startswith(NOT):
            config["exclude"] = True
        if values["others"]:
            config["path"] = [values["path"], *values["others"]]
        if self.is_fixed:
            path = f"{values['path']}{PK}" if self.picks_rows else config["path"]
            config |= {"path": path, "value": values["typed"]}
        else:
            config["parameter"] = values["parameter"] or _usual_name(values["path"])
            members = {name: values[name] for name in _SAYS_NOTHING if values[name]}
            config |= members
            if values["typed"] is not None:
                config["default"] = values["typed"]
        return stored_or_written(stored, config, _SAYS_NOTHING)


def _is_backwards(found: Path, ends: Sequence[Any]) -> bool:
    """Return whether the first value of a range is after the last one."""
    try:
        first, last = (clean_value(found.field, "from", each) for each in ends)
    except (Unfit, ValueError):
        # It is told what is wrong with the value.
        return False
    return bool(first > last)


def _is_alike(old: Path, old_code: str, found: Path, code: str) -> bool:
    """Return whether a value of one comparison can be one of the other."""
    lookups = old_code.lstrip(NOT), code.lstrip(NOT)
    if lookups[0] not in comparisons_of(old.end_field):
        return False
    alike = schema_of(old, lookups[0]) == schema_of(found, lookups[1])
    return alike and ("range" not in lookups or lookups[0] == lookups[1])


def _usual_name(path: str) -> str:
    return path.replace(".", "_")[:MAX_NAME_LENGTH]


def filter_lines(
    make: type[FilterForm],
    data: Mapping[str, Any] | None,
    prefix: str,
    filters: Sequence[JsonObject],
) -> Lines:
    """Return the lines of filters; raise `NotRepresentable`."""
    initial = [_initial_line(make, each) for each in filters]
    add = grouped_choices(make.model, make.opened, filter_entry, (), "filters")
    return Lines(make, data, prefix, initial, add, MAX_FILTERS)


def _initial_line(make: type[FilterForm], config: JsonObject) -> dict[str, Any]:
    paths = config["path"]
    path, *others = paths if isinstance(paths, list) else [paths]
    is_by_client = "parameter" in config
    value = config.get("default" if is_by_client else "value")
    sign = NOT if config.get("exclude") else ""
    line = {
        "config": config,
        "path": path,
        "others": others,
        "lookup": f"{sign}{config['lookup']}",
        "given": BY_CLIENT if is_by_client else FIXED,
        "typed": value,
        "parameter": config.get("parameter", ""),
        "required": config.get("required", False),
        "description": config.get("description", ""),
    }
    try:
        found = resolve_path(path, make.model, make.opened, "filters")
    except KindError:
        line["value"] = "" if value is None else str(value)
        return line
    line["value"] = typed_text(value)
    if found.stand_in and not is_by_client and config["lookup"] != EMPTY:
        if not path.endswith(PK):
            raise NotRepresentable(_("a row is fixed by its text"))
        line["path"] = path.removesuffix(PK)
        keys = value if isinstance(value, list) else [value]
        shown = make.texts.texts_of(target_of(found), keys)
        line["value"] = shown if isinstance(value, list) else shown[0]
    elif config["lookup"] == "range":
        first, last = value if isinstance(value, list) else (None, None)
        line["value"], line["value_to"] = typed_text(first), typed_text(last)
    elif value is not None:
        _check_round_trip(line, found)
    return line


def _check_round_trip(line: dict[str, Any], found: Path) -> None:
    """Raise `NotRepresentable` where inputs would not send back what they show."""
    if isinstance(line["value"], list) and not has_many(found):
        line["value"] = "\n".join(line["value"])
    schema = schema_of(found, line["lookup"].lstrip(NOT))
    with suppress(ValidationError):
        if is_same(read_typed(schema, line["value"] or "\n"), line["typed"]):
            return
    raise NotRepresentable(_("a value is empty, or has spaces or line breaks"))
