"""Documents of OpenAPI as they were last read, and the tools that were made of them.

Neither is served, watched or in bundles: they only help staff to compare them later.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import orjson
from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from mcp_app.conf import MIB
from mcp_app.models.definitions import Tool
from mcp_app.models.fields import DigestField
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

MAX_STORED_BYTES: Final = 4 * MIB
MAX_LOCATION_LENGTH: Final = 500
MOST_INFLATED: Final = 64 * MIB


class TooManyOffers(ValueError):
    """All offers of a document together are larger than a row may hold."""


def pack_offers(offers: Sequence[JsonObject]) -> bytes:
    """Return offers as a row stores them; raise `TooManyOffers`."""
    text = jsonrpc.write(list(offers))
    stored = zlib.compress(text)
    for size, limit in ((len(text), MOST_INFLATED), (len(stored), MAX_STORED_BYTES)):
        if size > limit:
            message = _(
                "The operations of the document take %(size)d MiB; at most %(most)d are"
                " stored."
            )
            numbers = {"size": size // MIB + 1, "most": limit // MIB}
            raise TooManyOffers(message % numbers)
    return stored


class OpenApiDocument(models.Model):
    """A document, or the list of another MCP server's tools.

    `location` is its path at the site, "" for a file.  `offers` is what it offered when
    it was last read; `digest` is of its bytes.  `differing` counts the tools that are
    gone, or differ from what was taken over.  It is unreadable since `unread_since`.
    """

    title = models.CharField(max_length=200)
    site = models.CharField(max_length=40)
    location = models.CharField(max_length=MAX_LOCATION_LENGTH, blank=True)
    version = models.CharField(max_length=100, blank=True)
    digest = DigestField()
    offers = models.BinaryField()
    operations = models.PositiveIntegerField()
    differing = models.PositiveIntegerField(default=0, db_default=0)
    unread_since = models.DateTimeField(null=True)
    read_at = models.DateTimeField()
    read_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
    )

    class Meta:
        ordering = ["title", "site"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["site", "title"], name="mcp_openapi_site_title"
            )
        ]

    def __str__(self) -> str:
        return self.title

    def unpack_offers(self) -> list[JsonObject]:
        inflated = zlib.decompressobj().decompress(bytes(self.offers), MOST_INFLATED)
        offers: list[JsonObject] = orjson.loads(inflated)
        return offers


class ImportedOperation(models.Model):
    """An operation that became a tool; `base` is the offer as it was last taken."""

    document = models.ForeignKey(
        OpenApiDocument, on_delete=models.CASCADE, related_name="imported"
    )
    key = models.TextField()
    key_digest = DigestField(of="key")
    tool = models.OneToOneField(
        Tool, on_delete=models.CASCADE, related_name="imported_operation"
    )
    base = models.TextField()

    class Meta:
        ordering = ["pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["document", "key_digest"], name="mcp_openapi_operation"
            )
        ]

    def __str__(self) -> str:
        return self.key
