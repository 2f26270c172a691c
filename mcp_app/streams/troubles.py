"""Failures that repeat: logged when they begin, and when they are over."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from django.db import Error as DatabaseError

from mcp_app.protocol.errors import Unavailable

if TYPE_CHECKING:
    import logging


class Trouble:
    """Logs failures of an operation that is tried many times a second."""

    def __init__(self, logger: logging.Logger, what: str) -> None:
        """`what` says what fails: "Streams could not be read"."""
        self._logger = logger
        self._what = what
        self._since = 0.0
        self._told: set[type[Exception]] = set()

    def failed(self, error: Exception) -> None:
        """Log an outage, and each kind of error, once until it is over."""
        away = isinstance(error, DatabaseError | Unavailable)
        # In an outage a database may raise different exceptions.
        kind = Unavailable if away else type(error)
        if kind in self._told:
            return
        if not self._told:
            self._since = time.monotonic()
        self._told.add(kind)
        if away:
            self._logger.warning("%s: %r", self._what, error.__cause__ or error)
        else:
            self._logger.error("%s.", self._what, exc_info=error)

    def passed(self) -> None:
        """Note a success, and log the end of what was logged before.

        It is a warning, like the outage: if the beginning is shown, so is the end.
        """
        if self._told:
            self._told.clear()
            lasted = time.monotonic() - self._since
            self._logger.warning("%s for %.1f s. It works again.", self._what, lasted)
