"""Takes secrets out of log messages to clients (server/utilities/logging).

A secret is the value of a name such as `password` or `X-Api-Key`, and what has the form
of an access token, of a JWT or of the credentials of HTTP, wherever it stands.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from orjson import Fragment

from mcp_app.protocol import jsonrpc

BLOT: Final = "•••"
WARN_EVERY: Final = 60.0
"""Seconds."""

logger = logging.getLogger("mcp_app.server")

_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Whole words of a name, without regard to case: `key`, and neither `keyboard` nor
# `monkey`.  Some are written in front of others without a sign between them.
_SECRET_NAME: Final = re.compile(
    r"(?<![^\W_])(?:"
    r"[a-z]*(?:password|secret|token|cookie)s?"
    r"|(?:access|api|private|secret)?keys?"
    r"|sessions?(?:_?(?:id|key))?|[a-z]*sessid"
    r"|authorization|credentials?|passwd|passphrase|passcode|pwd|cvc|cvv|card_?number"
    r")\d*(?![^\W_])",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"(?:tokens|keys|sessions|cookies)\Z|count", re.IGNORECASE)
# The word after `Bearer` or `Basic` is a secret at the beginning of a text; within one
# it must look like one, or every sentence about basic authentication would lose a word.
_SECRET_TEXT: Final = re.compile(
    r"\A\s*(?i:bearer|basic)\s+\S+"
    r"|(?<!\w)(?i:bearer|basic)\s+(?=[\w.~+/-]+[A-Z0-9=])[\w.~+/=-]{8,}+"
    r"|(?<![A-Za-z0-9])mcp_[\w-]{36,}+"
    r"|(?<![A-Za-z0-9_-])eyJ[\w-]++\.[\w-]*+(?:\.[\w-]*+){1,3}",
    re.ASCII,
)


def names_secret(name: str, value: object = "") -> bool:
    """Whether the value of a name is secret; `max_tokens` is, but not if it is 5."""
    if _tells_of_secrets(name, value):
        return False
    return _SECRET_NAME.search(_NEW_WORD.sub("_", name)) is not None


def _tells_of_secrets(name: str, value: object) -> bool:
    if value is None or isinstance(value, bool):
        return True
    return isinstance(value, int) and _NUMBER.search(name) is not None


class LogSecrets:
    """Takes secrets out of data, and counts them; usable from any thread.

    `clock` returns seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        """How many secrets were taken out so far."""
        self._clock = clock
        self._lock = threading.Lock()
        self._next_warning = clock()

    def remove_secrets(self, data: object) -> Fragment:
        """Return data as JSON, with `BLOT` in place of each secret.

        Raises `UnserializableValue` for data that has no JSON form.
        """
        written = jsonrpc.write(data)
        search = _Search()
        # As JSON, because that is what the client would see of an object.
        value = search.blot_secrets(json.loads(written))
        if not search.count:
            return Fragment(written)
        self._count_secrets(search.count)
        return Fragment(jsonrpc.write(value))

    def _count_secrets(self, count: int) -> None:
        with self._lock:
            self.count += count
            now, total = self._clock(), self.count
            if now < self._next_warning:
                return
            self._next_warning = now + WARN_EVERY
        logger.warning(
            "Secrets were taken out of log messages to clients: %d so far. Look at what"
            " code of this site passes to ctx.log() and mcp_app.log().",
            total,
        )


def hide_secrets(data: object, names: Collection[str]) -> object:
    """Return JSON data with `BLOT` in place of each secret, and of these members."""
    return _Search(names).blot_secrets(data)


class _Search:
    def __init__(self, names: Collection[str] = ()) -> None:
        self.count = 0
        self._names = names

    def blot_secrets(self, value: Any, name: str = "") -> Any:
        if name and (name in self._names or names_secret(name, value)):
            self.count += 1
            return BLOT
        if isinstance(value, str):
            return self._blot_text(value)
        if isinstance(value, list):
            return [self.blot_secrets(each) for each in value]
        if isinstance(value, dict):
            return self._blot_members(value)
        return value

    def _blot_members(self, value: dict[str, Any]) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for key, inner in value.items():
            name = self._blot_text(key)
            # Two names may look alike now: both stay.
            members[f"{name} {len(members)}" if name in members else name] = (
                self.blot_secrets(inner, key)
            )
        return members

    def _blot_text(self, text: str) -> str:
        blotted, count = _SECRET_TEXT.subn(BLOT, text)
        self.count += count
        return blotted


log_secrets = LogSecrets()
"""Of this OS process: what is passed to `mcp_app.log` needs no serving process."""
