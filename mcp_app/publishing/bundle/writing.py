"""Rows as a file that people can review and compare line by line."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC

from django.utils.timezone import is_aware
from django.utils.translation import gettext as _

from mcp_app.catalog.row_loader import digests_of
from mcp_app.models import Blob, DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import demands
from mcp_app.publishing.bundle.choices import CHOSEN, NaturalKeys, naturally
from mcp_app.publishing.bundle.format import (
    DEFINITIONS,
    FORMAT,
    LISTS,
    MOST_BYTES,
    VERSION,
    BundleRefused,
    hash_of,
    key_column,
    key_of,
    kind_of,
)

AT_ONCE = 100
"""Uploads that one statement reads."""


def export(rows: Iterable[PublishedRow]) -> bytes:
    """Return the bundle of these rows: the same bytes for the same content.

    Raises `BundleRefused` where an upload is gone, or the file would be too large.
    """
    found = list(rows)
    keys = _natural_keys(found)
    entries = {name: _entries(found, model, keys) for name, model in LISTS.items()}
    file = {
        "format": FORMAT,
        "version": VERSION,
        **entries,
        "blobs": list(_blobs(entries)),
    }
    text = jsonrpc.pretty(file) + "\n"
    written = text.encode()
    if len(written) > MOST_BYTES:
        raise BundleRefused(
            [
                _("The file would have %(size)d bytes; the limit is %(limit)d.")
                % {"size": len(written), "limit": MOST_BYTES}
            ]
        )
    return written


def _natural_keys(rows: Iterable[PublishedRow]) -> NaturalKeys:
    """Return all natural keys, where a server among the rows chooses anything."""
    if not any(isinstance(row, Server) and _chooses(row) for row in rows):
        return {}
    return {
        kind_of(model): dict(model.rows().values_list("pk", model.IDENTITY))
        for model in DEFINITIONS.values()
    }


def _chooses(server: Server) -> bool:
    if server.selection == Server.Selection.CHOSEN:
        return True
    return server.published is not None and CHOSEN in server.published.read()


def _entries(
    rows: Iterable[PublishedRow], model: type[PublishedRow], keys: NaturalKeys
) -> list[JsonObject]:
    own = {key_of(row): row for row in rows if isinstance(row, model)}
    return [_entry(own[key], keys) for key in sorted(own)]


def _entry(row: PublishedRow, keys: NaturalKeys) -> JsonObject:
    entry: JsonObject = {key_column(type(row)): key_of(row), **_about(row)}
    working = naturally(row.working_content(), keys)
    served = row.published
    if served is None:
        return {**entry, "working": working}
    content = naturally(served.read(), keys)
    entry["published"] = _published(served, content)
    # Most working copies are what is published: said once, it is compared once.
    return (
        entry if hash_of(working) == hash_of(content) else entry | {"working": working}
    )


def _about(row: PublishedRow) -> JsonObject:
    if isinstance(row, Server):
        about = {"access": list(row.access_names), "page_size": row.page_size}
        named = demands(row)
        return {**about, "demands": dict(named)} if named else about
    if isinstance(row, DefinitionRow) and row.from_code:
        named = {"name": row.name} if row.IDENTITY != "name" else {}
        return {**named, "source": str(row.source)}
    return {}


def _published(version: DefinitionVersion, content: JsonObject) -> JsonObject:
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


def _blobs(entries: Mapping[str, Iterable[JsonObject]]) -> Iterator[JsonObject]:
    named = dict(_uploads(entries))
    digests = sorted(named)
    for start in range(0, len(digests), AT_ONCE):
        some = digests[start : start + AT_ONCE]
        blobs = Blob.objects.in_bulk(some)
        gone = [digest for digest in some if digest not in blobs]
        if gone:
            raise BundleRefused(_gone(digest, named[digest]) for digest in gone)
        for digest in some:
            blob = blobs[digest]
            yield {
                "digest": digest,
                "media_type": blob.media_type,
                "content": b64encode(blob.content).decode(),
            }


def _uploads(
    entries: Mapping[str, Iterable[JsonObject]],
) -> Iterator[tuple[str, JsonObject]]:
    for name in DEFINITIONS:
        for entry in entries[name]:
            published = entry.get("published", {}).get("content", {})
            for content in (entry.get("working", {}), published):
                for digest in digests_of(content):
                    yield digest, entry


def _gone(digest: str, entry: JsonObject) -> str:
    return _("“%(name)s” uses the upload %(digest)s…, which no longer exists.") % {
        "name": next(iter(entry.values())),
        "digest": digest[:12],
    }
