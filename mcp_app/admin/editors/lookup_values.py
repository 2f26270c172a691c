"""Fields for the values of a query's filters, and how rows are found by a text."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from typing import Any, Final

from django import forms
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.admin.editors.rows import TextsField
from mcp_app.catalog.open_models import FieldKind
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.query.comparisons import ENDS, IN_ANY_CASE, PERIODS, value_schema
from mcp_app.kinds.query.labels import period_label
from mcp_app.kinds.query.scoping import TEXT, Path, Scopes
from mcp_app.kinds.query.shapes import plain_to_json
from mcp_app.pools.statement_time import TimeIsUp, time_limit

logger = logging.getLogger("mcp_app.kinds")

Person = AbstractUser | AnonymousUser | None

MAX_TICKS: Final = 12
"""The greatest number of choices shown as boxes; more are a list."""
YES_NO: Final = ((True, _("yes")), (False, _("no")))
PK: Final = ".pk"
"""The end of a path that means the key of a related row."""
REDRAW: Final = {"data-mcp-redraw": "config"}
"""Marks inputs: after a change, the page's script asks for the form again."""

# -- inputs ----------------------------------------------------------------------------


class Select(forms.Select):
    """Renders options without a template each: thousands would take seconds."""

    template_name = "mcp_app/widgets/select.html"


class SelectMultiple(forms.SelectMultiple):
    template_name = Select.template_name


class SeveralInputs(forms.MultipleHiddenInput):
    """An input for each line of a text, and an empty one, all with the same name."""

    input_type = "text"

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        texts = [*value.split("\n"), ""] if value else [""]
        context = super().get_context(name, texts, attrs)
        inputs = context["widget"]["subwidgets"]
        for each in inputs:
            each["type"] = self.input_type
        # The label belongs to the first input.
        inputs[0]["attrs"]["id"] = context["widget"]["attrs"]["id"]
        return context

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        return "\n".join(filter(None, super().value_from_datadict(data, files, name)))


def several_widget(choices: Sequence[Any], label: Label) -> forms.Widget:
    """Return boxes to tick, or a list if they are many."""
    if len(choices) <= MAX_TICKS:
        return forms.CheckboxSelectMultiple({"class": "mcp-ticked", **REDRAW}, choices)
    return SelectMultiple({"size": 8, "aria-label": label, **REDRAW}, choices)


# -- fields ----------------------------------------------------------------------------
# The cleaned values are JSON; None means no value.


class NumberField(forms.FloatField):
    """A number: an int if it has no fraction, else a float."""

    def to_python(self, value: Any) -> Any:
        number = super().to_python(value)
        return int(number) if number and number.is_integer() else number


class DayField(forms.DateField):
    """A date, whose value is a text such as "2026-01-31"."""

    widget = forms.DateInput({"type": "date"})

    def to_python(self, value: Any) -> Any:
        day = super().to_python(value)
        return None if day is None else day.isoformat()


class ListField(TextsField):
    """Lines of an area, or texts of several inputs, each cleaned by `item`."""

    def __init__(self, item: forms.Field, **options: Any) -> None:
        super().__init__(**options)
        self._item = item

    def to_python(self, value: Any) -> Any:
        return [*map(self._item.clean, super().to_python(value))] or None


def value_fields(path: Path, lookup: str, listed: str) -> Mapping[str, forms.Field]:
    """Return the fields for the value of a filter, by their names.

    `listed` is the id of a list of texts to choose from, "" for none.
    """
    if lookup != "range":
        return {"value": _value_field(path, lookup, _("Value"), listed)}
    parts = {"value": ("from", _("from")), "value_to": ("to", _("to"))}
    return {n: _value_field(path, end, label) for n, (end, label) in parts.items()}


def _value_field(path: Path, lookup: str, label: Label, listed: str = "") -> Any:
    schema = schema_of(path, lookup)
    options: dict[str, Any] = {"label": label, "required": False}
    is_list = schema.get("type") == "array"
    item_schema = schema["items"] if is_list else schema
    if choices := _choices_of(path, lookup, item_schema):
        value_of = {str(value): value for value, _text in choices}
        options |= {"coerce": lambda sent: value_of.get(str(sent)), "empty_value": None}
        if is_list:
            widget = several_widget(choices, label)
            options |= {"choices": choices, "widget": widget}
            return forms.TypedMultipleChoiceField(**options)
        options |= {"choices": [NONE, *choices], "widget": Select(REDRAW)}
        return forms.TypedChoiceField(**options)
    suggesting = {"list": listed, "autocomplete": "off"} if listed else {}
    if is_list:
        attrs = {**suggesting, **REDRAW, "aria-label": label}
        inputs = {"widget": SeveralInputs(attrs)} if listed else {}
        return ListField(_field_of_one(item_schema), label=label, **inputs)
    field = _field_of_one(item_schema, **options)
    field.widget.attrs |= suggesting
    return field


def _field_of_one(schema: Mapping[str, Any], **options: Any) -> forms.Field:
    if schema.get("format") == "date":
        message = _("Write a date, such as 2026-11-27.")
        return DayField(error_messages={"invalid": message}, **options)
    numbers = {"integer": forms.IntegerField, "number": NumberField}
    if make := numbers.get(schema.get("type", "")):
        return make(error_messages={"invalid": _("Write a number.")}, **options)
    return forms.CharField(strip=False, empty_value=None, **options)


def _choices_of(
    path: Path, lookup: str, schema: Mapping[str, Any]
) -> Sequence[tuple[Any, Label]]:
    """Return the possible values with labels, or () if there is no fixed list."""
    if lookup == "period":
        return [(each, period_label(each)) for each in PERIODS]
    if "enum" in schema:
        return path.field.choices
    return YES_NO if schema.get("type") == "boolean" else ()


def schema_of(path: Path, lookup: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a value; for a range, the schema of one end."""
    if path.stand_in == TEXT:
        lookup = IN_ANY_CASE.get(lookup, lookup)
    # Staff choose days here; only clients and JSON can give a time of day.
    is_day = lookup in ENDS and path.field.kind is FieldKind.DATETIME
    return {"format": "date"} if is_day else value_schema(path.field, lookup)


# -- rows by their texts ---------------------------------------------------------------

MAX_SUGGESTED: Final = 50
MAX_CANDIDATES: Final = 5
MAX_NAMESAKES: Final = 1_000
"""Rows that are read to find the texts of one value."""
SECONDS: Final = 1.0


class RowTexts:
    """The texts of rows that a person sees, and the keys behind them.

    Each path ends at the relation that leads to the rows.
    """

    def __init__(self, user: Person) -> None:
        self._user = user

    def suggest(self, path: Path, typed: str = "") -> list[str]:
        """Return texts of rows that contain the typed text."""
        rows = self._read_rows(path, MAX_SUGGESTED, "icontains", [typed])
        return [*dict.fromkeys(text for _key, text in rows if text)]

    def texts_of(self, path: Path, keys: Sequence[Any]) -> list[str]:
        """Return the texts for the keys, [] unless each text names exactly one row."""
        rows = self._read_rows(path, len(keys), "", keys)
        by_key = {plain_to_json(key): text for key, text in rows}
        texts = [by_key.get(key, "") for key in keys]
        with suppress(ValidationError):
            return texts if self.keys_of(path, texts) == [*keys] else []
        return []

    def keys_of(self, path: Path, texts: Sequence[str]) -> list[Any]:
        """Return the key of the one row with each text; raise ValidationError."""
        rows = self._read_rows(path, MAX_NAMESAKES, "iexact", texts)
        keys = defaultdict(list)
        for key, text in rows:
            keys[text.casefold()].append(plain_to_json(key))
        for text in texts:
            if len(matches := keys[text.casefold()]) != 1:
                raise ValidationError(self._problem(path, text, matches))
        return [keys[text.casefold()][0] for text in texts]

    def _problem(self, path: Path, text: str, keys: Sequence[Any]) -> str:
        names = path.owner.model._meta
        sentence = _("No %(what)s of yours is called “%(text)s”.")
        details = {"what": names.verbose_name, "text": visible(text)}
        if keys:
            sentence = _(
                "Several of your %(what)s are called “%(text)s”. Choose the field “…"
                " (its key)”, and write one of %(keys)s."
            )
            details["what"] = names.verbose_name_plural
            details["keys"] = ", ".join(map(str, keys[:MAX_CANDIDATES]))
        elif near := self._near(path, text):
            sentence = _(
                "No %(what)s of yours is called “%(text)s”. Did you mean %(near)s?"
            )
            details["near"] = ", ".join(near)
        return str(sentence % details)

    def _near(self, path: Path, text: str) -> list[str]:
        """Return texts that contain the typed text, or its first letters."""
        for part in (text, text[:3], text[:2]):
            if part and (texts := self.suggest(path, part)):
                return [visible(each) for each in texts[:MAX_CANDIDATES]]
        return []

    def _read_rows(
        self, path: Path, limit: int, lookup: str, values: Sequence[object]
    ) -> list[tuple[Any, str]]:
        """Return (key, text) of rows whose text, or key if no lookup, fits a value."""
        model, key = path.owner, path.end_field.key_column
        field = model.fields.get(model.text)
        needed = {model.permission, "" if field is None else field.permission} - {""}
        if self._user is None or not all(map(self._user.has_perm, needed)):
            return []
        column = key if field is None else field.source.attname
        condition_name = f"{column}__{lookup}" if lookup else key
        condition = reduce(or_, (Q(**{condition_name: each}) for each in values), Q())
        using = router.db_for_read(model.model)
        scopes = Scopes(AccessRequest.of_user(self._user), using)
        try:
            with time_limit(using, SECONDS):
                rows = scopes.rows(model).filter(condition).order_by(column)
                pairs = rows.values_list(key, column)[:limit]
                return [(value, str(text)) for value, text in pairs]
        except Exception as error:
            # A function of the site may raise anything: treat it as no match.
            logger.exception("The rows of %s cannot be read.", model.label)
            if isinstance(error, TimeIsUp):
                # Stop querying: the next query may take as long.
                self._user = None
            return []
