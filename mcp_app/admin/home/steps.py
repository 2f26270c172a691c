"""How to begin: four steps, ticked by what is there; nothing is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext as _

from mcp_app.admin.home.servers import MOST, ServerLine
from mcp_app.admin.page.rights import whom_to_ask, you_can_ask
from mcp_app.catalog.registry import Registry
from mcp_app.interface.server import PUBLIC
from mcp_app.kinds.survey import declarations
from mcp_app.models import AccessToken, Call, Server, Session, Tool
from mcp_app.models.definitions import Source

AT_MOST: Final = 100
"""Servers that are looked at."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `lacking` says which permission its link needs, and whom to ask."""

    title: str
    text: str
    is_done: bool
    url: str = ""
    link: str = ""
    lacking: str = ""


def steps(
    request: HttpRequest, registry: Registry, servers: Sequence[ServerLine]
) -> list[Step]:
    """Return the four steps; at most six queries."""
    return [
        _look(request, registry),
        _make(request),
        _let_in(request, servers),
        _connect(servers),
    ]


def _look(request: HttpRequest, registry: Registry) -> Step:
    count = sum(len(declared) for declared in declarations(registry).values())
    title = _("See what your code offers")
    if not count:
        text = _(
            "Nothing yet. A developer writes a function in a file mcp.py of an app:"
            " from mcp_app import mcp, and @mcp.tool above the function."
        )
        return Step(title, text, is_done=False)
    text = _("Developers declare tools, resources and prompts in Python.")
    if not request.user.has_perm("mcp_app.view_tool"):
        lacking = _needs(request, "view_tool", _("Can view tool"))
        return Step(title, text, is_done=True, lacking=lacking)
    url = reverse("admin:mcp_app_tool_changelist") + f"?source__exact={Source.CODE}"
    return Step(title, text, True, url, _("Tools from code"))


def _make(request: HttpRequest) -> Step:
    made = Tool.objects.filter(source=Source.HERE, published__isnull=False)
    title = _("Make a tool without code")
    text = _(
        "A tool answers a question of an AI client, for example with your opening"
        " hours. Write it, look at it, publish it: clients see it at once."
    )
    is_done = made.exists()
    if not request.user.has_perm("mcp_app.add_tool"):
        lacking = _needs(request, "add_tool", _("Can add tool"))
        return Step(title, text, is_done, lacking=lacking)
    url, link = reverse("admin:mcp_app_tool_add"), _("Add a tool")
    return Step(title, text, is_done, url, link, whom_to_ask(request, "publish"))


def _needs(request: HttpRequest, permission: str, label: str) -> str:
    needed = _("This needs the right “%(right)s”.") % {"right": label}
    return f"{needed} {you_can_ask(request, permission)}".strip()


def _let_in(request: HttpRequest, servers: Sequence[ServerLine]) -> Step:
    usable = AccessToken.objects.filter(
        Q(expires=None) | Q(expires__gt=now()), revoked=None
    )
    is_open = any(each.is_public for each in servers)
    if not is_open and not _sees_all(request, servers):
        is_open = _is_public()
    return Step(
        _("Let somebody in"),
        _(
            "An access token lets one program connect as you. A public server needs"
            " none."
        ),
        is_open or usable.exists(),
        reverse("admin:mcp_app_accesstoken_add"),
        _("Make an access token"),
    )


def _sees_all(request: HttpRequest, servers: Sequence[ServerLine]) -> bool:
    return len(servers) <= MOST and request.user.has_perm("mcp_app.view_server")


def _is_public() -> bool:
    """Whether a published server is public, whoever may see it."""
    rows = Server.objects.filter(published__isnull=False, access__contains=PUBLIC)
    return any(PUBLIC in row.access_names for row in rows.only("access")[:AT_MOST])


def _connect(servers: Sequence[ServerLine]) -> Step:
    title = _("Connect a client")
    text = _(
        "Claude, ChatGPT, Cursor, VS Code and others ask for the address of a server,"
        " and for the token."
    )
    is_done = Session.objects.exists() or Call.objects.exists()
    if servers:
        return Step(title, text, is_done, "#mcp-servers", _("Copy the address"))
    url = reverse("admin:mcp_app_accesstoken_add")
    link = _("Make a token: its page shows the address")
    return Step(title, text, is_done, url, link)
