"""Which rows a bundle is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from mcp_app.catalog.row_loader import server_definition, tags_of
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import NOTHING
from mcp_app.publishing.bundle.format import DEFINITIONS, BundleRefused


def everything() -> list[PublishedRow]:
    """Return all servers and definitions that say something."""
    servers = list(_servers())
    definitions = list(_definitions())
    said = [row for row in definitions if not says_nothing(row)]
    chosen = set(_offered(servers, definitions)) - set(said)
    return [*servers, *said, *chosen]


def servers_by_name(slugs: Iterable[str]) -> list[PublishedRow]:
    """Return servers with what they offer; BundleRefused where one is not there."""
    wanted = list(dict.fromkeys(slugs))
    servers = {row.slug: row for row in _servers().filter(slug__in=wanted)}
    unknown = [slug for slug in wanted if slug not in servers]
    if unknown:
        raise BundleRefused(
            _("There is no server “%(slug)s”.") % {"slug": slug} for slug in unknown
        )
    return with_definitions(servers.values())


def with_definitions(servers: Iterable[Server]) -> list[PublishedRow]:
    """Return servers, and what they offer: as published, and by the working copies."""
    rows = list(servers)
    return [*rows, *_offered(rows, _definitions())]


def _servers() -> QuerySet[Server]:
    return Server.rows().select_related("published")


def _definitions() -> Iterator[DefinitionRow]:
    for model in DEFINITIONS.values():
        yield from model.rows().select_related("published")


def says_nothing(row: PublishedRow) -> bool:
    """Whether it is an overlay that nobody touched: the code says all there is."""
    if not isinstance(row, DefinitionRow) or not row.from_code:
        return False
    return row.published is None and row.content_hash == NOTHING


def _offered(
    servers: Iterable[Server], definitions: Iterable[DefinitionRow]
) -> Iterator[DefinitionRow]:
    offers = [each for server in servers for each in _as_said(server)]
    for row in definitions:
        nothing = says_nothing(row)
        key = row.kind_of_row, str(row.pk)
        tags = list(_tags(row))
        # Only a choice names what says nothing.
        asked = [each for each in offers if not nothing or each.selection == "chosen"]
        if any(each.offers(some, key) for each in asked for some in tags):
            yield row


def _as_said(server: Server) -> Iterator[ServerDefinition]:
    yield server_definition(server)
    if server.published is not None:
        yield server_definition(server, server.published.read())


def _tags(row: DefinitionRow) -> Iterator[frozenset[str]]:
    yield tags_of(row.working_content())
    if row.published is not None:
        yield tags_of(row.published.read())
