"""What clients are offered of a row now, and on what it depends who sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import Condition, Gate, conditions, gates, stopped
from mcp_app.admin.access.sentences import count_text
from mcp_app.auth import reach
from mcp_app.auth.permissions import Holder
from mcp_app.auth.reach import KnownGroup
from mcp_app.catalog.overlays import overlaid
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.stored import (
    demands_of,
    hints_of,
    load_servers,
    server_definition,
    tags_of,
)
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.requirements import NO_DEMANDS, Demands
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow, PublishedRow, Server, Stop, Tool
from mcp_app.models.stops import Scope
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.overlays import declared_definition


class Seen:
    """What is offered of a row at one server now, and on what that depends."""

    def __init__(
        self, row: PublishedRow, slug: str, stops: Sequence[Stop] = ()
    ) -> None:
        self.row = row
        self._stops = stops
        self.kind = row.kind_of_row
        content = row.working_content() if _is_unseen(row) else _served(row)
        self._content = content
        self._tags, self._own = offered(row, content)
        self.servers = self._servers()
        self.server = self._chosen(slug)

    def _servers(self) -> list[ServerDefinition]:
        """Return the servers to choose from, those that offer it first."""
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
            found.insert(0, stopped(stop))
        return found

    def _stop(self) -> Stop | None:
        """Return a stop that holds it now, besides its own switch."""
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
        """Why nobody sees it, "" where that depends on the person."""
        return next((each.closed for each in self.gates if each.closed), "")

    @property
    def demands(self) -> Demands:
        """Everything that is asked for."""
        return self._of_server.and_also(self._own)

    @property
    def _of_server(self) -> Demands:
        return NO_DEMANDS if self.server is None else self.server.demands

    @cached_property
    def groups(self) -> list[KnownGroup]:
        return reach.known_groups(self.demands)

    @cached_property
    def conditions(self) -> list[Condition]:
        return conditions(
            self._of_server, self._own, self.groups, is_server=self.is_server
        )

    def admits(self, holder: Holder) -> bool:
        """Whether clients list it for a principal, and its calls run."""
        if self.closed or not holder.meets(self._of_server):
            return False
        return holder.meets(self._own)

    @property
    def differs(self) -> bool:
        """Whether the working copy demands something else."""
        if self.is_server or _is_unseen(self.row):
            return False
        return offered(self.row, self.row.working_content())[1] != self._own


def changes_things(row: PublishedRow, content: JsonObject) -> bool:
    """Whether it is a tool that does not say that it only reads."""
    if not isinstance(row, Tool):
        return False
    declared = declared_definition(row, mcp) if row.from_code else None
    hints = declared.hints if isinstance(declared, ToolDefinition) else None
    return not hints_of(content, hints).read_only


def offered(row: PublishedRow, content: JsonObject) -> tuple[frozenset[str], Demands]:
    """Return the tags and the demands of a content, on top of what code says.

    What a server demands is no content of it.
    """
    if not isinstance(row, DefinitionRow):
        return frozenset(), NO_DEMANDS
    declared = declared_definition(row, mcp) if row.from_code else None
    if declared is None:
        return tags_of(content), demands_of(content)
    whole = overlaid(declared, content)
    return whole.tags, whole.demands


def _is_unseen(row: PublishedRow) -> bool:
    """Whether there is nothing but the working copy."""
    from_code = isinstance(row, DefinitionRow) and row.from_code
    return row.published is None and not from_code


def _served(row: PublishedRow) -> JsonObject:
    return {} if row.published is None else row.published.read()


def counts(found: Sequence[Condition]) -> Mapping[str, int]:
    """Return how many people meet the first of these, the first two, and so on.

    They are `after_0`, `after_1` …, beside `everybody`, `active` and `superusers`.
    """
    columns = {
        "everybody": Count("pk"),
        "active": Count("pk", filter=reach.active()),
        "superusers": Count("pk", filter=reach.active() & reach.superusers()),
    }
    both: Q = reach.active()
    for place, condition in enumerate(found):
        both &= reach.EVERYBODY if condition.which is None else condition.which
        columns[f"after_{place}"] = Count("pk", filter=both)
    found_counts: Mapping[str, int] = reach.users().order_by().aggregate(**columns)
    return found_counts


def in_numbers(row: PublishedRow, content: JsonObject) -> list[str]:
    """Say how many have the rights that a definition asks for, and would ask for."""
    if isinstance(row, Server):
        return []
    after = offered(row, content)[1]
    before = after if _is_unseen(row) else offered(row, _served(row))[1]
    if not before and not after:
        return [_("It asks for no right: whoever a server lets in may use it.")]
    groups = reach.known_groups(before.and_also(after))
    numbers = _meeting(before, groups), _meeting(after, groups)
    if before == after:
        said = _("People who have the rights that it asks for: %(after)s.")
        if not _is_unseen(row):
            said = _(
                "People who have the rights that it asks for: %(after)s. That does not"
                " change."
            )
    else:
        said = _(
            "People who have the rights that it asks for: %(before)s now, %(after)s"
            " once it is published."
        )
    return [said % {"before": numbers[0], "after": numbers[1]}]


def _meeting(demands: Demands, groups: Sequence[KnownGroup]) -> str:
    """Return how many people meet demands."""
    found = conditions(NO_DEMANDS, demands, groups, is_server=False)
    counted = counts(found)
    number = counted[f"after_{len(found) - 1}"] if found else counted["active"]
    return count_text(number, at_most=any(each.which is None for each in found))
