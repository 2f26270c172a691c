"""The one place that asks for credentials: 401, and what a client needs to bring some.

What is to be found at `/.well-known/oauth-protected-resource` would be named here
(RFC 9728, `resource_metadata`); there is nothing yet.
"""

from __future__ import annotations

import re

from mcp_app.protocol.errors import RequestRefused

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
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
