"""Rows for the models of a project that nobody here knows."""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any, Final
from uuid import UUID

from django.apps import apps
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import models, transaction

MOMENT: Final = datetime(2026, 3, 4, 5, 6, 7, 891234, tzinfo=UTC)
VALUES: Final[dict[str, Any]] = {
    **{"EmailField": "ana@example.org", "URLField": "https://example.org/"},
    **{"CharField": "Ana", "SlugField": "ana", "TextField": " two\nlines "},
    **{"BooleanField": True, "IntegerField": 3, "FloatField": 2.5},
    **{"DecimalField": Decimal("12.50"), "DurationField": timedelta(hours=1)},
    **{"DateTimeField": MOMENT, "DateField": MOMENT.date(), "TimeField": MOMENT.time()},
    **{"UUIDField": UUID(int=7), "GenericIPAddressField": "127.0.0.1"},
    **{"JSONField": ["ana"], "FileField": "ana.png"},
}
TEXTS: Final = {"phone_number": "+493012345678", "url": "/ana/", "code": "ANA"}
"""By the names of fields whose forms want more than a text."""
PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
_under_way: list[Any] = []


def all_models(**options: bool) -> list[Any]:
    """Return the models that have tables, but for ours and sessions."""
    models = (each._meta for each in apps.get_models(**options))
    theirs = (each for each in models if each.app_label not in ("mcp_app", "sessions"))
    return [each.model for each in theirs if each.managed and not each.proxy]


def first_row(model: Any) -> Any:
    return model._default_manager.order_by("pk").first()


def make_rows() -> None:
    """Give each model that has no rows one, and each row related ones."""
    default_storage.save(VALUES["FileField"], ContentFile(b64decode(PIXEL)))
    rows = {each: first_row(each) or _make_row(each) for each in all_models()}
    for model, row in rows.items():
        for field in model._meta.many_to_many if row else ():
            others = field.related_model._default_manager
            other = others.complex_filter(field.get_limit_choices_to()).first()
            if other and field.remote_field.through._meta.auto_created:
                getattr(row, field.name).add(other)


def _make_row(model: Any) -> Any:
    """Return a new row, a valid one if possible; None where none can be stored."""
    if model in _under_way:
        return None
    _under_way.append(model)
    columns = {*model._meta.concrete_fields} - {*model._meta.parents.values()}
    for valid, whole, choice in product((True, False), (True, False), (0, -1)):
        values = {each.name: _value_of(each, whole, choice) for each in columns}
        row = model(**{name: each for name, each in values.items() if each is not None})
        with suppress(Exception), transaction.atomic():
            if valid:
                row.clean()
            # A tree has its own way.
            root = getattr(model, "add_root", None)
            root(instance=row) if root else row.save()
            break
    _under_way.remove(model)
    return row if row.pk else None


def _value_of(field: Any, whole: bool, choice: int) -> Any:
    """Return a value for a field; None for one that needs none."""
    optional = field.null or field.blank or isinstance(field, models.AutoField)
    if field.has_default() or (optional and not whole) or field.name == "id":
        return None
    if field.is_relation:
        return first_row(field.related_model) or _make_row(field.related_model)
    if field.flatchoices:
        return field.flatchoices[choice][0]
    names = (each.__name__ for each in type(field).__mro__)
    value = next((VALUES[each] for each in names if each in VALUES), None)
    if isinstance(field, models.CharField):
        return TEXTS.get(field.name, str(value))[: field.max_length]
    return value
