"""The one place that asks for credentials: 401, and what a client needs to bring some.

Or 403 where those that it brought allow nothing here.

What is to be found at `/.well-known/oauth-protected-resource` would be named here
(RFC 9728, `resource_metadata`); there is nothing yet.
"""

from __future__ import annotations

import re

from mcp_app.protocol.errors import RequestRefused

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
TOO_LITTLE = "insufficient_scope"
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""What a description may have (RFC 6750, section 3)."""


def unauthenticated(message: str, error: str = "") -> RequestRefused:
    """Return a 401 with its challenge; `error` is a code of RFC 6750, section 3.1.

    Where nothing was shown there is none (section 3).
    """
    challenge = CHALLENGE
    if error:
        challenge = f'{challenge}, error="{error}"'
        if _DESCRIPTION.fullmatch(message):
            challenge = f'{challenge}, error_description="{message}"'
    return RequestRefused(401, message, {"WWW-Authenticate": challenge})


def insufficient_scope(message: str, scope: str, metadata: str = "") -> RequestRefused:
    """Return a 403 with its challenge (RFC 6750, section 3.1).

    `scope` is what a token would have to allow, `metadata` the address of the server's
    metadata (RFC 9728, section 5.1), "" for none.
    """
    challenge = f'{CHALLENGE}, error="{TOO_LITTLE}", scope="{scope}"'
    if metadata:
        challenge = f'{challenge}, resource_metadata="{metadata}"'
    return RequestRefused(403, message, {"WWW-Authenticate": challenge})
