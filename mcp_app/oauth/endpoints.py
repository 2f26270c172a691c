"""Endpoints for programs: metadata, registration, tokens.  They read no cookies."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.db import Error as DatabaseError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables

from mcp_app.account.presentation import open_servers
from mcp_app.auth import connections, resources
from mcp_app.auth.authenticators import authenticators_of, issuers_of, sign_in_names
from mcp_app.auth.issuer_keys import ALGORITHMS
from mcp_app.auth.principals import outage_answer
from mcp_app.conf import secret_keys
from mcp_app.interface.errors import is_installed
from mcp_app.interface.principal import AuthenticationFailed, AuthenticationUnavailable
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.process.background import run_on_loop
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth import clients, requests
from mcp_app.transports.http.bridge import lacks_host
from mcp_app.transports.http.host_and_origin import NO_HOST
from mcp_app.transports.http.view import forget_query

View = Callable[..., JsonObject]
Serve = Callable[[HttpRequest], HttpResponse]

UNAUTHORIZED: Final = 401
MAX_DIGITS: Final = 20
MAX_CONCURRENT_REQUESTS: Final = 16
"""How many requests of programs run at once: each may need a database connection."""
BUSY: Final = requests.OAuthError(
    "temporarily_unavailable",
    f"{MAX_CONCURRENT_REQUESTS} programs are being served already. Try again in 2"
    f" seconds.",
    status=503,
)
_places: Final = threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS)
wrong_proofs: Final = MinuteLimit(60)
"""Limits wrong secrets, by client id of a company."""
logger = logging.getLogger("mcp_app.oauth")
_QUERY: Final = "MCP_SECRET_QUERY"
"""A key in META: Django's error pages hide the values of keys with such names."""


class NoSecrets(SafeExceptionReporterFilter):
    """Hides the data of programs even with DEBUG: programs log error pages."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True


def issuer_of(request: HttpRequest) -> str:
    """Return the issuer of this site; raise 404 if nobody can sign in."""
    origin = origin_of(request)
    if origin is None or not (resources.is_usable() and sign_in_names()):
        raise Http404("Nobody can sign in at this site.")
    return origin


def origin_of(request: HttpRequest) -> str | None:
    """Return the origin of all addresses in the answers, None if there is none."""
    return resources.site_origin(
        request.scheme or "http", request.META.get("HTTP_HOST", "")
    )


def for_programs(
    method: str,
    cache_control: str = "no-store",
    status: int = 200,
    *,
    from_memory: bool = False,
) -> Callable[[View], Serve]:
    """Return a decorator of views that answer programs, to one method and preflights.

    Views return the JSON of their answer.  They read no cookie, so any page may call
    them.  Only some views run at once, so that strangers leave database connections to
    others; above this limit the answer is 503.  Views `from_memory` are not limited.
    """

    def decorate_view(view: View) -> Serve:
        @wraps(view)
        def answer_program(request: HttpRequest, **url_arguments: str) -> HttpResponse:
            request.exception_reporter_filter = NoSecrets()
            # Django would log the address, with any secrets of the program in it.
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
                served = partial(view, request, **url_arguments)
                if from_memory:
                    response = _run_program_view(request, served, status)
                elif _places.acquire(blocking=False):
                    try:
                        response = _run_program_view(request, served, status)
                    finally:
                        _places.release()
                else:
                    response = error_response(BUSY, retry_after="2")
            response["Access-Control-Allow-Origin"] = "*"
            response.setdefault("Cache-Control", cache_control)
            return response

        hidden = sensitive_post_parameters()(answer_program)
        open_to_all = csrf_exempt(login_not_required(hidden))
        without_transaction: Serve = transaction.non_atomic_requests(open_to_all)
        return without_transaction

    return decorate_view


@sensitive_variables()
def _run_program_view(
    request: HttpRequest, view: Callable[[], JsonObject], status: int
) -> HttpResponse:
    try:
        if lacks_host(request.META):
            raise requests.OAuthError("invalid_request", NO_HOST)
        return JsonResponse(view(), status=status)
    except requests.OAuthError as error:
        return error_response(error)
    except Http404 as error:
        return error_response(requests.OAuthError("not_found", str(error), status=404))
    except DatabaseError as error:
        if (away := outage_answer(error)) is None:
            raise
        return error_response(
            requests.OAuthError("temporarily_unavailable", away.message, status=503),
            retry_after=away.headers.get("Retry-After", "5"),
        )


def error_response(error: requests.OAuthError, retry_after: str = "") -> HttpResponse:
    """Return the answer of RFC 6749, section 5.2; `retry_after` is in seconds."""
    response = JsonResponse(error.json_body(), status=error.status)
    if retry_after:
        response["Retry-After"] = retry_after
    if error.status == UNAUTHORIZED:
        response["WWW-Authenticate"] = 'Basic realm="mcp"'
    return response


def body_of_request(request: HttpRequest) -> bytes:
    """Return the body; raise `OAuthError` if it has more than 16 KiB."""
    length = request.META.get("CONTENT_LENGTH") or "0"
    # int() raises an error for more than 4,300 digits.
    is_number = length.isdecimal() and len(length) <= MAX_DIGITS
    fits = is_number and int(length) <= requests.MAX_FORM_BYTES
    if not fits or len(request.body) > requests.MAX_FORM_BYTES:
        sentence = f"The body has more than {requests.MAX_FORM_BYTES} bytes."
        raise requests.invalid_request(sentence, status=413)
    return request.body


# -- metadata views --------------------------------------------------------------------
# Where programs learn which issuers a server has, and how to use them (RFC 9728, 8414).

MAX_AGE: Final = "max-age=300"
SERVERS_MAX_AGE_S: Final = 1.0
ENDPOINTS: Final = ("authorize", "token", "register", "revoke")


class OpenServers:
    """The authenticators of each server, read once a second; callable from any thread.

    Anybody may ask for metadata at any rate, so not every request may take a database
    connection.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._access: dict[str, tuple[str, ...]] = {}
        self._read_at = -math.inf

    def access_of(self, slug: str | None) -> tuple[str, ...]:
        """Return the names of a server's authenticators, none if there is no server."""
        with self._lock:
            if time.monotonic() - self._read_at > SERVERS_MAX_AGE_S:
                self._access = {each.slug: each.access_names for each in open_servers()}
                self._read_at = time.monotonic()
            return self._access.get(slug or "", ())


servers: Final = OpenServers()


@for_programs("GET", MAX_AGE, from_memory=True)
def protected_resource(request: HttpRequest, path: str = "") -> JsonObject:
    """Name the issuers of tokens for the server at this path, "" for the default one.

    The path is repeated exactly: strict clients compare it with the path that they
    requested.
    """
    origin = origin_of(request)
    if origin is None:
        raise Http404("This site has no public address.")
    url = f"{origin}{path}" if path else resources.server_url(DEFAULT_SLUG, origin)
    ways = authenticators_of(servers.access_of(resources.slug_of_resource(url, origin)))
    issuers = issuers_of(ways or (), origin)
    if not issuers:
        raise Http404("No issuer has tokens for this address.")
    return clients.resource_metadata(url, issuers)


@for_programs("GET", MAX_AGE, from_memory=True)
def authorization_server(request: HttpRequest) -> JsonObject:
    """Say how programs sign in at this site."""
    issuer, options = issuer_of(request), resources.oauth_settings()
    endpoints = {name: f"{issuer}{reverse(f'mcp_oauth:{name}')}" for name in ENDPOINTS}
    return clients.server_metadata(
        issuer,
        endpoints,
        documents=options.documents and is_installed("httpcore2"),
        registration=options.registration,
        algorithms=ALGORITHMS if is_installed("jwt") else (),
        companies=bool(options.issuers),
    )


# -- token views -----------------------------------------------------------------------
# The endpoints where programs register, get tokens and revoke them.


@for_programs("POST", status=201)
def register_program(request: HttpRequest) -> JsonObject:
    """Give a program its id: its own metadata, signed (RFC 7591)."""
    issuer_of(request)
    options = resources.oauth_settings()
    if not options.registration:
        raise Http404("Programs cannot register at this site.")
    registration = clients.read_registration(
        body_of_request(request), options.schemes, issued=int(time.time())
    )
    client_id = clients.client_id_of(registration, secret_keys()[0])
    return clients.registration_answer(registration, client_id)


@for_programs("POST")
def issue_token(request: HttpRequest) -> JsonObject:
    """Give tokens for a code, a refresh token, a secret or an assertion (RFC 6749)."""
    issuer = issuer_of(request)
    form = _read_request_form(request)
    credentials = requests.client_of(form, request.headers.get("Authorization"))
    grant = requests.read_grant(form)
    if isinstance(grant, requests.AssertionGrant):
        return _exchange_assertion(request, credentials, grant, issuer)
    slug = _requested_slug(grant.resource, issuer)
    match grant:
        case requests.CodeGrant():
            return connections.exchange_code(credentials.client_id, grant, slug)
        case requests.RefreshGrant():
            return connections.refresh_tokens(credentials.client_id, grant, slug)
        case requests.MachineGrant() if credentials.assertion:
            return connections.token_of_program(credentials, slug, issuer)
        case requests.MachineGrant():
            return connections.token_of_machine(credentials, slug)


@sensitive_variables()
def _exchange_assertion(
    request: HttpRequest,
    credentials: requests.ClientCredentials,
    grant: requests.AssertionGrant,
    issuer: str,
) -> JsonObject:
    """Return an access token for an assertion of a company (ID-JAG); log a refusal."""
    if not resources.oauth_settings().issuers:
        message = "No company lets people in here."
        raise requests.OAuthError("unsupported_grant_type", message)
    from mcp_app.auth import companies  # noqa: PLC0415 - only for sites with companies

    client_id, usable = credentials.client_id, companies.read_entries()[0]
    proved = [each for each in usable if each.admits_client(credentials)]
    if not proved:
        is_known_id = any(client_id in each.secrets for each in usable)
        # A right secret is always accepted, so wrong ones cannot lock others out.
        if is_known_id and not wrong_proofs.count_attempt(client_id, time.monotonic()):
            raise requests.OAuthError("slow_down", "Too many wrong ones.", status=429)
        message = "The client id or its secret is wrong."
        raise requests.OAuthError("invalid_client", message, status=401)
    arguments = grant.assertion, proved, client_id, issuer
    try:
        verified = run_on_loop(request, partial(companies.verify_grant, *arguments))
        return companies.answer_grant(*verified, grant, issuer)
    except AuthenticationUnavailable:
        message = "The issuer of the assertion is away. Try again."
        away = requests.OAuthError("temporarily_unavailable", message, status=503)
        raise away from None
    except AuthenticationFailed as error:
        logger.warning("An ID-JAG of %.80r is refused: %s", client_id, error)
        message = "The assertion is not accepted. The log of this site says why."
        raise requests.OAuthError("invalid_grant", message) from None


@for_programs("POST")
def revoke_token(request: HttpRequest) -> JsonObject:
    """End the app that a token belongs to; the answer is 200 even if there is none."""
    issuer_of(request)
    form = _read_request_form(request)
    credentials = requests.client_of(form, request.headers.get("Authorization"))
    return connections.revoke_token(
        credentials.client_id, requests.read_revocation(form)
    )


def _read_request_form(request: HttpRequest) -> dict[str, str]:
    content_type = request.headers.get("Content-Type", "")
    return requests.read_form(
        content_type, body_of_request(request), request.META[_QUERY]
    )


def _requested_slug(resource: str, issuer: str) -> str | None:
    """Return the slug of the server that a request names, None if it names none."""
    if not resource:
        return None
    slug = resources.slug_of_resource(resource, issuer)
    if slug is None:
        raise requests.OAuthError(
            "invalid_target", "resource is no server of this site."
        )
    return slug
