"""The forms of prompts, and the preview of their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import Upload
from mcp_app.admin.editors.json_editor import EditorInput, SheetField
from mcp_app.admin.editors.message_forms import MessageForm, MessageSheet
from mcp_app.admin.editors.suggestions import ArgumentSheet
from mcp_app.admin.forms.definition import (
    NOTHING,
    DefinitionForm,
    FormMeta,
    FunctionForm,
)
from mcp_app.admin.forms.fields import PanelField
from mcp_app.admin.forms.fieldsets import ADVICE, TEXTS, Behind, own_json
from mcp_app.admin.page.preview import look_of_block
from mcp_app.admin.page.wording import PROMPT
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import PromptDefinition
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, serving_problems, usable_kinds
from mcp_app.models import Prompt
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject

_VALUE: Final = "preview-"
"""Begins the name of an input for an argument of the preview."""


class PromptForm(DefinitionForm[Prompt]):
    """What the forms of all prompts share."""

    WORDS = PROMPT

    arguments = SheetField(ArgumentSheet())

    class Meta(FormMeta):
        model = Prompt

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.set_stored_value(
            "arguments", self.instance.arguments, self.own_arguments()
        )

    def own_arguments(self) -> str | None:
        """Return the JSON to use if the column is empty; None if there is none."""
        return None


class FunctionPromptForm(FunctionForm[Prompt], PromptForm):
    """A prompt that a function makes."""

    def own_arguments(self) -> str:
        return own_json(Prompt, self.function_key(), mcp)


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
        is_empty = self.instance.json("config") in (None, {})
        self.set_stored_value("config", "" if is_empty else self.instance.config)
        if not self.is_bound:
            self.show_typed()

    def clean_config(self) -> str:
        config = str(self.cleaned_data["config"])
        return NOTHING if config in ("", '{"messages":[]}') else config

    def new_uploads(self) -> list[Upload]:
        if "config" not in self.fields or not self.is_bound:
            return []
        rows = self["config"].data.submitted_rows
        forms = [] if rows is None else rows.forms
        files = [form.new_file for form in forms if isinstance(form, MessageForm)]
        return [file for file in files if file is not None]

    def _post_clean(self) -> None:
        super()._post_clean()
        if self.has_error("config"):
            self._blame_messages()

    def _blame_messages(self) -> None:
        """Show the errors of each message beside it."""
        rows = cast("EditorInput", self["config"].data).submitted_rows
        if rows is None or not rows.is_valid():
            return
        stored = self.row_definition()
        for form in rows.ordered_forms:
            config = MessageSheet().value_of_rows([form], None)
            field = "text" if form.cleaned_data.get("text") else "uri"
            for problem in serving_problems(
                stored.definition, stored.kind, config, stored.uploads
            ):
                if problem.field == "config":
                    form.add_error(field, problem.message)

    def show_typed(self) -> None:
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
            filled = {
                each["argument"].name: each["value"] for each in values if each["value"]
            }
            output = run.convert(run.run(**run.bind(filled)))
        except (KindError, ValueError):
            return {"is_empty": True}
        except ProtocolError as error:
            return {"values": values, "problem": visible(error.message, None)}
        looks = [look_of_block(each.content) for each in output.messages]
        # A placeholder may have blanks inside its braces.
        without_blanks = self.instance.config.replace(" ", "")
        return {
            "values": values,
            "said": [
                {"role": message.role, "look": look}
                for message, look in zip(output.messages, looks, strict=True)
            ],
            "tokens": sum(each.tokens for each in looks),
            "left_out": len(values) - len(filled),
            "unused": [
                visible(argument.name)
                for argument in definition.arguments
                if f"{{{{{argument.name}}}}}" not in without_blanks
            ],
        }

    def _filled_arguments(self, definition: PromptDefinition) -> list[dict[str, Any]]:
        """Return the arguments with the values that the preview fills in."""
        data = self.data if self.is_bound else {}
        return [
            {
                "argument": each,
                "label": visible(each.title or each.name),
                "value": str(data.get(f"{_VALUE}{each.name}", "")),
            }
            for each in definition.arguments
        ]
