"""The forms of resources and resource templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, TypeVar, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import upload_of
from mcp_app.admin.editors.suggestions import VariablesField, variables_of
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
    PlaceholderTextarea,
    SecondsField,
)
from mcp_app.admin.page.preview import look_of_content
from mcp_app.admin.page.wording import RESOURCE, RESOURCE_TEMPLATE
from mcp_app.catalog.registry import mcp
from mcp_app.kinds import KindError, usable_kinds
from mcp_app.models import Resource, ResourceTemplate
from mcp_app.models.definitions import ReadableRow
from mcp_app.models.fields import parse_json
from mcp_app.protocol.json_types import JsonObject

Readable = TypeVar("Readable", bound=ReadableRow)
AUDIENCES: Final = {
    "": _("Not said"),
    "user": _("People"),
    "assistant": _("Models"),
    "user assistant": _("People and models"),
}
IMPORTANCES: Final = {
    "": _("Not said"),
    "0": _("None"),
    "0.25": _("Low"),
    "0.5": _("Middle"),
    "0.75": _("High"),
    "1": _("Essential"),
}


def audience_of(annotations: JsonObject) -> str:
    """Return the choice for an audience; "" if there is none."""
    audience = annotations.get("audience")
    # The keys of AUDIENCES have "user" first.
    roles = sorted(set(audience), reverse=True) if isinstance(audience, list) else []
    choice = " ".join(map(str, roles))
    return choice if choice in AUDIENCES else ""


def importance_of(annotations: JsonObject) -> str:
    """Return the choice for a priority, or else the number itself."""
    priority = annotations.get("priority")
    if isinstance(priority, bool) or not isinstance(priority, int | float):
        return ""
    keys = (key for key in IMPORTANCES if key and float(key) == priority)
    return next(keys, str(priority))


def merge_annotations(
    annotations: JsonObject, audience: str, importance: str
) -> JsonObject:
    """Return annotations, updated by each of the two choices that changed."""
    chosen: JsonObject = dict(annotations)
    if audience != audience_of(annotations):
        chosen["audience"] = audience.split()
        if not audience:
            del chosen["audience"]
    if importance != importance_of(annotations):
        number = float(importance or 0)
        chosen["priority"] = int(number) if number.is_integer() else number
        if not importance:
            del chosen["priority"]
    return chosen


class ReadableForm(DefinitionForm[Readable]):
    """The base of the forms of resources and templates."""

    BESIDE: ClassVar[tuple[str, ...]] = ("mime_type",)

    audience = forms.ChoiceField(choices=tuple(AUDIENCES.items()), required=False)
    importance = forms.ChoiceField(required=False)
    annotations = JsonField()
    ttl_ms = SecondsField()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        annotations = self._annotations(self.instance.annotations)
        importance = importance_of(annotations)
        self.initial["audience"] = audience_of(annotations)
        self.initial["importance"] = importance
        if "importance" in self.fields:
            field = cast("forms.ChoiceField", self.fields["importance"])
            # Also offer a stored number; the usual choices keep their labels.
            choices = {**IMPORTANCES, importance: importance}
            field.choices = tuple({**choices, **IMPORTANCES}.items())

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        choices = {"audience", "importance"}
        is_changed = not choices.isdisjoint(self.changed_data)
        if not is_changed or self.errors.keys() & {*choices, "annotations"}:
            return cleaned
        if "annotations" in self.changed_data:
            self.add_error(
                "annotations",
                _("You changed both this and a choice above. Change only one of them."),
            )
            return cleaned
        before = self._annotations(self.instance.annotations)
        values = {**self.initial, **self.cleaned_data}
        after = merge_annotations(before, values["audience"], values["importance"])
        self.cleaned_data["annotations"] = written_text(after) if after else ""
        return cleaned

    def _annotations(self, text: str) -> JsonObject:
        value = self.instance.json("annotations") if text else None
        return value if isinstance(value, dict) else {}


class ResourceForm(ReadableForm[Resource]):
    """What the forms of all resources share."""

    WORDS = RESOURCE

    class Meta(FormMeta):
        model = Resource


class FunctionResourceForm(FunctionForm[Resource], ResourceForm):
    """A resource that a function returns."""

    def column_values(self) -> Mapping[str, object]:
        return {**super().column_values(), "size": None}


class TextResourceForm(TextForm[Resource], ResourceForm):
    """A text or a file; an earlier upload stays until it is replaced."""

    EASY = ("text", "upload")
    RICH = ("config", "upload")
    BESIDE = ("mime_type", "now")

    upload = forms.FileField(required=False)
    now = PanelField("mcp_app/widgets/now.html")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "now" in self.fields:
            cast("PanelField", self.fields["now"]).shows(**self._current_preview())
        if self._has_upload() and "upload" in self.fields:
            # The admin renders help texts as HTML.
            self.fields["upload"].help_text = format_html(
                gettext(
                    "There is a file now: {size}, {type}. Another file, or a text,"
                    " replaces it."
                ),
                size=filesizeformat(self.instance.size or 0),
                type=self.instance.mime_type,
            )

    def _current_preview(self) -> Mapping[str, Any]:
        """Return what clients read of the saved row, from the code that serves them."""
        if self.instance._state.adding:
            return {}
        try:
            stored = self.row_definition()
            run = usable_kinds(mcp)[self.KIND].definition_runnable(
                stored.definition, stored.config, stored.uploads
            )
        except (KindError, ValueError) as error:
            return {"problem": str(error)}
        content = run.convert(run.run(**run.bind({})))
        media_type = self.instance.mime_type or "application/octet-stream"
        size = len(content if isinstance(content, bytes) else content.encode())
        return {"look": look_of_content(content, media_type), "size": size}

    @classmethod
    def easy_values(cls, config: JsonObject) -> dict[str, Any] | None:
        # Hide the digest; if nothing is sent, the file stays.
        return {} if config.keys() == {"upload"} else super().easy_values(config)

    def _has_upload(self) -> bool:
        """Return whether the stored config is a file."""
        return (self.instance.json("config") or {}).keys() == {"upload"}

    def clean_upload(self) -> UploadedFile[Any] | None:
        file: UploadedFile[Any] | None = self.cleaned_data.get("upload")
        is_typed = "mime_type" in self.changed_data
        typed = str(self["mime_type"].data or "") if is_typed else ""
        self._uploaded = upload_of(file, typed)
        return file

    def config_from_fields(self) -> JsonObject | None:
        if self._uploaded is None:
            return super().config_from_fields()
        if self.cleaned_data.get("text"):
            self.add_error("upload", _("Give a text or a file, not both."))
        # The file replaces the content that the form showed.
        self.cleaned_data["config"] = ""
        return {"upload": self._uploaded.digest}

    def _clean_content(self) -> None:
        values = [self.cleaned_data.get(name) for name in ("text", "config", "upload")]
        if self._has_upload() and not any(values):
            self.cleaned_data["config"] = self.instance.config
        else:
            super()._clean_content()

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if "mime_type" in self.errors:
            return cleaned
        media_type = self.cleaned_data.get("mime_type")
        has_text = bool(self.cleaned_data.get("text"))
        # A new file replaces the content, or a text replaces the file.
        is_replaced = self._uploaded is not None or (has_text and self._has_upload())
        if not media_type or (is_replaced and "mime_type" not in self.changed_data):
            usual = "text/plain" if has_text else ""
            if self._uploaded is not None:
                usual = self._uploaded.media_type
            self.cleaned_data["mime_type"] = usual or media_type
        return cleaned

    def keep_uploads(self) -> None:
        for upload in self.new_uploads():
            upload.store_content(self.instance.mime_type)

    def _post_clean(self) -> None:
        super()._post_clean()
        if not self.errors:
            self.instance.size = self._content_size()

    def _content_size(self) -> int | None:
        """Return the size of the content in bytes; None if it is not known."""
        if self._uploaded is not None:
            return len(self._uploaded.content)
        config = parse_json(self.instance.config)
        if isinstance(config.get("text"), str):
            return len(config["text"].encode())
        return self.instance.size if "upload" in config else None


class ResourceTemplateForm(ReadableForm[ResourceTemplate]):
    """What the forms of all resource templates share."""

    WORDS = RESOURCE_TEMPLATE

    suggestions = VariablesField()

    class Meta(FormMeta):
        model = ResourceTemplate

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # The page shows the pattern as it was sent, or else as it is stored.
        submitted = self.data.get("uri_template") if self.is_bound else None
        pattern = self.instance.uri_template if submitted is None else str(submitted)
        self.set_stored_value("suggestions", self.instance.suggestions, pattern)


class FunctionTemplateForm(FunctionForm[ResourceTemplate], ResourceTemplateForm):
    """A template whose resources a function returns."""


class TextTemplateForm(TextForm[ResourceTemplate], ResourceTemplateForm):
    """A template whose resources are one text with variables filled in."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "text" in self.fields:
            widget = cast("PlaceholderTextarea", self.fields["text"].widget)
            widget.names = variables_of(self.instance.uri_template)
            widget.source = "uri_template"
