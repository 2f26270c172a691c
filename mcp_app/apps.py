"""The app: at start it imports the modules in which apps declare their tools."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import mcp_settings


class McpConfig(AppConfig):
    """`<app>/mcp.py` is imported, or what `MCP["AUTODISCOVER"]` names."""

    name = "mcp_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = _("MCP server")

    def ready(self) -> None:
        # They need the models, which are there now.
        from mcp_app import checks  # noqa: F401, PLC0415 - registers them
        from mcp_app.auth import rights  # noqa: PLC0415
        from mcp_app.catalog import bindings  # noqa: PLC0415
        from mcp_app.catalog.registry import mcp  # noqa: PLC0415
        from mcp_app.publishing import overlays  # noqa: PLC0415
        from mcp_app.wakeup import folding, workers  # noqa: PLC0415

        rights.connect()
        folding.connect()
        workers.connect()
        overlays.connect(self)

        try:
            name = str(mcp_settings.autodiscover)
        except ImproperlyConfigured:
            # A check tells; wrong settings of ours close the endpoint, never the site.
            return
        autodiscover_modules(name)
        bindings.connect(mcp.bindings.values())
