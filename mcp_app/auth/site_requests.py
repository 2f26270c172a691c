"""A request of Django's, for what verifies who is asking; and the user it finds."""

from __future__ import annotations

from io import BytesIO
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.core.handlers.asgi import ASGIRequest

from mcp_app.interface.principal import (
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
)

_OF_THE_BODY: Final = frozenset(
    {b"content-type", b"content-length", b"content-encoding", b"transfer-encoding"}
)


def site_request(request: AuthenticationRequest, method: str = "") -> ASGIRequest:
    """Return it without body and query: neither has credentials.

    `method` stands in place of the request's own.
    """
    pairs = request.headers.raw.items()
    return ASGIRequest(
        {
            "type": "http",
            "method": method or request.method,
            "scheme": request.scheme,
            "path": request.path,
            "headers": [pair for pair in pairs if pair[0] not in _OF_THE_BODY],
            "client": (request.peer, 0) if request.peer else None,
        },
        BytesIO(),
    )


def let_in(user: Any, *, kind: str, client: str) -> Principal:
    """Return the principal of a user of the site, who must be active.

    Raises TypeError for anybody else: the primary key of a row of another table would
    stand for somebody.
    """
    if not isinstance(user, get_user_model()) or user.pk is None:
        raise TypeError(
            f"{client} authenticated a {type(user).__qualname__}, which is not an"
            " instance of AUTH_USER_MODEL."
        )
    if not user.is_active:
        raise AuthenticationFailed("The user may not log in.")
    return Principal(
        kind=kind,
        user_id=str(user.pk),
        user_name=user.get_username(),
        client=client,
    )
