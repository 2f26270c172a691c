"""Answers of what verifies that are kept, where an entry says `"cache": "header"`.

By a digest of the Authorization header, as long as no right changes, at most for half a
minute.  Only who was let in is kept: anybody else is asked about each time.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b

from mcp_app.auth.permissions import HARD_AGE, KEPT
from mcp_app.interface.principal import AuthenticationRequest, Principal

_KEY = secrets.token_bytes(32)
"""Nobody outside of this process can tell which header a digest is of."""


class Answers:
    """Who was let in by which header; used on the loop only."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[float, Principal]] = {}

    async def of(
        self,
        name: str,
        request: AuthenticationRequest,
        ask: Callable[[], Awaitable[Principal | None]],
    ) -> Principal | None:
        """Return whom the way in of this name lets in; `ask` says it anew."""
        header = request.headers.raw.get(b"authorization")
        if header is None:
            return await ask()
        where = "\0".join((name, request.server, request.host)).encode()
        key = blake2b(where + b"\0" + header, key=_KEY, digest_size=32).digest()
        now, keep = time.monotonic(), self._kept
        kept = keep.get(key)
        if kept is not None and now - kept[0] < HARD_AGE:
            return kept[1]
        found = await ask()
        if found is not None:
            if len(keep) >= KEPT:
                keep.clear()
            keep[key] = (now, found)
        return found

    def forget(self) -> None:
        """Ask anew about everybody at the next request."""
        # Another dict: what is being asked at this moment must not be kept.
        self._kept = {}

    def __len__(self) -> int:
        return len(self._kept)


answers = Answers()
"""Those of this process."""
