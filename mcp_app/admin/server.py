"""The admin page of servers."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.forms import ServerForm
from mcp_app.admin.locking import LockingAdmin
from mcp_app.admin.switched import SwitchedOn, switched_on
from mcp_app.models import Server


@admin.register(Server)
class ServerAdmin(LockingAdmin[Server]):
    form = ServerForm
    list_display = ["address", "title", "who_may_come_in", "offers", switched_on]
    list_filter = [("enabled", SwitchedOn)]
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

    @admin.display(description=_("address"), ordering="slug")
    def address(self, server: Server) -> str:
        return server.slug

    @admin.display(description=_("who may come in"), ordering="access")
    def who_may_come_in(self, server: Server) -> str:
        return server.access or str(_("nobody"))

    @admin.display(description=_("what it offers"))
    def offers(self, server: Server) -> str:
        if server.selection == Server.Selection.TAGS:
            return server.tags
        return str(server.get_selection_display())
