"""What the page *What clients see* shows: the lists of a server for one person."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy

from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing.pages import author_of
from mcp_app.admin.trying.presentation import REFUSED
from mcp_app.admin.trying.setup import console_principal
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import Principal
from mcp_app.interface.rules import text_problem, visible
from mcp_app.interface.server import PUBLIC
from mcp_app.models import Server
from mcp_app.process.background import run_on_loop
from mcp_app.protocol.revisions import LATEST
from mcp_app.publishing.rights import require_right
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.attempts import As
from mcp_app.workbench.trying.listings import Item, read_lists

HEADINGS: Final[Mapping[str, Label]] = {
    "tools": gettext_lazy("Tools"),
    "prompts": gettext_lazy("Prompts"),
    "resources": gettext_lazy("Resources"),
    "templates": gettext_lazy("Resource templates"),
    "events": gettext_lazy("Event types"),
}


def lists_context(request: HttpRequest, row: Server) -> dict[str, Any]:
    """Return the context of the page; raises 403 without the right to try as others.

    The lists come from the code that answers clients, not from the rows.
    """
    who = request.GET.get("who", As.ME)
    name = request.GET.get("user", "").strip()
    may_ask = has_right(request, "try_as")
    values: dict[str, Any] = {"who": who, "user_name": name, "may_ask": may_ask}
    if who == As.USER:
        require_right(request.user, "try_as")
    is_public = row.access_names == (PUBLIC,)
    principal = _principal(request, As.NOBODY if is_public else who, name)
    if principal is None:
        return {**values, "missing": no_such_user(name)}
    caller = Caller(
        principal=principal,
        person=f"u{author_of(request).pk}",
        revision=LATEST,
        name="What clients see",
        capabilities={},
    )
    server_lists = run_on_loop(request, partial(read_lists, row.slug, caller))
    refused = server_lists.refused
    return {
        **values,
        "refused": REFUSED.get(refused, "") if refused else "",
        "reason": visible(server_lists.reason, None),
        "tokens": server_lists.token_count,
        "sections": [
            (HEADINGS[name], [*map(_item_line, items)])
            for name, items in server_lists.items.items()
        ],
        "is_public": is_public,
    }


def _principal(request: HttpRequest, who: str, name: str) -> Principal | None:
    """Return the principal of the lists; None if there is no such user."""
    if who == As.NOBODY:
        return console_principal(request, None)
    user: Any = author_of(request)
    if who == As.USER:
        user = find_user(name) if name and not text_problem(name) else None
    return None if user is None else console_principal(request, user)


def _item_line(item: Item) -> dict[str, object]:
    """Return an item with the URL of its page, "" if it has none."""
    url = ""
    if item.key is not None:
        kind, pk = item.key
        url = reverse(f"admin:mcp_app_{kind}_try", args=[pk])
    name, title = visible(item.identity), visible(item.title)
    return {"name": name, "title": title, "tokens": item.tokens, "url": url}
