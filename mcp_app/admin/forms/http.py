"""The forms of what calls another site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor_fields import SheetField
from mcp_app.admin.editors.site_call.sheet import CallSheet
from mcp_app.admin.forms.definition import DefinitionForm
from mcp_app.admin.forms.fields import PanelField
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.resource import ResourceForm, ResourceTemplateForm
from mcp_app.admin.forms.tool import ToolForm
from mcp_app.admin.page.header import page_url
from mcp_app.admin.page.wording import CALL, RESOURCE, RESOURCE_TEMPLATE, TOOL
from mcp_app.kinds import KindError
from mcp_app.kinds.http.description import sentence
from mcp_app.kinds.http.kind import call_of
from mcp_app.models import DefinitionRow, Resource, ResourceTemplate, Tool
from mcp_app.protocol.json_types import JsonObject

AnyRow = TypeVar("AnyRow", bound=DefinitionRow)


class HttpForm(DefinitionForm[AnyRow]):
    """What is called, in a form and in a sentence."""

    ONLY_READS: ClassVar[bool] = True

    config = SheetField(CallSheet(only_reads=True))
    calls = PanelField("mcp_app/widgets/site_call_now.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "config" in self.fields:
            field = SheetField(CallSheet(only_reads=self.ONLY_READS))
            known = self.fields["config"]
            field.label, field.help_text = known.label, known.help_text
            field.shows(self.instance.config)
            self.fields["config"] = field
        if "calls" in self.fields:
            panel = cast("PanelField", self.fields["calls"])
            panel.shows_later(self._sentence)

    def _sentence(self) -> Mapping[str, Any]:
        """Return the context of the panel: what the saved working copy does."""
        if not self.instance.json("config"):
            return {}
        try:
            definition = self.stored().definition
            call = call_of(definition, self.instance.json("config"))
        except (KindError, ValueError) as error:
            return {"problem": str(error)}
        shown = {
            "sentence": sentence(call, definition),
            "per_caller": call.site.per_caller,
        }
        user = self.user
        if user is not None and user.has_perm("mcp_app.try"):
            shown["url"] = page_url(self.instance, "try")
        return shown

    @classmethod
    def behind(cls, config: JsonObject | None) -> Behind:
        heading = _("What it does: call another site")
        return Behind(heading, ("config", *cls.BESIDE, "calls"))


class HttpToolForm(HttpForm[Tool], ToolForm):
    """A tool that calls another site."""

    WORDS = {**TOOL, **CALL}
    ONLY_READS = False
    REACHES_OUTSIDE = True


class HttpResourceForm(HttpForm[Resource], ResourceForm):
    """A resource that another site has."""

    WORDS = {**RESOURCE, **CALL}


class HttpTemplateForm(HttpForm[ResourceTemplate], ResourceTemplateForm):
    """A template whose resources another site has."""

    WORDS = {**RESOURCE_TEMPLATE, **CALL}
