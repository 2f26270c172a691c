"""A form field for a file: keep the stored one, replace it, or remove it.

The page carries the digest of the file that it shows, so that a copy of a row gets the
file, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import quote

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.admin.editors.composite import CompositeWidget
from mcp_app.admin.editors.prompts.messages import Message, is_media
from mcp_app.admin.editors.uploads import (
    ANY_TYPE,
    Upload,
    check_digest,
    check_type,
    type_of,
    upload_of,
)
from mcp_app.admin.page.preview import look_of
from mcp_app.interface.rules import media_type_problem, uri_problem
from mcp_app.models import Blob

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict

MayUse: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SentFile:
    """What a browser sent; `kept` is the digest of the file that the page showed."""

    file: UploadedFile[Any] | None = None
    kept: str = ""
    media_type: str = ""
    uri: str = ""
    remove: bool = False


@dataclass(frozen=True, slots=True)
class FileValue:
    """The file of a form, and its bytes if they were uploaded with the form."""

    part: Message | None = None
    upload: Upload | None = None


class FilePartWidget(CompositeWidget):
    """The stored file, and inputs for another one."""

    template_name = "mcp_app/widgets/file_part.html"
    needs_multipart_form = True
    there = "-kept"

    def __init__(self) -> None:
        super().__init__()
        self.stored: Message | None = None
        self.may_use: MayUse = bool
        """Return whether the user may use the file with a digest."""
        self.is_fixed = False
        """Whether the field is read-only."""

    def value_from_datadict(
        self,
        data: Mapping[str, Any],
        files: MultiValueDict[str, UploadedFile[Any]] | None,
        name: str,
    ) -> SentFile:
        def text(part: str) -> str:
            return str(data.get(f"{name}-{part}") or "").strip()

        return SentFile(
            file=files.get(name) if files else None,
            kept=text("kept"),
            media_type=text("type"),
            uri=text("uri"),
            remove=bool(text("remove")),
        )

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        sent = value if isinstance(value, SentFile) else shown_as(self.stored)
        return {
            **super().get_context(name, value, attrs),
            "sent": sent,
            "name": name,
            "is_fixed": self.is_fixed,
            "look": look_at(sent) if self.may_use(sent.kept) else None,
        }


def shown_as(part: Message | None) -> SentFile:
    """Return what a page with this file sends if nobody changes anything."""
    if part is None:
        return SentFile()
    return SentFile(kept=part.upload, media_type=part.mime_type, uri=part.uri)


def look_at(sent: SentFile) -> object:
    """Return the preview of the stored file; None if it no longer exists."""
    blob = Blob.objects.filter(digest=sent.kept).first() if sent.kept else None
    return blob and look_of(bytes(blob.content), sent.media_type or ANY_TYPE)


class FilePartField(forms.Field):
    """A file as a part of an answer: an image, audio, or an embedded resource."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=FilePartWidget())

    @property
    def file_widget(self) -> FilePartWidget:
        return cast("FilePartWidget", self.widget)

    def shows(self, stored: Message | None, may_use: MayUse = bool) -> None:
        """Set the file that the row has, and which others the user may use."""
        self.file_widget.stored, self.file_widget.may_use = stored, may_use

    def clean(self, value: SentFile) -> FileValue:
        typed = value.media_type if value.media_type != self._before.media_type else ""
        upload = upload_of(value.file, typed)
        if upload is None and (value.remove or not value.kept):
            _check_nothing_typed(value)
            return FileValue()
        if upload is None:
            digest, found = self._kept(value.kept), type_of(value.kept)
        else:
            digest, found = upload.digest, upload.media_type
        media_type = self._media_type(value, found, is_new=upload is not None)
        uri = self._uri(value, media_type, is_new=upload is not None)
        for problem in (media_type_problem(media_type), uri and uri_problem(uri)):
            if problem:
                raise ValidationError(problem)
        part = _part(digest, media_type, uri)
        if part != self.file_widget.stored:
            check_type(media_type, found)
        return FileValue(part, upload)

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return the parts to compare: upload and removal, media type, URI."""
        sent = value if isinstance(value, SentFile) else self._before
        return {
            "": (sent.file is not None, sent.remove),
            "-type": sent.media_type,
            "-uri": sent.uri,
        }

    def on_top(self, mine: SentFile, touched: set[str]) -> SentFile:
        """Return what was sent, applied to the file that is saved now."""
        saved = self._before
        return replace(
            mine,
            kept=saved.kept,
            media_type=(mine if "-type" in touched else saved).media_type,
            uri=(mine if "-uri" in touched else saved).uri,
        )

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data != self._before)

    @property
    def _before(self) -> SentFile:
        return shown_as(self.file_widget.stored)

    def _kept(self, digest: str) -> str:
        """Return the digest if the file exists and the user may use it, else raise."""
        is_there = Blob.objects.filter(digest=check_digest(digest)).exists()
        if not is_there or not self.file_widget.may_use(digest):
            raise ValidationError(_("The file is no longer stored. Choose it again."))
        return digest

    def _media_type(self, sent: SentFile, found: str, *, is_new: bool) -> str:
        """Return the typed media type, or else the one that the file has."""
        is_typed = sent.media_type != self._before.media_type
        if is_typed or not is_new:
            return sent.media_type or (found if is_typed else "")
        return found

    def _uri(self, sent: SentFile, media_type: str, *, is_new: bool) -> str:
        """Return the URI; make one from the file name if it needs one and has none."""
        before = self._before
        if is_new and is_media(media_type) and not is_media(before.media_type):
            # The URI belonged to the earlier file.
            return "" if sent.uri == before.uri else sent.uri
        if sent.uri or is_media(media_type):
            return sent.uri
        if not is_new:
            raise ValidationError(
                _(
                    "A file that is neither an image nor audio needs an address, for"
                    " example shop://policy.pdf."
                )
            )
        return made_up_uri(str(cast("UploadedFile[Any]", sent.file).name or ""))


def _check_nothing_typed(sent: SentFile) -> None:
    """Raise if a media type or a URI was typed, but there is no file."""
    if not sent.kept and (sent.media_type or sent.uri):
        raise ValidationError(_("Choose a file."))


def _part(digest: str, media_type: str, uri: str) -> Message:
    return Message(
        kind="contents" if uri else "file", upload=digest, mime_type=media_type, uri=uri
    )


def made_up_uri(name: str) -> str:
    """Return a URI for a file of this name."""
    shown = quote(PurePath(name).name, errors="replace")
    return f"attachment:///{shown or 'file'}"
