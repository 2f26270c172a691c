"""What a browser would send for a form, made from the form's own objects.

A given value replaces the one that the page shows.  Options of selects are never
read: there may be a million of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from django import forms
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime, parse_time

from mcp_app.catalog.secret_fields import is_secret_name
from mcp_app.interface.log_secrets import hide_members

Pair: TypeAlias = tuple[str, str]
Bound: TypeAlias = Any
"""A `BoundField`; the type stubs lack members of its subclasses."""

_SEVERAL: Final = (forms.MultipleChoiceField, forms.ModelMultipleChoiceField)
_IN_PARTS: Final = (forms.MultiWidget, forms.SelectDateWidget)
"""Widgets that drop a text that they cannot read, so that the form never sees it."""


class UnfitValue(ValueError):
    """A browser could not send this value; the message says which values it could."""


def page_pairs(field: Bound) -> Iterator[Pair]:
    """Yield what a browser sends for a field if nobody changes its value."""
    if _is_submitted(field):
        widget = inner_widget(field.field.widget)
        hides = isinstance(widget, forms.PasswordInput) and not widget.render_value
        value = None if hides else field.value()
        yield from _widget_pairs(widget, field.html_name, value)
        yield from _hidden_pairs(field)


def pairs_with_value(field: Bound, value: object) -> Iterator[Pair]:
    """Yield what a browser sends for a field after somebody enters a value.

    The value is JSON; texts of dates and times are ISO 8601.  Raises `UnfitValue`.
    """
    python_value = _python_value(field.field, value)
    try:
        pairs = [*_widget_pairs(field.field.widget, field.html_name, python_value)]
    except (AttributeError, TypeError, ValueError):
        raise UnfitValue("it cannot be put into this field") from None
    yield from pairs
    yield from _hidden_pairs(field)


def is_secret(field: Bound) -> bool:
    """Whether a field holds a secret: tools neither show nor set it."""
    model = type(getattr(field.form, "instance", None))
    is_password = isinstance(inner_widget(field.field.widget), forms.PasswordInput)
    return is_password or is_secret_name(field.name, model)


def is_settable(field: Bound) -> bool:
    """Whether a tool may put a value into a field."""
    is_file = isinstance(field.field, forms.FileField)
    # A tool sees JSON without its secrets, so it must not replace such a value.
    has_secret = hide_members(field.initial) != field.initial
    return _is_submitted(field) and not (is_file or has_secret or is_secret(field))


def _is_submitted(field: Bound) -> bool:
    return not field.field.disabled and not getattr(
        field.field.widget, "read_only", False
    )


def _hidden_pairs(field: Bound) -> Iterator[Pair]:
    """Yield the hidden initial value, by which Django sees whether a value changed."""
    if field.field.show_hidden_initial:
        widget = field.field.hidden_widget()
        widget.is_localized = field.field.localize
        yield from _widget_pairs(widget, field.html_initial_name, field.value())


def inner_widget(widget: Any) -> Any:
    """Return the widget in the admin's `RelatedFieldWidgetWrapper`, or the widget."""
    is_wrapper = hasattr(widget, "rel") and hasattr(widget, "widget")
    return widget.widget if is_wrapper else widget


def _widget_pairs(widget: Any, name: str, value: Any) -> Iterator[Pair]:
    widget = inner_widget(widget)
    if isinstance(widget, forms.MultiWidget):
        yield from _part_pairs(widget, name, value)
    elif isinstance(widget, forms.SelectDateWidget):
        for part, each in (widget.format_value(value) or {}).items():
            yield f"{name}_{part}", _text(each)
    elif isinstance(widget, forms.CheckboxInput):
        if widget.check_test(value):
            yield name, widget.format_value(value) or "on"
    elif not isinstance(widget, forms.FileInput):
        formatted = widget.format_value(value)
        several = formatted if isinstance(formatted, list | tuple) else [formatted]
        # Without a chosen radio button a browser sends nothing; a select always sends.
        is_radio = isinstance(widget, forms.RadioSelect)
        yield from ((name, _text(each)) for each in several if each or not is_radio)


def _part_pairs(widget: Any, name: str, value: Any) -> Iterator[Pair]:
    """Yield the pairs of a widget that has several inputs for one value."""
    values = value if isinstance(value, list | tuple) else widget.decompress(value)
    parts = zip(widget.widgets_names, widget.widgets, values, strict=False)
    for suffix, part, each in parts:
        part.is_localized = part.is_localized or widget.is_localized
        yield from _widget_pairs(part, f"{name}{suffix}", each)


def _text(value: object) -> str:
    return "" if value is None else str(value)


# -- from JSON -------------------------------------------------------------------------


def _python_value(field: Any, value: object) -> Any:
    """Convert a JSON value into the one that the widget of a field shows."""
    if isinstance(field, forms.BooleanField) and not isinstance(value, bool | None):
        raise UnfitValue("it must be true or false")
    if isinstance(value, str):
        return _read_text(field, value)
    prepared = field.prepare_value(value)
    if isinstance(prepared, dict):
        raise UnfitValue("it must be one value, and no object")
    takes_list = isinstance(field, _SEVERAL)
    if takes_list and not isinstance(prepared, list | None):
        raise UnfitValue("it must be a list of values")
    if isinstance(prepared, list) and not (
        takes_list or isinstance(field.widget, forms.MultiWidget)
    ):
        raise UnfitValue("it must be one value, and no list")
    return prepared


def _read_text(field: Any, text: str) -> Any:
    """Convert a text for the widget.  If that fails, return it: the form refuses it."""
    if isinstance(field, forms.JSONField):
        return field.prepare_value(text)
    if isinstance(field, _SEVERAL):
        raise UnfitValue("it must be a list of values")
    kinds = (kind for kind in type(field).__mro__ if kind in _READERS)
    read, example = _READERS.get(next(kinds, object), (None, ""))
    try:
        value = read(text) if read is not None else text
    except (ValueError, InvalidOperation):
        value = None
    except OverflowError:
        raise UnfitValue(f"it must be like {example}") from None
    if value is None and text and isinstance(inner_widget(field.widget), _IN_PARTS):
        raise UnfitValue(f"it must be like {example}")
    return text if value is None else value


def _local_time(text: str) -> datetime | None:
    """Return a time in the zone that is active, as the page shows it."""
    time = parse_datetime(text)
    if time is not None and timezone.is_aware(time):
        return timezone.make_naive(time)
    return time


_TIME: Final = (_local_time, "2026-01-31T12:00:00Z")
_NUMBER: Final = (Decimal, "12.50")
_READERS: Final[dict[type, tuple[Callable[[str], Any], str]]] = {
    forms.SplitDateTimeField: _TIME,
    forms.DateTimeField: _TIME,
    forms.DateField: (parse_date, "2026-01-31"),
    forms.TimeField: (parse_time, "12:00"),
    # A widget writes numbers with the separators of the active language.
    forms.IntegerField: _NUMBER,
    forms.DecimalField: _NUMBER,
    forms.FloatField: _NUMBER,
}
"""What reads the text for a field, and an example of such a text."""
