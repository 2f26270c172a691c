"""How to begin: four steps, ticked by what is there; nothing is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from mcp_app.admin.home.servers import ServerLine
from mcp_app.admin.page.rights import whom_to_ask, you_can_ask
from mcp_app.catalog.registry import Registry
from mcp_app.kinds.survey import declarations
from mcp_app.models import Server, Tool
from mcp_app.models.definitions import Source
from mcp_app.workbench.overview import Overview


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `lacking` says which permission its link needs, and whom to ask."""

    title: str
    text: str
    is_done: bool
    url: str = ""
    link: str = ""
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Which of the four steps are done."""

    has_code: bool
    has_tool: bool
    lets_in: bool
    connected: bool

    @property
    def is_complete(self) -> bool:
        return self.has_code and self.has_tool and self.lets_in and self.connected


def progress(registry: Registry, found: Overview) -> Progress:
    """Return what is done."""
    return Progress(
        has_code=any(map(len, declarations(registry).values())),
        has_tool=bool(found.rows[Tool].begun),
        lets_in=bool(found.tokens.usable or found.rows[Server].begun),
        connected=found.connected,
    )


def steps(
    request: HttpRequest, done: Progress, servers: Sequence[ServerLine]
) -> list[Step]:
    """Return the four steps; asks once, and with one query, who has a permission."""
    return [
        _look(request, done.has_code),
        _make(request, done.has_tool),
        _let_in(done.lets_in),
        _connect(servers, done.connected),
    ]


def _look(request: HttpRequest, is_done: bool) -> Step:
    title = _("See what your code offers")
    if not is_done:
        text = _(
            "Nothing yet. A developer writes a function in a file mcp.py of an app:"
            " from mcp_app import mcp, and @mcp.tool above the function."
        )
        return Step(title, text, is_done=False)
    text = _("Developers declare tools, resources and prompts in Python.")
    if not request.user.has_perm("mcp_app.view_tool"):
        return Step(title, text, is_done=True, lacking=_needs(_("Can view tool")))
    url = reverse("admin:mcp_app_tool_changelist") + f"?source__exact={Source.CODE}"
    return Step(title, text, True, url, _("Tools from code"))


def _make(request: HttpRequest, is_done: bool) -> Step:
    title = _("Make a tool without code")
    text = _(
        "A tool answers a question of an AI client, for example with your opening"
        " hours. Write it, look at it, publish it: clients see it at once."
    )
    if not request.user.has_perm("mcp_app.add_tool"):
        lacking = f"{_needs(_('Can add tool'))} {you_can_ask(request, 'add_tool')}"
        return Step(title, text, is_done, lacking=lacking.strip())
    url, link = reverse("admin:mcp_app_tool_add"), _("Add a tool")
    return Step(title, text, is_done, url, link, whom_to_ask(request, "publish"))


def _needs(label: str) -> str:
    return _("This needs the right “%(right)s”.") % {"right": label}


def _let_in(is_done: bool) -> Step:
    return Step(
        _("Let somebody in"),
        _(
            "An access token lets one program connect as you. A public server needs"
            " none."
        ),
        is_done,
        reverse("admin:mcp_app_accesstoken_add"),
        _("Make an access token"),
    )


def _connect(servers: Sequence[ServerLine], is_done: bool) -> Step:
    title = _("Connect a client")
    text = _(
        "Claude, ChatGPT, Cursor, VS Code and others ask for the address of a server,"
        " and for the token."
    )
    if servers:
        return Step(title, text, is_done, "#mcp-servers", _("Copy the address"))
    url = reverse("admin:mcp_app_accesstoken_add")
    link = _("Make a token: its page shows the address")
    return Step(title, text, is_done, url, link)
