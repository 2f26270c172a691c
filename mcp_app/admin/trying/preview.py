"""The page that a chat would show for a tool's answer, in a frame."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlencode

from django.http import HttpResponse
from django.utils.translation import gettext as _

from mcp_app.admin.page.header import page_url
from mcp_app.admin.trying.setup import Setup
from mcp_app.interface.rules import visible
from mcp_app.process.background import run_on_loop
from mcp_app.protocol.apps import is_app, page_policy
from mcp_app.protocol.json_types import JsonObject
from mcp_app.workbench.trying.trial import Plan, run_trial


class Preview:
    """The frame's address, or why there is no page; `shown` is the page's data."""

    def __init__(self, setup: Setup, uri: str, arguments: JsonObject) -> None:
        """Read the page as the chosen caller.  Blocks; raises `Unsuitable`."""
        which = "working" if setup.is_working_copy else "published"
        query = urlencode({"which": which, "server": setup.server_slug})
        page = read_page(setup, uri)
        self.url = f"{page_url(setup.row, 'app')}?{query}"
        # Only a readable page has this header; any other says what is wrong.
        self.problem = page.content.decode() if "X-Frame-Options" not in page else ""
        names = {"name": setup.definition.name, "title": setup.definition.title}
        self.shown: JsonObject = {"tool": names, "input": arguments}


def read_page(setup: Setup, uri: str) -> HttpResponse:
    """Return a page as the server gives it, or a 404 that says why there is none.

    It has no origin and reaches only the sites it names, even outside a frame.  Blocks.
    """
    server, caller = setup.server_slug, setup.calling_client()
    plan = Plan(
        server=server, method="resources/read", params={"uri": uri}, caller=caller
    )
    trial = run_on_loop(setup.request, partial(run_trial, plan))
    contents: JsonObject = next(iter(trial.result.get("contents", ())), {})
    if "text" not in contents or not is_app(str(contents.get("mimeType"))):
        why = trial.reason or trial.error.get("message") or _("It is no app.")
        text = _("Clients get no page %(uri)s. %(why)s") % {"uri": uri, "why": why}
        return HttpResponse(visible(text, None), "text/plain", status=404)
    headers = {
        "Content-Security-Policy": page_policy(contents.get("_meta", {})),
        "X-Frame-Options": "SAMEORIGIN",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(contents["text"], headers=headers)
