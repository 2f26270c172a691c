"""What the addresses for programs share: no cookies, any origin, errors of RFC 6749."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.db import Error as DatabaseError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from mcp_app.auth.authenticators import sign_in_names
from mcp_app.auth.oauth_settings import is_usable
from mcp_app.auth.outages import outage
from mcp_app.auth.resources import site_origin
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.errors import OAuthError, invalid_request
from mcp_app.protocol.oauth.token_requests import MOST_BYTES
from mcp_app.transports.http.bridge import lacks_host
from mcp_app.transports.http.host_and_origin import NO_HOST
from mcp_app.transports.http.view import forget_query

View = Callable[..., JsonObject]
Serve = Callable[[HttpRequest], HttpResponse]

UNAUTHORIZED: Final = 401
NO_STORE: Final = "no-store"
MOST_DIGITS: Final = 20
MAX_AT_ONCE: Final = 16
"""Requests of programs that are served at once: each may need a database connection."""
BUSY: Final = OAuthError(
    "temporarily_unavailable",
    f"{MAX_AT_ONCE} programs are being served already. Try again in 2 seconds.",
    status=503,
)
_places: Final = threading.BoundedSemaphore(MAX_AT_ONCE)
_QUERY: Final = "MCP_SECRET_QUERY"
"""In META: by such a name Django's error pages hide it."""


class NoSecrets(SafeExceptionReporterFilter):
    """Hides what programs send with DEBUG, too: they write error pages into logs."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True


def issuer_of(request: HttpRequest) -> str:
    """Return the issuer of this site; raise 404 if nobody can sign in."""
    origin = origin_of(request)
    if origin is None or not (is_usable() and sign_in_names()):
        raise Http404("Nobody can sign in at this site.")
    return origin


def origin_of(request: HttpRequest) -> str | None:
    """Return the origin of all addresses here, None without one."""
    return site_origin(request.scheme or "http", request.META.get("HTTP_HOST", ""))


def for_programs(
    method: str,
    cache_control: str = NO_STORE,
    status: int = 200,
    *,
    from_memory: bool = False,
) -> Callable[[View], Serve]:
    """Return a decorator of views that answer programs, to one method and preflights.

    They return the JSON of their answer.  They read no cookie, so that any page may
    call them.  Of those that do not answer `from_memory`, so many run at once that
    strangers leave the database connections to others; the rest gets 503.
    """

    def decorate(view: View) -> Serve:
        @wraps(view)
        def answered(request: HttpRequest, **named: str) -> HttpResponse:
            request.exception_reporter_filter = NoSecrets()
            # Whatever a program shows there, Django would log the address.
            request.META[_QUERY] = request.META.get("QUERY_STRING", "")
            forget_query(request)
            if request.method == "OPTIONS":
                response = HttpResponse(status=204)
                response["Access-Control-Allow-Methods"] = method
                response["Access-Control-Allow-Headers"] = (
                    "Authorization, Content-Type, MCP-Protocol-Version"
                )
                response["Access-Control-Max-Age"] = "600"
            elif request.method != method:
                response = HttpResponse(status=405, headers={"Allow": method})
            else:
                served = partial(view, request, **named)
                if from_memory:
                    response = _served(request, served, status)
                elif _places.acquire(blocking=False):
                    try:
                        response = _served(request, served, status)
                    finally:
                        _places.release()
                else:
                    response = refusal(BUSY, retry_after="2")
            response["Access-Control-Allow-Origin"] = "*"
            response.setdefault("Cache-Control", cache_control)
            return response

        view_of_programs: Serve = csrf_exempt(
            login_not_required(
                transaction.non_atomic_requests(sensitive_post_parameters()(answered))
            )
        )
        return view_of_programs

    return decorate


@sensitive_variables()
def _served(
    request: HttpRequest, view: Callable[[], JsonObject], status: int
) -> HttpResponse:
    try:
        if lacks_host(request.META):
            raise OAuthError("invalid_request", NO_HOST)
        return JsonResponse(view(), status=status)
    except OAuthError as error:
        return refusal(error)
    except Http404 as error:
        return refusal(OAuthError("not_found", str(error), status=404))
    except DatabaseError as error:
        if (away := outage(error)) is None:
            raise
        return refusal(
            OAuthError("temporarily_unavailable", away.message, status=503),
            retry_after=away.headers.get("Retry-After", "5"),
        )


def refusal(error: OAuthError, retry_after: str = "") -> HttpResponse:
    """Return the answer of RFC 6749, section 5.2; `retry_after` is in seconds."""
    response = JsonResponse(error.body(), status=error.status)
    if retry_after:
        response["Retry-After"] = retry_after
    if error.status == UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Basic realm="mcp"'
    return response


def query_of(request: HttpRequest) -> str:
    """Return the query of a request of a program, which stands nowhere else."""
    query: str = request.META[_QUERY]
    return query


def body_of(request: HttpRequest) -> bytes:
    """Return the body; raise `OAuthError` beyond 16 KiB."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    too_large = invalid_request(
        f"The body has more than {MOST_BYTES} bytes.", status=413
    )
    # int() takes no more than 4,300 digits.
    if not length.isdecimal() or len(length) > MOST_DIGITS or int(length) > MOST_BYTES:
        raise too_large
    body = request.body
    if len(body) > MOST_BYTES:
        raise too_large
    return body
