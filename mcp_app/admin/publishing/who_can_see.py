"""The page *Who can see it*: how many people, under which conditions, who, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from mcp_app.admin.access.sentences import (
    ANYONE,
    NOBODY_CAN,
    ONE_CAN,
    ONE_CANNOT,
    and_superusers,
    anonymous,
    count_text,
    counted_text,
    describe_people,
)
from mcp_app.admin.access.visibility import Visibility, count_people, people_page
from mcp_app.admin.page.concurrency import PageViews
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.stop_banner import active_stops
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.auth import user_queries
from mcp_app.auth.permissions import Holder
from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rules import text_problem, visible
from mcp_app.models import PublishedRow

Row = TypeVar("Row", bound=PublishedRow)

MAX_GROUPS: Final = 50


class WhoPages(PublishedAdmin[Row]):
    """The page that says who can see a row."""

    def page_views(self) -> PageViews:
        page = {"<path:object_id>/who/": ("who", self.who_can_see_view)}
        return {**page, **super().page_views()}

    @redirect_missing_row
    def who_can_see_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show who can see what is published now; `?person=` checks one person."""
        row = self._find_row(request, object_id, whole=True)
        title = _("Who can see it")
        context = who_can_see_context(request, row)
        return self._render_page(request, row, "who", title, context, "who")


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the checklist: `look` is "yes", "no", or "" if it depends.

    `count` is how many people remain, "" if they are not counted.
    """

    label: str
    look: str
    count: str = ""
    note: str = ""
    change: str = ""


# -- the page -----------------------------------------------------------------------


def who_can_see_context(request: HttpRequest, row: PublishedRow) -> dict[str, Any]:
    """Return the context of the page."""
    visibility = Visibility(row, request.GET.get("server", ""), active_stops(request))
    users = get_user_model()._meta
    may_name = request.user.has_perm(f"{users.app_label}.view_{users.model_name}")
    values: dict[str, Any] = {
        "seen": visibility,
        "may_name": may_name,
        "server": visibility.server_slug,
        "groups": visibility.known_groups[:MAX_GROUPS],
        "more_groups": len(visibility.known_groups[MAX_GROUPS:]),
        "differs": visibility.requirements_differ,
    }
    if visibility.public:
        return {**values, **_public_context(visibility)}
    numbers = Numbers(visibility)
    values |= {"sentence": numbers.count_sentence(), "steps": [*numbers.count_steps()]}
    if visibility.server is not None and not visibility.closed_reason:
        values["anonymous"] = anonymous(visibility.server.access)
    name = request.GET.get("person", "").strip()
    if may_name and name:
        return {**values, **check_person(visibility, name)}
    if may_name and not visibility.closed_reason:
        values["people"] = people_page(
            visibility.conditions,
            visibility.known_groups,
            demands=visibility.demands,
            can=request.GET.get("show") != "cannot",
            page=request.GET.get("page", ""),
            counts=(numbers.admitted_count, numbers.everybody - numbers.admitted_count),
        )
    return values


class Numbers:
    """How many people meet the first condition, the first two …; one query."""

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility
        counts = count_people(visibility.conditions)
        self.everybody, self.active = counts["everybody"], counts["active"]
        self.superusers = counts["superusers"]
        places = range(len(visibility.conditions))
        self._remaining = [counts[f"after_{index}"] for index in places]

    @property
    def admitted_count(self) -> int:
        """How many people meet all conditions that can be counted."""
        if self._visibility.closed_reason:
            return 0
        # Without conditions, these are all users who may log in.
        return [self.active, *self._remaining][-1]

    def count_sentence(self) -> str:
        visibility = self._visibility
        if visibility.closed_reason:
            return f"{NOBODY_CAN[visibility.kind]} {visibility.closed_reason}"
        demands = visibility.demands
        who = describe_people(demands.permissions, demands.groups)
        if demands.permissions or demands.groups:
            who = and_superusers(who, self.superusers)
        at_most = any(condition.which is None for condition in visibility.conditions)
        count = self.admitted_count
        return counted_text(visibility.kind, count, who, at_most=at_most)

    def count_steps(self) -> Iterator[Step]:
        count = count_text(self.active, at_most=False)
        yield Step(_("People who may log in"), "", count)
        shut = False
        for gate in self._visibility.all_gates:
            shut = shut or bool(gate.closed)
            count = count_text(0 if shut else self.active, at_most=False)
            look = "no" if gate.closed else "yes"
            yield Step(gate.label, look, count, gate.closed, gate.change)
        at_most = False
        conditions = zip(self._visibility.conditions, self._remaining, strict=True)
        for condition, number in conditions:
            at_most = at_most or condition.which is None
            count = count_text(0 if shut else number, at_most=at_most and not shut)
            yield Step(capfirst(condition.label), "", count, condition.note)


# -- one person ---------------------------------------------------------------------


def _public_context(visibility: Visibility) -> dict[str, Any]:
    """Return the context for a public server, where every caller is anonymous."""
    holder = Holder(Principal.ANONYMOUS, visibility.server_slug, mcp.rules)
    admitted = visibility.is_available_to(holder)
    who = (ANYONE if admitted else NOBODY_CAN)[visibility.kind]
    why = _("The server is public: anyone may use it without signing in.")
    if not admitted:
        why = _(
            "The server is public: anyone may use it without signing in, so nobody"
            " has the rights that are required."
        )
    sentence = f"{who} {visibility.closed_reason or why}"
    return {"sentence": sentence, "steps": [*condition_steps(visibility, holder)]}


def check_person(visibility: Visibility, name: str) -> dict[str, Any]:
    """Return the context about one person, looked up by user name.

    `Holder` decides here as it does for the requests of clients.
    """
    user = None
    # Some databases refuse queries with characters that no name contains.
    if not text_problem(name):
        condition = {get_user_model().USERNAME_FIELD: name}
        user = user_queries.all_users().filter(**condition).first()
    values: dict[str, Any] = {"person": visible(name)}
    if user is None:
        missing = _("There is no user “%(name)s”.") % {"name": visible(name)}
        return {**values, "missing": missing}
    username, key = user.get_username(), str(user.pk)
    principal = Principal(kind=ACCESS_TOKEN, user_id=key, user_name=username)
    holder = Holder(principal, visibility.server_slug, mcp.rules)
    admitted = holder.user is not None and visibility.is_available_to(holder)
    verdict = (ONE_CAN if admitted else ONE_CANNOT)[visibility.kind]
    return {
        **values,
        "verdict": str(verdict) % {"name": visible(username)},
        "admitted": admitted,
        "checks": [*condition_steps(visibility, holder, of_person=True)],
    }


def condition_steps(
    visibility: Visibility, holder: Holder, *, of_person: bool = False
) -> Iterator[Step]:
    """Yield each condition, whether it holds, and what would change that."""
    for gate in visibility.all_gates:
        look = "no" if gate.closed else "yes"
        yield Step(gate.label, look, "", gate.closed, gate.change)
    if of_person and holder.user is None:
        change = _("Make the user active. Until then nothing else is checked.")
        yield Step(_("May log in"), "no", "", "", change)
        return
    if of_person:
        yield Step(_("May log in"), "yes")
    for each in visibility.conditions:
        is_met = each.holds(holder)
        change = "" if is_met else each.change
        if not of_person and not is_met:
            change = _(
                "Anonymous callers have no permissions. Make the server require"
                " authentication, or remove the permission."
            )
        look = "yes" if is_met else "no"
        yield Step(capfirst(each.label), look, "", each.note, change)
