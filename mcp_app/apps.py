"""The app: at start it imports the modules in which apps declare their tools."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

from django.apps import AppConfig, apps
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import mcp_settings
from mcp_app.transports.stdio.pipes import take_standard_streams

if TYPE_CHECKING:
    from mcp_app.catalog.registry import Registry

STDIO: Final = "mcp_stdio"
"""The command that speaks to its client on standard output."""


class McpConfig(AppConfig):
    """`<app>/mcp.py` is imported, or what `MCP["AUTODISCOVER"]` names."""

    name = "mcp_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = _("MCP server")

    def __init__(self, app_name: str, app_module: ModuleType) -> None:
        super().__init__(app_name, app_module)
        if sys.argv[1:2] == [STDIO]:
            # What the site prints while it is imported would be no message.
            try:
                take_standard_streams()
            except OSError as error:
                # The next file that is opened would take the number of a closed stream.
                raise SystemExit(
                    f"{STDIO} needs standard input and output: {error}."
                ) from None

    def ready(self) -> None:
        # These modules need the models, which are there now.
        from mcp_app import checks  # noqa: F401, PLC0415 - registers them
        from mcp_app.auth import rights  # noqa: PLC0415
        from mcp_app.catalog import autodiscovery, bindings, open_models  # noqa: PLC0415
        from mcp_app.catalog.registry import Registry, mcp  # noqa: PLC0415
        from mcp_app.invalidation import compaction, workers  # noqa: PLC0415
        from mcp_app.process import upkeep  # noqa: PLC0415
        from mcp_app.publishing import overlays  # noqa: PLC0415
        from mcp_app.server import context  # noqa: PLC0415

        rights.connect_signals()
        compaction.connect()
        workers.connect()
        overlays.connect_overlays(self)
        upkeep.Upkeep.send_alerts = staticmethod(_watch)
        Registry.make_toolsets = staticmethod(_make_toolsets)
        Registry.cause_of_call = staticmethod(context.cause_of_call)

        try:
            name = str(mcp_settings.autodiscover)
        except ImproperlyConfigured:
            # A check reports it: wrong settings close the endpoint, never the site.
            return
        autodiscovery.import_modules(mcp, apps.get_app_configs(), name)
        bindings.connect_signals(mcp.bindings.values())
        open_models.connect_row_events(mcp.open_models, context.cause_of_call)


def _make_toolsets(registry: Registry) -> None:
    # Sites without a toolset import nothing of them.
    from mcp_app.toolsets import complete  # noqa: PLC0415

    complete.make_toolsets(registry)


def _watch() -> None:
    # Nothing of the workbench is imported before it is used.
    from mcp_app.workbench import alerts, upstream_looks  # noqa: PLC0415

    alerts.watch()
    upstream_looks.watch()
