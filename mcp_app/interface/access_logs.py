"""What a site's LOGGING may name, so that access logs have no ids of sessions.

Nor have they access tokens, which some clients put into addresses, in vain.

Works before the app registry is ready, as logging is configured before it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

_SECRET: Final = re.compile(r"((?:^|[?&])(?:session_id|access_token)=)[^&#\s\"']+")


class WithoutSessionIds(logging.Filter):
    """Replaces ids in the addresses of HTTP+SSE, and tokens; lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.msg, str):
            record.msg = _hidden(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(map(_hidden, record.args))
        elif isinstance(record.args, dict):
            # Some servers' mappings know more than they hold.
            record.args.update(_changed(record.args))
        return True


def _changed(values: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {name: _hidden(value) for name, value in values.items()}
    return {name: each for name, each in hidden.items() if each != values[name]}


def _hidden(value: Any) -> Any:
    return _SECRET.sub(r"\1***", value) if isinstance(value, str) else value
