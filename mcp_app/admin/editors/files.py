"""Files in forms: uploaded, kept between two pages, stored with the row."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import quote

from django import forms
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from mcp_app.admin.editors.messages import Message, is_media_type
from mcp_app.admin.editors.rows import CompositeWidget
from mcp_app.admin.page.preview import look_of_content
from mcp_app.catalog.row_loader import MODELS
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import media_type_problem, uri_problem
from mcp_app.models import Blob, DefinitionVersion
from mcp_app.models.fields import digest

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser
    from django.core.files.uploadedfile import UploadedFile
    from django.utils.datastructures import MultiValueDict


# -- stored files ----------------------------------------------------------------------
# A file kept in the database between two pages, for one user.
#
# A hidden field is too small for a file, and processes share no memory.

PIECE: Final = 1024 * 1024
"""Bytes per row: databases limit the size of a statement."""
TYPE: Final = "application/x-mcp-bundle-piece"
"""The media type of each piece, before the parameter with the user's key."""
_MAX_PIECES: Final = 100


def store_user_file(user: AbstractBaseUser, content: bytes) -> str:
    """Store a file instead of the user's previous one; return its name.

    Its bytes are compressed and prefixed with the user's key, so that they never equal
    an upload that a definition uses.
    """
    delete_user_file(user)
    packed, media_type = zlib.compress(content), _user_media_type(user)
    head = f"{media_type}\n".encode()
    pieces = [
        head + packed[start : start + PIECE] for start in range(0, len(packed), PIECE)
    ]
    names = [*map(digest, pieces)]
    # Two pieces may be equal: store each one once.
    rows = [
        Blob(digest=name, media_type=media_type, size=len(piece), content=piece)
        for name, piece in dict(zip(names, pieces, strict=True)).items()
    ]
    Blob.objects.bulk_create(rows, batch_size=1, ignore_conflicts=True)
    return " ".join(names)


def user_file_content(user: AbstractBaseUser, name: str, limit: int) -> bytes | None:
    """Return at most `limit` + 1 bytes of the user's file; None if it is gone."""
    # A browser may send anything; databases refuse NUL.
    names, media_type = name.replace("\0", " ").split(), _user_media_type(user)
    rows = Blob.objects.filter(media_type=media_type, digest__in=names[:_MAX_PIECES])
    pieces = {row.digest: bytes(row.content) for row in rows}
    if not names or any(each not in pieces for each in names):
        return None
    head_length = len(f"{media_type}\n".encode())
    packed = b"".join(pieces[each][head_length:] for each in names)
    try:
        return zlib.decompressobj().decompress(packed, limit + 1)
    except zlib.error:
        return None


def delete_user_file(user: AbstractBaseUser) -> None:
    """Delete the user's file."""
    Blob.objects.filter(media_type=_user_media_type(user)).defer("content").delete()


def _user_media_type(user: AbstractBaseUser) -> str:
    return f"{TYPE}; user={user.pk}"


# -- uploads ---------------------------------------------------------------------------
# Uploaded files: read once, stored when the form is saved, named by their digests.
#
# A page carries the digest of a stored file. Users may send another digest only if they
# may view a definition that has that file.

ANY_TYPE: Final = "application/octet-stream"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Upload:
    """The bytes of a file, their SHA-256 in hexadecimal, and the browser's type."""

    digest: str
    content: bytes
    media_type: str

    def store_content(self, media_type: str = "") -> None:
        """Store the bytes, so that configs can refer to them."""
        Blob.objects.keep(self.content, media_type or self.media_type)


def upload_of(file: UploadedFile[Any] | None, typed: str = "") -> Upload | None:
    """Read an uploaded file; raise ValidationError for a bad size or media type.

    If the user `typed` a media type, an invalid one from the browser is ignored.
    """
    if not file:
        return None
    limit = mcp_settings.limits.body
    size = file.size or 0
    if size > limit:
        raise ValidationError(
            _("The file is %(size)s; the limit is %(limit)s."),
            params={"size": filesizeformat(size), "limit": filesizeformat(limit)},
        )
    media_type = str(file.content_type or ANY_TYPE)
    if problem := media_type_problem(media_type):
        if not typed:
            raise ValidationError(
                _(
                    "The browser sent a wrong type for the file: %(problem)s Fill in"
                    " the type yourself."
                ),
                params={"problem": problem},
            )
        media_type = ANY_TYPE
    file.seek(0)
    content = file.read()
    return Upload(digest(content), content, media_type)


def check_digest(name: str) -> str:
    """Return a digest that a page sent; raise ValidationError if it is none."""
    if name and not _DIGEST.fullmatch(name):
        raise ValidationError(_("This is not the name of a file."))
    return name


def stored_media_type(name: str) -> str:
    """Return the media type of a stored file when it was uploaded; "" if it is gone."""
    types = Blob.objects.filter(digest=name).values_list("media_type", flat=True)
    return types.first() or ""


def check_type(declared: str, uploaded_type: str) -> None:
    """Raise ValidationError if an image or audio was uploaded as another type."""
    if not is_media_type(declared) or uploaded_type in ("", ANY_TYPE):
        return
    if uploaded_type.partition("/")[0] != declared.partition("/")[0]:
        raise ValidationError(
            _("The file is %(found)s, so it cannot be sent as %(declared)s."),
            params={"found": uploaded_type, "declared": declared},
        )


def is_usable(user: AbstractUser | AnonymousUser, name: str) -> bool:
    """Return whether a file is in the config or a version of a viewable definition."""
    blobs = Blob.objects.filter(digest=name)
    if not blobs.exclude(media_type__startswith=TYPE).exists():
        return False
    versions = DefinitionVersion.objects.filter(content__contains=name)
    return any(
        model.rows().filter(config__contains=name).exists()
        or versions.filter(kind=kind).exists()
        for kind, model in MODELS.items()
        if user.has_perm(f"mcp_app.view_{kind}")
        or user.has_perm(f"mcp_app.change_{kind}")
    )


# -- file fields -----------------------------------------------------------------------
# A form field for a file: keep the stored one, replace it, or remove it.
#
# The page carries the digest of the file that it shows, so that a copy of a row gets
# the file, too.

MayUse: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class SentFile:
    """The data from a browser; `kept` is the digest of the file on the page."""

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
        """Answers whether the user may use the file with this digest."""

    def value_from_datadict(
        self,
        data: Mapping[str, Any],
        files: MultiValueDict[str, UploadedFile[Any]] | None,
        name: str,
    ) -> SentFile:
        def submitted_text(part: str) -> str:
            return str(data.get(f"{name}-{part}") or "").strip()

        return SentFile(
            file=files.get(name) if files else None,
            kept=submitted_text("kept"),
            media_type=submitted_text("type"),
            uri=submitted_text("uri"),
            remove=bool(submitted_text("remove")),
        )

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        sent = value if isinstance(value, SentFile) else self.unchanged_submission()
        blob = None
        if sent.kept and self.may_use(sent.kept):
            blob = Blob.objects.filter(digest=sent.kept).first()
        media_type = sent.media_type or ANY_TYPE
        return {
            **super().get_context(name, value, attrs),
            "sent": sent,
            "name": name,
            "look": blob and look_of_content(bytes(blob.content), media_type),
        }

    def unchanged_submission(self) -> SentFile:
        """Return the data that an unchanged page sends."""
        part = self.stored or Message()
        return SentFile(kept=part.upload, media_type=part.mime_type, uri=part.uri)


class FilePartField(forms.Field):
    """A file as a part of an answer: an image, audio, or an embedded resource."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=FilePartWidget())

    @property
    def file_widget(self) -> FilePartWidget:
        return cast("FilePartWidget", self.widget)

    def set_stored_value(self, stored: Message | None, may_use: MayUse = bool) -> None:
        """Set the row's file, and the check for other files that the user may use."""
        self.file_widget.stored, self.file_widget.may_use = stored, may_use

    def clean(self, value: SentFile) -> FileValue:
        is_typed = value.media_type != self._before.media_type
        upload = upload_of(value.file, value.media_type if is_typed else "")
        if upload is None and (value.remove or not value.kept):
            if not value.kept and (value.media_type or value.uri):
                raise ValidationError(_("Choose a file."))
            return FileValue()
        if upload is None:
            is_stored = Blob.objects.filter(digest=check_digest(value.kept)).exists()
            if not is_stored or not self.file_widget.may_use(value.kept):
                message = _("The file is no longer stored. Choose it again.")
                raise ValidationError(message)
            digest, uploaded_type = value.kept, stored_media_type(value.kept)
            media_type = value.media_type or (uploaded_type if is_typed else "")
        else:
            digest, uploaded_type = upload.digest, upload.media_type
            media_type = (is_typed and value.media_type) or uploaded_type
        uri = self._resource_uri(value, media_type, is_new=upload is not None)
        for problem in (media_type_problem(media_type), uri and uri_problem(uri)):
            if problem:
                raise ValidationError(problem)
        kind = "contents" if uri else "file"
        part = Message(kind=kind, upload=digest, mime_type=media_type, uri=uri)
        if part != self.file_widget.stored:
            check_type(media_type, uploaded_type)
        return FileValue(part, upload)

    def parts(self, value: Any) -> Mapping[str, object]:
        """Return the parts to compare: upload and removal, media type, URI."""
        submission = value if isinstance(value, SentFile) else self._before
        return {
            "": (submission.file is not None, submission.remove),
            "-type": submission.media_type,
            "-uri": submission.uri,
        }

    def on_top(self, mine: SentFile, touched: set[str]) -> SentFile:
        """Return the sent changes, applied to the saved file."""
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
        return self.file_widget.unchanged_submission()

    def _resource_uri(
        self, submission: SentFile, media_type: str, *, is_new: bool
    ) -> str:
        """Return the URI; if a needed URI is missing, make one from the file name."""
        before, is_media = self._before, is_media_type(media_type)
        if is_new and is_media and not is_media_type(before.media_type):
            # Drop the old URI, which belonged to the earlier file.
            return "" if submission.uri == before.uri else submission.uri
        if submission.uri or is_media:
            return submission.uri
        if not submission.file:
            raise ValidationError(
                _(
                    "A file that is neither an image nor audio needs an address, for"
                    " example shop://policy.pdf."
                )
            )
        return attachment_uri(submission.file.name or "")


def attachment_uri(name: str) -> str:
    """Return a URI for a file of this name."""
    quoted = quote(PurePath(name).name, errors="replace")
    return f"attachment:///{quoted or 'file'}"
