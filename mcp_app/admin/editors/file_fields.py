"""A file in a form: what is there, another one in its place, or none any more.

The page carries the digest of the file that it shows, so that a copy of a row has the
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
class Sent:
    """What a browser sent; `kept` is the digest of the file that the page showed."""

    file: UploadedFile[Any] | None = None
    kept: str = ""
    media_type: str = ""
    uri: str = ""
    remove: bool = False


@dataclass(frozen=True, slots=True)
class Given:
    """The file that a form asks for, and its bytes where they came with the form."""

    part: Message | None = None
    upload: Upload | None = None


class FilePartWidget(CompositeWidget):
    """The file that is there, and fields for another one."""

    template_name = "mcp_app/widgets/file_part.html"
    needs_multipart_form = True
    there = "-kept"

    def __init__(self) -> None:
        super().__init__()
        self.stored: Message | None = None
        self.may_use: MayUse = bool
        """Says of a digest whether the person may use that file."""
        self.is_fixed = False
        """Whether it is only looked at."""

    def value_from_datadict(
        self,
        data: Mapping[str, Any],
        files: MultiValueDict[str, UploadedFile[Any]] | None,
        name: str,
    ) -> Sent:
        def text(part: str) -> str:
            return str(data.get(f"{name}-{part}") or "").strip()

        return Sent(
            file=files.get(name) if files else None,
            kept=text("kept"),
            media_type=text("type"),
            uri=text("uri"),
            remove=bool(text("remove")),
        )

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        sent = value if isinstance(value, Sent) else shown_as(self.stored)
        return {
            **super().get_context(name, value, attrs),
            "sent": sent,
            "name": name,
            "is_fixed": self.is_fixed,
            "look": look_at(sent) if self.may_use(sent.kept) else None,
        }


def shown_as(part: Message | None) -> Sent:
    """Return what the page of a file sends back where nobody changes anything."""
    if part is None:
        return Sent()
    return Sent(kept=part.upload, media_type=part.mime_type, uri=part.uri)


def look_at(sent: Sent) -> object:
    """Return what the page shows of the file that is there; None where it is gone."""
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
        """Say which file the row has, and which others the person may use."""
        self.file_widget.stored, self.file_widget.may_use = stored, may_use

    def clean(self, value: Sent) -> Given:
        typed = value.media_type if value.media_type != self._before.media_type else ""
        upload = upload_of(value.file, typed)
        if upload is None and (value.remove or not value.kept):
            _check_nothing_typed(value)
            return Given()
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
        return Given(part, upload)

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return a file that came or is to go, and what is said of the one there."""
        sent = value if isinstance(value, Sent) else self._before
        return {
            "": (sent.file is not None, sent.remove),
            "-type": sent.media_type,
            "-uri": sent.uri,
        }

    def on_top(self, mine: Sent, touched: set[str]) -> Sent:
        """Return what was sent, about the file that is saved now."""
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
    def _before(self) -> Sent:
        return shown_as(self.file_widget.stored)

    def _kept(self, digest: str) -> str:
        """Return the digest of a file that is there, and that the person may use."""
        is_there = Blob.objects.filter(digest=check_digest(digest)).exists()
        if not is_there or not self.file_widget.may_use(digest):
            raise ValidationError(_("The file is not there any more. Choose it again."))
        return digest

    def _media_type(self, sent: Sent, found: str, *, is_new: bool) -> str:
        """Return what was typed about a file, else what it was found to be."""
        is_typed = sent.media_type != self._before.media_type
        if is_typed or not is_new:
            return sent.media_type or (found if is_typed else "")
        return found

    def _uri(self, sent: Sent, media_type: str, *, is_new: bool) -> str:
        """Return the address: what needs one and has none gets it from its name."""
        before = self._before
        if is_new and is_media(media_type) and not is_media(before.media_type):
            # The address of the file that was there is not this one's.
            return "" if sent.uri == before.uri else sent.uri
        if sent.uri or is_media(media_type):
            return sent.uri
        if not is_new:
            raise ValidationError(
                _(
                    "A file that is no image and no audio needs an address, for "
                    "example shop://policy.pdf."
                )
            )
        return made_up_uri(str(cast("UploadedFile[Any]", sent.file).name or ""))


def _check_nothing_typed(sent: Sent) -> None:
    """Raise where something is said about a file, and there is none."""
    if not sent.kept and (sent.media_type or sent.uri):
        raise ValidationError(_("Choose a file."))


def _part(digest: str, media_type: str, uri: str) -> Message:
    return Message(
        kind="contents" if uri else "file", upload=digest, mime_type=media_type, uri=uri
    )


def made_up_uri(name: str) -> str:
    """Return an address for a file of this name."""
    shown = quote(PurePath(name).name, errors="replace")
    return f"attachment:///{shown or 'file'}"
