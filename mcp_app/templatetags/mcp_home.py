"""The template tag for the admin's home page."""

from __future__ import annotations

from typing import Any

from django import template

register = template.Library()


@register.inclusion_tag("admin/mcp_app/includes/home.html", takes_context=True)
def mcp_home(context: Any) -> dict[str, object]:
    """Show how the site does, how to begin, what needs care, calls and servers."""
    # Import here: Django loads all tags, even on sites without the admin.
    from mcp_app.admin.home.overview import home_context  # noqa: PLC0415

    return {**home_context(context["request"]), "perms": context["perms"]}
