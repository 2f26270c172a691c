"""What decorators are told, against the types that they take."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

from django.utils.functional import Promise
from pydantic import TypeAdapter, ValidationError

from mcp_app.catalog.annotations import Annotation
from mcp_app.catalog.errors import RegistrationError


def check_options(owner: str, taken: type, told: Mapping[str, Any]) -> None:
    """Raise `RegistrationError` where a TypedDict has no such option, or another type.

    One wrong value would otherwise break lists for all who ask, and later.
    """
    problems = [
        problem
        for name, value in told.items()
        for problem in _problems(name, value, _hints(taken))
    ]
    if problems:
        raise RegistrationError(f"{owner}: {' '.join(problems)}")


def _problems(
    name: str, value: object, hints: Mapping[str, Annotation]
) -> Iterator[str]:
    if name not in hints:
        yield f"There is no option {name!r}.{_suggestion(name, hints)}"
    elif name in _LISTS and isinstance(value, str):
        yield f"The option {name} is {value!r}: write a list."
    elif not (isinstance(value, Promise) and name in _TRANSLATED):
        yield from _type_problems(name, value, hints[name])


def _type_problems(name: str, value: object, hint: Annotation) -> Iterator[str]:
    try:
        _adapter(hint).validate_python(value, strict=True)
    except ValidationError as error:
        # Of a union each member has its say: one sentence is enough.
        problem = error.errors()[0]["msg"]
        yield f"The option {name} is {value!r:.80}: {problem}."


def _suggestion(name: str, known: Mapping[str, Annotation]) -> str:
    close = difflib.get_close_matches(name.replace("_", ""), known, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


_hints = cache(get_type_hints)
_adapter = cache(TypeAdapter)

_LISTS = frozenset({"groups", "icons", "tags"})
_TRANSLATED = frozenset({"title", "description"})
