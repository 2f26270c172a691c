"""What an authorization server refuses, in the words of RFC 6749."""

from __future__ import annotations

import re
from typing import Final

from mcp_app.protocol.json_types import JsonObject

_READABLE: Final = str.maketrans('"\\\u2018\u2019\u201c\u201d', "'/''''")
_NOT_ALLOWED: Final = re.compile(r"[^\x20\x21\x23-\x5B\x5D-\x7E]")


class OAuthError(Exception):
    """A request that is refused (RFC 6749 §4.1.2.1 and §5.2).

    `error` is a code of the RFCs, `description` one sentence, `status` the HTTP
    status where the error is the whole answer.  Characters that §5.2 does not allow
    in a description are replaced.
    """

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        self.error = error
        self.description = _NOT_ALLOWED.sub("?", description.translate(_READABLE))
        self.status = status
        super().__init__(f"{error}: {self.description}")

    def body(self) -> JsonObject:
        """The JSON of the answer."""
        return {"error": self.error, "error_description": self.description}


def invalid_request(description: str, *, status: int = 400) -> OAuthError:
    """What a request is that has something wrong, twice or not at all."""
    return OAuthError("invalid_request", description, status=status)
