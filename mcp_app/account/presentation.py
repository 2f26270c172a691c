"""Access tokens and connected apps in words: their state, and when they end."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Concat
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.account.client_configs import CLIENTS, command_line, server_name
from mcp_app.auth.authenticators import Unusable, authenticators_of, issuers_of
from mcp_app.auth.resources import server_url, site_origin
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rules import visible
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.models import AccessToken, Call, Connection, Server, Session
from mcp_app.models.call_rows import CallQuery
from mcp_app.models.calls import HOUR_S
from mcp_app.models.stops import is_stopped
from mcp_app.models.tokens import Secret
from mcp_app.models.workers import Report
from mcp_app.protocol.oauth.addresses import is_on_own_computer
from mcp_app.site_time import time_html

OWNER_STOPPED: Final[Label] = gettext_lazy("Stopped: its owner cannot log in.")
MAX_ADDRESSES: Final = 20


@dataclass(frozen=True, slots=True)
class State:
    """The state of a token; `look` is the CSS class of its mark."""

    look: str
    word: str
    sentence: str
    has_ended: bool = False


def token_state(row: AccessToken) -> State:
    """Return the state of a token or an app, and the reason if it is not good."""
    ended = row.revoked or row.expires
    if ended is not None and row.has_ended(timezone.now()):
        word, why = _end_reason(row)
        message = format_html("{} {}", why, time_html(ended))
        return State("stopped", word, message, has_ended=True)
    if not row.user.is_active:
        return State("bad", _("Stopped"), str(OWNER_STOPPED))
    if row.maker_id is not None:
        return State("", _("Offered"), _("Nobody has used its link yet."))
    if not row.is_app:
        return State("good", _("Good"), _("A program with this token can connect."))
    if not row.connection.code_used:
        waits = _("The program has not finished signing in.")
        return State("stopped", _("Signing in"), waits)
    return State("good", _("Good"), _("This program can connect."))


def _end_reason(row: AccessToken) -> tuple[str, str]:
    """Return the word and the reason for a token or an app that has ended."""
    if not row.is_app and row.revoked is not None:
        return _("Revoked"), _("Revoked:")
    if not row.is_app:
        return _("Expired"), _("Expired:")
    connection, why = row.connection, _("It was not used for too long.")
    if row.revoked is not None:
        why = connection.get_ended_display() or _("It was ended.")
        if connection.ended in (Connection.Ended.CODE, Connection.Ended.REFRESH):
            why = _("Its sign-in was used twice. Somebody else may have had it.")
    elif not connection.code_used:
        why = _("It did not finish signing in.")
    elif connection.until is not None and connection.until <= timezone.now():
        why = _("Its time is over.")
    return _("Ended"), why


def end_or_reason(row: AccessToken) -> str:
    """Return when a token ends, or why it cannot be used now."""
    state = token_state(row)
    if state.look != "good":
        return state.sentence
    return _("never") if row.expires is None else time_html(row.expires)


def end_words(row: AccessToken) -> str:
    """Return the message after a token was revoked or an app was ended."""
    message = _("Deleted: “%(token)s” lets nobody in any more.")
    if row.is_app:
        message = _("Ended: “%(token)s” lets nobody in any more.")
    return message % {"token": row}


def last_use_of(row: AccessToken) -> str:
    return _("never") if row.used is None else time_html(row.used)


def servers_of(row: AccessToken) -> str:
    """Return the names of the servers that accept a token."""
    if row.everywhere:
        return _("all")
    return ", ".join(map(str, row.servers.all())) or _("none: its servers were deleted")


def begins_of(row: AccessToken) -> SafeString:
    return format_html("<code>{}</code>", row.handle)


def open_servers() -> QuerySet[Server]:
    """Return the servers that users see: published, not stopped, open to somebody."""
    rows = Server.objects.filter(~is_stopped(Server), published__isnull=False)
    return rows.exclude(access="").defer("published__content")


def open_server(slug: str | None) -> Server | None:
    """Return the open server of this slug, None if there is none."""
    return open_servers().filter(slug=slug or "").first()


def reveal_token(
    request: HttpRequest, row: AccessToken, token: Secret
) -> dict[str, Any]:
    """Return what a page shows once: a token, with the configurations to use it.

    `line` adds the server to Claude Code.  `others` are the addresses of other servers
    that accept the token.  If the server `is_public`, it needs no token.
    """
    rows = open_servers()
    if not row.everywhere:
        rows = rows.filter(pk__in=row.servers.values("pk"))
    servers = list(rows)
    # The default server comes first, if it is open.
    servers.sort(key=lambda each: each.slug != DEFAULT_SLUG)
    first = servers[0] if servers else None
    slug = DEFAULT_SLUG if first is None else first.slug
    site = request.build_absolute_uri("/")
    url, name = server_url(slug, site), server_name(slug)
    other_urls = [server_url(server.slug, site) for server in servers[1:]]
    return {
        "row": row,
        "token": token,
        "url": url,
        "line": Secret(command_line(name, url, token)),
        "header": Secret(f"Authorization: Bearer {token}"),
        "files": [_client_paste(key, name, url, token) for key in CLIENTS],
        "others": other_urls[:MAX_ADDRESSES],
        "issuer": site_origin(request.scheme or "", request.get_host()),
        "is_public": first is not None and first.access_names == (PUBLIC,),
    }


def _client_paste(key: str, name: str, url: str, token: str) -> dict[str, str]:
    """Return the configuration to paste into a client."""
    client = CLIENTS[key]
    place = client.place_for_people
    paste = {"key": key, "title": client.title, "place": place, "note": ""}
    if client.signs_in:
        note = _("This program takes no token. Give it the address, and sign in.")
        paste["note"] = note
    return {**paste, "text": Secret(client.http_text(name, url, token=token))}


def lets_sign_in(server: Server, site: str = "") -> bool:
    """Return whether programs can sign in to use a server, here or elsewhere.

    `site` is the origin of the request (scheme and host); only development uses it.
    """
    scheme, _colon, host = site.partition("://")
    try:
        ways = authenticators_of(server.access_names)
    except Unusable:
        return False
    return bool(issuers_of(ways or (), site_origin(scheme, host) or ""))


# -- connected apps --------------------------------------------------------------------

DAYS: Final = 30
DAY_MS: Final = 86_400_000
MAX_CALLS: Final = 10_000
"""How many of a user's newest calls are counted."""


def program_host(connection: Connection) -> str:
    """Return the place of a program, as far as it is proved."""
    if connection.issuer:
        return _("let in by %(company)s") % {"company": connection.issuer}
    if is_on_own_computer(connection.redirect_uri):
        return _("a program on this computer")
    return connection.client_host or connection.redirect_host


def identity_claim(connection: Connection) -> str:
    """Return how well it is proved which program this is."""
    if connection.issuer:
        return _("This company let it in, not you. End it, and it stays out.")
    if not connection.client_host:
        return _("It gave itself its name. Nobody has checked that.")
    values = {"host": connection.client_host}
    if is_on_own_computer(connection.redirect_uri):
        return _("It says that it is of %(host)s. Nobody can check that.") % values
    return _("It is known by a document of %(host)s.") % values


def permission_words(may: str) -> str:
    """Return the rights of a program, or those that it asked for, in words."""
    if may == AccessToken.May.CHANGE:
        return _("look things up and change them")
    return _("only look things up")


def until_words(connection: Connection) -> str:
    """Return in words when an app ends by its owner's choice."""
    return _("never") if connection.until is None else time_html(connection.until)


@dataclass(frozen=True, slots=True)
class Calls:
    """How many calls a user made lately, by token family; `cut` if some are missing."""

    counts: Mapping[str, int]
    cut: bool

    def count_words(self, row: AccessToken) -> str:
        digits = f"{self.counts.get(row.family, 0):,}"
        return _("%(count)s or more") % {"count": digits} if self.cut else digits


NO_CALLS: Final = Calls({}, cut=False)


def recent_calls_of(user: AbstractBaseUser) -> Calls:
    """Count the calls of a user in the last 30 days, with one statement."""
    since = int(time.time() * 1_000) - DAYS * DAY_MS
    sought = CallQuery(since, ways=[("user_name", "=", user.get_username())])
    counts = Counter[str]()
    for each in Call.objects.clients(sought, MAX_CALLS):
        counts[each.principal_client] += each.calls
    return Calls(counts, counts.total() >= MAX_CALLS)


def ended_words(count: int) -> str:
    """Return the message after this many apps were ended."""
    message = ngettext(
        "Ended: %d connected app lets nobody in any more.",
        "Ended: %d connected apps let nobody in any more.",
        count,
    )
    return message % count


# -- first contact ---------------------------------------------------------------------
# What arrived after a token was made: its first use, and refusals meanwhile.

COUNTED: Final = re.compile(r"([a-z_]{1,20})\.([0-9]{1,9})")
"""A reason and its count, as `counts_text` writes them."""
MAX_REASONS: Final = 40
MARGIN_MS: Final = 60_000
"""How far the clock of the database may be behind that of this process."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What is known of the first use of a token; `used` is None before it.

    `client` and `revision` are "" if neither a session nor a call names them.
    """

    used: datetime | None
    client: str = ""
    revision: str = ""


def own_token(user: AbstractBaseUser, key: object, slug: str) -> AccessToken | None:
    """Return a user's token with data of its newest session at a server; one query.

    None if the user has no such token.
    """
    principal = Principal(kind=ACCESS_TOKEN, user_id=str(user.pk))
    of_token = Concat(Value(principal.key), OuterRef("family"))
    sessions = Session.objects.filter(principal_key=of_token, server=slug)
    newest = sessions.order_by("-seen_ms", "-pk")
    rows = AccessToken.objects.filter(pk=key, user=user.pk, connection=None)  # type: ignore[misc]
    with_session = rows.select_related("user").annotate(
        session_client=Subquery(newest.values("client_info")[:1]),
        session_revision=Subquery(newest.values("revision")[:1]),
    )
    return with_session.first()


def first_contact(row: AccessToken) -> Contact:
    """Return the first use of a token that `own_token` has found; one query."""
    annotated: Any = row
    if row.used is None:
        return Contact(None)
    if (revision := annotated.session_revision) is not None:
        session = Session(client_info=annotated.session_client, revision=revision)
        return Contact(row.used, visible(session.client_name), revision)
    sought = CallQuery(
        int(row.created.timestamp() * 1_000) - MARGIN_MS,
        ways=[("user_name", "=", row.user.get_username())],
        conditions=[("principal_client", "=", row.family)],
    )
    for call in Call.objects.page(sought, 1):
        name = f"{call.client_name} {call.client_version}".strip()
        return Contact(row.used, visible(name), call.revision)
    return Contact(row.used)


def refusal_counts(reports: Iterable[Report], since: datetime) -> Counter[str]:
    """Count refused requests by reason, from the start of the hour of `since`.

    Processes count by the hour.  A caller subtracts the counts that it noted at the
    moment `since`.
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
    """Return the counts in a text; parts that cannot be read are left out."""
    parts = text.split("-", MAX_REASONS)[:MAX_REASONS]
    matches = filter(None, map(COUNTED.fullmatch, parts))
    return Counter({each[1]: int(each[2]) for each in matches})
