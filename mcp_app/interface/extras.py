"""Packages that only some sites need, and the extra of this one that brings each."""

from __future__ import annotations

from typing import Final

EXTRAS: Final = {"channels_redis": "redis", "rest_framework": "drf"}
"""Extras by the modules that they bring.

Of a database's driver, and of daphne, Django says itself that it is missing.
"""


def remedy(error: BaseException | None) -> str:
    """Return a sentence with the line that installs what could not be imported.

    It is "" for anything else, and begins with a space where it is not.
    """
    missing = error.name if isinstance(error, ImportError) else None
    extra = EXTRAS.get((missing or "").partition(".")[0])
    if extra is None:
        return ""
    return f' Install it: pip install "django-mcp-app[{extra}]"'
