"""The forms of event types: the change, the conditions, and the sent columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lookup import LookupForm, LookupSheet
from mcp_app.admin.editors.lookup_lines import put_columns, usual_columns
from mcp_app.admin.editors.one_form import put_member
from mcp_app.admin.forms.definition import DefinitionForm, FormMeta
from mcp_app.admin.forms.fieldsets import Behind
from mcp_app.admin.forms.tool import QueryForm
from mcp_app.admin.page.wording import EVENT_TYPE
from mcp_app.catalog.open_models import OpenModels
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import EventDefinition, Label
from mcp_app.invalidation.row_events import CHANGED
from mcp_app.kinds.query.changes import WHEN, ChangeKind, read_change_config
from mcp_app.kinds.query.config import ONE
from mcp_app.kinds.query.labels import label_and_field
from mcp_app.models import EventType
from mcp_app.protocol.json_types import JsonObject


class ChangeSheet(LookupSheet):
    """The config of the kind `change` as a page: the form, or the same as JSON."""

    row_template = "mcp_app/widgets/change.html"
    schema = ChangeKind.schema


def begin_change(config: JsonObject, opened: OpenModels, *, one: bool) -> JsonObject:
    """Return a config with the usual changes and columns if it has none."""
    model = opened.get(config.get("model", ""))
    if model is None:
        return config
    # Begin with the usual change: the first of these that the model announces.
    on = [each for each in (CHANGED, *WHEN) if each in model.events][:1]
    return {"model": model.label, "on": on, "fields": usual_columns(model), **config}


class ChangeForm(LookupForm):
    """A change of rows, and the columns that clients are told."""

    begin = staticmethod(begin_change)
    read_config = staticmethod(read_change_config)
    one_parts = ("on", "watched", "filters", "columns")

    on = forms.MultipleChoiceField(
        label=_("When a row"), required=False, widget=forms.CheckboxSelectMultiple
    )
    watched = forms.MultipleChoiceField(
        label=_("Only if one of these changed"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        model = self.row_model
        if model is None:
            return
        chosen = {name: self.base.get(name, []) for name in ("on", "watched")}
        self.initial = {**self.initial, **chosen}
        # Show choices that are no longer open, with an error, until they are unticked.
        on = {*model.events, *chosen["on"]}
        self.offer_choices("on", [each for each in WHEN.items() if each[0] in on])
        names = dict.fromkeys((*model.watch, *chosen["watched"]))
        labels = [label_and_field(each, model, self.opened)[0] for each in names]
        self.offer_choices("watched", [*zip(names, labels, strict=True)])

    def _put_fields(self, config: JsonObject, values: Mapping[str, Any]) -> None:
        put_columns(config, values.get("columns", ()))
        for name in ("on", "watched"):
            put_member(config, name, values.get(name, []))


ChangeSheet.form = ChangeForm


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
        # The first part of the description says what happens to the row.
        when = kind.describe(about, config)[0][1]
        title = f"{capfirst(str(model.model._meta.verbose_name))} {when}"
        text = kind.sentence(about, config)
        return {"title": title[:255], "description": text}

    def _preview(
        self, config: JsonObject, left_out: Sequence[Label]
    ) -> Mapping[str, Any]:
        # Without columns there is nothing to preview.
        rows = _rows_of(config) if config.get("fields") else {}
        return super()._preview(rows, left_out)

    @classmethod
    def starts(cls) -> Sequence[tuple[Label, Mapping[str, str]]]:
        opened = [model for model in mcp.open_models.values() if model.events]
        return [(each.title, {"model": each.label}) for each in opened]

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        behind = super().kind_fields(_rows_of(config or {}))
        return behind._replace(heading=_("When it happens, and what is told"))


def _rows_of(config: JsonObject) -> JsonObject:
    """Return the query for the rows that match now."""
    parts = ("model", "filters", "fields")
    query: JsonObject = {name: config[name] for name in parts if name in config}
    return {**query, "answer": ONE}
