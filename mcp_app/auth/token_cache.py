"""Access tokens: `Authorization: Bearer mcp_…` (RFC 6750), looked up by their digest.

A program sends a token that a person made on a page.  If a person signed it in, it
sends a key (`mcp_at_…`) instead, which leads to the token of its connected app.  A
token is cached until a permission or a token changes, for half a minute at most.  A
token that does not exist is looked up each time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import F, Max, prefetch_related_objects
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.caches import MAX_AGE_S, MAX_ENTRIES, AgedCache
from mcp_app.auth.issuer_keys import key_ends
from mcp_app.auth.resources import is_usable
from mcp_app.auth.site_requests import client_address, is_in_networks
from mcp_app.auth.users import active_users
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    DRF,
    ISSUER,
    SESSION,
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
    Scope,
    parts_of_key,
)
from mcp_app.models import AccessToken, Connection, IssuedToken
from mcp_app.models.fields import digest
from mcp_app.models.tokens import BEGINNING, Network
from mcp_app.pools.batching import Batches
from mcp_app.pools.database import lookups, reader, writer
from mcp_app.protocol.headers import Headers
from mcp_app.protocol.oauth.texts import is_access

# -- token entries ---------------------------------------------------------------------
# What a process knows of an access token, and the queries that read it.

KIND = ACCESS_TOKEN
"""The kind of principals whose `client` is the family of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEntry:
    """The row of a token, and the principal that it authenticates.

    `ends` is the end of the token or key that was sent: a key ends before its app.
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
    """When the key was made, if its use shows that the program got its last answer."""

    def request_refusal(self, request: AuthenticationRequest) -> str | None:
        """Return why a request is refused, None if the token is accepted."""
        refusal = self.refusal_at(request.server)
        if refusal is None and self.networks:
            forwarded = request.headers.get(b"x-forwarded-for")
            trusted = mcp_settings.trusted_proxies
            address = client_address(request.peer, forwarded, trusted)
            if address is None or not is_in_networks(address, self.networks):
                return "This access token is not valid from your network address."
        return refusal

    def refusal_at(self, server: str) -> str | None:
        """Return why a server refuses the token now, from any address."""
        if self.revoked and self.is_app:
            return "This connection has ended. Sign in again."
        if self.revoked:
            return "This access token was revoked."
        if self.ends is not None and self.ends <= timezone.now():
            return "This access token has expired."
        if not self.active:
            return "The user of this access token may not log in."
        if self.servers is not None and server not in self.servers:
            return "This access token is not valid for this server."
        return None


def read_tokens(names: list[str]) -> dict[str, TokenEntry]:
    """Return the tokens that have one of these digests; blocks."""
    rows = list(AccessToken.objects.filter(digest__in=names))
    entry_of = _entries_of(rows)
    return {row.digest: entry_of[row.pk] for row in rows}


def read_keys(names: list[str]) -> dict[str, TokenEntry]:
    """Return the keys of apps and of programs with these digests; blocks."""
    keys = IssuedToken.objects.select_related("token__connection")
    rows = list(keys.filter(digest__in=names))
    entry_of = _entries_of([key.token for key in rows])
    return {key.digest: _issued_entry(key, entry_of[key.token_id]) for key in rows}


def _issued_entry(key: IssuedToken, entry: TokenEntry) -> TokenEntry:
    connection = getattr(key.token, "connection", None)
    principal = entry.principal
    if key.only_reads:
        scope = replace(principal.scope or Scope(), read_only=True)
        principal = replace(principal, scope=scope)
    ends = key.expires if entry.ends is None else min(key.expires, entry.ends)
    entry = replace(entry, principal=principal, ends=ends)
    if connection is None:
        return entry
    is_newest = connection.refreshed is not None and key.created >= connection.refreshed
    arrives = key.created if is_newest and not connection.received else None
    return replace(entry, is_app=True, arrives=arrives)


def _entries_of(rows: Sequence[AccessToken]) -> dict[int, TokenEntry]:
    users = active_users({row.user_id for row in rows})
    prefetch_related_objects([row for row in rows if not row.everywhere], "servers")
    return {row.pk: _token_entry(row, users.get(row.user_id)) for row in rows}


def _token_entry(row: AccessToken, user: AbstractBaseUser | None) -> TokenEntry:
    reads = row.may != AccessToken.May.CHANGE
    scope = Scope(read_only=reads, tags=row.tag_names, tools=row.tool_names)
    servers = None
    if not row.everywhere:
        servers = frozenset(server.slug for server in row.servers.all())
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


# -- token cache -----------------------------------------------------------------------

SCHEME = "bearer"
_USERS = frozenset({DRF, ISSUER, SESSION})
"""The kinds of principals that are users of the site, without a token of ours."""


class TokenCache(AgedCache[str, TokenEntry | None]):
    """Tokens that clients sent to this process; used on the loop only."""

    def __init__(self) -> None:
        super().__init__()
        self._tokens = Batches(lookups, read_tokens)
        self._keys = Batches(lookups, read_keys)
        self._used: set[int] = set()
        self._arrived: dict[int, datetime] = {}
        self._next_end: datetime | None = None
        self._unsure = False
        self._checked_at = time.monotonic()
        self._let_in: dict[str, set[int]] = {}
        """Tokens that authenticated a request here, by family.  A revoked token is
        removed when everything that it had open has ended."""

    async def find_entry(self, name: str, *, issued: bool = False) -> TokenEntry | None:
        """Return the token of a digest, None if there is none."""
        tokens = self._keys if issued else self._tokens
        return await self.find_or_load(name, partial(tokens.load_value, name))

    def note_token_use(self, entry: TokenEntry) -> None:
        """Note that a token authenticated a request."""
        self._used.add(entry.pk)
        self._let_in.setdefault(entry.principal.client, set()).add(entry.pk)

    async def note_arrival(self, entry: TokenEntry) -> None:
        """Store that a program received the answer that had its newest key.

        Until then it may ask for that answer again.
        """
        created = entry.arrives
        if created is None or self._arrived.get(entry.pk) == created:
            return
        await writer.run(_note_arrival, entry.pk, created)
        if len(self._arrived) >= MAX_ENTRIES:
            self._arrived.clear()
        self._arrived[entry.pk] = created

    def forget_all(self) -> None:
        """Read all tokens again at their next use."""
        super().forget_all()
        self.mark_unsure()

    def mark_unsure(self) -> None:
        """Note that a token may have ended: something was opened after it was read."""
        self._unsure = True

    @property
    def may_have_ended(self) -> bool:
        """Whether a token that authenticated a request may have ended.

        Also true every 30 seconds, to catch changes made outside Django.
        """
        if self._unsure or time.monotonic() - self._checked_at > MAX_AGE_S:
            return True
        return self._next_end is not None and self._next_end <= timezone.now()

    async def ended_principals(self, keys: Iterable[str]) -> set[str]:
        """Return the keys of those principals that are not authenticated any more.

        A family is valid while one of its tokens is.  If a token is revoked that
        authenticated a request here, everything that the family has open ends once:
        nobody knows which part came with this token.  The other clients reconnect.  A
        user of the site without a token of ours is returned if the user may not log in
        any more, or if the last token of an external issuer ended.
        """
        families: dict[str, str] = {}
        people: dict[str, set[str]] = {}
        for key in keys:
            kind, user, client = parts_of_key(key)
            if kind == KIND:
                families[client] = key
            elif kind in _USERS:
                people.setdefault(user, set()).add(key)
        user_keys = {key for person in people.values() for key in person}
        # A token that is used from now on may be newer than the rows.
        let_in = {name: frozenset(self._let_in.get(name, ())) for name in families}
        self._unsure = False
        self._checked_at = time.monotonic()
        try:
            states = await reader.run(_families, list(families)) if families else {}
            disabled = await reader.run(_disabled_users, people) if people else set()
        except BaseException:
            # The next caller has to ask again.
            self._unsure = True
            raise
        ends = [family.ends for family in states.values()]
        ends.append(key_ends.next_key_end(user_keys))
        self._next_end = min(filter(None, ends), default=None)
        ended = {key for name, key in families.items() if not states[name].live}
        ended |= key_ends.ended_keys(user_keys).union(
            *(people[user] for user in disabled)
        )
        for name, family in states.items():
            if revoked := let_in[name] - family.standing:
                ended.add(families[name])
                self._let_in.get(name, set()).difference_update(revoked)
        if len(self._let_in) > MAX_ENTRIES:
            self._let_in = {name: self._let_in.get(name, set()) for name in families}
        return ended

    async def end_of(self, key: str) -> datetime | None:
        """Return when a principal's authentication ends, None if nobody knows."""
        kind, _, client = parts_of_key(key)
        if kind != KIND:
            return key_ends.next_key_end([key])
        return (await reader.run(_families, [client]))[client].ends

    async def has_ended(self, key: str) -> bool:
        """Whether a principal is not authenticated any more, even if no stream is open.

        This does not change what `ended_principals` looks for, or when.
        """
        kind, user, client = parts_of_key(key)
        if kind == KIND:
            return not (await reader.run(_families, [client]))[client].live
        if kind not in _USERS:
            return False
        is_lost = await reader.run(_disabled_users, [user])
        return bool(is_lost or key_ends.ended_keys([key]))

    async def write_uses(self) -> None:
        """Store which tokens were used since the last time."""
        if used := frozenset(self._used):
            await writer.run(AccessToken.objects.note_uses, used, timezone.now())
            self._used -= used


token_cache = TokenCache()
"""The cache of this process."""


@sensitive_variables("token")
def _digest_of(headers: Headers) -> tuple[str | None, bool]:
    """Return the digest of the access token in the headers, None without one.

    The second value is whether it is a key that this site issued.
    """
    scheme, _, token = (headers.get(b"authorization") or "").partition(" ")
    # Not `strip()`: Python's white space has more characters, such as 0xA0.
    token = token.strip(" \t")
    if scheme.lower() != SCHEME or not token.startswith(BEGINNING):
        return None, False
    return digest(token), is_access(token)


def cached_token(
    server: str, headers: Headers, *, of_app: bool
) -> tuple[TokenEntry, float] | None:
    """Return a cached token that a server accepts, and when it gets too old.

    The time is that of the monotonic clock.  None if the caller must call
    `access_token`, or `oauth` if `of_app` is true.  That is always so if a token is
    bound to networks.
    """
    name, _ = _digest_of(headers)
    entry = None if name is None else token_cache.cached_value(name)
    if name is None or entry is None or entry.is_app is not of_app:
        return None
    if entry.networks or entry.refusal_at(server):
        return None
    token_cache.note_token_use(entry)
    return entry, token_cache.good_until(name)


async def access_token(request: AuthenticationRequest) -> Principal | None:
    """Authenticate a request by an access token or a program's key, None without."""
    return await _principal_of(request, of_app=False)


async def oauth(request: AuthenticationRequest) -> Principal | None:
    """Authenticate a request by a key that this site issued when somebody signed in.

    None if no such key is shown.
    """
    if not is_usable():
        return None
    return await _principal_of(request, of_app=True)


async def _principal_of(
    request: AuthenticationRequest, *, of_app: bool
) -> Principal | None:
    name, issued = _digest_of(request.headers)
    if name is None or (of_app and not issued):
        return None
    entry = await token_cache.find_entry(name, issued=issued)
    if entry is None:
        raise AuthenticationFailed("There is no such access token.")
    if entry.is_app is not of_app:
        return None
    if refusal := entry.request_refusal(request):
        raise AuthenticationFailed(refusal)
    await token_cache.note_arrival(entry)
    token_cache.note_token_use(entry)
    return entry.principal


@dataclass(slots=True)
class Family:
    """What the tokens of a family allow together."""

    live: bool = False
    """Whether one of them is valid."""
    ends: datetime | None = None
    """When the last of them expires; None for never."""
    standing: set[int] = field(default_factory=set)
    """The tokens that were not revoked; they may have expired."""

    def add_token(self, row: AccessToken) -> None:
        """Add a valid token."""
        # Without an end: this token, or one that was added before.
        endless = row.expires is None or (self.live and self.ends is None)
        self.ends = None if endless else max(filter(None, (self.ends, row.expires)))
        self.live = True


def _families(names: list[str]) -> dict[str, Family]:
    now = timezone.now()
    families = {name: Family() for name in names}
    columns = {"company": F("connection__issuer"), "key_end": Max("issued__expires")}
    rows: list[Any] = [*AccessToken.objects.annotate(**columns).of_families(names)]
    for row in rows:
        # A company does not tell us if it locks a person out.  As with external
        # issuers, what a program has open ends with its last key.
        if row.company:
            row.expires = min(row.expires, row.key_end or now)
    users = active_users({row.user_id for row in rows})
    for row in rows:
        if row.revoked is None:
            families[row.family].standing.add(row.pk)
        if not row.has_ended(now) and row.user_id in users:
            families[row.family].add_token(row)
    return families


def _disabled_users(users: Collection[str]) -> set[str]:
    return set(users) - {str(each) for each in active_users(users)}


def _note_arrival(key: int, created: datetime) -> None:
    Connection.objects.filter(pk=key, refreshed__lte=created).update(received=True)
