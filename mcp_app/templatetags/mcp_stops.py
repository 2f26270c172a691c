"""What every page of the app says of what is stopped."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context

from mcp_app.admin.page import stop_banner
from mcp_app.admin.page.header import may
from mcp_app.models.stops import Scope

register = template.Library()


@register.inclusion_tag("admin/mcp_app/includes/stopped.html", takes_context=True)
def mcp_stopped(context: Context, kind: str = "") -> dict[str, Any]:
    """Show what is stopped, if it is wider than one tool; `kind` is that of a list.

    On a list it also names the rows of it that are stopped one by one.
    """
    request = context["request"]
    on = stop_banner.stops_on(request)
    single = [
        each.what for each in on if each.scope == Scope.DEFINITION and each.kind == kind
    ]
    return {
        "sentences": [stop_banner.sentence(each) for each in stop_banner.wide(on)],
        "single": ", ".join(dict.fromkeys(single)),
        "may_stop": may(request, stop_banner.RIGHT),
        "url": stop_banner.stops_url(),
    }


@register.inclusion_tag("admin/mcp_app/includes/stop_entry.html", takes_context=True)
def mcp_stop_entry(context: Context) -> dict[str, Any]:
    """Lead to the page that stops, or say who can."""
    request = context["request"]
    may_stop = may(request, stop_banner.RIGHT)
    return {
        "may_stop": may_stop,
        "who_may": "" if may_stop else stop_banner.who_may(request),
        "url": stop_banner.stops_url(),
    }
