"""The admin page of servers."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.forms import ServerForm
from mcp_app.admin.locking import LockingAdmin
from mcp_app.models import Server


@admin.register(Server)
class ServerAdmin(LockingAdmin[Server]):
    form = ServerForm
    list_display = ["slug", "title", "access", "selection", "tags", "enabled"]
    list_filter = ["enabled", "selection"]
    search_fields = ["slug", "title", "description", "tags"]
    save_as = True
    fieldsets = [
        (
            _("What clients see"),
            {
                "fields": [
                    "slug",
                    "title",
                    "description",
                    "instructions",
                    "version",
                    "website_url",
                ]
            },
        ),
        (_("What it offers"), {"fields": ["selection", "tags", "page_size"]}),
        (
            _("Who may come in"),
            {"fields": ["access", "enabled", "opened_version"]},
        ),
        (_("More"), {"classes": ["collapse"], "fields": ["icons"]}),
    ]
