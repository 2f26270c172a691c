"""A site whose REST_FRAMEWORK would break each view that asked it."""

from __future__ import annotations

from typing import Any, Final

from tests.settings import *  # noqa: F403

_CLASSES: Final = "AUTHENTICATION", "PERMISSION", "THROTTLE", "PARSER", "RENDERER"
_CLASS: Final = "PAGINATION", "CONTENT_NEGOTIATION", "METADATA", "VERSIONING", "SCHEMA"
_NOTHING: Final = "tests.api.hostile.Nothing"

REST_FRAMEWORK: dict[str, Any] = {
    **{f"DEFAULT_{each}_CLASSES": [_NOTHING] for each in _CLASSES},
    **{f"DEFAULT_{each}_CLASS": _NOTHING for each in _CLASS},
    "DEFAULT_FILTER_BACKENDS": [_NOTHING],
    "EXCEPTION_HANDLER": _NOTHING,
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": "q",
    "PAGE_SIZE": 1,
}
