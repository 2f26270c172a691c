"""Which rights of the product an import needs, beside the one to import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcp_app.kinds.registry import is_guarded
from mcp_app.models import Server
from mcp_app.models.demands import DEMANDS
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.comparing import ComparedEntry, Comparison

_BEHIND = ("kind", "config")
_GRANT = (*DEMANDS, "access")


def needed_rights(
    comparison: Comparison, *, publish: bool
) -> dict[str, list[ComparedEntry]]:
    """Return the rights that a person needs, each with the entries that need it.

    `behind` is for functions that something is made to run, `grant` for permissions
    and for who may come in.  What stays as it is needs none.
    """
    found: dict[str, list[ComparedEntry]] = {}
    for compared in comparison.entries:
        for right in _rights(compared, publish=publish):
            found.setdefault(right, []).append(compared)
    return found


def _rights(compared: ComparedEntry, *, publish: bool) -> Iterator[str]:
    changes = list(_changes(compared, publish=publish))
    for right, is_needed in (("behind", _runs_another), ("grant", _lets_others)):
        if any(
            all(is_needed(before, after) for before in befores)
            for befores, after in changes
        ):
            yield right
    if publish and compared.publication is not None:
        yield "publish"


def _changes(
    compared: ComparedEntry, *, publish: bool
) -> Iterator[tuple[Sequence[JsonObject], JsonObject]]:
    """Yield what would be, each with what it may be without another right."""
    entry = compared.entry
    after = dict(entry.working)
    befores = [compared.before]
    if entry.model is Server:
        after.update(entry.demands, access=list(entry.access))
        if compared.is_new:
            befores.append({"access": list(Server().access_names)})
    yield befores, after
    if publish and compared.publication is not None:
        served = compared.row.published
        before = {} if served is None else served.read()
        # What somebody with the right has put into the working copy may be published.
        yield [before, compared.before], compared.publication.content


def _runs_another(before: JsonObject, after: JsonObject) -> bool:
    kinds = {before.get("kind"), after.get("kind")}
    guarded = any(each and is_guarded(each) for each in kinds)
    return guarded and _differs(_BEHIND, before, after)


def _lets_others(before: JsonObject, after: JsonObject) -> bool:
    return _differs(_GRANT, before, after)


def _differs(names: Sequence[str], before: JsonObject, after: JsonObject) -> bool:
    # What is empty may be left out, or be there.
    return any(
        (before.get(name) or None) != (after.get(name) or None) for name in names
    )
