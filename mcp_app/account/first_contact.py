"""What came in since a token was made: its first use, and refusals meanwhile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import OuterRef, Subquery, Value
from django.db.models.functions import Concat

from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Call, Session
from mcp_app.models.call_pages import CallQuery
from mcp_app.models.calls import HOUR_S
from mcp_app.models.workers import Report

COUNTED: Final = re.compile(r"([a-z_]{1,20})\.([0-9]{1,9})")
MOST_REASONS: Final = 40
MARGIN_MS: Final = 60_000
"""How far the clock of the database may be behind that of this process."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What came in: `used` is None before the first use.

    `client` and `revision` are "" if neither a session nor a call names them.
    """

    used: datetime | None
    client: str = ""
    revision: str = ""


def own_token(user: AbstractBaseUser, key: object, slug: str) -> AccessToken | None:
    """Return a user's token, with what its newest session at a server says; one query.

    None for what is no token of theirs.
    """
    principal = Principal(kind=ACCESS_TOKEN, user_id=str(user.pk))
    of_token = Concat(Value(principal.key), OuterRef("family"))
    sessions = Session.objects.filter(principal_key=of_token, server=slug)
    newest = sessions.order_by("-seen_ms", "-pk")
    rows = AccessToken.objects.filter(pk=key, user=user.pk, connection=None)  # type: ignore[misc]
    return (
        rows.select_related("user")
        .annotate(
            session_client=Subquery(newest.values("client_info")[:1]),
            session_revision=Subquery(newest.values("revision")[:1]),
        )
        .first()
    )


def first_contact(row: AccessToken) -> Contact:
    """Return what came in with a token, which `own_token` has found; one query."""
    if row.used is None:
        return Contact(None)
    named = _session(row) or _call(row)
    return Contact(row.used, *named) if named else Contact(row.used)


def _session(row: Any) -> tuple[str, str] | None:
    if row.session_revision is None:
        return None
    session = Session(client_info=row.session_client, revision=row.session_revision)
    return visible(session.client_name), session.revision


def _call(row: AccessToken) -> tuple[str, str] | None:
    sought = CallQuery(
        int(row.created.timestamp() * 1_000) - MARGIN_MS,
        ways=[("user_name", "=", row.user.get_username())],
        rest=[("principal_client", "=", row.family)],
    )
    for found in Call.objects.page(sought, 1):
        name = f"{found.client_name} {found.client_version}".strip()
        return visible(name), found.revision
    return None


def refusals(reports: Iterable[Report], since: datetime) -> Counter[str]:
    """Count refused requests by reason since the hour of a moment began.

    Processes count by the hour.  What they counted before that moment in its hour is
    subtracted by whoever noted it then.
    """
    hour_ms = int(since.timestamp()) // HOUR_S * HOUR_S * 1_000
    counts: Counter[str] = Counter()
    for report in reports:
        for at_ms, reason, _client, count in report.refused:
            if at_ms >= hour_ms:
                counts[reason] += count
    return counts


def counts_text(counts: Mapping[str, int]) -> str:
    """Return counts as a text for a URL."""
    return "-".join(f"{reason}.{counts[reason]}" for reason in sorted(counts))


def counts_of_text(text: str) -> Counter[str]:
    """Return the counts that a text says; what cannot be read counts as nothing."""
    parts = text.split("-", MOST_REASONS)[:MOST_REASONS]
    found = filter(None, map(COUNTED.fullmatch, parts))
    return Counter({each[1]: int(each[2]) for each in found})
