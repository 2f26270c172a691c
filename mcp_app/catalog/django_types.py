"""Refuses Django's models and querysets as types of parameters and results."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import get_args, get_type_hints, is_typeddict

from django.db.models import Manager, Model, QuerySet
from pydantic import BaseModel

from mcp_app.catalog.json_schemas import type_text
from mcp_app.catalog.type_hints import Annotation, bare_hint
from mcp_app.interface.errors import RegistrationError


def check_result(owner: str, annotation: Annotation) -> None:
    """Raise `RegistrationError` if a result has a model or a queryset in it."""
    if row_type := _inner_row_type(annotation):
        raise RegistrationError(
            f"{owner}: the result {type_text(annotation)} has"
            f" {_row_type_text(row_type)}, which cannot be written as JSON. Return"
            ' dicts, for example list(qs.values("id", "name")).'
        )


def check_parameter(owner: str, name: str, annotation: Annotation) -> None:
    """Raise `RegistrationError` if a parameter has a model or a queryset in it."""
    row_type = _inner_row_type(annotation)
    if row_type is None:
        return
    model = row_type.__name__ if issubclass(row_type, Model) else "Model"
    raise RegistrationError(
        f"{owner}: the parameter {name} takes {_row_type_text(row_type)}, which no"
        f" client can send. Take its key, for example {name}_id: int, and read it with"
        f" {model}.objects.get(pk={name}_id)."
    )


def _row_type_text(row_type: type) -> str:
    article = "the Django model" if issubclass(row_type, Model) else "a"
    return f"{article} {row_type.__name__}"


def _inner_row_type(annotation: Annotation) -> type | None:
    for part in _hint_parts(annotation, set()):
        if inspect.isclass(part) and issubclass(part, Model | QuerySet | Manager):
            return part
    return None


def _hint_parts(annotation: Annotation, visited: set[int]) -> Iterator[Annotation]:
    """Yield a hint and all its parts, also the hints of the fields of classes."""
    if id(annotation) in visited:
        return
    visited.add(id(annotation))
    inner = bare_hint(annotation)
    # The origin is the class before the brackets, as in `QuerySet[Order]`.
    yield getattr(inner, "__origin__", inner)
    for each in (*get_args(inner), *_field_hints(inner)):
        yield from _hint_parts(each, visited)


def _field_hints(declared: Annotation) -> list[Annotation]:
    has_fields = inspect.isclass(declared) and (
        is_dataclass(declared)
        or is_typeddict(declared)
        or issubclass(declared, BaseModel)
    )
    try:
        return list(get_type_hints(declared).values()) if has_fields else []
    except (NameError, TypeError):
        return []
