"""Forwards records of `logging` to the client whose call made them.

In LOGGING, declare `{"class": "mcp_app.server.call.ClientHandler"}` (its public path)
and add the handler's name to the loggers whose records it forwards.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from copy import copy

from mcp_app.interface.context import Level
from mcp_app.server.context import call_core_of, current_call


def protocol_level(number: int) -> Level:
    """Return the protocol's level for one of `logging`."""
    levels: tuple[Level, ...] = ("debug", "info", "warning", "error", "critical")
    thresholds = (logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
    # The number of thresholds that are reached is the index of the level.
    return levels[bisect_right(thresholds, number)]


def _without_traceback(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy without traceback (server/utilities/logging, "Security")."""
    stripped = copy(record)
    stripped.exc_info = stripped.exc_text = stripped.stack_info = None
    return stripped


class ClientHandler(logging.Handler):
    """Sends records made while a call runs as log messages to its client.

    Records made outside a call are dropped, and so are those of `mcp_app` itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        run = current_call.get()
        if run is None or record.name.partition(".")[0] == "mcp_app":
            return
        try:
            text = self.format(_without_traceback(record))
            call_core_of(run).send_log_message(
                protocol_level(record.levelno), text, record.name
            )
        except Exception:
            self.handleError(record)
