"""Access tokens: `Authorization: Bearer mcp_…` (RFC 6750), looked up by their digest.

What is found is kept as long as no right and no token changes, at most for half a
minute; what is not found is asked for each time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth import get_user_model
from django.db import Error as DatabaseError
from django.utils import timezone

from mcp_app.auth.addresses import Network, client_address, within
from mcp_app.auth.permissions import HARD_AGE, KEPT
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
from mcp_app.models.tokens import AT_ONCE, BEGINNING
from mcp_app.pools.database import reader, writer
from mcp_app.protocol.errors import Unavailable

SCHEME = "bearer"
KIND = "token"
"""The kind of principals whose `client` is the family of a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a token's row says, and whom it lets in."""

    pk: int
    principal: Principal
    servers: frozenset[str]
    """The slugs of those where it is good; none stands for all."""
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
        if self.servers and request.server not in self.servers:
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
        self._kept: dict[str, tuple[float, Found]] = {}
        self._used: set[int] = set()
        self._next_end: datetime | None = None
        self._unsure = False

    async def find(self, token: str) -> Found | None:
        """Return what a token is good for; None where there is no such token."""
        name = digest(token)
        now = time.monotonic()
        keep = self._kept
        kept = keep.get(name)
        if kept is not None and now - kept[0] < HARD_AGE:
            return kept[1]
        found = await reader.run(_read, token)
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
        self._unsure = True

    def _ends(self, end: datetime | None) -> None:
        if end is not None and (self._next_end is None or end < self._next_end):
            self._next_end = end

    @property
    def ending(self) -> bool:
        """Whether a token may have ended that somebody was let in by."""
        end = self._next_end
        return self._unsure or (end is not None and end <= timezone.now())

    async def gone(self, keys: Iterable[str]) -> set[str]:
        """Return those keys of principals whose tokens let nobody in any more.

        A family is good as long as one of its tokens is; other principals need none.
        """
        families = {
            client: key
            for key in keys
            for kind, _, client in [parts_of_key(key)]
            if kind == KIND
        }
        self._next_end, self._unsure = None, False
        try:
            live = await reader.run(_live, list(families)) if families else {}
        except (DatabaseError, Unavailable):
            # Whoever asks has to ask again.
            self._unsure = True
            raise
        for end in live.values():
            self._ends(end)
        return {key for family, key in families.items() if family not in live}

    async def write_uses(self) -> None:
        """Store which tokens were used since the last time."""
        used = frozenset(self._used)
        if used:
            await writer.run(AccessToken.objects.note_uses, used, timezone.now())
            self._used -= used


tokens = Tokens()
"""Those of this process."""


async def access_token(request: AuthenticationRequest) -> Principal | None:
    """Let in who shows an access token of this site; others pass by."""
    scheme, _, token = (request.headers.get(b"authorization") or "").partition(" ")
    token = token.strip()
    if scheme.lower() != SCHEME or not token.startswith(BEGINNING):
        return None
    found = await tokens.find(token)
    if found is None:
        raise AuthenticationFailed("There is no such access token.")
    if refusal := found.refusal(request):
        raise AuthenticationFailed(refusal)
    tokens.used(found)
    return found.principal


def _live(families: list[str]) -> dict[str, datetime | None]:
    """Return the families that still let somebody in, and when the last token ends."""
    now = timezone.now()
    live: dict[str, datetime | None] = {}
    for at in range(0, len(families), AT_ONCE):
        rows = AccessToken.objects.filter(family__in=families[at : at + AT_ONCE])
        # Where a column of a site's own users says it, Django does not know its name.
        for row in rows.filter(revoked=None).select_related("user").order_by("pk"):
            if row.user.is_active and not row.has_ended(now):
                ends = [live.get(row.family, row.expires), row.expires]
                live[row.family] = None if None in ends else max(filter(None, ends))
    return live


def _read(token: str) -> Found | None:
    row = AccessToken.objects.of(token).select_related("user").first()
    if row is None:
        return None
    user = row.user
    scope = Scope(read_only=row.may != AccessToken.May.CHANGE, tags=row.tag_names)
    return Found(
        pk=row.pk,
        principal=Principal(
            kind=KIND,
            user_id=str(user.pk),
            user_name=str(getattr(user, get_user_model().USERNAME_FIELD)),
            client=row.family,
            scope=scope if scope != Scope() else None,
        ),
        servers=frozenset(row.servers.values_list("slug", flat=True)),
        networks=row.network_list(),
        ends=row.expires,
        revoked=row.revoked is not None,
        active=bool(user.is_active),
    )
