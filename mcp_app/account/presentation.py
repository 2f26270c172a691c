"""Access tokens in words: their state, their servers, and when they end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format, time_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account.addresses import server_name
from mcp_app.account.client_configs import CLIENTS, command_line
from mcp_app.auth.authenticators import Unusable, authenticators_of, issuers_of
from mcp_app.auth.resources import server_url, site_origin
from mcp_app.interface.labels import Label
from mcp_app.interface.server import DEFAULT_SLUG, PUBLIC
from mcp_app.models import AccessToken, Connection, Server
from mcp_app.models.stops import is_stopped
from mcp_app.models.tokens import Secret
from mcp_app.site_time import local_date, local_time

STOPPED: Final[Label] = gettext_lazy("Stopped: its owner cannot log in.")
MOST_ADDRESSES: Final = 20


@dataclass(frozen=True, slots=True)
class State:
    """The state of a token; `look` is the CSS class of its mark."""

    look: str
    word: str
    sentence: str
    has_ended: bool = False


def state_of(row: AccessToken) -> State:
    """Return the state of a token or an app, and the reason if it is not good."""
    if row.is_app:
        return _state_of_app(row)
    if row.revoked is not None:
        said = format_html(_("Revoked: {}"), when(row.revoked))
        return State("stopped", _("Revoked"), said, has_ended=True)
    if row.expires is not None and row.expires <= timezone.now():
        said = format_html(_("Expired: {}"), when(row.expires))
        return State("stopped", _("Expired"), said, has_ended=True)
    if not row.user.is_active:
        return State("bad", _("Stopped"), str(STOPPED))
    return State("good", _("Good"), _("A program with this token can connect."))


def _state_of_app(row: AccessToken) -> State:
    connection = row.connection
    if row.revoked is not None:
        said = format_html("{} {}", _why_ended(connection), when(row.revoked))
        return State("stopped", _("Ended"), said, has_ended=True)
    if row.expires is not None and row.expires <= timezone.now():
        said = format_html("{} {}", _why_over(connection), when(row.expires))
        return State("stopped", _("Ended"), said, has_ended=True)
    if not row.user.is_active:
        return State("bad", _("Stopped"), str(STOPPED))
    if not connection.code_used:
        waits = _("The program has not finished signing in.")
        return State("stopped", _("Signing in"), waits)
    return State("good", _("Good"), _("This program can connect."))


def _why_ended(connection: Connection) -> str:
    ended = Connection.Ended
    if connection.ended in (ended.CODE, ended.REFRESH):
        return _("Its sign-in was used twice. Somebody else may have had it.")
    return connection.get_ended_display() or _("It was ended.")


def _why_over(connection: Connection) -> str:
    if not connection.code_used:
        return _("It did not finish signing in.")
    if connection.until is not None and connection.until <= timezone.now():
        return _("Its time is over.")
    return _("It was not used for too long.")


def when(at: datetime) -> SafeString:
    """Format a moment as HTML: the time if it is today, else the date."""
    local = local_time(at)
    today = local.date() == local_date()
    short = time_format(local, "H:i") if today else date_format(local, "DATE_FORMAT")
    exact = date_format(local, "Y-m-d H:i:s T")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, short
    )


def ends_of(row: AccessToken) -> str:
    """Return when a token ends, or why it is not good now."""
    state = state_of(row)
    if state.look != "good":
        return state.sentence
    return _("never") if row.expires is None else when(row.expires)


def end_words(row: AccessToken) -> str:
    """Return what is said once a token was revoked, or an app ended."""
    said = _("Deleted: “%(token)s” lets nobody in any more.")
    if row.is_app:
        said = _("Ended: “%(token)s” lets nobody in any more.")
    return said % {"token": row}


def last_use_of(row: AccessToken) -> str:
    return _("never") if row.used is None else when(row.used)


def servers_of(row: AccessToken) -> str:
    """Return the names of the servers that accept a token."""
    if row.everywhere:
        return _("all")
    names = ", ".join(map(str, row.servers.all()))
    return names or _("none: its servers were deleted")


def begins_of(row: AccessToken) -> SafeString:
    if row.is_app:
        return format_html("<code>{}</code>", row.prefix)
    return format_html("<code>{}…</code>", row.prefix)


@dataclass(frozen=True, slots=True)
class Paste:
    """The configuration to paste into a client; `text` may contain the token."""

    key: str
    title: str
    place: str
    text: Secret
    note: str = ""


@dataclass(frozen=True, slots=True)
class RevealedToken:
    """What the page shows once, when a token was made."""

    row: AccessToken
    token: Secret
    url: str
    line: Secret
    """The command line that adds the server to Claude Code."""
    header: Secret
    files: Sequence[Paste]
    others: Sequence[str]
    """The addresses of other servers that accept the token."""
    is_public: bool
    """Whether the server needs no token."""


def open_servers() -> QuerySet[Server]:
    """Return the servers that can be used now; users see no others."""
    rows = Server.objects.filter(~is_stopped(Server), published__isnull=False)
    return rows.exclude(access="").defer("published__content")


def open_server(slug: str | None) -> Server | None:
    """Return one of these, None where there is none."""
    return open_servers().filter(slug=slug or "").first()


def reveal(request: HttpRequest, row: AccessToken, token: Secret) -> RevealedToken:
    """Return a token with the configurations to use it."""
    rows = open_servers()
    if not row.everywhere:
        rows = rows.filter(pk__in=row.servers.values("pk"))
    servers = list(rows)
    first = _first(servers)
    slug = DEFAULT_SLUG if first is None else first.slug
    site = request.build_absolute_uri("/")
    url, name = server_url(slug, site), server_name(slug)
    others = [server_url(each.slug, site) for each in servers if each is not first]
    return RevealedToken(
        row=row,
        token=token,
        url=url,
        line=Secret(command_line(name, url, token)),
        header=Secret(f"Authorization: Bearer {token}"),
        files=[_paste(key, name, url, token) for key in CLIENTS],
        others=others[:MOST_ADDRESSES],
        is_public=first is not None and first.access_names == (PUBLIC,),
    )


def _first(servers: Sequence[Server]) -> Server | None:
    """Return the server to configure: the default one, if available."""
    chosen = [each for each in servers if each.slug == DEFAULT_SLUG]
    return next(iter([*chosen, *servers]), None)


def _paste(key: str, name: str, url: str, token: str) -> Paste:
    client = CLIENTS[key]
    note = ""
    if client.signs_in:
        note = _("This program takes no token. Give it the address, and sign in.")
    text = Secret(client.text(name, url, token=token))
    return Paste(key, client.title, client.place, text, note)


def lets_sign_in(server: Server, site: str = "") -> bool:
    """Return whether programs can sign in to use a server, here or elsewhere.

    `site` is the origin of the request (scheme and host); it counts in development.
    """
    scheme, _colon, host = site.partition("://")
    try:
        ways = authenticators_of(server.access_names)
    except Unusable:
        return False
    return bool(issuers_of(ways or (), site_origin(scheme, host) or ""))
