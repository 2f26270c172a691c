"""The template tag for calls on the admin's home page."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("admin/mcp_app/includes/calls_tile.html", takes_context=True)
def mcp_calls(context: Any) -> dict[str, object]:
    """Show the number of calls in 24 hours, to users who may see calls."""
    # Import here: Django loads all tags, even on sites without the admin.
    from mcp_app.admin.calls.log import CallAdmin  # noqa: PLC0415

    return CallAdmin.tile(context["request"])
