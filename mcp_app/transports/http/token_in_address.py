"""Access tokens in the address: they are ignored (RFC 6750, section 2.3).

Servers and proxies log addresses, so such a token is exposed.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from urllib.parse import parse_qs

from mcp_app.transports.asgi_types import Scope

logger = logging.getLogger("mcp_app.auth")

PARAMETER = "access_token"


def forget_token(scope: Scope, server: str) -> None:
    """Remove a query with a token, so that it is not logged; warn.

    No message has its value.
    """
    query = scope.get("query_string", b"")
    if query and PARAMETER in parse_qs(query.decode("latin-1"), keep_blank_values=True):
        scope["query_string"] = b""
        _tell(server)


@lru_cache(maxsize=1_000)
def _tell(server: str) -> None:
    """Warn once for each server: such clients send it with every request."""
    logger.warning(
        "A client of the server %r sends its access token in the address, which is"
        " not accepted: it must be in the Authorization header. Revoke this token,"
        " because it is now in logs of addresses.",
        server,
    )
