"""Who can see a row at a server: the gates, the conditions, and the people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from operator import and_
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import BooleanField, Case, Count, Q, QuerySet, Value, When
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.access.conditions import (
    Condition,
    Gate,
    conditions,
    gates_without_stops,
)
from mcp_app.admin.access.sentences import count_text, join_alternatives, join_required
from mcp_app.admin.calls.charts import grouped_digits
from mcp_app.admin.page.keys import number_from
from mcp_app.admin.page.stop_banner import stop_sentence
from mcp_app.auth import user_queries
from mcp_app.auth.permissions import Holder
from mcp_app.auth.user_queries import KnownGroup
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import (
    demands_of,
    hints_of,
    load_servers,
    server_definition,
    tags_of,
)
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements, visible
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
        content = row.working_content() if _is_unseen(row) else row.published_content()
        self._content = content
        self._tags, self._row_requirements = tags_and_requirements(row, content)
        self.servers = self._sorted_servers()
        matching = [server for server in self.servers if server.slug == slug]
        # An unknown slug stands for the first server.
        self.server = next(iter([*matching, *self.servers]), None)

    def _sorted_servers(self) -> list[ServerDefinition]:
        """Return the servers to choose from, those that offer the row first."""
        if isinstance(self.row, Server):
            return [server_definition(self.row, self.row.published_content())]
        key = (self.kind, str(self.row.pk))
        return sorted(
            load_servers().values(),
            key=lambda each: (not each.offers_definition(self._tags, key), each.slug),
        )

    @property
    def is_server(self) -> bool:
        return isinstance(self.row, Server)

    @property
    def server_slug(self) -> str:
        return "" if self.server is None else self.server.slug

    @property
    def public(self) -> bool:
        return self.server is not None and self.server.is_public

    @cached_property
    def all_gates(self) -> list[Gate]:
        gates_of_row = [*gates_without_stops(self.row, self.server, self._tags)]
        stops = (
            stop
            for stop in self._stops
            if stop.scope == Scope.EVERYTHING
            or stop.holds(self.row)
            or self._holds_server(stop)
            or (stop.scope == Scope.CHANGES and changes_things(self.row, self._content))
        )
        if stop := next(stops, None):
            closed, change = stop_sentence(stop), _("Start it again.")
            gate = Gate(label=_("Not stopped"), closed=closed, change=change)
            gates_of_row.insert(0, gate)
        return gates_of_row

    def _holds_server(self, stop: Stop) -> bool:
        if self.server is None or stop.scope != Scope.SERVER:
            return False
        by_key = (stop.kind, stop.ref) == self.server.key
        return by_key or stop.served == self.server.slug

    @property
    def closed_reason(self) -> str:
        """Why nobody sees the row; "" if that depends on the person."""
        return next((gate.closed for gate in self.all_gates if gate.closed), "")

    @property
    def demands(self) -> AccessRequirements:
        """The requirements of the server and of the row together."""
        return self._server_requirements.combined_with(self._row_requirements)

    @property
    def _server_requirements(self) -> AccessRequirements:
        return NO_REQUIREMENTS if self.server is None else self.server.demands

    @cached_property
    def known_groups(self) -> list[KnownGroup]:
        return user_queries.known_groups(self.demands)

    @cached_property
    def conditions(self) -> list[Condition]:
        requirements = self._server_requirements, self._row_requirements
        return conditions(*requirements, self.known_groups, is_server=self.is_server)

    def is_available_to(self, holder: Holder) -> bool:
        """Return whether a principal can list and call the row."""
        if self.closed_reason or not holder.meets_demands(self._server_requirements):
            return False
        return holder.meets_demands(self._row_requirements)

    @property
    def requirements_differ(self) -> bool:
        """Whether the requirements of working copy and published version differ."""
        if self.is_server or _is_unseen(self.row):
            return False
        _tags, working = tags_and_requirements(self.row, self.row.working_content())
        return working != self._row_requirements


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
    """Return the tags and requirements of a row with this content.

    They include what its code or its kind adds. For a server both are empty.
    """
    if not isinstance(row, DefinitionRow):
        return frozenset(), NO_REQUIREMENTS
    whole = whole_definition(row, content, mcp)
    if whole is None:
        return tags_of(content), demands_of(content)
    return whole.tags, whole.demands


def _is_unseen(row: PublishedRow) -> bool:
    """Return whether clients never see the row: it is neither published nor in code."""
    from_code = isinstance(row, DefinitionRow) and row.from_code
    return row.published is None and not from_code


def count_people(conditions: Sequence[Condition]) -> Mapping[str, int]:
    """Return how many people meet the first condition, the first two, and so on.

    The keys are `after_0`, `after_1` …, and `everybody`, `active` and `superusers`.
    """
    met_so_far: Q = user_queries.active_condition()
    columns = {
        "everybody": Count("pk"),
        "active": Count("pk", filter=met_so_far),
        "superusers": Count("pk", filter=met_so_far & user_queries.superusers()),
    }
    for index, condition in enumerate(conditions):
        met_so_far &= condition.which or user_queries.EVERYBODY
        columns[f"after_{index}"] = Count("pk", filter=met_so_far)
    totals: Mapping[str, int] = user_queries.all_users().order_by().aggregate(**columns)
    return totals


def who_sees(row: PublishedRow, content: JsonObject) -> list[str]:
    """Say who sees a definition once this content is published, and what they need."""
    if not isinstance(row, DefinitionRow):
        return []
    tags, demands = tags_and_requirements(row, content)
    key = (row.kind_of_row, str(row.pk))
    names = [
        _("%(name)s (public: anyone on the internet)") % {"name": visible(each.slug)}
        if each.is_public and not demands
        else visible(each.slug)
        for each in sorted(load_servers().values(), key=lambda each: each.slug)
        if each.offers_definition(tags, key)
    ]
    if not names:
        return [_("Nobody: no published server offers it.")]
    before = demands
    if not _is_unseen(row):
        before = tags_and_requirements(row, row.published_content())[1]
    groups = user_queries.known_groups(before.combined_with(demands))
    who = _people_text(demands, groups)
    if before != demands:
        values = {"before": _people_text(before, groups), "after": who}
        who = _("%(before)s now, then %(after)s") % values
    at_servers = ngettext(
        "%(who)s, at the server %(names)s.",
        "%(who)s, at the servers %(names)s.",
        len(names),
    )
    sentences = [capfirst(at_servers % {"who": who, "names": join_required(names)})]
    needed = user_queries.permission_labels(demands.permissions)
    needed += [join_alternatives(group) for group in demands.groups]
    if needed := [*needed, *map(visible, demands.rules)]:
        sentences.append(_("They need: %(what)s.") % {"what": ", ".join(needed)})
    return sentences


def _people_text(demands: AccessRequirements, groups: Sequence[KnownGroup]) -> str:
    """Return how many people meet requirements."""
    if not demands:
        return _("everybody whom a server lets in")
    needed = conditions(NO_REQUIREMENTS, demands, groups, is_server=False)
    counted = count_people(needed)
    number = counted[f"after_{len(needed) - 1}" if needed else "active"]
    text = count_text(number, at_most=any(each.which is None for each in needed))
    return ngettext("%(number)s person", "%(number)s people", number) % {"number": text}


# -- people table ----------------------------------------------------------------------
# The table of the page *Who can see it*: 50 people per page, each with the reason.

PEOPLE_PER_PAGE: Final = 50


def people_page(
    conditions: Sequence[Condition],
    groups: Sequence[KnownGroup],
    *,
    demands: AccessRequirements,
    can: bool,
    page: str,
    counts: tuple[int, int],
) -> dict[str, Any]:
    """Return a page of the people who can see a row, or of those who cannot.

    Two queries, however many people there are.
    """
    total = counts[0] if can else counts[1]
    pages = max(1, -(-total // PEOPLE_PER_PAGE))
    number = min(max(number_from(page, 1), 1), pages)
    start = (number - 1) * PEOPLE_PER_PAGE
    rows = _people_rows(conditions, can=can)[start : start + PEOPLE_PER_PAGE]
    why = Why(conditions, groups, demands)
    return {
        "shown": [
            {"name": visible(row.get_username()), "why": why.reason_for(row)}
            for row in rows
        ],
        "can": can,
        "count_can": grouped_digits(counts[0]),
        "count_cannot": grouped_digits(counts[1]),
        # Pages are counted from 1; 0 if there is none before or after.
        "number": number,
        "pages": pages,
        "before": number - 1,
        "after": number + 1 if number < pages else 0,
    }


def _people_rows(conditions: Sequence[Condition], *, can: bool) -> QuerySet[Any]:
    """Return users who meet all conditions, or the others; `mcp_holds_…` says which."""
    filters = [each.which for each in conditions if each.which is not None]
    meet: Q = reduce(and_, filters, user_queries.active_condition())
    columns = {
        f"mcp_holds_{index}": _boolean_case(each.which)
        for index, each in enumerate(conditions)
        if each.which is not None
    }
    active = _boolean_case(user_queries.active_condition())
    rows: QuerySet[Any] = user_queries.all_users().filter(meet if can else ~meet)
    rows = rows.annotate(mcp_active=active, **columns)
    model = get_user_model()
    if hasattr(model, "groups"):
        rows = rows.prefetch_related("groups")
    return rows.order_by(model.USERNAME_FIELD, "pk")


def _boolean_case(condition: Q) -> Any:
    # An empty condition holds for all, but a `When` does not allow it.
    if not condition:
        return Value(True, output_field=BooleanField())
    holds = When(condition, then=Value(True))
    return Case(holds, default=Value(False), output_field=BooleanField())


class Why:
    """The reasons why people can or cannot see a row."""

    def __init__(
        self,
        conditions: Sequence[Condition],
        groups: Iterable[KnownGroup],
        demands: AccessRequirements,
    ) -> None:
        self._conditions = conditions
        self._groups = {group.pk: group for group in groups}
        self._demands = demands
        self._has_unchecked_condition = any(each.which is None for each in conditions)

    def reason_for(self, user: Any) -> str:
        """Return the reason for a row of the table."""
        if not user.mcp_active:
            return _("cannot: may not log in")
        lacks = [
            each.lack
            for index, each in enumerate(self._conditions)
            if not getattr(user, f"mcp_holds_{index}", True)
        ]
        if lacks:
            reasons = {"reasons": join_required(dict.fromkeys(lacks))}
            return _("cannot: %(reasons)s") % reasons
        can = self._access_reason(user)
        if self._has_unchecked_condition:
            return _("%(reason)s; the rest must be checked") % {"reason": can}
        return can

    def _access_reason(self, user: Any) -> str:
        if not (self._demands.permissions or self._demands.groups):
            return _("no right is required")
        if getattr(user, "is_superuser", False):
            return _("superuser")
        groups = user.groups.all() if hasattr(user, "groups") else ()
        of_user = [self._groups[each.pk] for each in groups if each.pk in self._groups]
        reasons = [*self._permission_reasons(of_user), *self._group_reasons(of_user)]
        return join_required(dict.fromkeys(reasons))

    def _permission_reasons(self, of_user: Collection[KnownGroup]) -> Iterator[str]:
        for permission in self._demands.permissions:
            groups = [each.name for each in of_user if permission in each.grants]
            values = {"permission": visible(permission)}
            if groups:
                values["groups"] = join_alternatives(groups)
                yield _("in %(groups)s, which has %(permission)s") % values
            else:
                yield _("has %(permission)s") % values

    def _group_reasons(self, of_user: Collection[KnownGroup]) -> Iterator[str]:
        granting = {each.name for each in of_user if each.grants}
        for names in self._demands.groups:
            groups = [each.name for each in of_user if each.name in names]
            # Skip these groups if the reason of a permission names one of them.
            if granting.isdisjoint(groups):
                yield _("in %(groups)s") % {"groups": join_alternatives(groups)}
