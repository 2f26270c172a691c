"""What decorators are told, against the types that they take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from functools import cache
from typing import Any, get_type_hints

from django.utils.functional import Promise
from pydantic import TypeAdapter, ValidationError

from mcp_app.catalog.annotations import Annotation
from mcp_app.catalog.errors import RegistrationError


def check_options(
    owner: str, decorator: str, taken: type, told: Mapping[str, Any]
) -> None:
    """Raise `RegistrationError` where a TypedDict has no such option, or another type.

    One wrong value would otherwise break lists for all who ask, and later.
    """
    problems = [
        problem
        for name, value in told.items()
        for problem in _problems(decorator, name, value, _hints(taken))
    ]
    if problems:
        raise RegistrationError(f"{owner}: {' '.join(problems)}")


def _problems(
    decorator: str, name: str, value: object, hints: Mapping[str, Annotation]
) -> Iterator[str]:
    if name not in hints:
        known = ", ".join(_nearest_first(name, hints))
        yield f"@mcp.{decorator} has no option {name!r}. It has {known}."
    elif name in _LISTS and isinstance(value, str):
        yield f"The option {name} is {value!r}: write a list."
    elif not (isinstance(value, Promise) and name in _TRANSLATED):
        yield from _type_problems(name, value, hints[name])


def _type_problems(name: str, value: object, hint: Annotation) -> Iterator[str]:
    try:
        _adapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        # Of a union each member has its say: one sentence is enough.
        problem = error.errors()[0]["msg"].replace("Input should be", "it must be")
        yield f"The option {name} is {value!r:.80}: {problem}."


def _nearest_first(name: str, known: Iterable[str]) -> list[str]:
    def likeness(option: str) -> float:
        return SequenceMatcher(None, _joined(name), _joined(option)).ratio()

    return sorted(known, key=likeness, reverse=True)


def _joined(name: str) -> str:
    return name.replace("_", "")


_hints = cache(get_type_hints)
_adapter = cache(TypeAdapter)

_LISTS = frozenset({"groups", "icons", "tags"})
_TRANSLATED = frozenset({"title", "description"})
