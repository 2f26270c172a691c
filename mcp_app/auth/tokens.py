"""Access tokens: `Authorization: Bearer mcp_…` (RFC 6750), looked up by their digest.

What is found is kept as long as no right and no token changes, at most for half a
minute; what is not found is asked for each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from mcp_app.auth.addresses import client_address, within
from mcp_app.auth.permissions import HARD_AGE, KEPT, active_users
from mcp_app.conf import mcp_settings
from mcp_app.interface.principal import (
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

SCHEME = "bearer"
KIND = "access-token"
"""The kind of principals whose `client` is the family of a token."""
RECENTLY = timedelta(seconds=10)
"""Whatever a revoked token has open is ended within that time."""


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
        if self.revoked:
            return "This access token was revoked."
        if self.ends is not None and self.ends <= timezone.now():
            return "This access token has expired."
        if not self.active:
            return "The user of this access token may not log in."
        if self.servers is not None and request.server not in self.servers:
            return "This access token is not for this server."
        if self.networks and not self._is_near(request):
            return "This access token is not good from this address."
        return None

    def _is_near(self, request: AuthenticationRequest) -> bool:
        forwarded = request.headers.get(b"x-forwarded-for")
        trusted = mcp_settings.trusted_proxies
        address = client_address(request.peer, forwarded, trusted)
        return address is not None and within(address, self.networks)


class Tokens:
    """Tokens that were shown to this process; used on the loop only."""

    def __init__(self) -> None:
        self.generation = 0
        """It goes up where a token may have ended that was looked at before."""
        self._kept: dict[str, tuple[float, Found]] = {}
        self._used: set[int] = set()
        self._next_end: datetime | None = None
        self._unsure = False
        self._asked = time.monotonic()
        self._ended: set[int] = set()
        """Tokens that were revoked a moment ago, whose streams were ended."""

    async def find(self, name: str) -> Found | None:
        """Return what a token is good for, by its digest; None where there is none."""
        now = time.monotonic()
        keep = self._kept
        kept = keep.get(name)
        if kept is not None and now - kept[0] < HARD_AGE:
            return kept[1]
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
        self._ends(found.ends)

    def forget(self) -> None:
        """Read all tokens again at their next use."""
        # Another dict: what is being read at this moment must not be kept.
        self._kept = {}
        self.generation += 1
        self.doubt()

    def doubt(self) -> None:
        """Something began: its token may have ended since it was looked at."""
        self._unsure = True

    def _ends(self, end: datetime | None) -> None:
        if end is not None and (self._next_end is None or end < self._next_end):
            self._next_end = end

    @property
    def ending(self) -> bool:
        """Whether a token may have ended that somebody was let in by.

        So it is now and then, for what is changed behind our back.
        """
        if self._unsure or time.monotonic() - self._asked > HARD_AGE:
            return True
        return self._next_end is not None and self._next_end <= timezone.now()

    async def gone(self, keys: Iterable[str]) -> set[str]:
        """Return those keys of principals whose tokens let nobody in any more.

        A family is good as long as one of its tokens is.  Where one is revoked, whoever
        is open ends once: which of them came with it is not known, and the others come
        back.  Other principals need no token.
        """
        families = {
            client: key
            for key in keys
            for kind, _, client in [parts_of_key(key)]
            if kind == KIND
        }
        self._next_end, self._unsure = None, False
        self._asked = time.monotonic()
        try:
            found = await reader.run(_families, list(families)) if families else {}
        except BaseException:
            # Whoever asks has to ask again.
            self._unsure = True
            raise
        gone = {key for name, key in families.items() if not found[name].live}
        for name, family in found.items():
            if family.revoked - self._ended:
                gone.add(families[name])
            self._ends(family.ends)
            self._ended |= family.revoked
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
async def access_token(request: AuthenticationRequest) -> Principal | None:
    """Let in who shows an access token of this site; others pass by."""
    scheme, _, token = (request.headers.get(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != SCHEME or not token.startswith(BEGINNING):
        return None
    found = await tokens.find(digest(token))
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
    revoked: set[int] = field(default_factory=set)
    """Those that were revoked a moment ago."""

    def add(self, row: AccessToken, now: datetime) -> None:
        """Take one that is not over, but may have been revoked."""
        if row.revoked is not None:
            if row.revoked > now - RECENTLY:
                self.revoked.add(row.pk)
            return
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
        over = row.expires is not None and row.expires <= now
        if not over and row.user_id in users:
            found[row.family].add(row, now)
    return found


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
