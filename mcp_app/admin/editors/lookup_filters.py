"""The filters of a query: one line for each, which says in words what it does."""

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

from mcp_app.admin.editors.lines import LineForm, is_same, redrawing_field
from mcp_app.admin.editors.lookup_choices import (
    NOT,
    Choices,
    comparison_choices,
    filter_entries,
    grouped_choices,
    text_entries,
)
from mcp_app.admin.editors.lookup_values import (
    PK,
    asks_row,
    read_typed,
    schema_of,
    several_widget,
    typed_text,
    value_fields,
)
from mcp_app.admin.editors.rows import LinesField, NotRepresentable, stored_or_written
from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.kind import KindError
from mcp_app.kinds.query.comparisons import EMPTY, SEVERAL, Unfit, clean_value
from mcp_app.kinds.query.config import MAX_NAME_LENGTH, MAX_PATHS, NAME_PATTERN
from mcp_app.kinds.query.labels import Spans, filter_words, label_and_field_of
from mcp_app.kinds.query.scoping import Path, resolve_path
from mcp_app.protocol.json_types import JsonObject

MAX_OTHERS: Final = 100
"""Texts to search as well; of more only the model's own are offered."""
BY_CLIENT, FIXED = "client", "fixed"
_SAYS_NOTHING: Final[JsonObject] = {"description": "", "required": False}


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
    most = 20

    path = redrawing_field(_("Field"))
    lookup = redrawing_field(_("Comparison"))
    source = redrawing_field(
        _("Who says the value"),
        [(BY_CLIENT, _("the client says")), (FIXED, _("fixed"))],
    )
    others = forms.MultipleChoiceField(label=_("Search also in"), required=False)
    parameter = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=MAX_NAME_LENGTH,
        validators=[check_name],
    )
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
        self.code, self.comparison = code, code.lstrip(NOT)
        self.is_fixed = self.value_text("source") == FIXED
        self.resolved = found = self._resolve_path(path)
        self.asks_row = (
            found is not None and asks_row(found) and self.comparison != EMPTY
        )
        self.offer_choices("path", self.choices_to_add([path]))
        others = self.initial.get("others", ())
        texts: Any = grouped_choices(
            self.model, self.opened, text_entries, others, "filters"
        )
        texts = [*flatten_choices(texts)]
        if len(texts) > MAX_OTHERS:
            # Each line has them.
            texts = [each for each in texts if "." not in each[0] or each[0] in others]
        self.fields["others"].widget = several_widget(texts, _("Search also in"))
        self.offer_choices("others", texts)
        if found is None:
            self.offer_choices("lookup", [(code, code)])
            self.fields["value"] = forms.Field(required=False, widget=forms.TextInput())
            return
        self.offer_choices("lookup", comparison_choices(found.end_field, code))
        listed = f"{prefix}-texts" if self.asks_row else ""
        shown = self.initial.get("typed")
        self.fields |= value_fields(found, self.comparison, shown, listed)
        if code not in SEVERAL or found.end_field.kind is not FieldKind.TEXT:
            del self.fields["others"]

    @classmethod
    def choices_to_add(cls, chosen: Sequence[str] = ()) -> Choices:
        return grouped_choices(cls.model, cls.opened, filter_entries, chosen, "filters")

    @classmethod
    def _resolve_path(cls, path: str) -> Path | None:
        with suppress(KindError):
            return resolve_path(path, cls.model, cls.opened, "filters")
        return None

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        found = resolve_path(path, cls.model, cls.opened, "filters")
        code = comparison_choices(found.end_field)[0][0]
        name = cls._free_name(path)
        return cls.initial_line({"path": path, "lookup": code, "parameter": name})

    @classmethod
    def initial_line(cls, config: JsonObject) -> dict[str, Any]:
        paths, lookup = config["path"], config["lookup"]
        path, *others = paths if isinstance(paths, list) else [paths]
        is_by_client = "parameter" in config
        value = config.get("default" if is_by_client else "value")
        line = {
            **config,
            "config": config,
            "path": path,
            "others": others,
            "lookup": f"{NOT if config.get('exclude') else ''}{lookup}",
            "source": BY_CLIENT if is_by_client else FIXED,
            "typed": value,
            "value": typed_text(value),
        }
        found = cls._resolve_path(path)
        if found is None:
            return {**line, "value": "" if value is None else str(value)}
        if found.stand_in and not is_by_client and lookup != EMPTY:
            if not path.endswith(PK):
                raise NotRepresentable(_("a row is fixed by its text"))
            line["path"] = path.removesuffix(PK)
            keys = value if isinstance(value, list) else [value]
            shown = cls.texts.texts_of(found, keys)
            line["value"] = shown if isinstance(value, list) else shown[0]
        elif lookup == "range":
            first, last = value if isinstance(value, list) else (None, None)
            line |= {"value": typed_text(first), "value_to": typed_text(last)}
        elif value is not None:
            has_many = asks_row(found) or found.field.kind is FieldKind.CHOICE
            if isinstance(value, list) and not has_many:
                line["value"] = "\n".join(line["value"])
            schema = schema_of(found, lookup)
            with suppress(ValidationError):
                if is_same(read_typed(schema, line["value"] or "\n"), value):
                    return line
            raise NotRepresentable(_("a value is empty, or has spaces or line breaks"))
        return line

    def _with_usual_values(self, data: Any, prefix: str) -> Any:
        """Return what was sent, with what fits where the page had another field."""
        path, lookup, source, name, was = (
            str(data.get(f"{prefix}-{each}", ""))
            for each in ("path", "lookup", "source", "parameter", "was")
        )
        found = self._resolve_path(path)
        if found is None or was == f"{path} {lookup}":
            return data
        codes = [code for code, _label in comparison_choices(found.end_field)]
        code = lookup if lookup in codes else codes[0]
        old_path, _space, old_code = was.partition(" ")
        changed = data.copy()
        changed[f"{prefix}-lookup"] = code
        changed[f"{prefix}-source"] = source or BY_CLIENT
        if name in ("", _usual_name(old_path)):
            changed[f"{prefix}-parameter"] = self._free_name(path)
        old = self._resolve_path(old_path)
        if was and (old is None or _sort(old, old_code) != _sort(found, code)):
            for each in [key for key in changed if key.startswith(f"{prefix}-value")]:
                del changed[each]
        return changed

    @classmethod
    def _free_name(cls, path: str) -> str:
        """Return a name for a parameter that no other line has."""
        name = _usual_name(path)
        names = (name, *(f"{name[:37]}_{number}" for number in range(2, 999)))
        return next(each for each in names if each not in cls.used_names)

    # -- what the page shows ----------------------------------------------------------

    def was_value(self) -> str:
        return f"{self.value_text('path')} {self.code}"

    def label(self) -> str:
        return label_and_field_of(self.value_text("path"), self.model, self.opened)[0]

    def legend(self) -> str:
        where = str(_("Filter %(number)s, %(field)s"))
        return where % {"number": self.number, "field": self.label()}

    def value_parts(self) -> list[forms.BoundField]:
        return [self[each] for each in ("value", "value_to") if each in self.fields]

    def parameter_words(self) -> list[str]:
        name = self.value_text("parameter")
        is_range = self.comparison == "range"
        return [f"{name}_from", f"{name}_to"] if is_range else [name]

    def words(self) -> Spans:
        """Return what the line says: “state is one of Booked, Back”."""
        value, text = self["value"].value(), ""
        config = {
            "path": self.value_text("path"),
            "lookup": self.comparison,
            "exclude": self.code.startswith(NOT),
            "value": value,
        }
        if not self.is_wrong:
            config = self.line_config()
        if self.asks_row and self.is_fixed:
            text = ", ".join(value) if isinstance(value, list) else str(value or "")
            config = {**config, "path": self.value_text("path")}
        return filter_words(config, self.model, self.opened, text)

    @cached_property
    def suggestions(self) -> Sequence[str]:
        """Texts of rows to offer, where the value is one of a relation."""
        if self.resolved is None or not self.asks_row:
            return ()
        typed = (self["value"].value() if self.is_bound else "") or ""
        return self.texts.suggest(
            self.resolved, typed if isinstance(typed, str) else typed[-1]
        )

    # -- what was sent ----------------------------------------------------------------

    def clean_path(self) -> str:
        path = str(self.cleaned_data["path"])
        try:
            resolve_path(path, self.model, self.opened, "filters")
        except KindError as error:
            raise ValidationError(error.message) from None
        return path

    def clean_others(self) -> list[str]:
        path = self.cleaned_data.get("path")
        others = [each for each in self.cleaned_data["others"] if each != path]
        if len(others) >= MAX_PATHS:
            most = _("One filter looks at %d fields at most.")
            raise ValidationError(most % MAX_PATHS)
        return others

    def clean(self) -> None:
        if self.resolved is None or self.errors:
            return
        try:
            typed = self.cleaned_data["typed"] = self._read_value(self.resolved)
        except ValidationError as error:
            self.add_error("value", error)
            return
        if typed is None and self.is_fixed:
            self.add_error("value", _("Write the value."))

    def _read_value(self, found: Path) -> Any:
        values, schema = self.cleaned_data, schema_of(found, self.comparison)
        typed = values["value"]
        if self.comparison == "range":
            sent = typed, values["value_to"]
            ends: list[Any] = [read_typed(schema, e) if e else None for e in sent]
            if None not in ends and _is_backwards(found, ends):
                raise ValidationError(_("The first one is after the second one."))
            return None if ends == [None, None] else ends
        if not typed:
            return None
        if not (self.asks_row and self.is_fixed):
            return read_typed(schema, typed)
        if isinstance(typed, list):
            return [self.texts.key_of(found, each) for each in typed]
        return self.texts.key_of(found, typed)

    def line_config(self) -> JsonObject:
        stored: JsonObject = self.initial.get("config", {})
        if not self.is_bound:
            return stored
        values = self.cleaned_data
        path, others = values["path"], values.get("others")
        config: JsonObject = {
            "path": [path, *others] if others else path,
            "lookup": self.comparison,
        }
        if self.code.startswith(NOT):
            config["exclude"] = True
        if self.is_fixed:
            config["path"] = f"{path}{PK}" if self.asks_row else config["path"]
            config["value"] = values["typed"]
        else:
            config["parameter"] = values["parameter"] or _usual_name(path)
            config |= {name: values[name] for name in _SAYS_NOTHING if values[name]}
            if values["typed"] is not None:
                config["default"] = values["typed"]
        return stored_or_written(stored, config, _SAYS_NOTHING)


def _is_backwards(found: Path, ends: Sequence[Any]) -> bool:
    """Return whether the first value of a range is after the last one."""
    # What is wrong with a value is told where the query is read.
    with suppress(Unfit, ValueError):
        first, last = (clean_value(found.field, "from", each) for each in ends)
        return bool(first > last)
    return False


def _sort(path: Path, code: str) -> tuple[object, bool]:
    """Return what two comparisons have in common whose values are of one sort."""
    lookup = code.lstrip(NOT)
    return schema_of(path, lookup), lookup == "range"


def _usual_name(path: str) -> str:
    return path.replace(".", "_")[:MAX_NAME_LENGTH]
