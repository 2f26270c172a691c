"""Caches, for half a minute, of answers from the database or the site's code."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

from mcp_app.interface.principal import AuthenticationRequest

# -- aged cache ------------------------------------------------------------------------
# A cache of what was read from the database or a site's code, for half a minute.
#
# All callers use it in the same way:
#
#     value = cache.cached_value(key) or await cache.find_or_load(key, load)

MAX_AGE_S: Final = 30.0
"""After this time an entry is read again, to catch changes made outside Django."""
MAX_ENTRIES: Final = 10_000

Key = TypeVar("Key")
Value = TypeVar("Value")


class AgedCache(Generic[Key, Value]):
    """Values by key, each with its age; used on the loop only."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, Value]] = {}
        """When each value was loaded (monotonic), and the value."""

    def cached_value(self, key: Key) -> Value | None:
        """Return the value of a key, None if it is unknown or too old."""
        entry = self._entries.get(key)
        if entry is not None and time.monotonic() - entry[0] < MAX_AGE_S:
            return entry[1]
        return None

    def good_until(self, key: Key) -> float:
        """Return when the value of a key gets too old (monotonic); -inf if unknown."""
        entry = self._entries.get(key)
        return float("-inf") if entry is None else entry[0] + MAX_AGE_S

    async def find_or_load(
        self, key: Key, load: Callable[[], Awaitable[Value]]
    ) -> Value:
        """Return the cached value of a key, else what `load` returns.

        The loaded value is cached unless it is None or `forget_all` was called
        meanwhile.  Its age counts from the start of loading.
        """
        if (cached := self.cached_value(key)) is not None:
            return cached
        # `forget_all` puts another dict in the place of this one.
        now, entries = time.monotonic(), self._entries
        value = await load()
        if value is not None:
            if len(entries) >= MAX_ENTRIES:
                entries.clear()
            entries[key] = (now, value)
        return value

    def forget_all(self) -> None:
        """Load every value again at its next use."""
        self._entries = {}

    def __len__(self) -> int:
        return len(self._entries)


# -- result cache ----------------------------------------------------------------------
# The results of authenticators whose entry says `"cache": "header"`, and of issuers.
#
# The key is a digest of the Authorization header.  A result is cached until a
# permission changes, for half a minute at most; a refusal is not cached.

Result = TypeVar("Result")

_KEY = secrets.token_bytes(32)
"""Without this secret, nobody can tell which header a digest is of."""


class AuthenticationCache(AgedCache[bytes, Any]):
    """Results by header; used on the loop only."""

    async def find_or_authenticate(
        self,
        name: str,
        request: AuthenticationRequest,
        authenticate: Callable[[], Awaitable[Result]],
    ) -> Result:
        """Return the result for a header by the authenticator of this name.

        None is not cached.
        """
        header = request.headers.raw.get(b"authorization")
        if header is None:
            return await authenticate()
        context = "\0".join((name, request.server, request.host)).encode()
        key = blake2b(context + b"\0" + header, key=_KEY, digest_size=32).digest()
        result: Result = await self.find_or_load(key, authenticate)
        return result


authentication_cache = AuthenticationCache()
"""The cache of this process."""
