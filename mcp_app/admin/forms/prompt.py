"""The forms of prompts, and the preview of their messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import Upload
from mcp_app.admin.editors.json_editor import EditorInput, SheetField
from mcp_app.admin.editors.message_forms import MessageForm, MessageSheet
from mcp_app.admin.editors.prompt_arguments import ArgumentSheet
from mcp_app.admin.editors.rows import RowForm
from mcp_app.admin.forms import fieldsets
from mcp_app.admin.forms.definition import (
    NOTHING,
    WIDGETS,
    DefinitionForm,
    FunctionForm,
    JsonForm,
)
from mcp_app.admin.forms.fields import PanelField
from mcp_app.admin.forms.fieldsets import ADVICE, TEXTS, Behind
from mcp_app.admin.page.preview import Look, look_of_block
from mcp_app.admin.page.wording import PROMPT
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import PromptArgument, PromptDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, serving_problems, usable_kinds
from mcp_app.models import Prompt
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject

PREVIEW: Final = "show-preview"
"""The button that updates the preview."""
_VALUE: Final = "preview-"


class PromptForm(DefinitionForm[Prompt]):
    """What the forms of all prompts share."""

    WORDS = PROMPT

    arguments = SheetField(ArgumentSheet())

    class Meta:
        model = Prompt
        fields = ()
        widgets = WIDGETS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "arguments" in self.fields:
            field = cast("SheetField", self.fields["arguments"])
            field.set_stored_value(self.instance.arguments, self.own_arguments())

    def own_arguments(self) -> str | None:
        """Return the JSON of the arguments if the column is empty; None for none."""
        return None


class FunctionPromptForm(FunctionForm[Prompt], PromptForm):
    """A prompt that a function makes."""

    from_code = PanelField("mcp_app/widgets/from_code.html")

    def own_arguments(self) -> str:
        return fieldsets.own_arguments(self.function_key(), mcp)


class JsonPromptForm(JsonForm[Prompt], PromptForm):
    """A prompt of a kind that has no form of its own."""


@dataclass(frozen=True, slots=True)
class PreviewMessage:
    """One message of the preview."""

    role: str
    look: Look


@dataclass(frozen=True, slots=True)
class FilledMessage:
    """An argument with the value that the preview fills in."""

    argument: PromptArgument
    value: str

    @property
    def label(self) -> str:
        return visible(self.argument.title or self.argument.name)


class TextPromptForm(PromptForm):
    """A prompt made of messages."""

    KIND = "text"

    @classmethod
    def kind_fields(cls, config: JsonObject | None) -> Behind:
        # The preview is shown beside the messages if the window is wide enough.
        fields = ("config", "preview")
        return Behind(TEXTS[Prompt], fields, ADVICE[Prompt], classes=("mcp-two",))

    config = SheetField(MessageSheet())
    preview = PanelField("mcp_app/widgets/preview.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "config" in self.fields:
            is_new = self.instance.json("config") in (None, {})
            field = cast("SheetField", self.fields["config"])
            field.set_stored_value("" if is_new else self.instance.config)
        if not self.is_bound:
            self._show_preview()

    def clean_config(self) -> str:
        config = str(self.cleaned_data["config"])
        return NOTHING if config in ("", '{"messages":[]}') else config

    def new_uploads(self) -> list[Upload]:
        if "config" not in self.fields or not self.is_bound:
            return []
        editor_input: EditorInput = self["config"].data
        forms = (
            editor_input.submitted_rows.forms
            if editor_input.submitted_rows is not None
            else []
        )
        files = [form.new_file for form in forms if isinstance(form, MessageForm)]
        return [file for file in files if file is not None]

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound:
            self._show_preview()
        if self.is_bound and PREVIEW in self.data:
            self.show_again({name: self[name].data for name in self.fields})
            self.note = self._with_files("")

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.has_error("config"):
            self._blame_messages()

    def _blame_messages(self) -> None:
        """Show the errors of each message beside it."""
        editor_input: EditorInput = self["config"].data
        if (
            editor_input.submitted_rows is None
            or not editor_input.submitted_rows.is_valid()
        ):
            return
        stored = self.row_definition()
        for form in editor_input.submitted_rows.ordered_forms:
            alone = MessageSheet().value_of_rows([form], None)
            for problem in serving_problems(
                stored.definition, stored.kind, alone, stored.uploads
            ):
                if problem.field == "config":
                    form.add_error(_content_field(form), problem.message)

    def _show_preview(self) -> None:
        if "preview" in self.fields:
            field = cast("PanelField", self.fields["preview"])
            field.shows(**self._preview_context())

    def _preview_context(self) -> Mapping[str, Any]:
        """Return what the preview shows, from the code that answers `prompts/get`."""
        if self.is_bound and self.errors.keys() & {"config", "arguments"}:
            return {"problem": _("Correct the arguments and the messages first.")}
        try:
            stored = self.row_definition()
            definition = cast("PromptDefinition", stored.definition)
            values = self._filled_arguments(definition)
            kind = usable_kinds(mcp)[self.KIND]
            run = kind.prompt_runnable(definition, stored.config, stored.uploads)
            output = run.convert(run.run(**run.bind(_argument_values(values))))
        except (KindError, ValueError):
            return {"is_empty": True}
        except ProtocolError as error:
            return {"values": values, "problem": visible(error.message, None)}
        messages = [
            PreviewMessage(each.role, look_of_block(each.content))
            for each in output.messages
        ]
        return {
            "values": values,
            "said": messages,
            "tokens": sum(each.look.tokens for each in messages),
            "left_out": sum(1 for each in values if not each.value),
            "unused": _unused_arguments(definition, self.instance.config),
        }

    def _filled_arguments(self, definition: PromptDefinition) -> list[FilledMessage]:
        data = self.data if self.is_bound else {}
        return [
            FilledMessage(argument, str(data.get(f"{_VALUE}{argument.name}", "")))
            for argument in definition.arguments
        ]


def _argument_values(values: list[FilledMessage]) -> dict[str, Any]:
    return {each.argument.name: each.value for each in values if each.value}


def _content_field(form: RowForm) -> str:
    return "text" if form.cleaned_data.get("text") else "uri"


def _unused_arguments(definition: PromptDefinition, config: str) -> list[str]:
    """Return the arguments that no message uses."""
    squeezed = config.replace(" ", "")
    return [
        visible(argument.name)
        for argument in definition.arguments
        if f"{{{{{argument.name}}}}}" not in squeezed
    ]
