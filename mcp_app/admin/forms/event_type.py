"""The forms of event types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup_changes import ChangeSheet
from mcp_app.admin.forms.definition import DefinitionForm, FormMeta
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.tool import QueryForm
from mcp_app.admin.page.wording import EVENT_TYPE
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import EventDefinition, Label
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.config import ONE
from mcp_app.models import EventType
from mcp_app.protocol.json_types import JsonObject


class EventTypeForm(DefinitionForm[EventType]):
    """What the forms of all event types share."""

    WORDS = EVENT_TYPE

    class Meta(FormMeta):
        model = EventType


class ChangeEventForm(QueryForm[EventType], EventTypeForm):
    """Rows of the site that are added, changed or deleted."""

    WORDS = EVENT_TYPE
    ONE = True
    SHEET = ChangeSheet

    def draft_texts(self, config: JsonObject) -> Mapping[str, str]:
        model = mcp.open_models.get(config.get("model", ""))
        if model is None:
            return {}
        kind, about = ChangeKind(mcp), EventDefinition(name="")
        when = kind.describe(about, config)[0][1]
        title = f"{capfirst(str(model.model._meta.verbose_name))} {when}"
        text = kind.sentence(about, config)
        return {"title": title[:255], "description": text}

    def _preview(
        self, config: JsonObject, left_out: Sequence[Label]
    ) -> Mapping[str, Any]:
        # Of what is gone no row is left to show.
        rows = _rows_of(config) if config.get("fields") else {}
        return super()._preview(rows, left_out)

    @classmethod
    def starts(cls) -> Sequence[tuple[Label, Mapping[str, str]]]:
        opened = [each for each in mcp.open_models.values() if each.events]
        return [(each.title, {"model": each.label}) for each in opened]

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        behind = super().kind_fields(_rows_of(config or {}))
        return behind._replace(heading=_("When it happens, and what is told"))


def _rows_of(config: JsonObject) -> JsonObject:
    """Return the query of the rows that fit now."""
    parts = ("model", "filters", "fields")
    query: JsonObject = {name: config[name] for name in parts if name in config}
    return {**query, "answer": ONE}
