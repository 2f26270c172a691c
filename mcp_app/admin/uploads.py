"""Files that come with a form: read once, kept when the form is saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import mcp_settings
from mcp_app.models import Blob
from mcp_app.models.fields import digest

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile


@dataclass(frozen=True, slots=True)
class Upload:
    """The bytes of a file, their SHA-256 in hexadecimal, and what the browser said."""

    digest: str
    content: bytes
    media_type: str

    def keep(self, media_type: str = "") -> None:
        """Store the bytes, so that configs that name them find them."""
        Blob.objects.keep(self.content, media_type or self.media_type)


def upload_of(file: UploadedFile[Any] | None) -> Upload | None:
    """Read a file that was sent; ValidationError where it is too large."""
    if not file:
        return None
    limit = mcp_settings.limits.body
    size = file.size or 0
    if size > limit:
        raise ValidationError(
            _("The file is %(size)s; the limit is %(limit)s."),
            params={"size": filesizeformat(size), "limit": filesizeformat(limit)},
        )
    file.seek(0)
    content = file.read()
    media_type = str(file.content_type or "application/octet-stream")
    return Upload(digest(content), content, media_type)
