"""Access tokens in the address: they let nobody in (RFC 6750, section 2.3).

Servers and proxies log addresses, so whoever sends one has published it.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from urllib.parse import parse_qs

from mcp_app.transports.asgi_types import Scope

logger = logging.getLogger("mcp_app.auth")

PARAMETER = "access_token"


def forget_token(scope: Scope, server: str) -> None:
    """Take a token out of the scope, for what logs it, and warn of it.

    Its value is in no message.
    """
    query = scope.get("query_string", b"")
    if query and PARAMETER in parse_qs(query.decode("latin-1"), keep_blank_values=True):
        scope["query_string"] = b""
        _tell(server)


@lru_cache(maxsize=1_000)
def _tell(server: str) -> None:
    """Say it once for each server: whoever sends tokens this way does so each time."""
    logger.warning(
        "A client of the server %r sends its access token in the address, where it"
        " lets nobody in: it belongs into the Authorization header. Revoke that token:"
        " what logs addresses has it.",
        server,
    )
