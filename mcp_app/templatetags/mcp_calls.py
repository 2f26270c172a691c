"""What the admin's home page says of calls."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("admin/mcp_app/includes/calls_tile.html", takes_context=True)
def mcp_calls(context: Any) -> dict[str, object]:
    """Say how many calls there were in 24 hours; nothing to who may not see them."""
    # Django imports all tags, on sites without the admin, too.
    from mcp_app.admin.calls.log import CallAdmin  # noqa: PLC0415

    return CallAdmin.tile(context["request"])
