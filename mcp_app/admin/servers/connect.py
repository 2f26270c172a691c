"""The page *Connect* of a server: a client's steps, a token, and whether it works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import urlencode, urlsplit

from django.forms.widgets import Media, Script
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.debug import sensitive_variables

from mcp_app.account import token_issuance
from mcp_app.account.client_configs import CLIENTS, Guide, connection_guide
from mcp_app.account.forms import USUAL_DAYS, ServerTokenForm
from mcp_app.account.presentation import (
    counts_of_text,
    counts_text,
    first_contact,
    lets_sign_in,
    own_token,
    refusal_counts,
)
from mcp_app.account.token_issuance import AlreadyShown
from mcp_app.account.views import forbid_caching
from mcp_app.admin.access.conditions import method_label
from mcp_app.admin.access.sentences import describe_people, join_required
from mcp_app.admin.page.broken_rows import reports_on
from mcp_app.admin.page.concurrency import PageViews
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import PAGE_MEDIA, render_part, row_page_context
from mcp_app.admin.page.keys import primary_key_of
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing.pages import PublishedAdmin, author_of
from mcp_app.audit.turned_away import Reason
from mcp_app.auth.authenticators import token_names
from mcp_app.auth.permissions import holder_by_token
from mcp_app.auth.resources import server_url
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import demands_of
from mcp_app.interface.definitions import Label
from mcp_app.interface.server import PUBLIC
from mcp_app.models import AccessToken, Server
from mcp_app.models.fields import DEMANDS
from mcp_app.models.tokens import Secret
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.site_time import time_html

# -- refusal words ---------------------------------------------------------------------
# Why requests were refused, in two or three words each.

_WORDS: Final[Mapping[str, Label]] = {
    Reason.HOST: gettext_lazy("wrong host"),
    Reason.ORIGIN: gettext_lazy("wrong origin"),
    Reason.NOBODY: gettext_lazy("no token"),
    Reason.CREDENTIALS: gettext_lazy("a token that is not accepted"),
    Reason.SERVER: gettext_lazy("no such server"),
    Reason.SESSION: gettext_lazy("no such session"),
    Reason.METHOD: gettext_lazy("wrong method"),
    Reason.ACCEPT: gettext_lazy("does not accept our answers"),
    Reason.CONTENT_TYPE: gettext_lazy("wrong content type"),
    Reason.SLOW: gettext_lazy("too slow"),
    Reason.BODY: gettext_lazy("too large"),
    Reason.HEADERS_SIZE: gettext_lazy("headers too large"),
    Reason.HEADERS: gettext_lazy("wrong headers"),
    Reason.VERSION: gettext_lazy("unknown version"),
    Reason.JSON: gettext_lazy("no JSON"),
    Reason.MESSAGE: gettext_lazy("wrong message"),
    Reason.TOO_MANY: gettext_lazy("too many at once"),
    Reason.UNAVAILABLE: gettext_lazy("not available"),
    Reason.FAILED: gettext_lazy("the server failed"),
    Reason.OTHER: gettext_lazy("another reason"),
}


# -- connect ---------------------------------------------------------------------------

CONNECT_MEDIA: Final = Media(
    js=[Script("mcp_app/copy.js", defer=True)]  # type: ignore[list-item]
)
"""Add this to `PAGE_MEDIA` in a request: at import, static files may be missing."""
CONTACT: Final = "contact"
"""The part that the page reloads while it waits for the client."""

Row = TypeVar("Row", bound=Server)


class ConnectPages(PublishedAdmin[Row]):
    """The page that connects a client to a server."""

    def page_views(self) -> PageViews:
        page = {"<path:object_id>/connect/": ("connect", self.connect_view)}
        return {**page, **super().page_views()}

    @redirect_missing_row
    @sensitive_variables()
    def connect_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show how a client is connected; on POST make a token and show it once."""
        place = Place(request, self._find_row(request, object_id))
        if request.GET.get("part") == CONTACT:
            return self._contact_part(place)
        if request.method != "POST":
            return self._connect_page(place, place.waiting_context())
        if place.needs_sign_in or place.hindrance:
            # The server, or the user's rights, changed after the form was shown.
            return self._connect_page(place, {}, status=HTTPStatus.FORBIDDEN)
        form = ServerTokenForm(request.POST)
        if not form.is_valid():
            return self._connect_page(place, {"form": form})
        user = author_of(request)
        try:
            row, token = token_issuance.issue_token(
                user,
                idempotency_key=form.idempotency_key(user),
                **form.token_arguments(user, place.server),
            )
        except AlreadyShown as already:
            waiting = place.waiting_context(str(already.row.pk))
            return self._connect_page(place, {**waiting, "said": str(already)})
        before = refusal_counts(reports_on(request), row.created)
        return self._connect_page(place, place.waiting_for(row, before), token)

    def _contact_part(self, place: Place) -> HttpResponse:
        """Return only the part about the token's use, for the script of the page."""
        context = place.waiting_context()
        if not context:
            raise Http404(_("This access token does not exist any more."))
        response = render_part(place.request, "connect_contact", context)
        forbid_caching(response)
        return response

    @sensitive_variables()
    def _connect_page(
        self,
        place: Place,
        context: Mapping[str, Any],
        token: str = "",
        *,
        status: int = HTTPStatus.OK,
    ) -> HttpResponse:
        """Render the page at once, and forbid caches to store it."""
        request, server, chosen = place.request, place.server, place.client
        vars(request)["current_app"] = self.admin_site.name
        values = {
            **row_page_context(self, request, server, "connect"),
            "media": PAGE_MEDIA + CONNECT_MEDIA,
            "title": _("Connect a client"),
            "address": place.url,
            "clients": [
                {"url": f"?client={key}", "title": each.title, "current": key == chosen}
                for key, each in CLIENTS.items()
            ],
            "guide": place.client_guide(token),
            "token": Secret(token),
            "place": place,
            "days": USUAL_DAYS,
            "updated": now(),
            **context,
        }
        if not context and not place.hindrance:
            title = CLIENTS[chosen].title
            values["form"] = ServerTokenForm(initial={"name": title})
        response = render(request, "admin/mcp_app/connect.html", values, status=status)
        forbid_caching(response)
        return response


class Place:
    """A server, and the request of a user who wants to connect a client."""

    def __init__(self, request: HttpRequest, server: Server) -> None:
        self.request = request
        self.server = server
        self.site = request.build_absolute_uri("/").rstrip("/")
        self.url = server_url(server.slug, self.site)
        client_key = request.GET.get("client", "")
        self.client = client_key if client_key in CLIENTS else next(iter(CLIENTS))

    @property
    def needs_sign_in(self) -> bool:
        """Whether the client signs in, and cannot use a token."""
        return CLIENTS[self.client].signs_in

    @property
    def is_public(self) -> bool:
        return self.server.access_names == (PUBLIC,)

    @property
    def takes_token(self) -> bool:
        """Whether the server accepts access tokens of this site."""
        return not token_names().isdisjoint(self.server.access_names)

    @cached_property
    def signs_in(self) -> bool:
        """Whether programs can sign in."""
        return lets_sign_in(self.server, self.site)

    @property
    def is_local(self) -> bool:
        """Whether only this computer can reach the address."""
        return is_loopback_host(urlsplit(self.url).hostname)

    @cached_property
    def hindrance(self) -> str:
        """Why no token is made here for this user; "" if one may be."""
        if self.is_public:
            return _("This server is public: it needs no token.")
        if not self.takes_token:
            ways = join_required(map(method_label, self.server.access_names))
            if not ways:
                return _("This server lets nobody in.")
            sentence = _("This server takes no access tokens. It takes: %(ways)s.")
            return sentence % {"ways": ways}
        demands = demands_of({name: getattr(self.server, name) for name in DEMANDS})
        holder = holder_by_token(author_of(self.request), self.server.slug, mcp.rules)
        if holder.meets_demands(demands):
            return ""
        who = describe_people(demands.permissions, demands.groups)
        if demands.rules:
            who = _("%(who)s whom a rule in code admits") % {"who": who}
        sentence = _("You may not use this server yourself: it lets in %(who)s.")
        return sentence % {"who": who}

    def client_guide(self, token: str) -> Guide:
        slug, takes = self.server.slug, self.takes_token
        return connection_guide(
            self.client, slug, self.url, token=token, takes_token=takes
        )

    def waiting_context(self, token: str = "") -> dict[str, Any]:
        """Return the context about a token's use, by default of the token in the URL.

        Return {} if the user has no such token.
        """
        query = self.request.GET
        key = primary_key_of(AccessToken, token or query.get("token", ""))
        user = author_of(self.request)
        row = None if key is None else own_token(user, key, self.server.slug)
        if row is None:
            return {}
        return self.waiting_for(row, counts_of_text(query.get("before", "")))

    def waiting_for(self, row: AccessToken, before: Counter[str]) -> dict[str, Any]:
        """Return the context: the token's use, and the refusals beyond `before`."""
        refused = refusal_counts(reports_on(self.request), row.created) - before
        parameters = {"token": row.pk, "before": counts_text(before)}
        query = f"?{urlencode({'client': self.client, **parameters})}"
        contact, came = first_contact(row), _("Something came in with this token: {}.")
        return {
            "made": row,
            "contact": contact,
            "came": format_html(came, time_html(contact.used)) if contact.used else "",
            "refused": refused_sentence(refused),
            "refused_url": has_right(self.request, "view_call")
            and reverse("admin:mcp_app_call_refused"),
            "refresh": query,
            "part": f"{query}&part={CONTACT}",
        }


def refused_sentence(refused: Mapping[str, int]) -> str:
    """Say how many requests were refused, and why; "" for none."""
    count = sum(refused.values())
    if not count:
        return ""
    order = sorted(refused, key=lambda reason: (-refused[reason], reason))
    # Processes of another release may know more reasons.
    words = [str(_WORDS.get(each, _WORDS[Reason.OTHER])) for each in order]
    if len(words) > 1:
        pairs = zip(words, order, strict=True)
        words = [f"{word} ({refused[each]})" for word, each in pairs]
    return ngettext(
        "Meanwhile %(count)d request was refused: %(reasons)s.",
        "Meanwhile %(count)d requests were refused: %(reasons)s.",
        count,
    ) % {"count": count, "reasons": ", ".join(words)}
