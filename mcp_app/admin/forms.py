"""Forms in which a definition is made without writing JSON.

Their fields are those that the fieldsets of the admin name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from django import forms
from django.contrib.auth.models import Permission
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils import formats, timezone
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.arguments import ArgumentsField
from mcp_app.admin.content import config_of_text, text_of_config
from mcp_app.admin.wording import (
    EVERY,
    PROMPT,
    RESOURCE,
    RESOURCE_TEMPLATE,
    SERVER,
    TOOL,
    Said,
    Words,
)
from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.stored import stored_definition
from mcp_app.conf import mcp_settings
from mcp_app.kinds import problems
from mcp_app.models import (
    Blob,
    DefinitionRow,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Tool,
)
from mcp_app.models.changes import WatchedRow
from mcp_app.models.fields import digest, parsed
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.jsonrpc import JsonObject

Row = TypeVar("Row", bound=WatchedRow)
Defined = TypeVar("Defined", bound=DefinitionRow)

SHORT = {"rows": 3, "class": "vLargeTextField"}
LONG = {"rows": 10, "class": "vLargeTextField"}
JSON = {"rows": 5, "class": "vLargeTextField mcp-json", "spellcheck": "false"}
LONG_JSON = {**JSON, "rows": 8}
READ_BY_KINDS = {
    "annotations",
    "arguments",
    "config",
    "function",
    "icons",
    "input_schema",
    "kind",
    "output_schema",
    "text",
    "upload",
    "uri",
    "uri_template",
}
"""Fields whose own errors come before those of the kind."""
WIDGETS = {
    "description": forms.Textarea(SHORT),
    "icons": forms.Textarea(JSON),
    "annotations": forms.Textarea(JSON),
    "input_schema": forms.Textarea(LONG_JSON),
    "output_schema": forms.Textarea(LONG_JSON),
    "uri": forms.TextInput({"class": "vLargeTextField"}),
    "uri_template": forms.TextInput({"class": "vLargeTextField"}),
}


if TYPE_CHECKING:

    class TypedForm(forms.ModelForm[Row]): ...

else:
    # Django's class takes no type arguments when it runs.
    class TypedForm(forms.ModelForm, Generic[Row]): ...


class WatchedForm(TypedForm[Row]):
    """Refuses to overwrite what someone else saved after the form was opened."""

    WORDS: ClassVar[Words] = {}

    opened_version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    class Media:
        css = {"all": ["mcp_app/admin.css"]}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        words = {**EVERY, **self.WORDS}
        for name in self.fields.keys() & words.keys():
            self.fields[name].label, self.fields[name].help_text = words[name]
        self.initial["opened_version"] = self.instance.lock_version

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        opened = self.cleaned_data.get("opened_version")
        if self.instance.pk and opened != self.instance.lock_version:
            self.add_error(None, self._conflict())
        return cleaned

    def _conflict(self) -> str:
        by = getattr(self.instance, "updated_by", None) or _("Someone")
        at = getattr(self.instance, "updated", None) or timezone.now()
        return _(
            "%(by)s saved this at %(at)s, after you opened it. Nothing was "
            "overwritten; your text is still in the form below. Open this page again "
            "to see what is saved now."
        ) % {"by": by, "at": formats.time_format(timezone.localtime(at))}


class ServerForm(WatchedForm[Server]):
    WORDS = SERVER

    class Meta:
        model = Server
        fields = ()
        widgets = WIDGETS


class DefinitionForm(WatchedForm[Defined]):
    """`function`, `text` and `config` are three ways to say what the row answers."""

    function = forms.CharField(required=False, widget=forms.Select)
    text = forms.CharField(required=False, strip=False, widget=forms.Textarea(LONG))
    config = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(LONG_JSON)
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial.update({"config": "", **self._split_config()})
        if "function" in self.fields:
            self.fields["function"].widget.choices = self._function_choices()

    def clean_text(self) -> str:
        # Browsers send line breaks as CR LF.
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def clean_permission(self) -> str:
        permission = str(self.cleaned_data["permission"])
        app_label, _dot, codename = permission.partition(".")
        if codename and not Permission.objects.filter(
            content_type__app_label=app_label, codename=codename
        ):
            raise forms.ValidationError(
                _("There is no permission “%(permission)s”."),
                params={"permission": permission},
            )
        return permission

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        kind = self.cleaned_data.get("kind")
        if kind == "function":
            config = {"function": self.cleaned_data.get("function", "")}
            self.cleaned_data["config"] = _json(config)
        elif kind == "text" and not self.errors.keys() & {"text", "config", "upload"}:
            self._clean_content()
        return cleaned

    def content(self) -> JsonObject | None:
        """Return the config of the easy fields; None where they are empty."""
        text = self.cleaned_data.get("text")
        return config_of_text(self._meta.model, text) if text else None

    def _clean_content(self) -> None:
        content = self.content()
        if content is None and not self.cleaned_data.get("config"):
            self.add_error("text", _("Write the text of the answer."))
        elif content is not None and self.cleaned_data.get("config"):
            self.add_error("config", _("Fill in the text or this, not both."))
        elif content is not None:
            self.cleaned_data["config"] = _json(content)

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.errors.keys() & READ_BY_KINDS:
            return
        try:
            stored = stored_definition(self.instance, mcp)
        except RegistrationError as error:
            self.add_error("function", str(error))
            return
        uploads = {**stored.uploads, **self.new_uploads()}
        for problem in problems(stored.definition, stored.kind, stored.config, uploads):
            self.add_error(self._shown_at(problem.field), problem.message)

    def new_uploads(self) -> dict[str, bytes]:
        """Return what was uploaded with this form, by digest."""
        return {}

    def _shown_at(self, field: str) -> str | None:
        if field == "config":
            field = self._config_source()
        return field if field in self.fields else None

    def _config_source(self) -> str:
        if self.cleaned_data.get("kind") == "function":
            return "function"
        return "text" if self.cleaned_data.get("text") else "config"

    def _split_config(self) -> dict[str, str]:
        """Return the stored config as the fields of the form show it."""
        config = self.instance.json("config")
        if not config:
            return {}
        if self.instance.kind == "function":
            return {"function": str(config.get("function", ""))}
        text = text_of_config(self._meta.model, config)
        if text is None:
            return {"config": self.instance.config}
        return {"text": text}

    def _function_choices(self) -> list[tuple[str, Said]]:
        keys = sorted(mcp.functions)
        chosen = self.initial.get("function", "")
        if chosen and chosen not in keys:
            keys.append(chosen)
        none: Said = "---------" if keys else _("Developers have registered none")
        return [("", none), *((key, _function_label(key)) for key in keys)]


def _function_label(key: str) -> str:
    if key not in mcp.functions:
        return f"{key} (no longer in the code)"
    lines = mcp.functions[key].description.strip().splitlines()
    return f"{key}: {lines[0]}" if lines else key


def _json(value: object) -> str:
    return jsonrpc.write(value).decode()


class ToolForm(DefinitionForm[Tool]):
    WORDS = TOOL

    class Meta:
        model = Tool
        fields = ()
        widgets = WIDGETS


class ResourceForm(DefinitionForm[Resource]):
    """A text or a file; what was uploaded before stays until it is replaced."""

    WORDS = RESOURCE

    upload = forms.FileField(required=False)

    class Meta:
        model = Resource
        fields = ()
        widgets = WIDGETS

    _uploaded: bytes | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        kept = self._kept_upload()
        if kept is not None and "upload" in self.fields:
            # The digest says nothing to anybody; the file stays where nothing is given.
            self.initial["config"] = ""
            self.fields["upload"].help_text = _(
                "There is a file now: %(size)s, %(type)s. Another file, or a text, "
                "takes its place."
            ) % {
                "size": filesizeformat(self.instance.size or 0),
                "type": self.instance.mime_type,
            }

    def _kept_upload(self) -> str | None:
        """Return the digest of the file that the row has."""
        config = self.instance.json("config") or {}
        upload = config.get("upload") if config.keys() == {"upload"} else None
        return upload if isinstance(upload, str) else None

    def clean_upload(self) -> UploadedFile[Any] | None:
        file = self.cleaned_data.get("upload")
        if not file:
            return None
        limit = mcp_settings.limits.body
        if file.size > limit:
            raise forms.ValidationError(
                _("The file is %(size)s; the limit is %(limit)s."),
                params={
                    "size": filesizeformat(file.size),
                    "limit": filesizeformat(limit),
                },
            )
        self._uploaded = file.read()
        return file  # type: ignore[no-any-return]

    def content(self) -> JsonObject | None:
        if self._uploaded is None:
            return super().content()
        if self.cleaned_data.get("text"):
            self.add_error("upload", _("Give a text or a file, not both."))
        # The file takes the place of the content that the form showed.
        self.cleaned_data["config"] = ""
        return {"upload": digest(self._uploaded)}

    def _clean_content(self) -> None:
        kept = self._kept_upload()
        given = [self.cleaned_data.get(name) for name in ("text", "config", "upload")]
        if kept is not None and not any(given):
            self.cleaned_data["config"] = self.instance.config
        else:
            super()._clean_content()

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        given = self.cleaned_data.get("mime_type")
        if not given or (self._is_replaced() and "mime_type" not in self.changed_data):
            self.cleaned_data["mime_type"] = self._media_type() or given
        return cleaned

    def _is_replaced(self) -> bool:
        """Whether a file takes the place of a text, or another way round."""
        text = bool(self.cleaned_data.get("text"))
        return self._uploaded is not None or (text and self._kept_upload() is not None)

    def new_uploads(self) -> dict[str, bytes]:
        if self._uploaded is None:
            return {}
        return {digest(self._uploaded): self._uploaded}

    def keep_upload(self) -> None:
        """Store what was uploaded, so that the row's config finds it."""
        if self._uploaded is not None:
            Blob.objects.keep(self._uploaded, self.instance.mime_type)

    def _post_clean(self) -> None:
        super()._post_clean()
        if not self.errors:
            self.instance.size = self._size()

    def _size(self) -> int | None:
        """Return the bytes of a text or of a new file; a kept file keeps its size."""
        if self._uploaded is not None:
            return len(self._uploaded)
        config = parsed(self.instance.config)
        if isinstance(config.get("text"), str):
            return len(config["text"].encode())
        return self.instance.size if "upload" in config else None

    def _media_type(self) -> str:
        file = self.cleaned_data.get("upload")
        if file:
            return str(file.content_type or "application/octet-stream")
        return "text/plain" if self.cleaned_data.get("text") else ""


class ResourceTemplateForm(DefinitionForm[ResourceTemplate]):
    WORDS = RESOURCE_TEMPLATE

    class Meta:
        model = ResourceTemplate
        fields = ()
        widgets = WIDGETS


class PromptForm(DefinitionForm[Prompt]):
    WORDS = PROMPT

    arguments = ArgumentsField(required=False)

    class Meta:
        model = Prompt
        fields = ()
        widgets = WIDGETS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["arguments"] = self.instance.json("arguments") or []

    def clean_arguments(self) -> str:
        # Lines say less than JSON can: untouched ones keep the JSON as it is.
        if "arguments" not in self.changed_data:
            return self.instance.arguments
        return str(self.cleaned_data["arguments"])
