"""The forms of what looks up data of the site."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final, TypeVar, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor_fields import SheetField
from mcp_app.admin.editors.lookup.preview import preview_of
from mcp_app.admin.editors.lookup.sheet import LookupSheet
from mcp_app.admin.forms.definition import DefinitionForm
from mcp_app.admin.forms.fields import PanelField
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.resource import ResourceTemplateForm
from mcp_app.admin.forms.tool import ToolForm
from mcp_app.admin.page.wording import LOOKUP, RESOURCE_TEMPLATE, TOOL
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, ResourceTemplate, Tool
from mcp_app.protocol.json_types import JsonObject

AnyRow = TypeVar("AnyRow", bound=DefinitionRow)


FOLLOWING: Final = ("input_schema", "output_schema", "changes")
"""Fields of others' forms that follow from what is looked up."""


class QueryForm(DefinitionForm[AnyRow]):
    """What is looked up, and what that gives now."""

    ONE: ClassVar[bool] = False

    config = SheetField(LookupSheet({}, one=False))
    now = PanelField("mcp_app/widgets/found_now.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "config" in self.fields:
            field = SheetField(LookupSheet(mcp.open_models, one=self.ONE))
            known = self.fields["config"]
            field.label, field.help_text = known.label, known.help_text
            field.shows(self.instance.config)
            self.fields["config"] = field
        if "now" in self.fields:
            saved = self.instance.json("config") or {}
            panel = cast("PanelField", self.fields["now"])
            panel.shows_later(partial(preview_of, saved, mcp.open_models, self.user))

    @classmethod
    def behind(cls, config: JsonObject | None) -> Behind:
        heading = _("What it does: look up data of this site")
        fields = ("config", *cls.BESIDE, "now")
        return Behind(heading, fields, without=FOLLOWING)


class QueryToolForm(QueryForm[Tool], ToolForm):
    """A tool that answers with rows or groups."""

    WORDS = {**TOOL, **LOOKUP}


class QueryTemplateForm(QueryForm[ResourceTemplate], ResourceTemplateForm):
    """A template that answers with one row."""

    WORDS = {**RESOURCE_TEMPLATE, **LOOKUP}
    ONE = True
