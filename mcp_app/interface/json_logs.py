"""What a site's LOGGING may name, so that each record is one line of JSON.

Whatever a client calls itself or sends, it makes no second line, no control character,
and no field of more than 2 KiB (CWE-117).

Works before the app registry is ready, as logging is configured before it.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Final

LARGEST: Final = 2048
"""Bytes of a field, as it is written."""
CUT: Final = "..."
_DELETE: Final = "\x7f"
_OWN: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)).keys() | {"message", "asctime"}
)
"""What every record has; the rest came with `extra`."""


class JsonFormatter(logging.Formatter):
    """Writes time, level, logger and message, what came with `extra`, and exceptions.

    Of an exception that is longer the end is written.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": _bounded(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _OWN and name not in fields:
                fields[_bounded(name)] = _plain(value)
        if record.exc_info:
            whole = self.formatException(record.exc_info)
            fields["exception"] = _bounded(whole[::-1])[::-1]
        return _written(fields)


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**63:
        return value
    return _bounded(value if isinstance(value, str) else repr(value))


def _bounded(text: str) -> str:
    """Return a text, or as much of it as may be written."""
    kept = text[:LARGEST]
    while len(_written(kept)) - 2 > LARGEST:
        kept = kept[: len(kept) * LARGEST // len(_written(kept))]
    return text if kept == text else kept[: -len(CUT)] + CUT


def _written(value: object) -> str:
    # JSON lets this one pass, which terminals do not.
    return json.dumps(value).replace(_DELETE, "\\u007f")
