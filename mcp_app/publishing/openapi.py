"""Documents of OpenAPI: reads them, compares what they offer, makes tools of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from asgiref.sync import async_to_sync
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import Error as DatabaseError
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from mcp_app.catalog.registry import Registry
from mcp_app.conf import mcp_settings
from mcp_app.egress.client import call_once
from mcp_app.egress.requests import SiteRequest
from mcp_app.egress.resolving import EgressError
from mcp_app.egress.sites import Site, usable_sites
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.http.config import MAX_PAIRS
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import DocumentError, Names, Offer, read_document
from mcp_app.models import ImportedOperation, OpenApiDocument, Tool
from mcp_app.models.fields import digest, parse_json
from mcp_app.models.openapi import (
    MAX_LOCATION_LENGTH,
    MOST_INFLATED,
    TooManyOffers,
    pack_offers,
)
from mcp_app.models.transactions import is_conflict, persistently
from mcp_app.protocol import jsonrpc
from mcp_app.publishing.row_findings import store_findings

# -- documents -------------------------------------------------------------------------
# Reads documents, from a file or from the site itself, and keeps what they offer.


def configured_site(key: str) -> Site:
    """Return a site of the settings; raise `DocumentError` if it is not there."""
    site = usable_sites().get(key)
    if site is None:
        message = _("The settings have no site “%(key)s” that can be used.")
        raise DocumentError(message % {"key": visible(key)})
    return site


USUAL_PATHS: Final = ("/openapi.json", "/openapi.yaml", "/api/schema/", "/schema/")
"""Where the document is looked for, if nobody says where it is."""


def find_document(site: Site, user: AbstractBaseUser) -> tuple[bytes, str]:
    """Return the document that a site has at a usual place, and its path; blocks.

    Raises `DocumentError`.
    """
    for path in USUAL_PATHS:
        with suppress(NoDocument):
            content = fetch_document(site, path, user)
            with suppress(DocumentError):
                read_document(content, mcp_settings.limits.document)
                return content, path
    message = _("%(site)s has no document at %(paths)s. Write its path.")
    details = {"site": site.title, "paths": ", ".join(USUAL_PATHS)}
    raise DocumentError(message % details)


class NoDocument(DocumentError):
    """The site answers, but not with a document."""


def fetch_document(site: Site, path: str, user: AbstractBaseUser) -> bytes:
    """Return the document that a site has at a path; blocks, raises `DocumentError`."""
    if not path.startswith("/"):
        raise DocumentError(_("The path must begin with “/”, such as /openapi.json."))
    if len(path) > MAX_LOCATION_LENGTH:
        message = _("The path is longer than %d characters.") % MAX_LOCATION_LENGTH
        raise DocumentError(message)
    path, _mark, query = path.partition("?")
    request = SiteRequest(
        method="GET", path=path, query=query, idempotent=True, log_path=path
    )
    access_request = AccessRequest.of_user(user)
    # Documents are larger than answers.
    larger = replace(site, answer=mcp_settings.limits.document)
    try:
        answer = async_to_sync(call_once)(larger, request, access_request)
    except EgressError as error:
        message = _("%(site)s did not give the document: %(error)s")
        details = {"site": site.title, "error": error.message}
        raise DocumentError(message % details) from None
    if answer.status != HTTPStatus.OK:
        message = _("%(site)s answered with the status %(status)d.")
        raise NoDocument(message % {"site": site.title, "status": answer.status})
    return answer.body


def store(
    content: bytes,
    site: Site,
    *,
    location: str = "",
    author: AbstractBaseUser | None = None,
    row: OpenApiDocument | None = None,
) -> OpenApiDocument:
    """Keep what a document offers, in this row or in that of its title.

    Raises `DocumentError`; nothing is stored then.
    """
    document = read_document(content, mcp_settings.limits.document)
    offers = offers_of(document, site, MOST_INFLATED)
    if not offers:
        raise DocumentError(_("The document has no operation that can be a tool."))
    about = document.get("info")
    info: Mapping[str, object] = about if isinstance(about, dict) else {}
    title = _one_line_text(info.get("title"), 200) or site.title
    values = {
        "location": location,
        "version": info.get("version"),
        "digest": digest(content),
        "read_by": author,
    }
    return keep_offers(offers, site, title, row, **values)


def keep_offers(
    offers: Sequence[Offer],
    site: Site,
    title: str,
    row: OpenApiDocument | None = None,
    *,
    version: object,
    **values: Any,
) -> OpenApiDocument:
    """Keep offers in this row, or in that of the title; raise `DocumentError`."""
    try:
        stored = pack_offers([offer.to_json() for offer in offers])
    except TooManyOffers as error:
        raise DocumentError(str(error)) from None
    values |= {
        "version": _one_line_text(version, 100),
        "offers": stored,
        "operations": len(offers),
        "read_at": timezone.now(),
        "unread_since": None,
    }
    if row is not None:
        with transaction.atomic():
            lock_document(row)
            for name, value in values.items():
                setattr(row, name, value)
            row.save(update_fields=[*values])
        return row
    keep = partial(
        OpenApiDocument.objects.update_or_create,
        site=site.key,
        title=title,
        defaults=values,
    )
    # MariaDB ends one of two transactions that wait for each other.
    row, _created = persistently(keep)
    return row


def _one_line_text(value: object, longest: int) -> str:
    text = value if isinstance(value, str) else ""
    return visible(" ".join(text.split()))[:longest]


def offers_in(row: OpenApiDocument) -> dict[str, Offer]:
    """Return what a document offered when it was last read, by key."""
    return {offer.key: offer for offer in map(Offer.from_json, row.unpack_offers())}


def lock_document(row: OpenApiDocument) -> OpenApiDocument:
    """Return a row as it is now, locked; raise `DocumentError` if it is gone."""
    now = OpenApiDocument.objects.select_for_update().filter(pk=row.pk).first()
    if now is None:
        raise DocumentError(_("Meanwhile, somebody has deleted this document."))
    return now


# -- comparing -------------------------------------------------------------------------
# Compares three: the document of now, what was taken over, and the tool of now.


class Standing(StrEnum):
    """How a tool differs from the document of now."""

    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column that the document changed; `is_own` if staff changed `yours`, too."""

    column: str
    before: str
    now: str
    yours: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class ComparedOperation:
    """A tool beside the operation that it was made of."""

    operation: ImportedOperation
    standing: Standing
    differences: Sequence[ColumnDifference] = ()
    bar: str = ""
    """Why the present operation cannot be a tool."""


def count_differing(
    document: OpenApiDocument, compared: Sequence[ComparedOperation] | None = None
) -> None:
    """Store how many tools of a document differ from what it says now."""
    if compared is None:
        compared = compare_operations(document)
    count = sum(each.standing is not Standing.SAME for each in compared)
    if count != document.differing:
        document.differing = count
        OpenApiDocument.objects.filter(pk=document.pk).update(differing=count)


def compare_operations(document: OpenApiDocument) -> list[ComparedOperation]:
    """Return each tool of a document with its differences; two queries."""
    offers = offers_in(document)
    operations = document.imported.select_related("tool")
    return [_compare_operation(each, offers.get(each.key)) for each in operations]


def _compare_operation(
    operation: ImportedOperation, offer: Offer | None
) -> ComparedOperation:
    if offer is None:
        return ComparedOperation(operation, Standing.GONE)
    base = Offer.from_json(parse_json(operation.base))
    # Of too many parameters, only those that the tool was made with are compared.
    if len(offer.pair_names) > MAX_PAIRS:
        offer = offer.with_parameters(base.input_schema["properties"])
    if _is_same_text(jsonrpc.write(offer.to_json()).decode(), operation.base):
        return ComparedOperation(operation, Standing.SAME)
    if offer.bar:
        return ComparedOperation(operation, Standing.CHANGED, bar=offer.bar)
    differences = [*_differences(columns_of(base), columns_of(offer), operation.tool)]
    # Tags and the like are no columns of a tool: there is nothing to decide.
    standing = Standing.CHANGED if differences else Standing.SAME
    return ComparedOperation(operation, standing, differences)


def _differences(
    before: Mapping[str, str], now: Mapping[str, str], tool: Tool
) -> Sequence[ColumnDifference]:
    differences = []
    for column in now:
        if not _is_same_text(before[column], now[column]):
            yours = getattr(tool, column)
            yours = "" if yours is None else str(yours)
            is_own = not any(
                _is_same_text(yours, each[column]) for each in (before, now)
            )
            differences.append(
                ColumnDifference(column, before[column], now[column], yours, is_own)
            )
    return differences


def _is_same_text(one: str, other: str) -> bool:
    """Whether two texts, or what they say as JSON, are the same."""
    if one == other:
        return True
    try:
        return bool(parse_json(one) == parse_json(other))
    except ValueError:
        return False


def take_over(
    document: OpenApiDocument,
    keys: Sequence[int],
    registry: Registry,
    author: AbstractBaseUser | None,
) -> tuple[list[Tool], list[str]]:
    """Write what the document changed into tools, but not over what staff changed.

    Returns the tools, and "tool: column" for each column that keeps its own text.
    Publishes nothing.  Raises `DocumentError` if the document is gone.
    """
    changed: list[Tool] = []
    own_columns: list[str] = []
    with transaction.atomic():
        row = lock_document(document)
        offers = offers_in(row)
        for operation in row.imported.select_related("tool").filter(pk__in=keys):
            compared = _compare_operation(operation, offers.get(operation.key))
            if compared.standing is not Standing.CHANGED or compared.bar:
                continue
            tool = operation.tool
            for each in compared.differences:
                if each.is_own:
                    own_columns.append(f"{tool.name}: {each.column}")
                else:
                    setattr(tool, each.column, column_value(each.column, each.now))
            tool.updated_by_id = None if author is None else author.pk
            tool.full_clean()
            tool.save()
            operation.base = jsonrpc.write(offers[operation.key].to_json()).decode()
            operation.save(update_fields=["base"])
            store_findings(tool, registry)
            changed.append(tool)
        count_differing(row)
    return changed, own_columns


# -- making ----------------------------------------------------------------------------
# Makes tools of what a document offers; publishes nothing.

MAX_TAGS_LENGTH: Final = 500
MAX_TAG_LENGTH: Final = 64


def columns_of(offer: Offer) -> Mapping[str, str]:
    """Return what an offer says, and may later change, in the columns of a tool.

    A hint is "True", "False" or "".
    """
    columns = {
        "title": _readable_text(offer.summary)[:255],
        "description": _readable_text(offer.description or offer.summary, lines=True),
        "input_schema": jsonrpc.write(offer.input_schema).decode(),
        "config": jsonrpc.write(offer.config).decode(),
    }
    if offer.hints:
        schema = offer.output_schema
        columns["output_schema"] = jsonrpc.write(schema).decode() if schema else ""
        names = ("read_only", "destructive", "idempotent")
        columns |= {name: str(offer.hints.get(name, "")) for name in names}
    return columns


def column_value(column: str, text: str) -> str | bool | None:
    """Return what a column of a tool holds for a text of `columns_of`."""
    if column in Tool.HINTS:
        return {"True": True, "False": False}.get(text)
    return text


def _readable_text(text: str, *, lines: bool = False) -> str:
    cleaned = "".join(
        each for each in text if each.isprintable() or (lines and each == "\n")
    )
    return cleaned.strip() if lines else " ".join(cleaned.split())


def make_tools(
    document: OpenApiDocument,
    keys: Iterable[str],
    registry: Registry,
    author: AbstractBaseUser | None,
    parameters: Mapping[str, Collection[str]] | None = None,
) -> list[Tool]:
    """Make a tool of each of these operations, all or none; return the new ones.

    `parameters` are those that somebody chose, by key.  An operation that is a tool
    already, cannot be one, or is gone, is left out.  Raises `DocumentError`.
    """
    make = partial(_create_tools, document, [*keys], registry, author, parameters or {})
    try:
        # Somebody may take the same name, or lock it, from another document.
        return persistently(make, also=(IntegrityError,))
    except DatabaseError as error:
        if not (isinstance(error, IntegrityError) or is_conflict(error)):
            raise
        message = _("Meanwhile, somebody has made a tool of this name. Try again.")
        raise DocumentError(message) from None


@transaction.atomic
def _create_tools(
    document: OpenApiDocument,
    keys: Iterable[str],
    registry: Registry,
    author: AbstractBaseUser | None,
    parameters: Mapping[str, Collection[str]],
) -> list[Tool]:
    # Two people who import one document do so one after the other.
    document = lock_document(document)
    offers = offers_in(document)
    imported_keys = set(document.imported.values_list("key", flat=True))
    chosen = [offers[key] for key in dict.fromkeys(keys) if key in offers]
    wanted = [each for each in chosen if not each.bar and each.key not in imported_keys]
    names = Names({*Tool.objects.values_list("name", flat=True), *registry.tools})
    tools = []
    for offer in (e.with_parameters(parameters.get(e.key)) for e in wanted):
        tool = _tool_from_offer(offer, names, author)
        try:
            # If somebody takes the name meanwhile, saving fails, and all is repeated.
            tool.full_clean(validate_constraints=False)
        except ValidationError as error:
            message = _("%(key)s cannot become a tool: %(error)s")
            details = {"key": visible(offer.key), "error": " ".join(error.messages)}
            raise DocumentError(message % details) from None
        tool.save()
        base = jsonrpc.write(offer.to_json()).decode()
        ImportedOperation.objects.create(
            document=document, key=offer.key, tool=tool, base=base
        )
        store_findings(tool, registry)
        tools.append(tool)
    return tools


def _tool_from_offer(
    offer: Offer, names: Names, author: AbstractBaseUser | None
) -> Tool:
    # What a method does stands in RFC 9110, section 9.2.
    hints: dict[str, Any] = {
        "read_only": offer.method == "GET",
        "idempotent": offer.method in ("GET", "PUT", "DELETE") or None,
        "destructive": offer.method == "DELETE" if offer.method != "GET" else None,
    }
    columns = columns_of(offer)
    values = {name: column_value(name, text) for name, text in columns.items()}
    return Tool(
        name=names.reserve_name(offer.name),
        kind=offer.kind,
        tags=_tags_of_offer(offer),
        updated_by_id=None if author is None else author.pk,
        **{**hints, **values},
    )


def _tags_of_offer(offer: Offer) -> str:
    words = (
        re.sub(r"[^A-Za-z0-9_.:-]+", "-", tag).strip("-").lower()[:MAX_TAG_LENGTH]
        for tag in offer.tags
    )
    tags = " ".join(dict.fromkeys(word for word in words if word))
    if len(tags) > MAX_TAGS_LENGTH:
        tags = tags[:MAX_TAGS_LENGTH].rpartition(" ")[0]
    return tags
