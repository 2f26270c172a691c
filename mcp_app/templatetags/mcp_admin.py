"""Template tags of the admin: times, what is stopped, what code opens, the home page.

The tags import the admin when they are used: Django loads all tags, even on sites
without the admin, and django-unfold loads them while it defines its `ModelAdmin`.
"""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context
from django.utils.timezone import now
from django.utils.translation import ngettext

from mcp_app import site_time
from mcp_app.catalog.registry import mcp
from mcp_app.conf import mcp_settings
from mcp_app.models.stops import Scope

register = template.Library()
register.filter("mcp_time", site_time.time_html)
register.simple_tag(site_time.zone_name, name="mcp_zone")
register.simple_tag(lambda: site_time.time_html(now()), name="mcp_now")


@register.inclusion_tag("admin/mcp_app/includes/stopped.html", takes_context=True)
def mcp_stop_banner(context: Context, kind: str = "") -> dict[str, Any]:
    """Show the stops that affect more than one definition.

    On a list of this `kind`, also name its rows that are stopped individually.
    """
    from mcp_app.admin.page import rights, stop_banner  # noqa: PLC0415

    request = context["request"]
    stops = stop_banner.active_stops(request)
    single = dict.fromkeys(
        each.what
        for each in stops
        if each.scope == Scope.DEFINITION and each.kind == kind
    )
    names = list(single)[: stop_banner.MAX_NAMES]
    if unnamed := len(single) - len(names):
        names.append(
            ngettext("%(count)d more", "%(count)d more", unnamed) % {"count": unnamed}
        )
    return {
        "sentences": [*map(stop_banner.stop_sentence, stop_banner.wide_stops(stops))],
        "single": ", ".join(names),
        "may_stop": rights.has_right(request, stop_banner.STOP_RIGHT),
        "url": stop_banner.stops_url(),
    }


@register.inclusion_tag("admin/mcp_app/includes/home.html", takes_context=True)
def mcp_home(context: Any, models: str) -> dict[str, object]:
    """Show how the site does, what needs care, how to begin, calls and servers.

    `models` is Django's own list of models, as HTML.
    """
    from mcp_app.admin.home.overview import home_context  # noqa: PLC0415

    return {**home_context(context["request"], models), "perms": context["perms"]}


@register.simple_tag
def mcp_is_code_open() -> bool:
    """Return whether code opens models or other sites, of which staff make tools."""
    return bool(mcp.open_models or mcp_settings.http)
