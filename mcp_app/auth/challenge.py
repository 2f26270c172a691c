"""The one place that asks for credentials: 401, and where a client gets some.

The metadata (RFC 9728) names who issues tokens for the address that was asked.
"""

from __future__ import annotations

import re

from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.oauth.authorization import CHANGE, READ

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
SCOPES = f"{READ} {CHANGE}"
_DESCRIPTION = re.compile(r"[ !#-\[\]-~]+")
"""What a description may have (RFC 6750, section 3)."""


def unauthenticated(
    message: str, error: str = "", *, metadata: str = ""
) -> RequestRefused:
    """Return a 401 with its challenge; `error` is a code of RFC 6750, section 3.1.

    If nothing was shown there is none (section 3).  `metadata` is the URL of the
    resource's metadata, "" if no issuer has tokens for it.
    """
    challenge = CHALLENGE
    if metadata:
        challenge = f'{challenge}, resource_metadata="{metadata}", scope="{SCOPES}"'
    if error:
        challenge = f'{challenge}, error="{error}"'
        if _DESCRIPTION.fullmatch(message):
            challenge = f'{challenge}, error_description="{message}"'
    return RequestRefused(401, message, {"WWW-Authenticate": challenge})
