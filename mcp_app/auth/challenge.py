"""The one place that asks for credentials: 401, and where a client gets some.

The metadata (RFC 9728) names who issues tokens for the address that was asked.  403
if those that were brought allow nothing here.
"""

from __future__ import annotations

import re

from mcp_app.protocol.errors import RequestRefused
from mcp_app.protocol.oauth.authorization import CHANGE, READ

CHALLENGE = 'Bearer realm="mcp"'
WRONG = "invalid_token"
SCOPES = f"{READ} {CHANGE}"
TOO_LITTLE = "insufficient_scope"
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


def insufficient_scope(message: str, scope: str, metadata: str = "") -> RequestRefused:
    """Return a 403 with its challenge (RFC 6750, section 3.1).

    `scope` is what a token would have to allow, `metadata` the address of the server's
    metadata (RFC 9728, section 5.1), "" for none.
    """
    challenge = scope_challenge(scope, metadata)
    return RequestRefused(403, message, {"WWW-Authenticate": challenge})


def scope_challenge(scope: str, metadata: str) -> str:
    """Return the challenge of a 403; the parameters are those of above."""
    challenge = f'{CHALLENGE}, error="{TOO_LITTLE}", scope="{scope}"'
    return f'{challenge}, resource_metadata="{metadata}"' if metadata else challenge
