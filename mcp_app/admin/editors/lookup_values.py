"""Values of a query's filters as people type them, and rows by their texts."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import count, takewhile
from operator import or_
from typing import Any, Final, NamedTuple

from django import forms
from django.contrib.auth.models import AbstractUser, AnonymousUser
from django.core.exceptions import ValidationError
from django.db import router
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.catalog.open_models import FieldKind, OpenModel
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
VALUE: Final = _("Value")
_BOOLEANS: Final = {"yes": True, "true": True, "no": False, "false": False}

# -- inputs ----------------------------------------------------------------------------


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
        texts = (str(data.get(each)) for each in sent)
        return [each.strip() for each in texts if each.strip()]

    def value_omitted_from_data(self, data: Any, files: Any, name: str) -> bool:
        return f"{name}-0" not in data


class TypedField(forms.Field):
    """What was typed, or chosen, as it was sent."""

    def __init__(self, widget: forms.Widget, label: Label = VALUE) -> None:
        super().__init__(required=False, widget=widget, label=label)


def value_fields(
    path: Path, lookup: str, shown: Any, listed: str
) -> Mapping[str, forms.Field]:
    """Return the inputs for the value of a filter, by their names.

    `shown` is the value that they show, in its JSON form; `listed` the id of a list of
    texts to choose from, "" for none.
    """
    if lookup != "range":
        return {"value": TypedField(_value_widget(path, lookup, shown, listed))}
    first, last = shown if isinstance(shown, list) else (None, None)
    return {
        "value": TypedField(_value_widget(path, "from", first), _("from")),
        "value_to": TypedField(_value_widget(path, "to", last), _("to")),
    }


def _value_widget(
    path: Path, lookup: str, shown: Any, listed: str = ""
) -> forms.Widget:
    schema, is_list = schema_of(path, lookup), lookup == "in"
    one = schema["items"] if is_list else schema
    choices = _choices_of(path, lookup, one)
    if choices and not is_list:
        return forms.Select(choices=[NONE, *choices])
    if choices and len(choices) <= MAX_TICKS:
        return forms.CheckboxSelectMultiple({"class": "mcp-ticked"}, choices)
    if choices:
        return forms.SelectMultiple({"size": 8}, choices)
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


def has_many(path: Path) -> bool:
    """Return whether several values are shown as several inputs or choices."""
    asks_row = bool(path.stand_in) and not path.text.endswith(".pk")
    return asks_row or path.field.kind is FieldKind.CHOICE


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
        return [read_typed(schema["items"], each) for each in filled]
    if "enum" in schema:
        return {str(each): each for each in schema["enum"]}.get(typed, typed)
    if schema.get("type") == "boolean":
        if typed.strip().lower() not in _BOOLEANS:
            raise ValidationError(_("Write yes or no."))
        return _BOOLEANS[typed.strip().lower()]
    is_number = schema.get("type") in ("integer", "number")
    return _parse_number(typed) if is_number else typed


def _parse_number(text: str) -> float:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ValidationError(_("Write a number."))


# -- rows by their texts ---------------------------------------------------------------

MAX_SUGGESTED: Final = 50
MAX_CANDIDATES: Final = 5
MAX_SAME: Final = 1_000
"""Rows that are looked at to tell which texts are those of one row alone."""
SECONDS: Final = 1.0
KEY: Final = "#"
"""Before a key, where no text stands for it alone."""


class Target(NamedTuple):
    """What a relation leads to, and the column whose values are its keys."""

    model: OpenModel
    key: str
    schema: Mapping[str, Any]
    """The JSON Schema of a key."""


def target_of(path: Path) -> Target:
    """Return what a path leads to that ends at a relation."""
    field = path.end_field
    return Target(path.owner, field.key_column, value_schema(field, "exact"))


class RowTexts:
    """The texts of rows that a person sees, and the keys behind them."""

    def __init__(self, user: Person) -> None:
        self._user = user

    def suggest(self, target: Target, typed: str = "") -> list[str]:
        """Return texts of rows, of those that hold what was typed."""
        rows = self._found(
            target, MAX_SUGGESTED, **({"icontains": typed} if typed else {})
        )
        return [*dict.fromkeys(text for _key, text in rows if text)]

    def texts_of(self, target: Target, keys: Sequence[object]) -> list[str]:
        """Return the text that stands for each key alone, else the key itself."""
        rows = self._found(target, len(keys), **{f"{KEY}in": keys})
        texts = {plain_to_json(key): text for key, text in rows}
        sought = [*filter(None, texts.values()), *(f"{KEY}{key}" for key in keys)]
        rows = self._found(target, MAX_SAME, iexact=sought)
        times = Counter(text.casefold() for _key, text in rows)

        def name_of(key: Any) -> str:
            text = texts.get(key, "")
            name = f"{KEY}{key}"
            # A row may be called as another one's key is written.
            name = f"{KEY}{name}" if times[name.casefold()] else name
            return text if times[text.casefold()] == 1 else name

        return [*map(name_of, keys)]

    def key_of(self, target: Target, text: str) -> Any:
        """Return the key of the one row with a text; raise ValidationError."""
        rows = self._found(target, MAX_CANDIDATES + 1, iexact=[text])
        if len(rows) == 1:
            return plain_to_json(rows[0][0])
        if text.startswith(KEY) and not rows:
            return read_typed(target.schema, text.lstrip(KEY))
        names = target.model.model._meta
        details = {"what": names.verbose_name, "text": visible(text)}
        if rows:
            some = [key for key, _text in rows[:MAX_CANDIDATES]]
            keys = ", ".join(self.texts_of(target, some))
            sentence = _(
                "Several of your %(what)s are called “%(text)s”: write %(keys)s."
            )
            details |= {"what": names.verbose_name_plural, "keys": keys}
            raise ValidationError(sentence % details)
        near = self._near(target, text)
        sentence = _("No %(what)s of yours is called “%(text)s”.")
        if near:
            sentence = _(
                "No %(what)s of yours is called “%(text)s”. Did you mean %(near)s?"
            )
        raise ValidationError(sentence % {**details, "near": ", ".join(near)})

    def _near(self, target: Target, text: str) -> list[str]:
        """Return texts that hold what was typed, or begin alike."""
        for part in (text, text[:3], text[:2]):
            rows = self._found(target, MAX_CANDIDATES, icontains=part) if part else ()
            if rows:
                return [visible(each) for _key, each in rows]
        return []

    def _found(self, target: Target, most: int, **wanted: Any) -> list[tuple[Any, str]]:
        model = target.model
        field = model.fields.get(model.text)
        needed = {model.permission, "" if field is None else field.permission} - {""}
        if self._user is None or not all(map(self._user.has_perm, needed)):
            return []
        column = target.key if field is None else field.source.attname
        fits = Q()
        for name, value in wanted.items():
            is_of_key = name.startswith(KEY)
            lookup = f"{target.key if is_of_key else column}__{name.lstrip(KEY)}"
            values = value if name == "iexact" else [value]
            fits &= reduce(or_, (Q(**{lookup: each}) for each in values), Q())
        using = router.db_for_read(model.model)
        scopes = Scopes(AccessRequest.of_user(self._user), using)
        try:
            with time_limit(using, SECONDS):
                rows = scopes.rows(model).filter(fits).order_by(column)
                pairs = rows.values_list(target.key, column)[:most]
                return [(key, str(text)) for key, text in pairs]
        except Exception:
            # A function of the site may raise anything; what was typed is no key, then.
            logger.exception("The rows of %s cannot be read.", model.label)
            return []
