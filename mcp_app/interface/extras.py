"""Packages that only some sites need, and the extra of this one that brings each."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "channels_redis": "redis",
    "httpcore2": "http",
    "jwt": "oauth",
    "rest_framework": "drf",
    "yaml": "openapi",
}
"""Extras by the modules that they bring.

Of a database's driver, and of daphne, Django says itself that it is missing.
"""


def is_installed(module: str) -> bool:
    """Whether a module that an extra brings is there; it is not imported."""
    return find_spec(module) is not None


def with_remedy(sentence: str, error: BaseException | None) -> str:
    """Return a sentence, which has no full stop yet, with the line that installs it.

    It stays as it is if the error is of something that no extra brings.
    """
    missing = error.name if isinstance(error, ImportError) else None
    extra = EXTRAS.get((missing or "").partition(".")[0])
    if extra is None:
        return sentence
    return f'{sentence}. Install it: pip install "django-mcp-app[{extra}]"'
