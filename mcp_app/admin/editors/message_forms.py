"""The messages of a prompt as rows of forms, including files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

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
    _cleaned_values: dict[str, Any]

    def clean_upload(self) -> str:
        return check_digest(str(self.cleaned_data["upload"]))

    def clean_file(self) -> object:
        file = self.cleaned_data.get("file")
        self.new_file = upload_of(file, self._typed_type())
        return file

    def clean_mime_type(self) -> str:
        media_type = str(self.cleaned_data["mime_type"])
        # It may contain placeholders, whose values are not known yet.
        if "{{" not in media_type and (problem := media_type_problem(media_type)):
            raise ValidationError(problem)
        return media_type

    def _typed_type(self) -> str:
        """Return the media type if the user has changed it, else ""."""
        typed = str(self["mime_type"].data or "")
        return typed if "mime_type" in self.changed_data else ""

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if not self.errors:
            # `add_error` removes a value from `cleaned_data`.
            self._cleaned_values = dict(self.cleaned_data)
            make = getattr(self, f"_{self.cleaned_data['kind'] or 'text'}_message")
            role = self.cleaned_data["role"] or "user"
            self.message = replace(make(), role=role, was=self.cleaned_data["was"])
        return cleaned

    def _text_message(self) -> Message:
        self._require_field("text", _("Write the text of the message."))
        return Message(kind="text", text=self._visible_text())

    def _file_message(self) -> Message:
        upload, media_type = self._digest_and_type()
        if not upload:
            self.add_error("file", _("Choose a file."))
        elif not is_media_type(media_type):
            sentence = _(
                "The file is %(type)s. Only images and audio can be a message; "
                "other files can be the contents of a resource."
            )
            error = ValidationError(sentence, params={"type": media_type})
            self.add_error("file", error)
        return Message(kind="file", upload=upload, mime_type=media_type)

    def _contents_message(self) -> Message:
        self._require_field("uri", _("Fill in the address of the resource."))
        uri, text = self._cleaned_values["uri"], self._visible_text()
        upload, media_type = self._digest_and_type()
        if text and self.new_file is not None:
            self.add_error("file", _("Give a text or a file, not both."))
        if text:
            # A text replaces the stored file.
            upload, media_type = "", self._cleaned_values["mime_type"]
        return Message(
            kind="contents", uri=uri, text=text, upload=upload, mime_type=media_type
        )

    def _link_message(self) -> Message:
        self._require_field("uri", _("Fill in the address of the resource."))
        self._require_field("name", _("Fill in the name of the link."))
        names = ("uri", "name", "title", "description", "mime_type")
        values = {name: self._cleaned_values[name] for name in names}
        return Message(kind="link", **values)

    def _require_field(self, field: str, sentence: Label) -> None:
        if not self._cleaned_values[field]:
            self.add_error(field, str(sentence))

    def _visible_text(self) -> str:
        text = str(self._cleaned_values["text"])
        if problem := text_problem(text, lines=True):
            self.add_error("text", problem)
        return text

    def _digest_and_type(self) -> tuple[str, str]:
        """Return the digest and media type of the new file, or else the stored one."""
        media_type = self._cleaned_values["mime_type"]
        if self.new_file is not None:
            digest, uploaded_type = self.new_file.digest, self.new_file.media_type
            media_type = (self._typed_type() and media_type) or uploaded_type
        else:
            digest, uploaded_type = self._cleaned_values["upload"], ""
            if {"kind", "upload", "mime_type"} & set(self.changed_data):
                uploaded_type = stored_media_type(digest)
        try:
            check_type(media_type, uploaded_type)
        except ValidationError as error:
            self.add_error("mime_type", error)
        return digest, media_type


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
