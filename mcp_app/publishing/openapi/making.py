"""Makes tools of what a document offers; publishes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import Error as DatabaseError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from mcp_app.catalog.registry import Registry
from mcp_app.interface.rules import visible
from mcp_app.kinds.openapi.names import Names
from mcp_app.kinds.openapi.offer import Offer
from mcp_app.kinds.openapi.reading import DocumentError
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.models.transactions import is_conflict, persistently
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.findings import store_findings
from mcp_app.publishing.openapi.documents import lock, offers_in

LONGEST_TAGS: Final = 500
LONGEST_TAG: Final = 64
COLUMNS: Final = ("title", "description", "input_schema", "config")
"""What an offer says of a tool, and may say anew later."""


def columns_of(offer: Offer) -> Mapping[str, str]:
    """Return what an offer says, as the columns of a tool have it."""
    return {
        "title": _readable(offer.summary)[:255],
        "description": _readable(offer.description or offer.summary, lines=True),
        "input_schema": jsonrpc.write(offer.input_schema).decode(),
        "config": jsonrpc.write(offer.config).decode(),
    }


def _readable(text: str, *, lines: bool = False) -> str:
    """Return a text without characters that no row may have."""
    kept = "".join(
        each for each in text if each.isprintable() or (lines and each == "\n")
    )
    return kept.strip() if lines else " ".join(kept.split())


def make_tools(
    document: OpenApiDocument,
    keys: Iterable[str],
    registry: Registry,
    author: AbstractBaseUser | None,
) -> list[Tool]:
    """Make a tool of each of these operations, all or none; return the new ones.

    What is a tool already, barred or gone is left out.  Raises `DocumentError`.
    """
    wanted = [*keys]

    def make() -> list[Tool]:
        with transaction.atomic():
            # Two people who import one document do so one after the other.
            return _make(lock(document), wanted, registry, author)

    try:
        # Of another document somebody may take the same name, or lock it.
        return persistently(make, also=(IntegrityError,))
    except DatabaseError as error:
        if not (isinstance(error, IntegrityError) or is_conflict(error)):
            raise
        said = _("Meanwhile, somebody has made a tool of this name. Try again.")
        raise DocumentError(said) from None


def _make(
    document: OpenApiDocument,
    keys: Iterable[str],
    registry: Registry,
    author: AbstractBaseUser | None,
) -> list[Tool]:
    offers = offers_in(document)
    there = set(document.imported.values_list("key", flat=True))
    chosen = [offers[key] for key in dict.fromkeys(keys) if key in offers]
    wanted = [each for each in chosen if not each.bar and each.key not in there]
    names = Names({*Tool.objects.values_list("name", flat=True), *registry.tools})
    made = []
    for offer in wanted:
        tool = _tool(offer, names, author)
        try:
            # Who takes the name meanwhile is met when it is saved, and it begins anew.
            tool.full_clean(validate_constraints=False)
        except ValidationError as error:
            said = _("%(key)s cannot become a tool: %(error)s")
            shown = {"key": visible(offer.key), "error": " ".join(error.messages)}
            raise DocumentError(said % shown) from None
        tool.save()
        base = jsonrpc.write(offer.to_json()).decode()
        ImportedOperation.objects.create(
            document=document, key=offer.key, tool=tool, base=base
        )
        store_findings(tool, registry)
        made.append(tool)
    return made


def _tool(offer: Offer, names: Names, author: AbstractBaseUser | None) -> Tool:
    # What a method does stands in RFC 9110, section 9.2.
    hints: dict[str, Any] = {
        "read_only": offer.method == "GET",
        "idempotent": offer.method in ("GET", "PUT", "DELETE") or None,
        "destructive": offer.method == "DELETE" if offer.method != "GET" else None,
    }
    return Tool(
        name=names.take(offer.name),
        kind="http",
        tags=_tags(offer),
        updated_by_id=None if author is None else author.pk,
        **columns_of(offer),
        **hints,
    )


def _tags(offer: Offer) -> str:
    """Return the tags of an operation as the words that rows have."""
    words = (
        re.sub(r"[^A-Za-z0-9_.:-]+", "-", each).strip("-").lower()[:LONGEST_TAG]
        for each in offer.tags
    )
    tags = " ".join(dict.fromkeys(each for each in words if each))
    return tags[:LONGEST_TAGS].rpartition(" ")[0] if len(tags) > LONGEST_TAGS else tags
