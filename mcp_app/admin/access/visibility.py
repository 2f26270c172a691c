"""What a server offers of a row now, and what decides who can see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import (
    Condition,
    Gate,
    conditions,
    gates,
    stop_gate,
)
from mcp_app.admin.access.sentences import count_text
from mcp_app.auth import permission_queries
from mcp_app.auth.permission_queries import KnownGroup
from mcp_app.auth.permissions import Holder
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import (
    demands_of,
    hints_of,
    load_servers,
    server_definition,
    tags_of,
)
from mcp_app.interface.access_requirements import NO_REQUIREMENTS, AccessRequirements
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow, PublishedRow, Server, Stop, Tool
from mcp_app.models.stops import Scope
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.overlays import whole_definition


class Visibility:
    """What one server offers of a row now, and what decides who can see it."""

    def __init__(
        self, row: PublishedRow, slug: str, stops: Sequence[Stop] = ()
    ) -> None:
        self.row = row
        self._stops = stops
        self.kind = row.kind_of_row
        content = row.working_content() if _is_unseen(row) else _served(row)
        self._content = content
        self._tags, self._own = tags_and_requirements(row, content)
        self.servers = self._servers()
        self.server = self._chosen(slug)

    def _servers(self) -> list[ServerDefinition]:
        """Return the servers to choose from, those that offer the row first."""
        if isinstance(self.row, Server):
            return [server_definition(self.row, _served(self.row))]
        key = (self.kind, str(self.row.pk))
        servers = load_servers().values()
        order = {each.slug: not each.offers(self._tags, key) for each in servers}
        return sorted(servers, key=lambda each: (order[each.slug], each.slug))

    def _chosen(self, slug: str) -> ServerDefinition | None:
        named = [each for each in self.servers if each.slug == slug]
        return next(iter([*named, *self.servers]), None)

    @property
    def is_server(self) -> bool:
        return isinstance(self.row, Server)

    @property
    def slug(self) -> str:
        return "" if self.server is None else self.server.slug

    @property
    def public(self) -> bool:
        return self.server is not None and self.server.public

    @cached_property
    def gates(self) -> list[Gate]:
        found = [*gates(self.row, self.server, self._tags)]
        if stop := self._stop():
            found.insert(0, stop_gate(stop))
        return found

    def _stop(self) -> Stop | None:
        """Return a stop that applies to the row now."""
        holding = (
            each
            for each in self._stops
            if each.scope == Scope.EVERYTHING
            or each.holds(self.row)
            or self._holds_server(each)
            or (each.scope == Scope.CHANGES and changes_things(self.row, self._content))
        )
        return next(holding, None)

    def _holds_server(self, stop: Stop) -> bool:
        if self.server is None or stop.scope != Scope.SERVER:
            return False
        by_key = (stop.kind, stop.ref) == self.server.key
        return by_key or stop.served == self.server.slug

    @property
    def closed(self) -> str:
        """Why nobody sees it; "" if that depends on the person."""
        return next((each.closed for each in self.gates if each.closed), "")

    @property
    def demands(self) -> AccessRequirements:
        """The requirements of the server and of the row together."""
        return self._of_server.and_also(self._own)

    @property
    def _of_server(self) -> AccessRequirements:
        return NO_REQUIREMENTS if self.server is None else self.server.demands

    @cached_property
    def groups(self) -> list[KnownGroup]:
        return permission_queries.known_groups(self.demands)

    @cached_property
    def conditions(self) -> list[Condition]:
        return conditions(
            self._of_server, self._own, self.groups, is_server=self.is_server
        )

    def admits(self, holder: Holder) -> bool:
        """Return whether a principal can list it and its calls run."""
        if self.closed or not holder.meets(self._of_server):
            return False
        return holder.meets(self._own)

    @property
    def differs(self) -> bool:
        """Whether the requirements of working copy and published version differ."""
        if self.is_server or _is_unseen(self.row):
            return False
        return (
            tags_and_requirements(self.row, self.row.working_content())[1] != self._own
        )


def changes_things(row: PublishedRow, content: JsonObject) -> bool:
    """Return whether a row is a tool that is not declared read-only."""
    if not isinstance(row, Tool):
        return False
    whole = whole_definition(row, content, mcp)
    hints = whole.hints if isinstance(whole, ToolDefinition) else hints_of(content)
    return not hints.read_only


def tags_and_requirements(
    row: PublishedRow, content: JsonObject
) -> tuple[frozenset[str], AccessRequirements]:
    """Return the tags and requirements of a content, with those that follow from it.

    Those of a server are not part of its content, so it has none here.
    """
    if not isinstance(row, DefinitionRow):
        return frozenset(), NO_REQUIREMENTS
    whole = whole_definition(row, content, mcp)
    if whole is None:
        return tags_of(content), demands_of(content)
    return whole.tags, whole.demands


def _is_unseen(row: PublishedRow) -> bool:
    """Return whether only the working copy exists."""
    from_code = isinstance(row, DefinitionRow) and row.from_code
    return row.published is None and not from_code


def _served(row: PublishedRow) -> JsonObject:
    return {} if row.published is None else row.published.read()


def counts(found: Sequence[Condition]) -> Mapping[str, int]:
    """Return how many people meet the first condition, the first two, and so on.

    The keys are `after_0`, `after_1` …, and `everybody`, `active` and `superusers`.
    """
    columns = {
        "everybody": Count("pk"),
        "active": Count("pk", filter=permission_queries.active()),
        "superusers": Count(
            "pk", filter=permission_queries.active() & permission_queries.superusers()
        ),
    }
    both: Q = permission_queries.active()
    for place, condition in enumerate(found):
        both &= (
            permission_queries.EVERYBODY if condition.which is None else condition.which
        )
        columns[f"after_{place}"] = Count("pk", filter=both)
    found_counts: Mapping[str, int] = (
        permission_queries.users().order_by().aggregate(**columns)
    )
    return found_counts


def at_servers(row: PublishedRow, content: JsonObject) -> list[str]:
    """Say which servers offer a definition once it is published, and if to anyone."""
    if not isinstance(row, DefinitionRow):
        return []
    tags, demands = tags_and_requirements(row, content)
    key = (row.kind_of_row, str(row.pk))
    names = [
        _("%(name)s (public: anyone on the internet)") % {"name": visible(each.slug)}
        if each.public and not demands
        else visible(each.slug)
        for each in sorted(load_servers().values(), key=lambda each: each.slug)
        if each.offers(tags, key)
    ]
    if not names:
        return [_("No published server offers it.")]
    return [_("Servers that offer it: %(servers)s.") % {"servers": ", ".join(names)}]


def in_numbers(row: PublishedRow, content: JsonObject) -> list[str]:
    """Say how many people meet a definition's requirements, now and once published."""
    if isinstance(row, Server):
        return []
    after = tags_and_requirements(row, content)[1]
    before = after if _is_unseen(row) else tags_and_requirements(row, _served(row))[1]
    if not before and not after:
        return [
            _("No permission is required: everyone whom a server lets in can use it.")
        ]
    groups = permission_queries.known_groups(before.and_also(after))
    numbers = _meeting(before, groups), _meeting(after, groups)
    if before == after:
        said = _("People who have the required rights: %(after)s.")
        if not _is_unseen(row):
            said = _(
                "People who have the required rights: %(after)s. Publishing"
                " does not change this number."
            )
    else:
        said = _(
            "People who have the required rights: %(before)s now,"
            " %(after)s once this is published."
        )
    return [said % {"before": numbers[0], "after": numbers[1]}]


def _meeting(demands: AccessRequirements, groups: Sequence[KnownGroup]) -> str:
    """Return how many people meet requirements, as text."""
    found = conditions(NO_REQUIREMENTS, demands, groups, is_server=False)
    counted = counts(found)
    number = counted[f"after_{len(found) - 1}"] if found else counted["active"]
    return count_text(number, at_most=any(each.which is None for each in found))
