"""The lookups that a field allows, and the values that clients send for them.

The form field for a kind of value cleans it.  Keys are cleaned by the column itself,
because a form field would reveal which rows exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple, TypeAlias

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.db.models import EmailField, IntegerField, Q, URLField, UUIDField
from django.utils import timezone

from mcp_app.catalog.json_schemas import NAIVE, text_like
from mcp_app.catalog.open_models import FieldKind, OpenField
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.schemas import EXAMPLES, with_example
from mcp_app.site_time import site_time

NUMBERS: Final = frozenset({FieldKind.NUMBER, FieldKind.FLOAT, FieldKind.DECIMAL})
DATES: Final = frozenset({FieldKind.DATE, FieldKind.DATETIME})
MAX_TEXT_LENGTH: Final = 200
MAX_VALUES: Final = 100
MAX_WORDS: Final = 10
MAX_DAYS: Final = 3_650

PERIODS: Final = (
    *("today", "yesterday", "tomorrow"),
    *(
        f"{which}_{unit}"
        for which in ("this", "last", "next")
        for unit in ("week", "month", "quarter", "year")
    ),
    *("from_now_on", "until_now"),
)
_OPEN_PERIODS: Final = {"from_now_on": "gte", "until_now": "lte"}
"""Periods with one end: today for dates, the moment of the call for times."""
WORDS: Final = "words"
"""A lookup: each word must be in one of the texts."""
_DIGITS: Final = 3
"""Words with at least this many digits, such as phone numbers, may contain signs."""
RANGE: Final = "range"
ENDS: Final = ("from", "to")
"""The lookups of the two filters that a range becomes when a config is read."""
_ORDERED: Final = (RANGE, "exact", "gte", "lte")
_DATED: Final = (RANGE, "period", "last_days", "next_days", "exact", "gte", "lte")
COMPARISONS: Final[Mapping[FieldKind, tuple[str, ...]]] = {
    FieldKind.TEXT: (WORDS, "icontains", "istartswith", "iexact", "exact", "in"),
    FieldKind.CHOICE: ("in", "exact"),
    FieldKind.YES_NO: ("exact",),
    FieldKind.NUMBER: _ORDERED,
    FieldKind.FLOAT: _ORDERED,
    FieldKind.DECIMAL: _ORDERED,
    FieldKind.DATE: _DATED,
    FieldKind.DATETIME: _DATED,
    FieldKind.TIME: _ORDERED,
    FieldKind.DURATION: _ORDERED,
    FieldKind.KEY: ("exact", "in"),
    FieldKind.TO_ONE: ("in", "exact"),
    FieldKind.TO_MANY: ("in",),
}
"""The lookups of each kind of field, beside `isempty`; the usual one is first."""
EMPTY: Final = "isempty"
SEVERAL: Final = (WORDS, "icontains", "istartswith")
"""Lookups for several texts at once, and for the text of a relation."""
IN_ANY_CASE: Final[Mapping[str, str]] = {"exact": "iexact", "in": "iin"}
"""Lookups that ignore case, for texts of relations: clients know them from answers."""

Value: TypeAlias = Any
"""A value in the type of its column."""


def comparisons_of(field: OpenField) -> tuple[str, ...]:
    """Return the lookups by which a field can be filtered."""
    empty = (EMPTY,) if field.may_be_empty else ()
    return (*COMPARISONS.get(field.kind, ()), *empty)


def value_schema(field: OpenField, lookup: str) -> JsonObject:
    """Return the JSON Schema of what clients send for a lookup."""
    if lookup in _FIXED:
        return dict(_FIXED[lookup])
    one = _schema_of_one(field, exact=lookup in ("exact", "in"))
    if lookup in (RANGE, *ENDS) and field.kind is FieldKind.DATETIME:
        one = {"type": "string", "examples": [*_END_EXAMPLES]}
    if lookup == RANGE:
        end = {**one, "type": [one["type"], "null"]}
        return {"type": "array", "items": end, "minItems": 2, "maxItems": 2}
    if lookup in ("in", "iin"):
        return {"type": "array", "items": one, "minItems": 1, "maxItems": MAX_VALUES}
    return one


_DAYS: Final[JsonObject] = {"type": "integer", "minimum": 1, "maximum": MAX_DAYS}
_FIXED: Final[Mapping[str, JsonObject]] = {
    EMPTY: {"type": "boolean"},
    "last_days": _DAYS,
    "next_days": _DAYS,
    "period": {"type": "string", "enum": list(PERIODS)},
}
"""Lookups whose values have the same schema for each field."""


def _schema_of_one(field: OpenField, *, exact: bool) -> JsonObject:
    column = field.value_column
    if field.kind is FieldKind.CHOICE:
        values = [value for value, _label in field.choices]
        kinds = {"string": str, "integer": int}.items()
        fitting = [n for n, t in kinds if all(isinstance(v, t) for v in values)]
        return {**({"type": fitting[0]} if fitting else {}), "enum": values}
    if field.kind in _LIKE:
        return text_like(_LIKE[field.kind])
    is_key = field.kind in (FieldKind.KEY, FieldKind.TO_ONE, FieldKind.TO_MANY)
    # A key has the kind of the column that it refers to.
    is_integer = is_key and isinstance(column, IntegerField)
    simple = _TYPES.get(FieldKind.NUMBER if is_integer else field.kind)
    if simple is not None:
        return dict(simple)
    formats = [each for kind, each in _FORMATS.items() if isinstance(column, kind)]
    schema = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH}
    return {**schema, "format": formats[0]} if exact and formats else schema


_TYPES: Final[Mapping[FieldKind, JsonObject]] = {
    FieldKind.YES_NO: {"type": "boolean"},
    FieldKind.NUMBER: {"type": "integer"},
    FieldKind.FLOAT: {"type": "number"},
    FieldKind.DECIMAL: {"type": "number"},
    FieldKind.DATE: {"type": "string", "format": "date"},
}
_LIKE: Final[Mapping[FieldKind, str]] = {
    FieldKind.DATETIME: "date-time",
    FieldKind.TIME: "time",
    FieldKind.DURATION: "duration",
}
"""Formats that values only resemble, because they need no zone."""
_FORMATS: Final[Mapping[type[Any], str]] = {
    EmailField: "email",
    URLField: "uri",
    UUIDField: "uuid",
}


_END_EXAMPLES: Final = (EXAMPLES["date"], NAIVE)
"""Examples of the ends of a range: a day, and a moment."""


class Unfit(Exception):
    """A value that a column cannot have; its text is a sentence."""


def clean_value(field: OpenField, lookup: str, value: object) -> Value:
    """Convert a JSON value that fits the schema into the type of its column.

    Raises `Unfit` if the column could not hold the value.
    """
    if lookup in _FIXED:
        return value
    if isinstance(value, list):
        exact = {"in": "exact", "iin": "iexact"}
        lookups = ENDS if lookup == RANGE else (exact[lookup],) * len(value)
        return [
            None if each is None else clean_value(field, one, each)
            for one, each in zip(lookups, value, strict=True)
        ]
    if lookup == WORDS:
        words = _valid_text(value).split()
        if 0 < len(words) <= MAX_WORDS:
            return words
        raise Unfit(f"It has {len(words)} words. Write one to {MAX_WORDS}.")
    if lookup in ("iexact", *SEVERAL) or field.kind is FieldKind.TEXT:
        return _valid_text(value)
    if lookup in ENDS and field.kind is FieldKind.DATETIME:
        return _clean_end(str(value), is_last=lookup == "to")
    return _clean_one(field, value)


def _clean_end(text: str, *, is_last: bool) -> Value:
    """Return where a span begins, or the first moment behind it if `is_last`.

    The text is a day or a moment in ISO 8601.
    """
    try:
        moment = datetime.fromisoformat(text)
        if is_last:
            # A date has ten characters: a longer text has a time, too.
            moment += datetime.resolution if text[10:] else timedelta(days=1)
        moment = site_time(moment)
        if timezone.is_aware(moment):
            # This raises if UTC, in which databases store it, cannot hold it.
            moment.astimezone(UTC)
    except OverflowError:
        raise Unfit(_OUT_OF_TIME % text) from None
    except ValueError:
        examples = " or ".join(_END_EXAMPLES)
        raise Unfit(f"Write a day or a moment, such as {examples}.") from None
    return moment


def _clean_one(field: OpenField, value: object) -> Value:
    column = field.value_column
    try:
        if isinstance(value, str):
            value = _valid_text(value)
        if field.kind in _FORM_FIELDS:
            form = _FORM_FIELDS[field.kind](required=False)
            cleaned = form.clean(_as_form_input(value))
        else:
            cleaned = column.to_python(value)
            column.run_validators(cleaned)
        if isinstance(cleaned, timedelta) and abs(cleaned) > _MAX_DURATION:
            raise Unfit(f"“{value}” is longer than {_MAX_DURATION.days} days.")
        if isinstance(cleaned, datetime):
            cleaned = site_time(cleaned)
            if timezone.is_aware(cleaned):
                # This raises if UTC, in which databases store it, cannot hold it.
                cleaned.astimezone(UTC)
    except ValidationError as error:
        message = " ".join(map(str, error.messages)).removesuffix(".")
        message = with_example(message, _schema_of_one(field, exact=True))
        raise Unfit(f"{message}.") from None
    except OverflowError:
        raise Unfit(_OUT_OF_TIME % value) from None
    return cleaned


_MAX_DURATION: Final = timedelta(days=100_000_000)
"""SQLite stores no more microseconds."""
_OUT_OF_TIME: Final = "“%s” is before the year 1 or after the year 9999 in UTC."


_FORM_FIELDS: Final[Mapping[FieldKind, type[forms.Field]]] = {
    FieldKind.NUMBER: forms.IntegerField,
    FieldKind.FLOAT: forms.FloatField,
    FieldKind.DECIMAL: forms.DecimalField,
    FieldKind.DATE: forms.DateField,
    FieldKind.DATETIME: forms.DateTimeField,
    FieldKind.TIME: forms.TimeField,
    FieldKind.DURATION: forms.DurationField,
}
"""Form fields that read values of a kind; a column's own form field is stricter."""


def _as_form_input(value: object) -> object:
    """Return numbers as people type them, which Django's fields read exactly."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    try:
        return str(value) if is_number else value
    except ValueError:
        # Python refuses to write integers of more than 4,300 digits.
        raise Unfit("This number is too large.") from None


_without_null: Final = ProhibitNullCharactersValidator()


def _valid_text(value: object) -> str:
    text = str(value)
    try:
        _without_null(text)
        text.encode()
    except ValidationError as error:
        raise Unfit(" ".join(error.messages)) from None
    except UnicodeEncodeError:
        raise Unfit("A text has a character that is no character.") from None
    return text


class Days(NamedTuple):
    """Days from `first` to the day before `end`."""

    first: date
    end: date


def last_days(today: date, count: int) -> Days:
    """Return the last `count` days, today included."""
    return Days(_shift(today, 1 - count), _shift(today, 1))


def next_days(today: date, count: int) -> Days:
    """Return the next `count` days, today included."""
    return Days(today, _shift(today, count))


def period_days(today: date, name: str) -> Days:
    """Return the days of a period; weeks begin on Monday."""
    if name in (days := {"yesterday": -1, "today": 0, "tomorrow": 1}):
        return Days(_shift(today, days[name]), _shift(today, days[name] + 1))
    which, _underscore, unit = name.partition("_")
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "week":
        monday = _shift(today, 7 * step - today.weekday())
        return Days(monday, _shift(monday, 7))
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    # Months are numbered from January of the year 0.
    month = 12 * today.year + today.month - 1
    first = month - month % months + step * months
    return Days(
        *(date(each // 12, each % 12 + 1, 1) for each in (first, first + months))
    )


def _shift(day: date, days: int) -> date:
    try:
        return day + timedelta(days=days)
    except OverflowError:
        return date.min if days < 0 else date.max


_DAYS_BY_LOOKUP: Final[Mapping[str, Callable[[date, Any], Days]]] = {
    "last_days": last_days,
    "next_days": next_days,
    "period": period_days,
}


def is_reversed(field: OpenField, first: Value, last: Value) -> bool:
    """Return whether no value is between two cleaned ends of a range."""
    # The end of a range of moments is the first moment after it.
    return bool(first >= last if field.kind is FieldKind.DATETIME else first > last)


def condition(field: OpenField, lookup: str, value: Value, today: date) -> Q:
    """Return the condition for a lookup on a column of the field's own table."""
    name = field.key_column if field.is_relation else field.source.attname
    if lookup == "period" and value in _OPEN_PERIODS:
        now = today if field.kind is FieldKind.DATE else site_time(timezone.now())
        return Q(**{f"{name}__{_OPEN_PERIODS[value]}": now})
    if lookup in _DAYS_BY_LOOKUP:
        days = _DAYS_BY_LOOKUP[lookup](today, value)
        first, end = days
        if field.kind is not FieldKind.DATE:
            # A day begins at its first moment in the site's zone.
            first, end = (site_time(datetime.combine(day, time.min)) for day in days)
        return Q(**{f"{name}__gte": first, f"{name}__lt": end})
    if lookup == WORDS:
        return _word_condition(name, value)
    if lookup in ENDS:
        last = "lt" if field.kind is FieldKind.DATETIME else "lte"
        lookup = "gte" if lookup == "from" else last
    if lookup == "iin":
        return reduce(or_, (Q(**{f"{name}__iexact": each}) for each in value))
    return Q(**{f"{name}__{lookup}": value})


def _word_condition(name: str, word: str) -> Q:
    """Return the condition that a text has a word: “6343932” is in “634 39 32”."""
    letters = "".join(filter(str.isalnum, word))
    if sum(map(str.isdigit, letters)) < _DIGITS or not letters.isascii():
        return Q(**{f"{name}__icontains": word})
    # Only signs may be between the digits.  If letters could be, too, the pattern would
    # take minutes on a long text, and block Python meanwhile.
    pattern = "[-+./() \u00a0]*".join(letters)
    return Q(**{f"{name}__iregex": pattern})
