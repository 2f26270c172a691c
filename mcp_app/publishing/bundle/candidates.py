"""Rows as they would be saved, and why they could not be; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.kinds.registry import kind_classes, no_such_kind
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.models.fields import DEMANDS, content_of
from mcp_app.models.server import written_choices
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.format import CHOICES, Entry, Identity, kind_of_model


def unsaved_row(entry: Entry) -> PublishedRow:
    """Return a new row that has an entry's name, and not yet its content."""
    row = entry.model()
    if isinstance(row, Server):
        row.slug = entry.key
        return row
    assert isinstance(row, DefinitionRow)  # noqa: S101 - there are no others
    row.source = entry.source
    if entry.source == Source.CODE:
        row.kind, row.name = "function", entry.name
        setattr(row, row.IDENTITY, entry.key)
    return row


def published_row(entry: Entry, content: JsonObject) -> PublishedRow:
    """Return a row with this content as its working copy; it is never saved."""
    row = unsaved_row(entry)
    row.put_content(without_choice(content))
    return row


def apply_entry(row: PublishedRow, entry: Entry) -> None:
    """Make a row what the file says; nothing is saved."""
    row.put_content(without_choice(entry.working))
    if isinstance(row, Server):
        row.page_size, row.listed = entry.page_size, entry.listed
        if row.access_names != entry.access:
            row.access = " ".join(entry.access)
        for name in DEMANDS:
            setattr(row, name, entry.demands.get(name, ""))


def row_problems(row: PublishedRow) -> Iterator[str]:
    """Yield why a row cannot be saved; other rows are not looked at."""
    columns: Sequence[str] = row.content_columns()
    if isinstance(row, Server):
        columns = [*columns, "slug", "access", "listed", *DEMANDS, "page_size"]
    elif isinstance(row, DefinitionRow) and row.from_code:
        columns = [*columns, "name", row.IDENTITY]
    excluded = {field.name for field in row._meta.fields} - set(columns)
    try:
        row.clean_fields(exclude=excluded)
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


def server_limits(server: Server) -> JsonObject:
    """Return the columns of a server that hold without being published."""
    return {
        "access": list(server.access_names),
        **({"listed": True} if server.listed else {}),
        **server_demands(server),
        "page_size": server.page_size,
    }


def server_demands(server: Server) -> Mapping[str, str]:
    """Return what a server demands of its callers, without empty columns."""
    texts = {name: str(getattr(server, name)) for name in DEMANDS}
    return {name: value for name, value in texts.items() if value}


def without_limits(content: JsonObject) -> JsonObject:
    """Return a content without what `server_limits` adds to it."""
    outside = {"access", "listed", *DEMANDS, "page_size"}
    return {name: value for name, value in content.items() if name not in outside}


def in_columns(content: JsonObject) -> JsonObject:
    """Return the part of a content that versions keep in the row's own columns."""
    return without_limits(without_choice(content))


# -- choices ---------------------------------------------------------------------------
# What a server chooses: by primary keys in its row, by natural keys in a file.

CHOSEN = "chosen"

NaturalKeys = Mapping[str, Mapping[int, str]]
"""By the kind of rows: natural keys by primary keys."""


def without_choice(content: JsonObject) -> JsonObject:
    """Return a server's content without its choice, which is in no column."""
    return {name: value for name, value in content.items() if name != CHOSEN}


def naturally(content: JsonObject, keys: NaturalKeys) -> JsonObject:
    """Return a server's content with natural keys, without rows that are gone."""
    if CHOSEN not in content:
        return content
    chosen = dict(natural_choice(content[CHOSEN], keys))
    return {**content, CHOSEN: written_choices(chosen)}


def with_all_lists(content: JsonObject) -> JsonObject:
    """Return a file's content with its choice written as `naturally` does it."""
    if CHOSEN not in content:
        return content
    chosen = {name: sorted(content[CHOSEN].get(name, ())) for name in CHOICES}
    return {**content, CHOSEN: written_choices(chosen)}


def natural_choice(
    chosen: Mapping[str, Any], keys: NaturalKeys
) -> Iterator[tuple[str, list[str]]]:
    """Yield each list of a choice with the natural keys of rows that still exist."""
    for name, model in CHOICES.items():
        key_of = keys[kind_of_model(model)]
        present_keys = [key_of[pk] for pk in chosen.get(name, ()) if pk in key_of]
        yield name, sorted(present_keys)


def with_primary_keys(content: JsonObject, keys: Mapping[Identity, int]) -> JsonObject:
    """Return a server's content as a version has it here."""
    if CHOSEN not in content:
        return content
    chosen = {
        name: sorted(
            keys[kind_of_model(model), key] for key in content[CHOSEN].get(name, ())
        )
        for name, model in CHOICES.items()
    }
    return {**content, CHOSEN: written_choices(chosen)}


def chosen_in(content: JsonObject) -> Iterator[Identity]:
    """Yield the rows that a content with natural keys chooses."""
    chosen = content.get(CHOSEN, {})
    for name, model in CHOICES.items():
        for key in chosen.get(name, ()):
            yield kind_of_model(model), key


def primary_keys_in(content: JsonObject) -> Mapping[str, set[int]]:
    """Return the primary keys that a version's content chooses, by kind."""
    chosen = content.get(CHOSEN, {})
    return {
        kind_of_model(model): set(chosen.get(name, ()))
        for name, model in CHOICES.items()
    }


def working_copy(server: Server, chosen: Mapping[str, list[str]]) -> JsonObject:
    """Return a server's working copy, given the natural keys that it chooses."""
    content = content_of(server, server.content_columns())
    if server.selection == Server.Selection.CHOSEN:
        content[CHOSEN] = chosen
    return with_all_lists(content)
