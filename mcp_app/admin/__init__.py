"""The admin: definitions, servers, sessions, access tokens and calls."""

from __future__ import annotations

from django.apps import apps
from django.contrib import admin

from mcp_app.admin.calls import log
from mcp_app.admin.definitions import definition_admin
from mcp_app.admin.operations import session_admin
from mcp_app.admin.servers import server_admin
from mcp_app.admin.tasks import subscription_admin, task_admin
from mcp_app.admin.tokens import token_admin

__all__ = [
    "definition_admin",
    "log",
    "register",
    "server_admin",
    "session_admin",
    "subscription_admin",
    "task_admin",
    "token_admin",
]


def register(site: admin.AdminSite) -> None:
    """Add our pages to an `AdminSite` of your own; Django's `admin.site` has them."""
    for model in apps.get_app_config("mcp_app").get_models():
        if admin.site.is_registered(model):
            site.register(model, type(admin.site.get_model_admin(model)))
