"""The servers with their addresses, for the home page: one query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from mcp_app.admin.access.ways_in import method_label
from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.header import LOOKS, page_url
from mcp_app.auth.resources import server_url
from mcp_app.interface.labels import Label
from mcp_app.models import Server, State
from mcp_app.models.stops import row_is_held

MOST: Final = 20
"""Servers that the page shows."""
PAGES: Final[Mapping[str, Label]] = {
    "seen": gettext_lazy("What clients see"),
    "connect": gettext_lazy("Connect"),
    "check": gettext_lazy("Check"),
}
"""The pages of a server that its line links to: the end of the URL's name."""


@dataclass(frozen=True, slots=True)
class ServerLine:
    """A server; `ways` are the labels of the methods to sign in.

    `links` are its other pages, with their URLs.
    """

    name: str
    slug: str
    url: str
    address: str
    state: State
    ways: str
    links: Sequence[tuple[Label, str]]

    @property
    def look(self) -> str:
        return LOOKS[self.state]


def server_lines(request: HttpRequest) -> list[ServerLine]:
    """Return the servers that the user may see, at most one more than are shown."""
    if not request.user.has_perm("mcp_app.view_server"):
        return []
    return list(_lines(request))


def _lines(request: HttpRequest) -> Iterator[ServerLine]:
    is_held = row_is_held(stop_banner.stops_on(request))
    rows = Server.objects.select_related("published").defer("published__content")
    for row in rows.order_by("pk")[: MOST + 1]:
        state = State.STOPPED if is_held(row) else row.state
        yield ServerLine(
            name=str(row),
            slug=row.slug,
            url=page_url(row, "change"),
            address=server_url(row.slug, request.build_absolute_uri("/")),
            state=state,
            ways=", ".join(map(method_label, row.access_names)),
            links=list(_links(row)),
        )


def _links(row: Server) -> Iterator[tuple[Label, str]]:
    for page, label in PAGES.items():
        yield label, page_url(row, page)
