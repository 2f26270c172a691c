"""Values of a query's filters as people type them, and rows by their texts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import count, takewhile
from operator import or_
from typing import Any, Final

from django import forms
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.query.comparisons import IN_ANY_CASE, PERIODS, value_schema
from mcp_app.kinds.query.labels import period_label
from mcp_app.kinds.query.scoping import TEXT, Path, Scopes
from mcp_app.kinds.query.shapes import plain_to_json
from mcp_app.pools.statement_time import time_limit

logger = logging.getLogger("mcp_app.kinds")

Person = AbstractUser | AnonymousUser | None

MAX_TICKS: Final = 12
"""Choices that are shown as boxes; more are a list."""
YES_NO: Final = (("yes", _("yes")), ("no", _("no")))
PK: Final = ".pk"

# -- inputs ----------------------------------------------------------------------------


class Select(forms.Select):
    """Has no template for each option: of thousands that takes seconds."""

    template_name = "mcp_app/widgets/select.html"


class SelectMultiple(forms.SelectMultiple):
    template_name = Select.template_name


class SeveralInputs(forms.TextInput):
    """An input for each text, and one more; they have the name with a number."""

    template_name = "mcp_app/widgets/several.html"

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, None, attrs)
        return {**context, "texts": [*enumerate([*(value or ()), ""])]}

    def format_value(self, value: Any) -> Any:
        return value

    def value_from_datadict(self, data: Any, files: Any, name: str) -> list[str]:
        sent = takewhile(data.__contains__, (f"{name}-{at}" for at in count()))
        texts = (str(data.get(each)).strip() for each in sent)
        return [*filter(None, texts)]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-0" not in data


def several_widget(choices: Sequence[Any], label: Label) -> forms.Widget:
    """Return boxes to tick, or a list if they are many."""
    if len(choices) <= MAX_TICKS:
        return forms.CheckboxSelectMultiple({"class": "mcp-ticked"}, choices)
    return SelectMultiple({"size": 8, "aria-label": label}, choices)


def value_fields(
    path: Path, lookup: str, shown: Any, listed: str
) -> Mapping[str, forms.Field]:
    """Return the inputs for the value of a filter, by their names.

    `shown` is the value that they show, in its JSON form; `listed` the id of a list of
    texts to choose from, "" for none.
    """
    parts: dict[str, tuple[Label, str, Any]] = {"value": (_("Value"), lookup, shown)}
    if lookup == "range":
        first, last = shown if isinstance(shown, list) else (None, None)
        parts = {
            "value": (_("from"), "from", first),
            "value_to": (_("to"), "to", last),
        }
    return {
        name: forms.Field(
            required=False, label=label, widget=_value_widget(path, code, value, listed)
        )
        for name, (label, code, value) in parts.items()
    }


def _value_widget(path: Path, lookup: str, shown: Any, listed: str) -> forms.Widget:
    schema, is_list = schema_of(path, lookup), lookup == "in"
    one = schema["items"] if is_list else schema
    choices = _choices_of(path, lookup, one)
    if choices and not is_list:
        return Select(choices=[NONE, *choices])
    if choices:
        return several_widget(choices, _("Value"))
    if listed:
        inputs = SeveralInputs if is_list else forms.TextInput
        return inputs({"list": listed, "autocomplete": "off"})
    if is_list:
        return forms.Textarea({"rows": 2, "cols": 30})
    kind = {"integer": "number", "number": "number"}.get(one.get("type", ""), "text")
    if one.get("format") == "date" and len(str(shown or "")) in (0, 10):
        kind = "date"
    step = {"step": "any"} if kind == "number" else {}
    return forms.TextInput({"type": kind, **step})


def _choices_of(
    path: Path, lookup: str, schema: Mapping[str, Any]
) -> Sequence[tuple[str, Label]]:
    """Return the values that fit if they are few, with what they are called."""
    if lookup == "period":
        return [(each, period_label(each)) for each in PERIODS]
    if "enum" in schema:
        return [(str(v), str(text)) for v, text in path.field.value_column.flatchoices]
    return YES_NO if schema.get("type") == "boolean" else ()


def asks_row(path: Path) -> bool:
    """Return whether values are rows that a relation leads to, by their texts."""
    return bool(path.stand_in) and not path.text.endswith(PK)


def schema_of(path: Path, lookup: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a value; of a range the one of an end."""
    if path.stand_in == TEXT:
        lookup = IN_ANY_CASE.get(lookup, lookup)
    return value_schema(path.field, "from" if lookup == "range" else lookup)


def typed_text(value: object) -> Any:
    """Return a JSON value as the inputs show it: a list stays one."""
    if isinstance(value, list):
        return [*map(typed_text, value)]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def read_typed(schema: Mapping[str, Any], typed: Any) -> Any:
    """Return what was typed as JSON; raise ValidationError for what is none."""
    if schema.get("type") == "array":
        texts = typed.split("\n") if isinstance(typed, str) else typed
        filled = filter(None, map(str.strip, texts))
        if "enum" in schema["items"]:
            known = {str(each): each for each in schema["items"]["enum"]}
            return [known.get(each, each) for each in filled]
        return [read_typed(schema["items"], each) for each in filled]
    if "enum" in schema:
        return next((each for each in schema["enum"] if str(each) == typed), typed)
    if schema.get("type") == "boolean":
        return {"yes": True, "no": False}.get(typed)
    if schema.get("format") == "date":
        message = _("Write a date, such as 2026-11-27.")
        forms.DateField(error_messages={"invalid": message}).clean(typed)
    if schema.get("type") not in ("integer", "number"):
        return typed
    for kind in (int, float):
        with suppress(ValueError):
            return kind(typed)
    raise ValidationError(_("Write a number."))


# -- rows by their texts ---------------------------------------------------------------

MAX_SUGGESTED: Final = 50
MAX_CANDIDATES: Final = 5
MAX_SAME: Final = 1_000
"""Rows that are looked at to tell which texts are those of one row alone."""
SECONDS: Final = 1.0
KEY: Final = "#"
"""Before a key, where no text stands for it alone."""


class RowTexts:
    """The texts of rows that a person sees, and the keys behind them.

    Each path ends at the relation that leads to the rows.
    """

    def __init__(self, user: Person) -> None:
        self._user = user

    def suggest(self, path: Path, typed: str = "") -> list[str]:
        """Return texts of rows, of those that hold what was typed."""
        rows = self._read_rows(path, MAX_SUGGESTED, "icontains", [typed])
        return [*dict.fromkeys(text for _key, text in rows if text)]

    def texts_of(self, path: Path, keys: Sequence[object]) -> list[str]:
        """Return the text that stands for each key alone, else the key itself."""
        rows = self._read_rows(path, len(keys), "", keys)
        texts = {plain_to_json(key): text for key, text in rows}
        sought = [*filter(None, texts.values()), *(f"{KEY}{key}" for key in keys)]
        rows = self._read_rows(path, MAX_SAME, "iexact", sought)
        times = Counter(text.casefold() for _key, text in rows)

        def name_of(key: Any) -> str:
            text, name = texts.get(key, ""), f"{KEY}{key}"
            # A row may be called as another one's key is written.
            name = f"{KEY}{name}" if times[name.casefold()] else name
            return text if times[text.casefold()] == 1 else name

        return [*map(name_of, keys)]

    def key_of(self, path: Path, text: str) -> Any:
        """Return the key of the one row with a text; raise ValidationError."""
        rows = self._read_rows(path, MAX_CANDIDATES + 1, "iexact", [text])
        if len(rows) == 1:
            return plain_to_json(rows[0][0])
        if text.startswith(KEY) and not rows:
            return read_typed(value_schema(path.end_field, "exact"), text.lstrip(KEY))
        names = path.owner.model._meta
        details = {"what": names.verbose_name, "text": visible(text)}
        sentence = _("No %(what)s of yours is called “%(text)s”.")
        if rows:
            keys = self.texts_of(path, [key for key, _text in rows[:MAX_CANDIDATES]])
            details |= {"what": names.verbose_name_plural, "keys": ", ".join(keys)}
            sentence = _(
                "Several of your %(what)s are called “%(text)s”: write %(keys)s."
            )
        elif near := self._near(path, text):
            details["near"] = ", ".join(near)
            sentence = _(
                "No %(what)s of yours is called “%(text)s”. Did you mean %(near)s?"
            )
        raise ValidationError(sentence % details)

    def _near(self, path: Path, text: str) -> list[str]:
        """Return texts that hold what was typed, or begin alike."""
        for part in (text, text[:3], text[:2]):
            if part and (found := self.suggest(path, part)):
                return [visible(each) for each in found[:MAX_CANDIDATES]]
        return []

    def _read_rows(
        self, path: Path, most: int, lookup: str, values: Sequence[object]
    ) -> list[tuple[Any, str]]:
        """Return keys and texts of rows with one of these texts; keys for no lookup."""
        model, key = path.owner, path.end_field.key_column
        field = model.fields.get(model.text)
        needed = {model.permission, "" if field is None else field.permission} - {""}
        if self._user is None or not all(map(self._user.has_perm, needed)):
            return []
        column = key if field is None else field.source.attname
        name = f"{column}__{lookup}" if lookup else key
        fits = reduce(or_, (Q(**{name: each}) for each in values), Q())
        using = router.db_for_read(model.model)
        scopes = Scopes(AccessRequest.of_user(self._user), using)
        try:
            with time_limit(using, SECONDS):
                rows = scopes.rows(model).filter(fits).order_by(column)
                pairs = rows.values_list(key, column)[:most]
                return [(value, str(text)) for value, text in pairs]
        except Exception:
            # A function of the site may raise anything; what was typed is no key, then.
            logger.exception("The rows of %s cannot be read.", model.label)
            return []
