"""The results of authenticators whose entry says `"cache": "header"`.

The key is a digest of the Authorization header.  A principal is cached until a
permission changes, for half a minute at most; a refusal is not cached.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from hashlib import blake2b

from mcp_app.auth.aged_cache import AgedCache
from mcp_app.interface.principal import AuthenticationRequest, Principal

_KEY = secrets.token_bytes(32)
"""Nobody outside of this process can tell which header a digest is of."""


class AuthenticationCache:
    """Principals by header; used on the loop only."""

    def __init__(self) -> None:
        self._entries: AgedCache[bytes, Principal | None] = AgedCache()

    async def find(
        self,
        name: str,
        request: AuthenticationRequest,
        authenticate: Callable[[], Awaitable[Principal | None]],
    ) -> Principal | None:
        """Return the principal of a header by the authenticator of this name."""
        header = request.headers.raw.get(b"authorization")
        if header is None:
            return await authenticate()
        where = "\0".join((name, request.server, request.host)).encode()
        key = blake2b(where + b"\0" + header, key=_KEY, digest_size=32).digest()
        return await self._entries.find(key, authenticate)

    def forget(self) -> None:
        """Authenticate every header again at its next request."""
        self._entries.forget()

    def __len__(self) -> int:
        return len(self._entries)


authentication_cache = AuthenticationCache()
"""The cache of this process."""
