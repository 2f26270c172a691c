"""What a process knows of an access token, and the statements that read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import prefetch_related_objects
from django.utils import timezone

from mcp_app.auth.addresses import client_address, within
from mcp_app.auth.permissions import active_users
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    AuthenticationRequest,
    Principal,
    Scope,
)
from mcp_app.models import AccessToken, IssuedToken
from mcp_app.models.tokens import Network

KIND = ACCESS_TOKEN
"""The kind of principals whose `client` is the family of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """The row of a token, and the principal that it authenticates.

    `ends` is when what was shown ends: a key ends before its app.
    """

    pk: int
    principal: Principal
    servers: frozenset[str] | None
    """The slugs of the servers that accept it; None stands for all."""
    networks: tuple[Network, ...]
    ends: datetime | None
    revoked: bool
    active: bool
    """Whether its user may log in."""
    is_app: bool = False
    """Whether a key of a connected app was shown."""
    arrives: datetime | None = None
    """When the key was made, if its use shows that the program has its answer."""

    def refusal(self, request: AuthenticationRequest) -> str | None:
        """Return why a request is refused, None if the token is accepted."""
        refusal = self.refusal_at(request.server)
        if refusal is None and self.networks and not self._is_near(request):
            return "This access token is not valid from your network address."
        return refusal

    def refusal_at(self, server: str) -> str | None:
        """Return why a server refuses the token now, from any address."""
        if self.revoked:
            if self.is_app:
                return "This connection has ended. Sign in again."
            return "This access token was revoked."
        if self.ends is not None and self.ends <= timezone.now():
            return "This access token has expired."
        if not self.active:
            return "The user of this access token may not log in."
        if self.servers is not None and server not in self.servers:
            return "This access token is not valid for this server."
        return None

    def _is_near(self, request: AuthenticationRequest) -> bool:
        forwarded = request.headers.get(b"x-forwarded-for")
        trusted = mcp_settings.trusted_proxies
        address = client_address(request.peer, forwarded, trusted)
        return address is not None and within(address, self.networks)


def read(names: list[str]) -> dict[str, TokenEntry]:
    """Return the tokens of these digests that there are; blocks."""
    rows = list(AccessToken.objects.filter(digest__in=names))
    entry_of = _entries_of(rows)
    return {row.digest: entry_of[row.pk] for row in rows}


def read_keys(names: list[str]) -> dict[str, TokenEntry]:
    """Return the keys of connected apps with these digests; blocks."""
    keys = IssuedToken.objects.select_related("token__connection")
    some = list(keys.filter(digest__in=names))
    entry_of = _entries_of([key.token for key in some])
    return {key.digest: _issued_entry(key, entry_of[key.token_id]) for key in some}


def _issued_entry(key: IssuedToken, entry: TokenEntry) -> TokenEntry:
    connection = key.token.connection
    principal = entry.principal
    if key.only_reads:
        scope = replace(principal.scope or Scope(), read_only=True)
        principal = replace(principal, scope=scope)
    newest = connection.refreshed is not None and key.created >= connection.refreshed
    return replace(
        entry,
        principal=principal,
        ends=key.expires if entry.ends is None else min(key.expires, entry.ends),
        is_app=True,
        arrives=key.created if newest and not connection.received else None,
    )


def _entries_of(rows: Sequence[AccessToken]) -> dict[int, TokenEntry]:
    """Return the entries of these rows by their keys; blocks."""
    users = active_users({row.user_id for row in rows})
    prefetch_related_objects([row for row in rows if not row.everywhere], "servers")
    return {row.pk: _entry_of(row, users.get(row.user_id)) for row in rows}


def _entry_of(row: AccessToken, user: AbstractBaseUser | None) -> TokenEntry:
    scope = Scope(read_only=row.may != AccessToken.May.CHANGE, tags=row.tag_names)
    servers = None
    if not row.everywhere:
        servers = frozenset(each.slug for each in row.servers.all())
    return TokenEntry(
        pk=row.pk,
        principal=Principal(
            kind=KIND,
            user_id=str(row.user_id),
            user_name="" if user is None else user.get_username(),
            client=row.family,
            scope=scope if scope != Scope() else None,
        ),
        servers=servers,
        networks=row.network_list(),
        ends=row.expires,
        revoked=row.revoked is not None,
        active=user is not None,
    )
