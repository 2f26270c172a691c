"""What the home page shows."""

from __future__ import annotations

from django.http import HttpRequest

from mcp_app.admin.home import attention, servers
from mcp_app.admin.home.steps import steps
from mcp_app.catalog.registry import mcp


def overview(request: HttpRequest) -> dict[str, object]:
    """Return the context of the home page.

    Once all steps are done, they are shown only if the reader asks (`?begin`).
    """
    lines = servers.server_lines(request)
    begin = steps(request, mcp, lines)
    is_begun = all(step.is_done for step in begin)
    found = attention.concerns(request)
    return {
        "steps": begin if not is_begun or "begin" in request.GET else [],
        "is_begun": is_begun,
        "servers": lines[: servers.MOST],
        "more_servers": len(lines) > servers.MOST,
        "concerns": found[: attention.MOST],
        "more_concerns": [*attention.lists(request)]
        if len(found) > attention.MOST
        else [],
    }
