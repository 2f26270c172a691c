"""Where programs register, and get and end their tokens."""

from __future__ import annotations

import time

from django.http import Http404, HttpRequest

from mcp_app.auth import connections
from mcp_app.auth.oauth_settings import oauth_settings
from mcp_app.auth.resources import slug_of
from mcp_app.conf import secrets
from mcp_app.oauth.endpoints import body_of, for_programs, issuer_of, query_of
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth.errors import OAuthError
from mcp_app.protocol.oauth.registration import (
    client_id_of,
    read_registration,
    registration_answer,
)
from mcp_app.protocol.oauth.token_requests import (
    CodeGrant,
    MachineGrant,
    RefreshGrant,
    client_of,
    read_form,
    read_grant,
    read_revocation,
)


@for_programs("POST", status=201)
def register(request: HttpRequest) -> JsonObject:
    """Give a program its id, which is its own metadata, signed (RFC 7591)."""
    issuer_of(request)
    options = oauth_settings()
    if not options.registration:
        raise Http404("Programs cannot register at this site.")
    given = read_registration(
        body_of(request), options.schemes, issued=int(time.time())
    )
    client_id = client_id_of(given, secrets()[0])
    return registration_answer(given, client_id)


@for_programs("POST")
def token(request: HttpRequest) -> JsonObject:
    """Exchange a code, a refresh token or an access token (RFC 6749, section 3.2)."""
    issuer = issuer_of(request)
    form = _form(request)
    credentials = client_of(form, request.headers.get("Authorization"))
    grant = read_grant(form)
    slug = _slug(grant.resource, issuer)
    match grant:
        case CodeGrant():
            return connections.exchange(credentials.client_id, grant, slug)
        case RefreshGrant():
            return connections.refresh(credentials.client_id, grant, slug)
        case MachineGrant():
            return connections.token_of_machine(credentials, slug)


@for_programs("POST")
def revoke(request: HttpRequest) -> JsonObject:
    """End the app that a token belongs to; 200 whether there was one or not."""
    issuer_of(request)
    form = _form(request)
    credentials = client_of(form, request.headers.get("Authorization"))
    return connections.revoke(credentials.client_id, read_revocation(form))


def _form(request: HttpRequest) -> dict[str, str]:
    content_type = request.headers.get("Content-Type", "")
    return read_form(content_type, body_of(request), query_of(request))


def _slug(resource: str, issuer: str) -> str | None:
    """Return the server that a request names, None if it names none."""
    if not resource:
        return None
    slug = slug_of(resource, issuer)
    if slug is None:
        raise OAuthError("invalid_target", "resource is no server of this site.")
    return slug
