"""What a site's LOGGING may name: records without ids of sessions, and as JSON.

Works before the app registry is ready, as logging is configured before it.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

__all__ = ["JsonFormatter", "WithoutSessionIds"]

# -- access logs -----------------------------------------------------------------------
# Access logs must not have ids of sessions, nor access tokens, which some clients put
# into addresses, in vain.

_SECRET: Final = re.compile(r"((?:^|[?&])(?:session_id|access_token)=)[^&#\s\"']+")


class WithoutSessionIds(logging.Filter):
    """Replaces ids in the addresses of HTTP+SSE, and tokens; lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = _redact_secrets(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(map(_redact_secrets, record.args))
        elif isinstance(record.args, dict):
            # The mapping of some servers computes more names, so it is not replaced.
            hidden = {name: _redact_secrets(each) for name, each in record.args.items()}
            changed = {n: each for n, each in hidden.items() if each != record.args[n]}
            record.args.update(changed)
        return True


def _redact_secrets(value: Any) -> Any:
    return _SECRET.sub(r"\1***", value) if isinstance(value, str) else value


# -- json logs -------------------------------------------------------------------------
# Each record is one line of JSON.  Whatever a client calls itself or sends, it makes no
# second line, no control character, and no field of more than 2 KiB (CWE-117).  An
# exception may have more: the site's own line stands before a dozen of Django's.

LARGEST: Final = 2048
"""Bytes of a field, as it is written."""
LARGEST_EXCEPTION: Final = 8192
CUT: Final = "..."
_OWN: Final = frozenset(
    vars(logging.LogRecord("", 0, "", 0, "", (), None)).keys() | {"message", "asctime"}
)
"""What every record has; the rest came with `extra`."""


class JsonFormatter(logging.Formatter):
    """Writes time, level, logger and message, what came with `extra`, and exceptions.

    If an exception is too long, its end is written.
    """

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": _bounded_text(record.getMessage()),
        }
        for name, value in vars(record).items():
            if name not in _OWN and name not in fields:
                fields[_bounded_text(name)] = _plain_value(value)
        if record.exc_info:
            whole = self.formatException(record.exc_info)
            # The text is reversed twice, so that its end is kept.
            fields["exception"] = _bounded_text(whole[::-1], LARGEST_EXCEPTION)[::-1]
        return _json_text(fields)


def _plain_value(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**63:
        return value
    return _bounded_text(value if isinstance(value, str) else repr(value))


def _bounded_text(text: str, most: int = LARGEST) -> str:
    """Return a text, or as much of it as may be written."""
    start = text[:most]
    # The quotes are two characters.
    while len(_json_text(start)) - 2 > most:
        start = start[: len(start) * most // len(_json_text(start))]
    return text if start == text else start[: -len(CUT)] + CUT


def _json_text(value: object) -> str:
    # JSON does not escape DEL, but terminals obey it.
    return json.dumps(value).replace("\x7f", "\\u007f")
