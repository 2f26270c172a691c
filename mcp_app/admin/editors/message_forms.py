"""The messages of a prompt as rows of forms, including files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.files import (
    Upload,
    check_digest,
    check_type,
    stored_media_type,
    upload_of,
)
from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.messages import (
    MAX_MESSAGES,
    Message,
    config_of,
    is_media_type,
    messages_of,
)
from mcp_app.admin.editors.rows import LinesField, RowForm, formset_class_of
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import media_type_problem, text_problem

_NO_ADDRESS: Final = _("Fill in the address of the resource.")
COLUMNS: Final[Mapping[str, Mapping[str, Label]]] = {
    "text": {"text": _("Write the text of the message.")},
    "file": {"upload": "", "mime_type": ""},
    "contents": {"uri": _NO_ADDRESS, "text": "", "upload": "", "mime_type": ""},
    "link": {
        "uri": _NO_ADDRESS,
        "name": _("Fill in the name of the link."),
        **dict.fromkeys(("title", "description", "mime_type"), ""),
    },
}
"""The fields of each kind, with the error to show if a field is empty, or ""."""


class MessageForm(RowForm):
    """One message; fields that its kind does not have are ignored."""

    role = forms.ChoiceField(
        label=_("Says"),
        choices=[("user", _("User")), ("assistant", _("Assistant"))],
        initial="user",
        required=False,
    )
    kind = forms.ChoiceField(
        label=_("What"),
        choices=[
            ("text", _("Text")),
            ("file", _("Image or audio file")),
            ("contents", _("Contents of a resource")),
            ("link", _("Link to a resource")),
        ],
        initial="text",
        required=False,
    )
    text = LinesField(label=_("Text"), rows=5, strip=False)
    uri = forms.CharField(
        label=_("Address of the resource"),
        required=False,
        help_text=_("For example shop://policy/returns."),
    )
    name = forms.CharField(label=_("Name of the link"), required=False)
    title = forms.CharField(label=_("Title of the link"), required=False)
    description = forms.CharField(label=_("Description of the link"), required=False)
    file = forms.FileField(label=_("File"), required=False)
    upload = forms.CharField(required=False, widget=forms.HiddenInput)
    mime_type = forms.CharField(
        label=_("Type of contents"),
        required=False,
        help_text=_("A media type. Empty: the type of the file."),
    )

    message: Message
    new_file: Upload | None = None

    def clean_upload(self) -> str:
        return check_digest(str(self.cleaned_data["upload"]))

    def clean_file(self) -> object:
        file = self.cleaned_data.get("file")
        self.new_file = upload_of(file, self._typed_type())
        return file

    def clean_mime_type(self) -> str:
        media_type = str(self.cleaned_data["mime_type"])
        # With placeholders, the final media type is not known yet.
        if "{{" not in media_type and (problem := media_type_problem(media_type)):
            raise ValidationError(problem)
        return media_type

    def _typed_type(self) -> str:
        """Return the media type if the user has changed it, else ""."""
        typed = str(self["mime_type"].data or "")
        return typed if "mime_type" in self.changed_data else ""

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.errors:
            return cleaned
        # `add_error` removes a value from `cleaned_data`.
        values = dict(self.cleaned_data)
        kind = values["kind"] or "text"
        columns = COLUMNS[kind]
        for column, sentence in columns.items():
            if sentence and not values[column]:
                self.add_error(column, str(sentence))
        if "text" in columns and (problem := text_problem(values["text"], lines=True)):
            self.add_error("text", problem)
        if "upload" in columns:
            values |= self._file_values(kind, values)
        self.message = Message(
            role=values["role"] or "user",
            kind=kind,
            was=values["was"],
            **{column: values[column] for column in columns},
        )
        return cleaned

    def _file_values(self, kind: str, values: Mapping[str, Any]) -> dict[str, str]:
        """Return `upload` and `mime_type` of the new file, or else the stored one."""
        upload, typed_type = values["upload"], values["mime_type"]
        media_type, uploaded_type = typed_type, ""
        if self.new_file is not None:
            upload, uploaded_type = self.new_file.digest, self.new_file.media_type
            media_type = (self._typed_type() and typed_type) or uploaded_type
        elif {"kind", "upload", "mime_type"} & set(self.changed_data):
            uploaded_type = stored_media_type(upload)
        try:
            check_type(media_type, uploaded_type)
        except ValidationError as error:
            self.add_error("mime_type", error)
        if kind == "contents" and values["text"]:
            if self.new_file is not None:
                self.add_error("file", _("Give a text or a file, not both."))
            # A text replaces the stored file.
            upload, media_type = "", typed_type
        elif kind == "file" and not upload:
            self.add_error("file", _("Choose a file."))
        elif kind == "file" and not is_media_type(media_type):
            sentence = _(
                "The file is %(type)s. Only images and audio can be a message; "
                "other files can be the contents of a resource."
            )
            problem = ValidationError(sentence, params={"type": media_type})
            self.add_error("file", problem)
        return {"upload": upload, "mime_type": media_type}


class MessageSheet(JsonEditor):
    """The config of a prompt of the kind `text`."""

    formset = formset_class_of(MessageForm, MAX_MESSAGES)
    row_template = "mcp_app/widgets/message.html"
    multipart = True
    words = {
        **WORDS,
        "as_table": _("Edit message by message"),
        "add": _("Add a message"),
        "new": _("New message"),
        "beyond": _(
            "This page cannot show all of these messages (%(reason)s). They are kept"
            " exactly as they are; edit them as JSON."
        ),
        "both": _("You changed both the messages and the JSON. Choose which to keep."),
        "keep_table": _("Keep the messages"),
        "empty": _("No messages yet."),
        "least": 1,
        "names_of": "arguments",
    }

    def initial_rows(self, value: Any) -> Initial:
        return [*map(asdict, messages_of(value or {}))]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        forms = (form for form in rows if isinstance(form, MessageForm))
        return config_of([form.message for form in forms], base)
