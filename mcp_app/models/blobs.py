"""Uploaded content: immutable bytes, named by their digest."""

from __future__ import annotations

from django.db import models

from mcp_app.interface.rules import MAX_MEDIA_TYPE_LENGTH
from mcp_app.models.fields import DigestField, digest


class BlobQuerySet(models.QuerySet["Blob"]):
    def keep(self, content: bytes, media_type: str = "") -> Blob:
        columns = {"content": content, "size": len(content), "media_type": media_type}
        blob, _ = self.get_or_create(digest=digest(content), defaults=columns)
        return blob


class Blob(models.Model):
    """`media_type` is what the first upload of these bytes said."""

    digest = DigestField(primary_key=True)
    media_type = models.CharField(max_length=MAX_MEDIA_TYPE_LENGTH, blank=True)
    size = models.PositiveBigIntegerField()
    content = models.BinaryField()

    objects = BlobQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.digest[:12]} ({self.size} bytes)"
