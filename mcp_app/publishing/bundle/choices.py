"""What a server chooses: by primary keys in its row, by natural keys in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_app.models import Server
from mcp_app.models.content import content_of
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.format import CHOICES, Identity, kind_of

CHOSEN = "chosen"

NaturalKeys = Mapping[str, Mapping[int, str]]
"""By the kind of rows: natural keys by primary keys."""
PrimaryKeys = Mapping[Identity, int]


def without_choice(content: JsonObject) -> JsonObject:
    """Return what of a content stands in columns of the row."""
    return {name: value for name, value in content.items() if name != CHOSEN}


def naturally(content: JsonObject, keys: NaturalKeys) -> JsonObject:
    """Return a server's content with natural keys; what is gone is left out."""
    if CHOSEN not in content:
        return content
    return {**content, CHOSEN: dict(natural_choice(content[CHOSEN], keys))}


def natural_choice(
    chosen: Mapping[str, Any], keys: NaturalKeys
) -> Iterator[tuple[str, list[str]]]:
    """Yield each list of a choice with the natural keys of what is still there."""
    for name, model in CHOICES.items():
        known = keys[kind_of(model)]
        found = [known[pk] for pk in chosen.get(name, ()) if pk in known]
        yield name, sorted(found)


def with_primary_keys(content: JsonObject, keys: PrimaryKeys) -> JsonObject:
    """Return a server's content as a version has it here."""
    if CHOSEN not in content:
        return content
    chosen = {
        name: sorted(keys[kind_of(model), key] for key in content[CHOSEN].get(name, ()))
        for name, model in CHOICES.items()
    }
    return {**content, CHOSEN: chosen}


def chosen_in(content: JsonObject) -> Iterator[Identity]:
    """Yield what a content with natural keys names."""
    chosen = content.get(CHOSEN, {})
    for name, model in CHOICES.items():
        for key in chosen.get(name, ()):
            yield kind_of(model), key


def primary_keys_in(content: JsonObject) -> Mapping[str, set[int]]:
    """Return what a version's content names, by the kind of rows."""
    chosen = content.get(CHOSEN, {})
    return {
        kind_of(model): set(chosen.get(name, ())) for name, model in CHOICES.items()
    }


def working_copy(server: Server, chosen: Mapping[str, list[str]]) -> JsonObject:
    """Return a server's working copy, given the natural keys that it chooses."""
    content = content_of(server, server.content_columns())
    if server.selection == Server.Selection.CHOSEN:
        content[CHOSEN] = {name: sorted(chosen.get(name, ())) for name in CHOICES}
    return content
