"""Authentication classes of Django REST framework, of every kind."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.http import Http404
from rest_framework.authentication import (
    BaseAuthentication,
    SessionAuthentication,
    TokenAuthentication,
)
from rest_framework.exceptions import (
    APIException,
    AuthenticationFailed,
    NotAuthenticated,
    NotFound,
    ParseError,
    PermissionDenied,
    Throttled,
)
from rest_framework.request import Request

seen: Final[list[Request]] = []


class NamedToken(TokenAuthentication):
    """Takes the name of a user for a token; the header is read by the framework."""

    def authenticate_credentials(self, key: str) -> Any:
        user = get_user_model()._default_manager.filter(username=key).first()
        if user is None:
            raise AuthenticationFailed
        return user, key


class BearerToken(NamedToken):
    keyword = "Bearer"


class Session(SessionAuthentication):
    """A session by another name."""


class Away(APIException):
    status_code = 503


class Teapot(APIException):
    status_code = 418


class Odd(BaseAuthentication):
    """Does what the header says."""

    ANSWERS: Final[dict[str, BaseException]] = {
        "failed": AuthenticationFailed({"detail": "It is over.", "code": "over"}),
        "list": AuthenticationFailed(["One.", "Two."]),
        "nobody": NotAuthenticated(),
        "denied": PermissionDenied("Not from here."),
        "forbidden": DjangoPermissionDenied("Not by the site."),
        "missing": Http404("the secret of the site"),
        "not_found": NotFound("the secret of the site"),
        "garbled": ParseError("No such form."),
        "throttled": Throttled(wait=6.2),
        "throttled_for_ever": Throttled(),
        "away": Away(),
        "refused": ConnectionRefusedError("the secret of the site"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "generator": GeneratorExit(),
        "teapot": Teapot("the secret of the site"),
        "broken": APIException("the secret of the site"),
    }

    def authenticate(self, request: Request) -> Any:
        seen.append(request)
        wish = request.META.get("HTTP_X_WISH", "")
        if wish in self.ANSWERS:
            raise self.ANSWERS[wish]
        if wish == "anonymous":
            return AnonymousUser(), "key"
        if wish == "other":
            # A row of another table, with a primary key that a user has, too.
            from mcp_app.models import Server  # noqa: PLC0415

            return Server(pk=1), None
        return None
