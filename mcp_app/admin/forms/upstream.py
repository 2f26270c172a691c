"""The form of a tool of another MCP server; its call cannot be edited."""

from __future__ import annotations

from typing import Any, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.forms.fields import PanelField
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.tool import ToolForm
from mcp_app.admin.page.wording import CALL, TOOL
from mcp_app.egress.sites import upstream_sites
from mcp_app.interface.definitions import Label
from mcp_app.models import OpenApiDocument
from mcp_app.protocol.json_types import JsonObject


class UpstreamToolForm(ToolForm):
    """The form of a tool of another MCP server, on whose page staff add it."""

    WORDS = {**TOOL, "target": (_("Tool there"), "")}
    REACHES_OUTSIDE = True

    target = PanelField("mcp_app/widgets/upstream.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "target" in self.fields:
            config = self.instance.json("config") or {}
            panel = cast("PanelField", self.fields["target"])
            panel.shows_later(
                lambda: {
                    "tool": config.get("tool"),
                    "key": config.get("site"),
                    "site": upstream_sites().get(str(config.get("site"))),
                    "document": OpenApiDocument.objects.defer("offers")
                    .filter(site=config.get("site"))
                    .first(),
                }
            )

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        return Behind(CALL["config"][0], ("target",))

    @classmethod
    def starts(cls) -> list[tuple[Label, dict[str, str]]]:
        return []
