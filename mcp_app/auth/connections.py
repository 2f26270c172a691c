"""Connected apps: what a person allows, what a program gets for it, and the end.

Everything here blocks.  If the consent page or a refresh request is sent twice, it gets
the same code or refresh token, because these are computed from what was sent.  So a
lost answer can be asked for again.  A row is locked before it is read and changed.  If
a request is refused and ends an app, that end is committed.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from hmac import compare_digest
from typing import Final, ParamSpec
from uuid import UUID

from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import IntegrityError, router
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.authenticators import sign_in_names, token_names
from mcp_app.auth.client_assertions import read_assertion, verify_assertion
from mcp_app.auth.issuer_tokens import LEEWAY_S
from mcp_app.auth.resources import oauth_settings
from mcp_app.auth.users import active_users
from mcp_app.conf import mcp_settings, secret_keys
from mcp_app.interface.principal import AuthenticationFailed
from mcp_app.models import (
    AccessToken,
    Connection,
    EventSubscription,
    IssuedToken,
    Server,
    UsedAssertion,
)
from mcp_app.models.fields import digest
from mcp_app.models.tokens import Secret
from mcp_app.models.transactions import own_transaction, persistently
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth import texts
from mcp_app.protocol.oauth.clients import is_document_url, registration_of
from mcp_app.protocol.oauth.requests import (
    CHANGE,
    READ,
    ClientCredentials,
    CodeGrant,
    OAuthError,
    RefreshGrant,
    is_verifier_of,
)
from mcp_app.site_time import unix_time

CODE_LASTS: Final = timedelta(seconds=60)
MAX_KEYS: Final = 32
"""Keys of an app that are good at the same time; one more ends the oldest."""
MAX_KEYS_PER_MINUTE: Final = 40
STEPS: Final = 3
"""How many steps an earlier refresh token may be behind the current one."""
MACHINE_LASTS: Final = timedelta(hours=1)
"""How long a token for a program without a person is valid at most."""
ASK_AGAIN: Final = timedelta(days=1)
"""How long a program can ask again for an answer that it never got."""

HAS_ENDED: Final = "The connection has ended. Sign in again."

logger = logging.getLogger("mcp_app.auth")

Ended = Connection.Ended
P = ParamSpec("P")


class PageUsed(Exception):
    """The consent page was sent before, and its code was used or has expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """A program that wants to sign in; `host` is that of its document, or ""."""

    client_id: str
    name: str
    host: str
    redirect_uri: str
    redirect_host: str
    refreshes: bool
    """Whether it can take a refresh token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a person allows a program at a server, and the most that it asked for.

    `tags` are words, "" stands for all.  `until` is the latest end.
    """

    user: AbstractBaseUser
    server: Server
    client: Client
    challenge: str
    may_ask: str
    may: str
    tags: str
    until: datetime | None


def store_grant(
    grant: Grant, idempotency_key: UUID
) -> tuple[Secret, AccessToken | None]:
    """Store what a person allows on the consent page; return the code and the row.

    The same `idempotency_key` returns the same code, and None for the row, while the
    code is valid and unused; later it raises `PageUsed`.  Raises `ValidationError`.
    """
    code = _code_of_page(idempotency_key)
    if code is not None:
        return code, None
    code = Secret(texts.code_of(idempotency_key.hex, secret_keys()[0]))
    try:
        with own_transaction(_database_alias()):
            row = _create_connection(grant, idempotency_key, code)
    except (IntegrityError, ValidationError):
        # The page was sent twice at once: the other request was faster.
        stored_code = _code_of_page(idempotency_key)
        if stored_code is None:
            raise
        return stored_code, None
    return code, row


@sensitive_variables("code")
def _create_connection(grant: Grant, idempotency_key: UUID, code: str) -> AccessToken:
    now, client = timezone.now(), grant.client
    # If a host is too long, a “…” and its end are kept: the end shows the owner.
    max_length, name = AccessToken._meta.get_field("name").max_length or 0, client.name
    row = AccessToken.objects.make_app(
        grant.server,
        name=name if len(name) <= max_length else f"…{name[1 - max_length :]}",
        user=grant.user,
        may=grant.may,
        tags=grant.tags,
        expires=now + CODE_LASTS,
        made_with=idempotency_key,
    )
    Connection.objects.create(
        token=row,
        client_id=client.client_id,
        client_host=client.host,
        redirect_uri=client.redirect_uri,
        redirect_host=client.redirect_host,
        code=digest(code),
        code_ends=now + CODE_LASTS,
        challenge=grant.challenge,
        refreshes=client.refreshes,
        may_ask=grant.may_ask,
        until=grant.until,
    )
    return row


def _code_of_page(idempotency_key: UUID) -> Secret | None:
    """Return the code of a page that was sent before, None for a new one."""
    row = Connection.objects.filter(token__made_with=idempotency_key).first()
    if row is None:
        return None
    if not row.code_used and row.code_ends > timezone.now():
        for secret in secret_keys():
            code = texts.code_of(idempotency_key.hex, secret)
            if _is_digest(row.code, code):
                return Secret(code)
    raise PageUsed


def in_transaction(
    work: Callable[P, JsonObject | OAuthError],
) -> Callable[P, JsonObject]:
    """Run `work` in one transaction, again after a conflict; hide its secrets.

    If `work` raises a refusal, nothing is stored; if it returns one, its changes are.
    """
    secretly = sensitive_variables()(work)

    @wraps(work)
    @sensitive_variables()
    def run_in_transaction(*args: P.args, **kwargs: P.kwargs) -> JsonObject:
        @sensitive_variables()
        def run_attempt() -> JsonObject | OAuthError:
            with own_transaction(_database_alias()):
                return secretly(*args, **kwargs)

        result = persistently(run_attempt)
        if isinstance(result, OAuthError):
            raise result
        return result

    return run_in_transaction


@in_transaction
def exchange_code(
    client_id: str, grant: CodeGrant, slug: str | None
) -> JsonObject | OAuthError:
    """Return what a program gets for a code (RFC 6749, section 5.1).

    `slug` is the server that the request names, None if it names none.  Raises
    `OAuthError`.  A wrong attempt changes nothing.  If a used code is sent again and
    all else is right, the app ends.
    """
    row = Connection.objects.filter(code=digest(grant.code)).first()
    connection, now = _lock_open("code", row, client_id, slug), timezone.now()
    if connection.redirect_uri != grant.redirect_uri:
        raise _invalid_grant("redirect_uri is not the one that the code was sent to.")
    if not is_verifier_of(connection.challenge, grant.verifier):
        raise _invalid_grant("code_verifier does not fit to the code.")
    if connection.code_used:
        _end_connection(connection, Ended.CODE)
        return _invalid_grant("This code was used before. The connection has ended.")
    if connection.code_ends <= now:
        raise _invalid_grant("This code is too old. Start again.")
    _check_open(connection, now)
    connection.code_used = True
    token = texts.new_refresh() if connection.refreshes else ""
    if token:
        _replace_refresh(connection, token, now)
    connection.save()
    return _token_response(connection, now, token)


def _replace_refresh(connection: Connection, token: str, now: datetime) -> None:
    name, _ = texts.refresh_parts(token) or ("", "")
    connection.refresh_name, connection.refresh = digest(name), digest(token)
    connection.refreshed, connection.received = now, False


@in_transaction
def refresh_tokens(
    client_id: str, grant: RefreshGrant, slug: str | None
) -> JsonObject | OAuthError:
    """Return a new key and the next refresh token (RFC 6749, section 6).

    Raises `OAuthError`.  A token that has a successor gets the current one again if its
    answer may have been lost, or if requests overlapped.  In all other cases its use
    ends the app, because somebody else may have it.
    """
    row = _of_refresh_token(grant.refresh_token)
    connection, now = _lock_open("refresh token", row, client_id, slug), timezone.now()
    _check_open(connection, now)
    if _is_digest(connection.refresh, grant.refresh_token):
        token: str | None = texts.successor(grant.refresh_token, secret_keys()[0])
        _replace_refresh(connection, str(token), now)
        connection.save()
    else:
        token = _current_refresh_token(connection, grant.refresh_token, now)
    if token is None:
        _end_connection(connection, Ended.REFRESH)
        return _invalid_grant(
            "This refresh token was used before. The connection has ended."
        )
    return _token_response(connection, now, token, only_reads=CHANGE not in grant.scope)


def _of_refresh_token(token: str) -> Connection | None:
    parts = texts.refresh_parts(token)
    if parts is None:
        return None
    return Connection.objects.filter(refresh_name=digest(parts[0])).first()


def _current_refresh_token(
    connection: Connection, token: str, now: datetime
) -> str | None:
    """Return the current refresh token if the sender of an earlier one may get it."""
    age, successors = now - (connection.refreshed or now), [token]
    for step in range(1, STEPS + 1):
        successors = [
            texts.successor(each, secret)
            for each in successors
            for secret in secret_keys()
        ]
        for each in successors:
            if _is_digest(connection.refresh, each):
                lost = step == 1 and not connection.received and age <= ASK_AGAIN
                overlap = timedelta(seconds=mcp_settings.limits.oauth_overlap)
                return each if lost or age <= overlap else None
    return None


@in_transaction
def revoke_token(client_id: str, token: str) -> JsonObject:
    """Revoke a token of a program (RFC 7009): end its app, or delete its key."""
    connection = _of_refresh_token(token)
    if connection is None and texts.is_access(token):
        rows = Connection.objects.filter(token__issued__digest=digest(token))
        connection = rows.first()
    if connection is not None and connection.client_id == client_id:
        current = lock(connection)
        if current is not None:
            _end_connection(current, Ended.CLIENT)
    keys = IssuedToken.objects.using(_database_alias()).filter(digest=digest(token))
    # Only the key of a program is deleted.  Its access token stays as it is.
    for key in keys.filter(token__prefix=client_id).exclude(token__public_key=""):
        key.delete()
        # The save tells all processes that their cached copy is old.
        key.token.save(update_fields=["family"])
    return {}


@sensitive_variables()
def token_of_machine(credentials: ClientCredentials, slug: str | None) -> JsonObject:
    """Return an access token to the program that shows it as its secret.

    Nothing is stored: client credentials (RFC 6749, section 4.4) are another way to
    send the token.  Raises `OAuthError`.
    """
    row = AccessToken.objects.of(credentials.secret).first()
    now = timezone.now()
    if row is None or row.prefix != credentials.client_id:
        raise _no_client(
            "client_id must be how an access token begins, client_secret the token."
        )
    if row.has_ended(now) or not active_users({row.user_id}):
        raise _no_client("This access token has ended.")
    lasts = _machine_end(row, slug, now) - now
    return _bearer_response(
        credentials.secret, lasts, row.may == AccessToken.May.CHANGE
    )


@in_transaction
def token_of_program(
    credentials: ClientCredentials, slug: str | None, issuer: str
) -> JsonObject:
    """Return a key to a program that proves by an assertion who it is (RFC 7523).

    `issuer` is this site's.  Raises `OAuthError` with the same sentence for everything
    that is wrong with an assertion; the reason is only logged.
    """
    client_id, using, now = credentials.client_id, _database_alias(), timezone.now()
    rows = AccessToken.objects.using(using).exclude(public_key="")
    try:
        assertion = read_assertion(credentials.assertion)
        client_id = assertion.claims["iss"]
        row = rows.filter(prefix=client_id).first()
        if row is None or credentials.client_id not in ("", client_id):
            raise AuthenticationFailed("No program has this client id.")
        claims = verify_assertion(assertion, [json.loads(row.public_key)], issuer)
        row = rows.select_for_update().filter(pk=row.pk).first()
        if row is None or row.has_ended(now) or not active_users({row.user_id}):
            raise AuthenticationFailed("Its access token or the user has ended.")
        answer = issue_key(row, now, _machine_end(row, slug, now))
        until = unix_time(claims["exp"] + LEEWAY_S)
        # This comes last: an assertion that was refused may come again.
        if not UsedAssertion.note_use(client_id, claims["jti"], until, using):
            raise AuthenticationFailed("It was used before.")
    except (AuthenticationFailed, ImportError) as error:
        logger.warning("An assertion of %.40r is refused: %s", client_id, error)
        message = "The assertion is not accepted. The log of this site says why."
        raise _no_client(message) from None
    return answer


def _machine_end(row: AccessToken, slug: str | None, now: datetime) -> datetime:
    """Return when a machine's answer ends; raise if the server refuses the token."""
    if slug is None or not _is_good_at(row, slug):
        raise OAuthError(
            "invalid_target", "resource must be a server where the token is good."
        )
    latest_end = now + MACHINE_LASTS
    return min(row.expires or latest_end, latest_end)


def connection_end(
    connection: Connection, until: datetime | None, now: datetime
) -> datetime:
    """Return when an app ends: at `until`, or earlier if nobody refreshes it."""
    limits = mcp_settings.limits
    seconds = limits.oauth_idle if connection.refreshes else limits.oauth_access
    idle = (connection.refreshed or now) + timedelta(seconds=seconds)
    return idle if until is None else min(until, idle)


# -- what all grants share -------------------------------------------------------------


def _database_alias() -> str:
    return router.db_for_write(AccessToken)


def lock(connection: Connection) -> Connection | None:
    """Lock a connection and read it again; None if it was deleted meanwhile."""
    rows = Connection.objects.using(_database_alias()).select_for_update()
    return rows.filter(pk=connection.pk).first()


def _lock_open(
    what: str, row: Connection | None, client_id: str, slug: str | None
) -> Connection:
    """Lock the connection of a code or a refresh token (`what` names which).

    Raises `OAuthError` if there is none, or if it has another client or server.
    """
    if row is None:
        if is_document_url(client_id) or registration_of(client_id, secret_keys()):
            raise _invalid_grant(f"This {what} is not known here.")
        # `invalid_client` tells the client to register again.
        raise _no_client("This client is not registered here.")
    connection = lock(row)
    if connection is None:
        raise _invalid_grant(HAS_ENDED)
    if connection.client_id != client_id:
        raise _invalid_grant("It belongs to another client.")
    if slug is not None and slug not in _server_slugs(connection.token):
        raise OAuthError("invalid_target", "It is for another server.")
    return connection


def _end_connection(connection: Connection, why: Connection.Ended) -> None:
    row = connection.token
    if row.revoked is None:
        connection.ended = why
        connection.save(update_fields=["ended"])
        row.revoke()
        EventSubscription.objects.end_of_tokens(_database_alias(), [row])


def _check_open(connection: Connection, now: datetime) -> None:
    """Raise if the app gets no more keys."""
    row = connection.token
    if row.has_ended(now):
        raise _invalid_grant(HAS_ENDED)
    if not active_users({row.user_id}):
        raise _invalid_grant("The user of this connection may not log in.")
    if not any(allows_sign_in(server) for server in row.servers.all()):
        raise _invalid_grant("This server lets nobody sign in any more.")
    host = connection.client_host or connection.redirect_host
    if host and not oauth_settings().admits_hosts([host]):
        raise _invalid_grant("This site does not let this program in any more.")


def allows_sign_in(server: Server) -> bool:
    """Whether programs can sign in to a server."""
    return not sign_in_names().isdisjoint(server.access_names)


@sensitive_variables()
def _token_response(
    connection: Connection, now: datetime, token: str, *, only_reads: bool = False
) -> JsonObject:
    """Issue a key, and return it with the refresh token, "" for none.

    A key that only reads narrows neither the refresh token nor other keys.
    """
    row, limits = connection.token, mcp_settings.limits
    ends = connection_end(connection, connection.until, now)
    AccessToken.objects.using(_database_alias()).move_end(row.pk, ends)
    key_ends = min(ends, now + timedelta(seconds=limits.oauth_access))
    answer = issue_key(row, now, key_ends, only_reads=only_reads)
    return {**answer, "refresh_token": token} if token else answer


@sensitive_variables()
def issue_key(
    row: AccessToken, now: datetime, ends: datetime, *, only_reads: bool = False
) -> JsonObject:
    """Store a new key and return the token response; raise if there are too many."""
    if _are_too_many(row, now):
        raise OAuthError("slow_down", "Too many tokens in a minute.", status=429)
    key = texts.new_access()
    IssuedToken.objects.using(_database_alias()).create(
        digest=digest(key),
        token=row,
        created=now,
        expires=ends,
        only_reads=only_reads,
    )
    changes = not only_reads and row.may == AccessToken.May.CHANGE
    return _bearer_response(key, ends - now, changes)


def _are_too_many(row: AccessToken, now: datetime) -> bool:
    """End the oldest keys; return whether too many were issued in the last minute."""
    rows = IssuedToken.objects.using(_database_alias())
    keys = rows.filter(token=row).order_by("-pk")
    newest = list(keys.values_list("pk", "created")[:MAX_KEYS])
    if len(newest) < MAX_KEYS:
        return False
    oldest_pk, oldest_created = newest[-1]
    # MAX_KEYS in this time are as many as MAX_KEYS_PER_MINUTE in a minute.
    if now - oldest_created < timedelta(minutes=MAX_KEYS / MAX_KEYS_PER_MINUTE):
        return True
    keys.filter(pk__lte=oldest_pk).delete()
    return False


def _bearer_response(key: str, lasts: timedelta, changes: bool) -> JsonObject:
    return {
        "access_token": key,
        "token_type": "Bearer",
        "expires_in": int(lasts.total_seconds()),
        "scope": f"{READ} {CHANGE}" if changes else READ,
    }


def _server_slugs(row: AccessToken) -> set[str]:
    return set(row.servers.values_list("slug", flat=True))


def _is_good_at(row: AccessToken, slug: str) -> bool:
    server = Server.objects.filter(slug=slug, published__isnull=False).first()
    if server is None or token_names().isdisjoint(server.access_names):
        return False
    return row.everywhere or slug in _server_slugs(row)


@sensitive_variables("text")
def _is_digest(stored: str, text: str) -> bool:
    return compare_digest(stored, digest(text))


def _invalid_grant(description: str) -> OAuthError:
    return OAuthError("invalid_grant", description)


def _no_client(description: str) -> OAuthError:
    return OAuthError("invalid_client", description, status=401)
