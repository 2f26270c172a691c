"""Takes secrets out of log messages to clients (server/utilities/logging).

A secret is the value of a name such as `password` or `X-Api-Key`, or, at any place, a
text in the form of an access token, of a JWT or of the credentials of HTTP.
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
"""Seconds from one warning to the next."""

logger = logging.getLogger("mcp_app.server")

_NEW_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_HARMLESS_KEY: Final = re.compile(
    r"(?:^|_)(?:(?:continuation|next|page|sync)_?tokens?|(?:cache|composite|foreign"
    r"|group|idempotency|issue|lookup|natural|object|parent|partition|primary|project"
    r"|public|publishable|range|row|sort|surrogate|translation|unique)_?keys?)(?=_|$)"
)
_SURE: Final = (
    r"[a-z]*(?:passw(?:or)?d|secret|token)s?|pass(?:code|key|phrase)s?|pwd|pin|salt|dsn"
    r"|(?:admin|db|ftp|smtp|user)_?pass|psk|passwort|kennwort|mnemonic"
    r"|jwts?|bearer|credentials?|creds|[ht]?otps?|cvc|cvv|card_?numbers?"
    r"|(?:access|activation|auth|authorization|backup|confirmation|invitation|invite"
    r"|login|mfa|one_?time|otp|pin|recovery|reset|security|sms|verification)_?codes?"
    r"|[a-z]*(?:access|api|encryption|private|secret|session|signing|ssh)_?keys?"
    r"|priv_?key|(?:seed|recovery)_?phrase|security_?answer|webhook_?url"
    r"|connection_?string"
)
_HEADERS: Final = r"sessions?_?id|[a-z]*sessid|[a-z]*cookies?|authorization|x_auth"
_LOGGED: Final = rf"keys?|sessions?|{_HEADERS}"
_OF_CALLS: Final = r"|appid|sig|[a-z]*signature"


def whole_words(names: str, beside: str = "") -> re.Pattern[str]:
    """Return what finds whole words in a name: `token`, and not `tokenizer`."""
    return re.compile(rf"(?:^|_)(?:{names})\d*(?:_|$){beside}")


SURE: Final = whole_words(_SURE)
"""Names that mean a secret everywhere."""
FIELDS: Final = whole_words(f"{_SURE}|{_HEADERS}", r"|(?<=[a-z0-9])_keys?\d*$")
"""Names of secrets among fields of models and forms, and in JSON."""
MESSAGES: Final = whole_words(f"{_SURE}|{_LOGGED}")
"""Names of secrets in log messages and arguments."""
CALLS: Final = whole_words(f"{_SURE}|{_LOGGED}{_OF_CALLS}", "|^(?:auth|code)$")
"""Names of secrets in calls of other sites."""
_NUMBER: Final = re.compile(r"(?:token|key|session|cookie)s(?:_|$)|count")
"""Names that mean a count if their value is a number."""
# The word after `Bearer` or `Basic` is a secret at the beginning of a text; within one
# it must look like one, or every sentence about basic authentication would lose a word.
_SECRET_TEXT: Final = re.compile(
    r"\A\s*(?i:bearer|basic)\s+\S+"
    r"|(?<!\w)(?i:bearer|basic)\s+(?=[\w.~+/-]+[A-Z0-9=])[\w.~+/=-]{8,}+"
    r"|(?<![A-Za-z0-9])mcp_[\w-]{36,}+"
    r"|(?<![A-Za-z0-9_-])eyJ[\w-]++\.[\w-]*+(?:\.[\w-]*+){1,3}",
    re.ASCII,
)


def names_secret(
    name: str, value: object = "", among: re.Pattern[str] = MESSAGES
) -> bool:
    """Whether a name's value is secret; a number, as of `max_tokens`, may not be."""
    words = _NEW_WORD.sub("_", name).lower()
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, int | float) and _NUMBER.search(words):
        return False
    return among.search(_HARMLESS_KEY.sub("", words)) is not None


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
    """Return JSON data with `BLOT` in place of secrets, and of members in `names`."""
    return _Search(names).blot_secrets(data)


def hide_members(value: object) -> object:
    """Return a value; in lists and objects, `BLOT` stands in place of secrets."""
    if isinstance(value, dict | list):
        return _Search(among=FIELDS).blot_secrets(value)
    return value


class _Search:
    """One walk through data, which replaces secrets and counts them."""

    def __init__(
        self, names: Collection[str] = (), among: re.Pattern[str] = MESSAGES
    ) -> None:
        self.count = 0
        self._names, self._among = names, among

    def blot_secrets(self, value: Any, name: str = "") -> Any:
        if name and (name in self._names or names_secret(name, value, self._among)):
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
            # Two names may be equal now: both members are kept.
            members[f"{name} {len(members)}" if name in members else name] = (
                self.blot_secrets(inner, key)
            )
        return members

    def _blot_text(self, text: str) -> str:
        blotted, count = _SECRET_TEXT.subn(BLOT, text)
        self.count += count
        return blotted


log_secrets = LogSecrets()
"""It serves this OS process, also if that answers no clients: `mcp_app.log` uses it."""
