"""Rows as they would be saved, and why they could not be; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.kinds.registry import kind_classes, no_such_kind
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.demands import DEMANDS
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.choices import without_choice
from mcp_app.publishing.bundle.format import Entry


def new_row(entry: Entry) -> PublishedRow:
    row = entry.model()
    if isinstance(row, Server):
        row.slug = entry.key
        return row
    assert isinstance(row, DefinitionRow)  # noqa: S101 - there are no others
    row.source = entry.source
    if entry.from_code:
        row.kind, row.name = "function", entry.name
        setattr(row, row.IDENTITY, entry.key)
    return row


def published_row(entry: Entry, content: JsonObject) -> PublishedRow:
    """Return a row with this content as its working copy; it is never saved."""
    row = new_row(entry)
    row.put_content(without_choice(content))
    return row


def put(row: PublishedRow, entry: Entry) -> None:
    """Make a row what the file says; nothing is saved."""
    row.put_content(without_choice(entry.working))
    if isinstance(row, Server):
        row.page_size = entry.page_size
        if row.access_names != entry.access:
            row.access = " ".join(entry.access)
        for name in DEMANDS:
            setattr(row, name, entry.demands.get(name, ""))


def row_problems(row: PublishedRow) -> Iterator[str]:
    """Yield why a row cannot be saved; other rows are not looked at."""
    columns: Sequence[str] = row.content_columns()
    if isinstance(row, Server):
        columns = [*columns, "slug", "access", *DEMANDS, "page_size"]
    elif isinstance(row, DefinitionRow) and row.from_code:
        columns = [*columns, "name", row.IDENTITY]
    others = {each.name for each in row._meta.fields} - set(columns)
    try:
        row.clean_fields(exclude=others)
    except ValidationError as error:
        for column, problems in error.message_dict.items():
            for problem in problems:
                yield _in_column(column, problem)
    assert isinstance(row, DefinitionRow | Server)  # noqa: S101 - there are no others
    for column, problem in row.problems():
        yield _in_column(column, problem)
    if isinstance(row, DefinitionRow) and row.kind not in kind_classes():
        yield _in_column("kind", no_such_kind(row.kind))


def _in_column(column: str, problem: str) -> str:
    return _("%(column)s: %(problem)s") % {"column": column, "problem": problem}


def limits(server: Server) -> JsonObject:
    """Return the columns of a server that hold without being published."""
    return {
        "access": list(server.access_names),
        **demands(server),
        "page_size": server.page_size,
    }


def demands(server: Server) -> Mapping[str, str]:
    """Return what a server demands of whoever uses it, without what is empty."""
    named = {name: str(getattr(server, name)) for name in DEMANDS}
    return {name: value for name, value in named.items() if value}


def in_columns(content: JsonObject) -> JsonObject:
    outside = {"chosen", "access", *DEMANDS, "page_size"}
    return {name: value for name, value in content.items() if name not in outside}
