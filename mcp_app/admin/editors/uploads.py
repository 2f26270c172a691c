"""Uploaded files: read once, stored when the form is saved, named by their digests.

A page carries the digest of a stored file. Users may send another digest only if they
may view a definition that has that file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.core.exceptions import ValidationError
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from mcp_app.admin.editors import stored_files
from mcp_app.admin.editors.prompts.messages import is_media
from mcp_app.catalog.row_loader import MODELS
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import media_type_problem
from mcp_app.models import Blob, DefinitionVersion
from mcp_app.models.fields import digest

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractUser, AnonymousUser
    from django.core.files.uploadedfile import UploadedFile

ANY_TYPE: Final = "application/octet-stream"
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Upload:
    """The bytes of a file, their SHA-256 in hexadecimal, and the browser's type."""

    digest: str
    content: bytes
    media_type: str

    def keep(self, media_type: str = "") -> None:
        """Store the bytes, so that configs can refer to them."""
        Blob.objects.keep(self.content, media_type or self.media_type)


def upload_of(file: UploadedFile[Any] | None, typed: str = "") -> Upload | None:
    """Read an uploaded file; raise ValidationError for a bad size or media type.

    If a media type was `typed`, an invalid one of the browser is ignored.
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


def type_of(name: str) -> str:
    """Return the media type of a stored file when it was uploaded; "" if it is gone."""
    types = Blob.objects.filter(digest=name).values_list("media_type", flat=True)
    return types.first() or ""


def check_type(declared: str, found: str) -> None:
    """Raise if a file is declared as an image or audio but was uploaded as another."""
    family = declared.partition("/")[0]
    if not is_media(declared) or found in ("", ANY_TYPE):
        return
    if found.partition("/")[0] != family:
        raise ValidationError(
            _("The file is %(found)s, so it cannot be sent as %(declared)s."),
            params={"found": found, "declared": declared},
        )


def is_usable(user: AbstractUser | AnonymousUser, name: str) -> bool:
    """Return whether a file is in the config or a version of a viewable definition."""
    blobs = Blob.objects.filter(digest=name)
    if not blobs.exclude(media_type__startswith=stored_files.TYPE).exists():
        return False
    versions = DefinitionVersion.objects.filter(content__contains=name)
    return any(
        model.rows().filter(config__contains=name).exists()
        or versions.filter(kind=kind).exists()
        for kind, model in MODELS.items()
        if user.has_perm(f"mcp_app.view_{kind}")
        or user.has_perm(f"mcp_app.change_{kind}")
    )
