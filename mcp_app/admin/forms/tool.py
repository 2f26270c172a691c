"""The forms of tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final, TypeVar, cast

from django.forms import ChoiceField
from django.utils.text import get_text_list
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import FilePartField, FileValue
from mcp_app.admin.editors.hints import (
    Answer,
    HintsField,
    HintsWidget,
    answer_of,
    hints_of_answer,
)
from mcp_app.admin.editors.json_editor import SheetField
from mcp_app.admin.editors.json_texts import parse_or_none
from mcp_app.admin.editors.lookup import LookupSheet, typed_query
from mcp_app.admin.editors.lookup_preview import preview_of
from mcp_app.admin.editors.messages import Message, config_of_answer, fields_of_answer
from mcp_app.admin.editors.parameter_forms import ParameterSheet
from mcp_app.admin.forms.definition import (
    DefinitionForm,
    FormMeta,
    FunctionForm,
    TextForm,
    written_text,
)
from mcp_app.admin.forms.fields import (
    JsonField,
    PanelField,
    ParametersField,
    PlaceholderTextarea,
)
from mcp_app.admin.forms.fieldsets import BEYOND_PARTS, Behind, own_json
from mcp_app.admin.forms.resource import ResourceTemplateForm
from mcp_app.admin.page.wording import LOOKUP, RESOURCE_TEMPLATE, TOOL
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import Label, ToolHints
from mcp_app.kinds.query.config import GROUPS, SCHEMA, TOTALS
from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.models import DefinitionRow, ResourceTemplate, Tool
from mcp_app.models.definitions import TaskChoice
from mcp_app.models.fields import parse_json
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject


class ToolForm(DefinitionForm[Tool]):
    """What the forms of all tools share."""

    WORDS = TOOL
    REACHES_OUTSIDE = False
    """Whether each tool of the kind reaches outside the site, whatever its row says."""

    input_schema = SheetField(ParameterSheet())
    output_schema = JsonField(is_schema=True)
    changes = HintsField()

    class Meta(FormMeta):
        model = Tool

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._hints = ToolHints(
            **{name: getattr(self.instance, name) for name in Tool.HINTS}
        )
        if self.REACHES_OUTSIDE:
            self._hints = replace(self._hints, open_world=True)
            if "changes" in self.fields:
                widget = cast("HintsWidget", self.fields["changes"].widget)
                widget.ticked = frozenset({"open_world"})
        self.initial["changes"] = answer_of(self._hints)
        if "task" in self.fields:
            # "" replaces the first choice, forbidden: by default, a call is no task.
            choices = [("", TaskChoice.FORBIDDEN.label), *TaskChoice.choices[1:]]
            cast("ChoiceField", self.fields["task"]).choices = choices
        if "hidden_values" in self.fields:
            field = cast("ParametersField", self.fields["hidden_values"])
            field.tool = lambda: self.row_definition().definition
        self.set_stored_value(
            "input_schema", self.instance.input_schema, self.own_schema()
        )

    def own_schema(self) -> str | None:
        """Return the schema to use if the column is empty; None if there is none."""
        return None

    def column_values(self) -> Mapping[str, object]:
        answer = self.cleaned_data.get("changes")
        # A page without this input did not show the hints.
        if not isinstance(answer, Answer) or "changes-asked" not in self.data:
            return super().column_values()
        hints = hints_of_answer(answer, self._hints)
        values = {name: getattr(hints, name) for name in Tool.HINTS}
        return {**super().column_values(), **values}

    def field_of_column(self, column: str) -> str:
        return "changes" if column in Tool.HINTS else super().field_of_column(column)


class TextToolForm(TextForm[Tool], ToolForm):
    """A tool that answers with a text, a file, or both."""

    EASY = ("text", "file")
    RICH_ADVICE = BEYOND_PARTS
    NOT_BOTH = _("Fill in either the text and the file or this field, not both.")

    file = FilePartField()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "text" in self.fields:
            schema = self.instance.json("input_schema") or {}
            widget = cast("PlaceholderTextarea", self.fields["text"].widget)
            widget.names = tuple(schema.get("properties") or ())
            widget.source = "input_schema"
        self.set_stored_value("file", self.initial.get("file"), self.may_use_file)

    @classmethod
    def easy_values(cls, config: JsonObject) -> dict[str, Any] | None:
        return fields_of_answer(config) if config else {"text": ""}

    def clean_file(self) -> Message | None:
        file_value: FileValue = self.cleaned_data["file"]
        self._uploaded = file_value.upload
        return file_value.part

    def config_from_fields(self) -> JsonObject | None:
        text, file = self.cleaned_data.get("text", ""), self.cleaned_data.get("file")
        return config_of_answer(text, file) if text or file else None


class FunctionToolForm(FunctionForm[Tool], ToolForm):
    """A tool that runs a function."""

    def own_schema(self) -> str:
        return own_json(Tool, self.function_key(), mcp)


# -- query -----------------------------------------------------------------------------
# The forms of definitions that look up data of the site.

AnyRow = TypeVar("AnyRow", bound=DefinitionRow)

FOLLOWING: Final = ("input_schema", "output_schema", "changes")
"""Fields that are hidden here, because they follow from the query."""


class QueryForm(DefinitionForm[AnyRow]):
    """The query, and a preview of its result now."""

    ONE: ClassVar[bool] = False
    """Whether the answer is one row."""
    SHEET: ClassVar[type[LookupSheet]] = LookupSheet

    config = SheetField(LookupSheet({}, one=False))
    now = PanelField("mcp_app/widgets/found_now.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "config" in self.fields:
            field = cast("SheetField", self.fields["config"])
            sheet = self.SHEET(mcp.open_models, one=self.ONE, user=self.user)
            field.sheet_widget.sheet = sheet
            field.set_stored_value(self.begun_config("model"))
        self._show_config(parse_or_none(self.begun_config("model")) or {})

    def begun_config(self, member: str) -> str:
        config = super().begun_config(member)
        if self.instance.pk is not None or config == self.instance.config:
            return config
        begin = self.SHEET.form.begin
        return written_text(begin(parse_json(config), mcp.open_models, one=self.ONE))

    def show_typed(self) -> None:
        if "config" in self.fields:
            self._show_config(*typed_query(self["config"].data))

    def show_again(self, typed: Mapping[str, Any]) -> None:
        """Update panel and drafts: the form may now show values of another user."""
        super().show_again(typed)
        if "config" in typed:
            self._show_config(*typed_query(typed["config"]))
        else:
            self._show_config(parse_or_none(self._saved["config"]) or {})

    def _show_config(self, config: JsonObject, left_out: Sequence[Label] = ()) -> None:
        """Update panel and drafts for a config that may be unsaved."""
        wrong = schemas.compile_schema(self.SHEET.schema).violations(config)
        config = self._config = {} if wrong else config
        super().show_typed()
        if "now" in self.fields:
            panel = cast("PanelField", self.fields["now"])
            panel.shows_later(partial(self._preview, config, left_out))

    def _preview(
        self, config: JsonObject, left_out: Sequence[Label]
    ) -> Mapping[str, Any]:
        may_read = "config" in self.fields
        preview = preview_of(config, mcp.open_models, self.user, may_read=may_read)
        return {**preview, "left_out": left_out, "drafts": self.drafts()}

    def typed_config(self) -> JsonObject:
        return self._config

    def draft_texts(self, config: JsonObject) -> Mapping[str, str]:
        if config.get("model") not in mcp.open_models:
            return {}
        text = QueryText(config, mcp.open_models)
        return {"title": text.title()[:255], "description": text.description()}

    def clean_config(self) -> str:
        """Return the config without members that only the other kind of answer has."""
        text = str(self.cleaned_data["config"])
        config = parse_or_none(text) or {}
        has_groups = config.get("answer") == GROUPS
        of_rows = ("fields", "lists", "count", TOTALS)
        dropped = of_rows if has_groups else ("group_by", "measures")
        kept = {name: each for name, each in config.items() if name not in dropped}
        return text if text == self.instance.config else written_text(kept)

    def clean(self) -> dict[str, Any] | None:
        self.show_typed()
        return super().clean()

    @classmethod
    def starts(cls) -> Sequence[tuple[Label, Mapping[str, str]]]:
        return [
            (model.title, {"model": model.label}) for model in mcp.open_models.values()
        ]

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        return Behind(
            _("What it looks up"),
            ("config", *cls.BESIDE, "now"),
            classes=["mcp-build"],
            without=FOLLOWING,
            who=_whoever_may_view(config or {}),
        )


def _whoever_may_view(config: JsonObject) -> str:
    """Return which people may view the models of a query, in words."""
    if schemas.compile_schema(SCHEMA).violations(config):
        return ""
    query, _problems = read_query_config(config, mcp.open_models)
    # An unfinished query has at most its model.
    begun = [mcp.open_models[m] for m in (config.get("model"),) if m in mcp.open_models]
    models = begun if query is None else query.models.values()
    names = [str(m.model._meta.verbose_name_plural) for m in models if m.permission]
    words = get_text_list(names, str(_("and")))
    return str(_("whoever may view %(models)s")) % {"models": words} if names else ""


class QueryToolForm(QueryForm[Tool], ToolForm):
    """A tool that answers with rows or groups."""

    WORDS = {**TOOL, **LOOKUP}


class QueryTemplateForm(QueryForm[ResourceTemplate], ResourceTemplateForm):
    """A template that answers with one row."""

    WORDS = {**RESOURCE_TEMPLATE, **LOOKUP}
    ONE = True
