"""The forms of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.file_fields import FilePartField, FileValue
from mcp_app.admin.editors.hints import (
    Answer,
    Hints,
    HintsField,
    HintsWidget,
    answer_of,
    hints_of,
)
from mcp_app.admin.editors.json_editor_fields import SheetField
from mcp_app.admin.editors.parameters.parameter_forms import ParameterSheet
from mcp_app.admin.editors.prompts.messages import Message
from mcp_app.admin.editors.text_answer import Parts, config_of, parts_of
from mcp_app.admin.editors.uploads import Upload
from mcp_app.admin.forms import from_code
from mcp_app.admin.forms.definition import (
    WIDGETS,
    DefinitionForm,
    FunctionForm,
    JsonForm,
    TextForm,
)
from mcp_app.admin.forms.fields import JsonField, PanelField, PlaceholderTextarea
from mcp_app.admin.forms.fieldsets import BEYOND_PARTS
from mcp_app.admin.page.wording import TOOL
from mcp_app.catalog.registry import mcp
from mcp_app.models import Tool
from mcp_app.protocol.json_types import JsonObject

HINTS = ("read_only", "destructive", "idempotent", "open_world")


class ToolForm(DefinitionForm[Tool]):
    """What the forms of all tools share."""

    WORDS = TOOL
    REACHES_OUTSIDE = False
    """Whether each tool of the kind does, whatever its row says."""

    input_schema = SheetField(ParameterSheet())
    output_schema = JsonField(is_schema=True)
    changes = HintsField()

    class Meta:
        model = Tool
        fields = ()
        widgets = WIDGETS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._hints = Hints(*(getattr(self.instance, name) for name in HINTS))
        if self.REACHES_OUTSIDE:
            self._hints = replace(self._hints, open_world=True)
            if "changes" in self.fields:
                widget = cast("HintsWidget", self.fields["changes"].widget)
                widget.ticked = frozenset({"open_world"})
        self.initial["changes"] = answer_of(self._hints)
        if "input_schema" in self.fields:
            field = cast("SheetField", self.fields["input_schema"])
            field.shows(self.instance.input_schema, self.own_schema())

    def own_schema(self) -> str | None:
        """Return the schema to use if the column is empty; None if there is none."""
        return None

    def columns(self) -> Mapping[str, object]:
        answer = self.cleaned_data.get("changes")
        if not isinstance(answer, Answer) or "changes-asked" not in self.data:
            return super().columns()
        hints = hints_of(answer, self._hints)
        return {
            **super().columns(),
            **{name: getattr(hints, name) for name in HINTS},
        }

    def shown_by(self, column: str) -> str:
        return "changes" if column in HINTS else super().shown_by(column)


class TextToolForm(TextForm[Tool], ToolForm):
    """A tool that answers with a text, a file, or both."""

    EASY = ("text", "file")
    RICH_ADVICE = BEYOND_PARTS
    NOT_BOTH = _("Fill in either the text and the file or this field, not both.")

    file = FilePartField()

    _uploaded: Upload | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "text" in self.fields:
            schema = self.instance.json("input_schema") or {}
            widget = cast("PlaceholderTextarea", self.fields["text"].widget)
            widget.names = tuple(schema.get("properties") or ())
            widget.source = "input_schema"
        if "file" in self.fields:
            parts = self._shown()
            field = cast("FilePartField", self.fields["file"])
            field.shows(None if parts is None else parts.file, self.may_use)

    def clean_file(self) -> Message | None:
        given: FileValue = self.cleaned_data["file"]
        self._uploaded = given.upload
        return given.part

    def uploads(self) -> list[Upload]:
        return [] if self._uploaded is None else [self._uploaded]

    def content(self) -> JsonObject | None:
        given = self.cleaned_data
        parts = Parts(given.get("text", ""), given.get("file"))
        return config_of(parts) if parts != Parts() else None

    def _shown(self) -> Parts | None:
        """Return the stored config as form fields; None if it needs JSON."""
        config = self.instance.json("config")
        return parts_of(config) if config else Parts()

    def _split_config(self) -> dict[str, str]:
        parts = self._shown()
        return (
            {"config": self.instance.config} if parts is None else {"text": parts.text}
        )


class FunctionToolForm(FunctionForm[Tool], ToolForm):
    """A tool that runs a function."""

    from_code = PanelField("mcp_app/widgets/from_code.html")

    def own_schema(self) -> str:
        return from_code.own_schema(self.function_key(), mcp)


class JsonToolForm(JsonForm[Tool], ToolForm):
    """A tool of a kind that has no form of its own."""
