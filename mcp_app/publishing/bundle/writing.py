"""Rows as a file that people can review and compare line by line."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, Final, cast

from django.db import models
from django.db.models import QuerySet
from django.utils.timezone import is_aware
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.row_loader import digests_of, server_definition, tags_of
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import Blob, DefinitionRow, DefinitionVersion, PublishedRow, Server
from mcp_app.models.definitions import NOTHING
from mcp_app.models.fields import JSONTextField, parse_json
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.candidates import (
    CHOSEN,
    NaturalKeys,
    naturally,
    server_demands,
)
from mcp_app.publishing.bundle.format import (
    CHOICES,
    DEFINITIONS,
    FORMAT,
    LISTS,
    MOST_BYTES,
    VERSION,
    BundleRefused,
    content_hash_of,
    key_column,
    kind_of_model,
    natural_key_of,
)

# -- contents --------------------------------------------------------------------------
# What may stand in the content of a row, by the columns of its model.


def content_problems(
    row: PublishedRow, content: JsonObject, place: str
) -> Iterator[str]:
    """Yield a sentence for each member that no column of the row can hold.

    What the row says of its values (`problems()`) is left to the row.
    """
    columns = row.content_columns()
    for name, value in content.items():
        here = f"{place}.{name}"
        if name == CHOSEN and isinstance(row, Server):
            yield from _choice_problems(content, here)
        elif name not in columns:
            yield unknown_member(here)
        else:
            column = cast("models.Field[Any, Any]", row._meta.get_field(name))
            yield from _value_problems(column, value, here)
    try:
        parse_json(jsonrpc.write(content).decode())
    except ValueError as error:
        yield with_place(place, str(error))


def with_place(place: str, sentence: str) -> str:
    """Return a sentence with the place that it is about."""
    return _("%(place)s: %(sentence)s") % {"place": place, "sentence": sentence}


def unknown_member(place: str) -> str:
    """Return what is said of a member that means nothing."""
    return with_place(place, _("No member of this name is allowed here."))


def _value_problems(
    column: models.Field[Any, Any], value: object, place: str
) -> Iterator[str]:
    if isinstance(column, JSONTextField):
        fits: bool = isinstance(value, JSON[column.shape])
        must = MUST[JSON[column.shape]]
    else:
        kind = next(each for each in KINDS if isinstance(column, each))
        fits, must = KINDS[kind](value), MUST[kind]
    if not fits:
        yield with_place(place, str(must))


def _is_text_value(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether it is a number that a double can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


KINDS: Final[Mapping[type[models.Field[Any, Any]], Callable[[object], bool]]] = {
    models.CharField: _is_text_value,
    models.TextField: _is_text_value,
    models.BooleanField: _is_boolean,
    models.FloatField: _is_number,
    models.IntegerField: _is_integer,
}
JSON: Final[Mapping[str, type]] = {"object": dict, "array": list, "any": object}
MUST: Final = {
    models.CharField: gettext_lazy("This must be a text."),
    models.TextField: gettext_lazy("This must be a text."),
    models.BooleanField: gettext_lazy("This must be true or false."),
    models.FloatField: gettext_lazy("This must be a number, at most 1.8e308."),
    models.IntegerField: gettext_lazy("This must be a whole number."),
    dict: gettext_lazy("This must be an object."),
    list: gettext_lazy("This must be a list."),
    object: gettext_lazy("This must be JSON."),
}


def _choice_problems(content: JsonObject, place: str) -> Iterator[str]:
    chosen = content[CHOSEN]
    if content.get("selection") != Server.Selection.CHOSEN:
        yield with_place(place, _("This is allowed only with the selection “chosen”."))
    if not isinstance(chosen, dict):
        yield with_place(place, str(MUST[dict]))
        return
    for name, keys in chosen.items():
        here = f"{place}.{name}"
        if name not in CHOICES:
            yield unknown_member(here)
        elif not isinstance(keys, list) or not all(map(_is_text_value, keys)):
            yield with_place(here, _("This must be a list of texts."))
        elif len(set(keys)) != len(keys):
            yield with_place(here, _("This list has an entry twice."))


# -- selecting -------------------------------------------------------------------------
# Which rows a bundle is made of.


def everything() -> list[PublishedRow]:
    """Return all servers and definitions that say something."""
    servers = list(_server_rows())
    definitions = list(_definitions())
    significant = [row for row in definitions if not says_nothing(row)]
    chosen = set(_offered_rows(servers, definitions)) - set(significant)
    return [*servers, *significant, *chosen]


def servers_by_name(slugs: Iterable[str]) -> list[PublishedRow]:
    """Return servers with what they offer; BundleRefused where one is not there."""
    wanted = list(dict.fromkeys(slugs))
    servers = {row.slug: row for row in _server_rows().filter(slug__in=wanted)}
    unknown = [slug for slug in wanted if slug not in servers]
    if unknown:
        raise BundleRefused(
            _("There is no server “%(slug)s”.") % {"slug": slug} for slug in unknown
        )
    return with_definitions(servers.values())


def with_definitions(servers: Iterable[Server]) -> list[PublishedRow]:
    """Return servers, and what they offer: as published, and by the working copies."""
    rows = list(servers)
    return [*rows, *_offered_rows(rows, _definitions())]


def _server_rows() -> QuerySet[Server]:
    return Server.rows().select_related("published")


def _definitions() -> Iterator[DefinitionRow]:
    for model in DEFINITIONS.values():
        yield from model.rows().select_related("published")


def says_nothing(row: PublishedRow) -> bool:
    """Whether it is an overlay that nobody touched: the code says all there is."""
    if not isinstance(row, DefinitionRow) or not row.from_code:
        return False
    return row.published is None and row.content_hash == NOTHING


def _offered_rows(
    servers: Iterable[Server], definitions: Iterable[DefinitionRow]
) -> Iterator[DefinitionRow]:
    offers = [each for server in servers for each in _server_definitions(server)]
    for row in definitions:
        nothing = says_nothing(row)
        key = row.kind_of_row, str(row.pk)
        tags = list(_tag_sets_of(row))
        # Only a choice names what says nothing.
        candidates = [
            each for each in offers if not nothing or each.selection == "chosen"
        ]
        if any(
            each.offers_definition(some, key) for each in candidates for some in tags
        ):
            yield row


def _server_definitions(server: Server) -> Iterator[ServerDefinition]:
    yield server_definition(server)
    if server.published is not None:
        yield server_definition(server, server.published.read())


def _tag_sets_of(row: DefinitionRow) -> Iterator[frozenset[str]]:
    yield tags_of(row.working_content())
    if row.published is not None:
        yield tags_of(row.published.read())


# -- writing ---------------------------------------------------------------------------

AT_ONCE = 100
"""Uploads that one statement reads."""


def export_bundle(rows: Iterable[PublishedRow]) -> bytes:
    """Return the bundle of these rows: the same bytes for the same content.

    Raises `BundleRefused` where an upload is gone, or the file would be too large.
    """
    exported_rows = list(rows)
    keys = _natural_keys(exported_rows)
    entries = {
        name: _list_entries(exported_rows, model, keys) for name, model in LISTS.items()
    }
    file = {
        "format": FORMAT,
        "version": VERSION,
        **entries,
        "blobs": list(_read_blobs(entries)),
    }
    text = jsonrpc.pretty_text(file) + "\n"
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
    if not any(isinstance(row, Server) and _has_choice(row) for row in rows):
        return {}
    return {
        kind_of_model(model): dict(model.rows().values_list("pk", model.IDENTITY))
        for model in DEFINITIONS.values()
    }


def _has_choice(server: Server) -> bool:
    if server.selection == Server.Selection.CHOSEN:
        return True
    return server.published is not None and CHOSEN in server.published.read()


def _list_entries(
    rows: Iterable[PublishedRow], model: type[PublishedRow], keys: NaturalKeys
) -> list[JsonObject]:
    own = {natural_key_of(row): row for row in rows if isinstance(row, model)}
    return [_entry_json(own[key], keys) for key in sorted(own)]


def _entry_json(row: PublishedRow, keys: NaturalKeys) -> JsonObject:
    entry: JsonObject = {
        key_column(type(row)): natural_key_of(row),
        **_entry_details(row),
    }
    working = naturally(row.working_content(), keys)
    served = row.published
    if served is None:
        return {**entry, "working": working}
    content = naturally(served.read(), keys)
    entry["published"] = _published_json(served, content)
    # Most working copies are what is published: said once, it is compared once.
    return (
        entry
        if content_hash_of(working) == content_hash_of(content)
        else entry | {"working": working}
    )


def _entry_details(row: PublishedRow) -> JsonObject:
    if isinstance(row, Server):
        about = {"access": list(row.access_names), "page_size": row.page_size}
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
        "hash": content_hash_of(content),
        "note": version.note,
        "author": version.author_name,
        "created": created.isoformat(timespec="seconds"),
        "content": content,
    }


def _read_blobs(entries: Mapping[str, Iterable[JsonObject]]) -> Iterator[JsonObject]:
    entries_by_digest = dict(_used_uploads(entries))
    digests = sorted(entries_by_digest)
    for start in range(0, len(digests), AT_ONCE):
        some = digests[start : start + AT_ONCE]
        blobs = Blob.objects.in_bulk(some)
        gone = [digest for digest in some if digest not in blobs]
        if gone:
            raise BundleRefused(
                _missing_upload(digest, entries_by_digest[digest]) for digest in gone
            )
        for digest in some:
            blob = blobs[digest]
            yield {
                "digest": digest,
                "media_type": blob.media_type,
                "content": b64encode(blob.content).decode(),
            }


def _used_uploads(
    entries: Mapping[str, Iterable[JsonObject]],
) -> Iterator[tuple[str, JsonObject]]:
    for name in DEFINITIONS:
        for entry in entries[name]:
            published = entry.get("published", {}).get("content", {})
            for content in (entry.get("working", {}), published):
                for digest in digests_of(content):
                    yield digest, entry


def _missing_upload(digest: str, entry: JsonObject) -> str:
    return _("“%(name)s” uses the upload %(digest)s…, which no longer exists.") % {
        "name": next(iter(entry.values())),
        "digest": digest[:12],
    }
