"""Forwards records of `logging` to the client whose call made them.

In LOGGING: `{"class": "mcp_app.server.log_handler.ClientHandler"}`
and the handler's name at the loggers whose records it forwards.
"""

from __future__ import annotations

import logging
from copy import copy

from mcp_app.interface.context import Level
from mcp_app.server.context import core_of, current_call

_LEVELS: tuple[tuple[int, Level], ...] = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


def level_of(number: int) -> Level:
    """Return the protocol's level for one of `logging`."""
    for least, level in _LEVELS:
        if number >= least:
            return level
    return "debug"


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy without traceback (server/utilities/logging, "Security")."""
    shown = copy(record)
    shown.exc_info = shown.exc_text = shown.stack_info = None
    return shown


class ClientHandler(logging.Handler):
    """Sends records made while a call runs as log messages to its client.

    Records made outside a call are dropped, and so are those of `mcp_app` itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        exchange = current_call.get()
        if exchange is None or record.name.partition(".")[0] == "mcp_app":
            return
        try:
            said = self.format(_without_traceback(record))
            core_of(exchange).log(level_of(record.levelno), said, record.name)
        except Exception:
            self.handleError(record)
