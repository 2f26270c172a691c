"""Errors that code meets because it runs inside the transactions of a dry run."""

from __future__ import annotations

from typing import Final

from django.db import Error

from mcp_app.workbench.trying.dry_run_outcome import Remark

_ABORTED: Final = "25P02"
"""PostgreSQL's code for a statement after an error in the same transaction."""
_WORDS: Final = {
    "A durable atomic block": Remark.DURABLE,
    "database is locked": Remark.LOCKED,
    "attached to a different loop": Remark.OTHER_LOOP,
    "bound to a different event loop": Remark.OTHER_LOOP,
    "Event loop is closed": Remark.OTHER_LOOP,
}
"""What stands in the errors of Django, SQLite and asyncio, which have no codes."""


def remark_on(error: BaseException) -> Remark | None:
    """Return what to say of an error that there would not be in earnest."""
    if isinstance(error, Error):
        if getattr(error.__cause__, "sqlstate", None) == _ABORTED:
            return Remark.ABORTED
    elif not isinstance(error, RuntimeError):
        return None
    said = str(error)
    return next((each for words, each in _WORDS.items() if words in said), None)
