"""The row that is tried: nothing else may answer in its place.

Rules say who may try a row, as whom, and what is undone.  Of another definition they
would say something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from mcp_app.catalog.snapshot import Catalog, Entry, TemplateEntry
from mcp_app.interface.server import Key
from mcp_app.kinds import KindError
from mcp_app.protocol.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class TriedRow:
    """A row by its key.

    What code declares is offered without a key until its row has more to say.
    """

    key: Key
    from_code: bool

    def within(self, catalog: Catalog, method: str, params: JsonObject) -> Catalog:
        """Return a catalog in which it alone can answer a request.

        Raises `KindError` if something else comes before it.
        """
        answering = [*_answering(catalog, method, params)]
        if not answering:
            return catalog
        (name, first), *others = answering
        if not self._is_of(first, catalog, name):
            raise KindError(
                _("At this server another definition answers this request: “%(name)s”.")
                % {"name": first.definition.name}
            )
        for name, entry in others:
            # It would answer whoever may not see the first one.
            gone = {name: {entry.identity: None}}
            catalog = catalog.changed(gone, gone)
        return catalog

    def _is_of(self, entry: Entry[Any, Any], catalog: Catalog, name: str) -> bool:
        if entry.key is None and self.from_code:
            # A tool that searches has no key either, but is no server's own.
            stopped = catalog.stopped.get(name, {}).values()
            return any(each is entry for each in (*catalog.offered[name], *stopped))
        return entry.key == self.key


def _answering(
    catalog: Catalog, method: str, params: JsonObject
) -> Iterator[tuple[str, Entry[Any, Any]]]:
    """Yield the list and the entry of all that may answer, the first one first."""
    if method == "resources/read":
        for match in catalog.matching(str(params.get("uri", ""))):
            is_template = isinstance(match.entry, TemplateEntry)
            yield ("templates" if is_template else "resources"), match.entry
        return
    name, identity = _named(method, params)
    entries: Mapping[str, Entry[Any, Any]] = getattr(catalog, name)
    entry = entries.get(identity) or catalog.switched_off(name, identity)
    if entry is not None:
        yield name, entry


def _named(method: str, params: JsonObject) -> tuple[str, str]:
    """Return the list and the identity that a request names."""
    reference: JsonObject = params.get("ref", {})
    if method == "tools/call":
        return "tools", str(params.get("name"))
    if "uri" in reference:
        return "templates", str(reference["uri"])
    return "prompts", str(reference.get("name", params.get("name")))
