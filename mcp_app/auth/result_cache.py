"""The results of authenticators whose entry says `"cache": "header"`, and of issuers.

The key is a digest of the Authorization header.  A result is cached until a permission
changes, for half a minute at most; a refusal is not cached.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, TypeVar

from mcp_app.auth.aged_cache import AgedCache
from mcp_app.interface.principal import AuthenticationRequest

Result = TypeVar("Result")

_KEY = secrets.token_bytes(32)
"""Nobody outside of this process can tell which header a digest is of."""


class AuthenticationCache:
    """Results by header; used on the loop only."""

    def __init__(self) -> None:
        self._entries: AgedCache[bytes, Any] = AgedCache()

    async def find(
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
        where = "\0".join((name, request.server, request.host)).encode()
        key = blake2b(where + b"\0" + header, key=_KEY, digest_size=32).digest()
        entries: AgedCache[bytes, Result] = self._entries
        return await entries.find(key, authenticate)

    def forget(self) -> None:
        """Authenticate every header again at its next request."""
        self._entries.forget()

    def __len__(self) -> int:
        return len(self._entries)


authentication_cache = AuthenticationCache()
"""The cache of this process."""
