"""Rows as a file that people can review and compare line by line."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC

from django.db.models import QuerySet
from django.utils.timezone import is_aware
from django.utils.translation import gettext as _

from mcp_app.catalog.row_loader import digests_of, server_definition, tags_of
from mcp_app.models import Blob, DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.definitions import NOTHING
from mcp_app.models.transactions import slices
from mcp_app.models.versions import hash_of
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import (
    CHOSEN,
    NaturalKeys,
    naturally,
    server_demands,
)
from mcp_app.publishing.bundle.format import (
    DEFINITIONS,
    FORMAT,
    LISTS,
    MOST_BYTES,
    VERSION,
    BundleRefused,
    key_column,
    kind_of_model,
    natural_key_of,
)

# -- selecting -------------------------------------------------------------------------
# Which rows a bundle is made of.


def everything() -> list[PublishedRow]:
    """Return all servers and definitions; untouched overlays only if chosen."""
    servers, definitions = list(_server_rows()), list(_definitions())
    significant = [row for row in definitions if not says_nothing(row)]
    chosen = set(_offered_rows(servers, definitions)) - set(significant)
    return [*servers, *significant, *chosen]


def servers_by_name(slugs: Iterable[str]) -> list[PublishedRow]:
    """Return servers with what they offer; BundleRefused if one does not exist."""
    wanted = list(dict.fromkeys(slugs))
    servers = {row.slug: row for row in _server_rows().filter(slug__in=wanted)}
    if unknown := [slug for slug in wanted if slug not in servers]:
        raise BundleRefused(
            _("There is no server “%(slug)s”.") % {"slug": slug} for slug in unknown
        )
    return with_definitions(servers.values())


def with_definitions(servers: Iterable[Server]) -> list[PublishedRow]:
    """Return servers, and what they offer, as published and in their working copies."""
    rows = list(servers)
    return [*rows, *_offered_rows(rows, _definitions())]


def _server_rows() -> QuerySet[Server]:
    return Server.rows().select_related("published")


def _definitions() -> Iterator[DefinitionRow]:
    for model in DEFINITIONS.values():
        yield from model.rows().select_related("published")


def says_nothing(row: PublishedRow) -> bool:
    """Whether it is an overlay that nobody touched, so that all of it is in code."""
    is_overlay = isinstance(row, DefinitionRow) and row.from_code
    return is_overlay and {row.content_hash, row.served_hash()} <= {NOTHING, ""}


def _offered_rows(
    servers: Iterable[Server], definitions: Iterable[DefinitionRow]
) -> Iterator[DefinitionRow]:
    offers = [
        server_definition(server, content)
        for server in servers
        for content in _working_and_served(server)
    ]
    for row in definitions:
        key = row.kind_of_row, str(row.pk)
        tags = [tags_of(content) for content in _working_and_served(row)]
        # An untouched overlay is exported only if a server chooses it.
        candidates = [
            offer
            for offer in offers
            if offer.selection == "chosen" or not says_nothing(row)
        ]
        if any(
            each.offers_definition(words, key) for each in candidates for words in tags
        ):
            yield row


def _working_and_served(row: PublishedRow) -> Iterator[JsonObject]:
    yield row.working_content()
    if row.published is not None:
        yield row.published.read()


# -- writing ---------------------------------------------------------------------------

AT_ONCE = 100
"""Uploads that one statement reads."""


def export_bundle(rows: Iterable[PublishedRow], *, published: bool = True) -> bytes:
    """Return the bundle of these rows: the same bytes for the same content.

    Without `published` it has working copies alone: no numbers, authors and times.
    Raises `BundleRefused` if an upload is gone, or the file would be too large.
    """
    exported_rows = list(rows)
    keys = _natural_keys(exported_rows)
    entries: dict[str, list[JsonObject]] = {}
    for name, model in LISTS.items():
        by_key = {
            natural_key_of(row): row for row in exported_rows if type(row) is model
        }
        entries[name] = [
            _entry_json(by_key[key], keys, published) for key in sorted(by_key)
        ]
    file = {
        "format": FORMAT,
        "version": VERSION,
        **entries,
        "blobs": list(_read_blobs(entries)),
    }
    written = f"{jsonrpc.pretty_text(file)}\n".encode()
    if len(written) > MOST_BYTES:
        raise BundleRefused(
            [
                _("The file would have %(size)d bytes; the limit is %(limit)d.")
                % {"size": len(written), "limit": MOST_BYTES}
            ]
        )
    return written


def export_files(rows: Iterable[PublishedRow]) -> dict[str, bytes]:
    """Return a file for each row, by its name: working copies alone, as for Git."""
    lists = {model: name for name, model in LISTS.items()}
    names = {row: f"{lists[type(row)]}/{_file_name(row)}.json" for row in rows}
    return {name: export_bundle([row], published=False) for row, name in names.items()}


def _file_name(row: PublishedRow) -> str:
    """Return a name that every file system takes, and that no other row has."""
    key = natural_key_of(row)
    if re.fullmatch("[a-z0-9_-]{1,64}", key):
        return key
    readable = re.sub("[^a-z0-9]+", "-", key.lower()).strip("-")[:40]
    return f"{readable or '-'}.{DefinitionRow.identity_hash(key)[:8]}"


def _natural_keys(rows: Iterable[PublishedRow]) -> NaturalKeys:
    """Return all natural keys, if a server among the rows chooses anything."""
    servers = [row for row in rows if isinstance(row, Server)]
    if not any(CHOSEN in each for row in servers for each in _working_and_served(row)):
        return {}
    return {
        kind_of_model(model): dict(model.rows().values_list("pk", model.IDENTITY))
        for model in DEFINITIONS.values()
    }


def _entry_json(row: PublishedRow, keys: NaturalKeys, published: bool) -> JsonObject:
    entry: JsonObject = {
        key_column(type(row)): natural_key_of(row),
        **_entry_details(row),
    }
    working = naturally(row.working_content(), keys)
    served = row.published
    if served is None or not published:
        return {**entry, "working": working}
    entry["published"] = _published_json(served, naturally(served.read(), keys))
    if hash_of(working) != entry["published"]["hash"]:
        # Most working copies equal the published content: then only that is written.
        entry["working"] = working
    return entry


def _entry_details(row: PublishedRow) -> JsonObject:
    if isinstance(row, Server):
        about = {"access": list(row.access_names), "page_size": row.page_size}
        if row.listed:
            about["listed"] = True
        details = server_demands(row)
        return {**about, "demands": dict(details)} if details else about
    if isinstance(row, DefinitionRow) and row.from_code:
        details = {"name": row.name} if row.IDENTITY != "name" else {}
        return {**details, "source": str(row.source)}
    return {}


def _published_json(version: DefinitionVersion, content: JsonObject) -> JsonObject:
    created = version.created
    if is_aware(created):
        created = created.astimezone(UTC)
    return {
        "number": version.number,
        "hash": hash_of(content),
        "note": version.note,
        "author": version.author_name,
        "created": created.isoformat(timespec="seconds"),
        "content": content,
    }


def _read_blobs(entries: Mapping[str, Iterable[JsonObject]]) -> Iterator[JsonObject]:
    names_by_digest = dict(_used_uploads(entries))
    for batch in slices(sorted(names_by_digest), AT_ONCE):
        blobs = Blob.objects.in_bulk(batch)
        if missing := [digest for digest in batch if digest not in blobs]:
            message = _(
                "“%(name)s” uses the upload %(digest)s…, which no longer exists."
            )
            raise BundleRefused(
                message % {"name": names_by_digest[each], "digest": each[:12]}
                for each in missing
            )
        for digest in batch:
            blob = blobs[digest]
            yield {
                "digest": digest,
                "media_type": blob.media_type,
                "content": b64encode(blob.content).decode(),
            }


def _used_uploads(
    entries: Mapping[str, Iterable[JsonObject]],
) -> Iterator[tuple[str, str]]:
    for name in DEFINITIONS:
        for entry in entries[name]:
            published = entry.get("published", {}).get("content", {})
            for content in (entry.get("working", {}), published):
                for digest in digests_of(content):
                    yield digest, entry[key_column(DEFINITIONS[name])]
