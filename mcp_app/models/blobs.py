"""Uploaded content: immutable bytes, named by their digest."""

from __future__ import annotations

from django.db import models

from mcp_app.interface.rules import LONGEST_MEDIA_TYPE
from mcp_app.models.fields import DigestField, digest


class BlobQuerySet(models.QuerySet["Blob"]):
    def keep(self, content: bytes, media_type: str = "") -> Blob:
        """Store bytes once and return their row."""
        blob, _ = self.get_or_create(
            digest=digest(content),
            defaults={
                "content": content,
                "size": len(content),
                "media_type": media_type,
            },
        )
        return blob


class Blob(models.Model):
    """`media_type` is what the first upload of these bytes said."""

    digest = DigestField(primary_key=True)
    media_type = models.CharField(max_length=LONGEST_MEDIA_TYPE, blank=True)
    size = models.PositiveBigIntegerField()
    content = models.BinaryField()

    objects = BlobQuerySet.as_manager()

    class Meta:
        app_label = "mcp_app"
        # No page: nobody needs a right.
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.digest[:12]} ({self.size} bytes)"
