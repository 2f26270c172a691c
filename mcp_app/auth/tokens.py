"""Access tokens: `Authorization: Bearer mcp_…` (RFC 6750), looked up by their digest.

What is found is kept as long as no right and no token changes, at most for half a
minute; what is not found is asked for each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.addresses import client_address, within
from mcp_app.auth.permissions import HARD_AGE, KEPT, active_users
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
    ACCESS_TOKEN,
    DRF,
    SESSION,
    AuthenticationFailed,
    AuthenticationRequest,
    Principal,
    Scope,
    parts_of_key,
)
from mcp_app.models import AccessToken
from mcp_app.models.fields import digest
from mcp_app.models.tokens import BEGINNING, Network
from mcp_app.pools.database import authenticators, reader, writer
from mcp_app.protocol.headers import Headers

SCHEME = "bearer"
KIND = ACCESS_TOKEN
"""The kind of principals whose `client` is the family of a token."""
_USERS = frozenset({DRF, SESSION})
"""The kinds of principals who are users of the site, by what else lets them in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a token's row says, and whom it lets in."""

    pk: int
    principal: Principal
    servers: frozenset[str] | None
    """The slugs of those where it is good; None stands for all."""
    networks: tuple[Network, ...]
    ends: datetime | None
    revoked: bool
    active: bool
    """Whether its user may log in."""

    def refusal(self, request: AuthenticationRequest) -> str | None:
        """Return why it lets nobody in here and now."""
        refusal = self.refusal_at(request.server)
        if refusal is None and self.networks and not self._is_near(request):
            return "This access token is not good from this address."
        return refusal

    def refusal_at(self, server: str) -> str | None:
        """Return why it lets nobody in at a server now, from wherever that is."""
        if self.revoked:
            return "This access token was revoked."
        if self.ends is not None and self.ends <= timezone.now():
            return "This access token has expired."
        if not self.active:
            return "The user of this access token may not log in."
        if self.servers is not None and server not in self.servers:
            return "This access token is not for this server."
        return None

    def _is_near(self, request: AuthenticationRequest) -> bool:
        forwarded = request.headers.get(b"x-forwarded-for")
        trusted = mcp_settings.trusted_proxies
        address = client_address(request.peer, forwarded, trusted)
        return address is not None and within(address, self.networks)


class Tokens:
    """Tokens that were shown to this process; used on the loop only."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Found]] = {}
        self._used: set[int] = set()
        self._next_end: datetime | None = None
        self._unsure = False
        self._asked = time.monotonic()
        self._let_in: dict[str, set[int]] = {}
        """Tokens that let somebody in here, by their families; none that was revoked
        since, once what it had open was ended."""

    def known(self, name: str) -> Found | None:
        """Return what was read of a token lately, None where it is to be read."""
        kept = self._kept.get(name)
        if kept is not None and time.monotonic() - kept[0] < HARD_AGE:
            return kept[1]
        return None

    async def find(self, name: str) -> Found | None:
        """Return what a token is good for, by its digest; None where there is none."""
        now, keep = time.monotonic(), self._kept
        if (known := self.known(name)) is not None:
            return known
        # The reader must be free for checks, whatever strangers try.
        found = await authenticators.run(_read, name)
        if found is not None:
            if len(keep) >= KEPT:
                keep.clear()
            keep[name] = (now, found)
        return found

    def used(self, found: Found) -> None:
        """Note that somebody was let in by it."""
        self._used.add(found.pk)
        self._let_in.setdefault(found.principal.client, set()).add(found.pk)

    def forget(self) -> None:
        """Read all tokens again at their next use."""
        # Another dict: what is being read at this moment must not be kept.
        self._kept = {}
        self.doubt()

    def doubt(self) -> None:
        """Something began: its token may have ended since it was looked at."""
        self._unsure = True

    @property
    def ending(self) -> bool:
        """Whether a token may have ended that somebody was let in by.

        So it is now and then, for what is changed behind our back.
        """
        if self._unsure or time.monotonic() - self._asked > HARD_AGE:
            return True
        return self._next_end is not None and self._next_end <= timezone.now()

    async def gone(self, keys: Iterable[str]) -> set[str]:
        """Return those keys of principals who are let in no more.

        A family is good as long as one of its tokens is.  Where one is revoked that let
        somebody in here, whoever is open ends once: which of them came with it is not
        known, and the others come back.  Who came without a token, as a user of the
        site, goes when that user may not log in any more.
        """
        families: dict[str, str] = {}
        people: dict[str, set[str]] = {}
        for key in keys:
            kind, user, client = parts_of_key(key)
            if kind == KIND:
                families[client] = key
            elif kind in _USERS:
                people.setdefault(user, set()).add(key)
        # Whatever lets somebody in from now on may be newer than the rows.
        let_in = {name: frozenset(self._let_in.get(name, ())) for name in families}
        self._unsure = False
        self._asked = time.monotonic()
        try:
            found = await reader.run(_families, list(families)) if families else {}
            lost = await reader.run(_lost, frozenset(people)) if people else set()
        except BaseException:
            # Whoever asks has to ask again.
            self._unsure = True
            raise
        ends = (family.ends for family in found.values())
        self._next_end = min(filter(None, ends), default=None)
        gone = {key for name, key in families.items() if not found[name].live}
        gone = gone.union(*(people[user] for user in lost))
        for name, family in found.items():
            if ended := let_in[name] - family.standing:
                gone.add(families[name])
                self._let_in.get(name, set()).difference_update(ended)
        if len(self._let_in) > KEPT:
            self._let_in = {name: self._let_in.get(name, set()) for name in families}
        return gone

    async def write_uses(self) -> None:
        """Store which tokens were used since the last time."""
        used = frozenset(self._used)
        if used:
            await writer.run(AccessToken.objects.note_uses, used, timezone.now())
            self._used -= used


tokens = Tokens()
"""Those of this process."""


@sensitive_variables("token")
def _shown(headers: Headers) -> str | None:
    """Return the digest of the access token that is shown, None without one."""
    scheme, _, token = (headers.get(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != SCHEME or not token.startswith(BEGINNING):
        return None
    return digest(token)


def known(headers: Headers, server: str) -> Principal | None:
    """Return whom a token lets in at once; None where `access_token` is to be asked.

    So it is for a token that was read lately, and is bound to no networks.
    """
    name = _shown(headers)
    found = None if name is None else tokens.known(name)
    if found is None or found.networks or found.refusal_at(server):
        return None
    tokens.used(found)
    return found.principal


async def access_token(request: AuthenticationRequest) -> Principal | None:
    """Let in who shows an access token of this site; others pass by."""
    name = _shown(request.headers)
    if name is None:
        return None
    found = await tokens.find(name)
    if found is None:
        raise AuthenticationFailed("There is no such access token.")
    if refusal := found.refusal(request):
        raise AuthenticationFailed(refusal)
    tokens.used(found)
    return found.principal


@dataclass(slots=True)
class Family:
    """What the tokens of a family say together."""

    live: bool = False
    """Whether one of them lets somebody in."""
    ends: datetime | None = None
    """When the last of them ends that does; None for never."""
    standing: set[int] = field(default_factory=set)
    """Those that are there and were not revoked; their time may be over."""

    def add(self, row: AccessToken) -> None:
        """Take one that lets somebody in."""
        endless = row.expires is None or (self.live and self.ends is None)
        self.ends = None if endless else max(filter(None, (self.ends, row.expires)))
        self.live = True


def _families(names: list[str]) -> dict[str, Family]:
    """Return what each of these families is good for now; blocks."""
    now = timezone.now()
    found = {name: Family() for name in names}
    rows = list(AccessToken.objects.of_families(names))
    users = active_users({row.user_id for row in rows})
    for row in rows:
        if row.revoked is None:
            found[row.family].standing.add(row.pk)
        if not row.has_ended(now) and row.user_id in users:
            found[row.family].add(row)
    return found


def _lost(users: frozenset[str]) -> set[str]:
    """Return those of these users who may not log in any more; blocks."""
    return set(users) - {str(each) for each in active_users(users)}


def _read(name: str) -> Found | None:
    row = AccessToken.objects.filter(digest=name).first()
    if row is None:
        return None
    user = active_users({row.user_id}).get(row.user_id)
    scope = Scope(read_only=row.may != AccessToken.May.CHANGE, tags=row.tag_names)
    slugs = frozenset(row.servers.values_list("slug", flat=True))
    return Found(
        pk=row.pk,
        principal=Principal(
            kind=KIND,
            user_id=str(row.user_id),
            user_name="" if user is None else user.get_username(),
            client=row.family,
            scope=scope if scope != Scope() else None,
        ),
        servers=None if row.everywhere else slugs,
        networks=row.network_list(),
        ends=row.expires,
        revoked=row.revoked is not None,
        active=user is not None,
    )
