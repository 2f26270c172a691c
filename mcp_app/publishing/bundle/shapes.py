"""What the members of a file are: each shape with the sentence for what it is not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from mcp_app.models import PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.models.demands import DEMANDS
from mcp_app.models.listings import words
from mcp_app.publishing.bundle.format import LISTS, key_column


@dataclass(frozen=True, slots=True)
class Shape:
    fits: Callable[[object], bool]
    must: str | Promise


_HASH = re.compile(r"[0-9a-f]{64}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _is_key(value: object) -> bool:
    return _is_text(value) and value != ""


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and bool(_HASH.fullmatch(value))


def _is_names(value: object) -> bool:
    """Whether it is a list that a column with names between blanks can hold."""
    return isinstance(value, list) and all(
        _is_key(each) and words(each) == (each,) for each in value
    )


def _is_time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return parse_datetime(value) is not None
    except ValueError:
        return False


TEXT = Shape(_is_text, gettext_lazy("This must be a text without NUL."))
KEY = Shape(_is_key, gettext_lazy("This must be a text without NUL, and not empty."))
COUNT = Shape(is_count, gettext_lazy("This must be a whole number above 0."))
HASHED = Shape(
    _is_hash, gettext_lazy("This must be a SHA-256: 64 lower-case hexadecimal digits.")
)
NAMES = Shape(_is_names, gettext_lazy("This must be a list of names."))
TIME = Shape(_is_time, gettext_lazy("This must be a time (ISO 8601)."))
OBJECT = Shape(
    lambda value: isinstance(value, dict), gettext_lazy("This must be an object.")
)
DEMANDED = Shape(
    lambda value: (
        isinstance(value, dict)
        and value.keys() <= set(DEMANDS)
        and all(map(_is_text, value.values()))
    ),
    gettext_lazy("This must be an object with texts: permission, groups, rule."),
)
LIST = Shape(
    lambda value: isinstance(value, list), gettext_lazy("This must be a list.")
)
SOURCE = Shape(
    lambda value: value in Source.values,
    gettext_lazy("This must be “here” or “code”."),
)

Shapes = Mapping[str, Shape]
PUBLISHED: Final[Shapes] = {"number": COUNT, "hash": HASHED, "content": OBJECT}
SIGNED: Final[Shapes] = {"note": TEXT, "author": TEXT, "created": TIME}
BLOB: Final[Shapes] = {"digest": HASHED, "media_type": TEXT, "content": TEXT}
FILE: Final[Shapes] = {**dict.fromkeys(LISTS, LIST), "blobs": LIST}
CONTENTS: Final[Shapes] = {"working": OBJECT, "published": OBJECT}


def members_of(model: type[PublishedRow], value: object) -> tuple[Shapes, Shapes]:
    """Return which members an entry must and may have."""
    required = {key_column(model): KEY}
    if model is Server:
        access = {"access": NAMES, "page_size": COUNT}
        return {**required, **access}, {"demands": DEMANDED, **CONTENTS}
    is_overlay = isinstance(value, dict) and value.get("source") == Source.CODE
    if is_overlay:
        required["name"] = KEY
    return required, {"source": SOURCE, **CONTENTS}
