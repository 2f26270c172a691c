"""Authentication classes of Django REST framework, which a site may not have."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, Final, NoReturn

from django.core.exceptions import PermissionDenied
from django.http import Http404

from mcp_app.auth.site_requests import principal_of_user, site_request
from mcp_app.interface.principal import (
    DRF,
    AuthenticationFailed,
    AuthenticationRequest,
    AuthenticationUnavailable,
    Principal,
)
from mcp_app.protocol.errors import RequestRefused, Unavailable

if TYPE_CHECKING:
    from rest_framework.authentication import BaseAuthentication
    from rest_framework.exceptions import APIException

INCORRECT_CREDENTIALS: Final = "Incorrect authentication credentials."
"""The message if a row for the credentials, such as a user, does not exist."""
WAIT_S: Final = 60
"""Seconds to wait, if a limit does not say how long."""


class Bridge:
    """Asks an authentication class as a view of the framework would; blocks.

    The client of its principals is the dotted path of the class.
    """

    def __init__(self, authentication: type[BaseAuthentication]) -> None:
        self._authentication = authentication
        self._client = f"{authentication.__module__}.{authentication.__qualname__}"

    def __repr__(self) -> str:
        return self._client

    def __call__(self, request: AuthenticationRequest) -> Principal | None:
        # If there is a class of the framework, the framework is installed.
        from rest_framework.exceptions import APIException  # noqa: PLC0415
        from rest_framework.request import Request  # noqa: PLC0415

        instance = self._authentication()
        drf_request = Request(site_request(request), authenticators=[instance])
        try:
            result = instance.authenticate(drf_request)
        except APIException as error:
            _raise_translated(error)
        except PermissionDenied as error:
            raise RequestRefused(403, str(error) or "Forbidden.") from None
        except Http404:
            raise AuthenticationFailed(INCORRECT_CREDENTIALS) from None
        if result is None:
            return None
        user, _ = result
        return principal_of_user(user, kind=DRF, client=self._client)


def _raise_translated(error: APIException) -> NoReturn:
    match error.status_code:
        case 401:
            raise AuthenticationFailed(_error_message(error.detail)) from None
        case 400 | 403 as status:
            raise RequestRefused(status, _error_message(error.detail)) from None
        case 404:
            raise AuthenticationFailed(INCORRECT_CREDENTIALS) from None
        case 429:
            wait = max(1, ceil(getattr(error, "wait", None) or WAIT_S))
            message = _error_message(error.detail)
            raise Unavailable(message, retry_after=wait, http_status=429) from None
        case 503:
            raise AuthenticationUnavailable from error
    raise error


def _error_message(detail: Any) -> str:
    """Return the sentence of an error; some have it in a list or a dict."""
    if isinstance(detail, dict):
        return _error_message(detail.get("detail", ""))
    if isinstance(detail, list):
        return " ".join(map(_error_message, detail))
    return str(detail)
