"""Reads documents, from a file or from the site itself, and keeps what they offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus

from asgiref.sync import async_to_sync
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from mcp_app.conf import mcp_settings
from mcp_app.egress.client import call_once
from mcp_app.egress.errors import EgressError
from mcp_app.egress.requests import SiteRequest
from mcp_app.egress.sites import Site, sites
from mcp_app.interface.rights import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds.openapi.offer import Offer
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import DocumentError, read_document
from mcp_app.models import OpenApiDocument
from mcp_app.models.fields import digest
from mcp_app.models.openapi import LONGEST_LOCATION, MOST_INFLATED, TooManyOffers, pack
from mcp_app.models.transactions import persistently


def site_of(key: str) -> Site:
    """Return a site of the settings; raise `DocumentError` if it is not there."""
    site = sites().get(key)
    if site is None:
        said = _("The settings have no site “%(key)s” that can be used.")
        raise DocumentError(said % {"key": visible(key)})
    return site


def fetch(site: Site, path: str, user: AbstractBaseUser) -> bytes:
    """Return the document that a site has at a path; blocks, raises `DocumentError`."""
    if not path.startswith("/"):
        raise DocumentError(_("The path must begin with “/”, such as /openapi.json."))
    if len(path) > LONGEST_LOCATION:
        said = _("The path is longer than %d characters.") % LONGEST_LOCATION
        raise DocumentError(said)
    path, _mark, query = path.partition("?")
    request = SiteRequest(
        method="GET", path=path, query=query, idempotent=True, log_path=path
    )
    asked = AccessRequest.of_user(user)
    # Documents are larger than answers.
    larger = replace(site, answer=mcp_settings.limits.document)
    try:
        answer = async_to_sync(call_once)(larger, request, asked)
    except EgressError as error:
        said = _("%(site)s did not give the document: %(error)s")
        shown = {"site": site.title, "error": error.message}
        raise DocumentError(said % shown) from None
    if answer.status != HTTPStatus.OK:
        said = _("%(site)s answered with the status %(status)d.")
        raise DocumentError(said % {"site": site.title, "status": answer.status})
    return answer.body


def store(
    content: bytes,
    site: Site,
    *,
    location: str = "",
    author: AbstractBaseUser | None = None,
    known: OpenApiDocument | None = None,
) -> OpenApiDocument:
    """Keep what a document offers, in the row of its title or in a known one.

    Raises `DocumentError`; nothing is stored then.
    """
    document = read_document(content, mcp_settings.limits.document)
    offers = offers_of(document, site, MOST_INFLATED)
    if not offers:
        raise DocumentError(_("The document has no operation that can be a tool."))
    about = document.get("info")
    info: Mapping[str, object] = about if isinstance(about, dict) else {}
    try:
        stored = pack([each.to_json() for each in offers])
    except TooManyOffers as error:
        raise DocumentError(str(error)) from None
    values = {
        "location": location,
        "version": _line(info.get("version"), 100),
        "digest": digest(content),
        "offers": stored,
        "operations": len(offers),
        "read_at": timezone.now(),
        "read_by": author,
    }
    if known is not None:
        with transaction.atomic():
            lock(known)
            for name, value in values.items():
                setattr(known, name, value)
            known.save(update_fields=[*values])
        return known
    title = _line(info.get("title"), 200) or site.title
    keep = partial(
        OpenApiDocument.objects.update_or_create,
        site=site.key,
        title=title,
        defaults=values,
    )
    # MariaDB lets one of two wait for the other in turn, and ends it.
    row, _created = persistently(keep)
    return row


def _line(value: object, longest: int) -> str:
    """Return a text of a document as one line that people can read."""
    text = value if isinstance(value, str) else ""
    return visible(" ".join(text.split()))[:longest]


def offers_in(row: OpenApiDocument) -> dict[str, Offer]:
    """Return what a document offered when it was last read, by key."""
    offers = map(Offer.from_json, row.unpack())
    return {each.key: each for each in offers}


def lock(row: OpenApiDocument) -> OpenApiDocument:
    """Return a row as it is now, locked; raise `DocumentError` if it is gone."""
    now = OpenApiDocument.objects.select_for_update().filter(pk=row.pk).first()
    if now is None:
        raise DocumentError(_("Meanwhile, somebody has deleted this document."))
    return now
