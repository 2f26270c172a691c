"""Django's models and querysets as types: no client sends them, and none reads them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import get_args, get_type_hints, is_typeddict

from django.db.models import Manager, Model, QuerySet
from pydantic import BaseModel

from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.json_schemas import type_text
from mcp_app.catalog.type_hints import Annotation, bare


def check_result(owner: str, annotation: Annotation) -> None:
    """Raise `RegistrationError` if a result has a model or a queryset in it."""
    found = _row_type(annotation)
    if found is not None:
        raise RegistrationError(
            f"{owner}: the result {type_text(annotation)} has {_named(found)}, which"
            ' cannot be written as JSON. Return dicts, for example list(qs.values("id",'
            ' "name")).'
        )


def check_parameter(owner: str, name: str, annotation: Annotation) -> None:
    """Raise `RegistrationError` if a parameter has a model or a queryset in it."""
    found = _row_type(annotation)
    if found is None:
        return
    model = found.__name__ if issubclass(found, Model) else "Model"
    raise RegistrationError(
        f"{owner}: the parameter {name} takes {_named(found)}, which no client can"
        f" send. Take its key, for example {name}_id: int, and read it with"
        f" {model}.objects.get(pk={name}_id)."
    )


def _named(found: type) -> str:
    model = issubclass(found, Model)
    return f"the Django model {found.__name__}" if model else f"a {found.__name__}"


def _row_type(annotation: Annotation) -> type | None:
    for part in _parts(annotation, set()):
        if inspect.isclass(part) and issubclass(part, Model | QuerySet | Manager):
            return part
    return None


def _parts(annotation: Annotation, seen: set[int]) -> Iterator[Annotation]:
    """Yield a hint and all that it is made of, with the fields of classes."""
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    inner = bare(annotation)
    yield getattr(inner, "__origin__", inner)
    for each in (*get_args(inner), *_fields(inner)):
        yield from _parts(each, seen)


def _fields(declared: Annotation) -> list[Annotation]:
    record = inspect.isclass(declared) and (
        is_dataclass(declared)
        or is_typeddict(declared)
        or issubclass(declared, BaseModel)
    )
    try:
        return list(get_type_hints(declared).values()) if record else []
    except (NameError, TypeError):
        return []
