"""The page *Who can see it*: how many people, under which conditions, who, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import first_letter
from mcp_app.admin.access.sentences import (
    ANYONE,
    NOBODY,
    ONE_CAN,
    ONE_CANNOT,
    and_superusers,
    anonymous,
    count_text,
    counted_text,
    everyone,
)
from mcp_app.admin.access.visibility import People, Visibility, people
from mcp_app.admin.access.visibility import counts as counts_of
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import stops_on
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.auth import permissions
from mcp_app.auth.permissions import Holder
from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.interface.rules import text_problem, visible
from mcp_app.models import PublishedRow

Row = TypeVar("Row", bound=PublishedRow)

SHOWN_GROUPS: Final = 50


class WhoPages(PublishedAdmin[Row]):
    """The page that says who can see a row."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.who_view)
        name = f"mcp_app_{self.opts.model_name}_who"
        return [path("<path:object_id>/who/", view, name=name), *super().get_urls()]

    @redirect_missing_row
    def who_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show who can see what is published now; `?person=` checks one person."""
        row = self._row(request, object_id, whole=True)
        title = _("Who can see it")
        return self._page(request, row, "who", title, context(request, row), "who")


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


def context(request: HttpRequest, row: PublishedRow) -> dict[str, Any]:
    """Return the context of the page."""
    seen = Visibility(row, request.GET.get("server", ""), stops_on(request))
    may_name = may_view_users(request)
    told: dict[str, Any] = {
        "seen": seen,
        "may_name": may_name,
        "server": seen.slug,
        "groups": seen.groups[:SHOWN_GROUPS],
        "more_groups": len(seen.groups[SHOWN_GROUPS:]),
        "differs": seen.differs,
    }
    if seen.public:
        return {**told, **_public(seen)}
    numbers = Numbers(seen)
    told |= {"sentence": numbers.sentence(), "steps": [*numbers.steps()]}
    if seen.server is not None and not seen.closed:
        told["anonymous"] = anonymous(seen.server.access)
    name = request.GET.get("person", "").strip()
    if may_name and name:
        return {**told, **check_person(seen, name)}
    if may_name and not seen.closed:
        told["people"] = _people(request, seen, numbers)
    return told


def may_view_users(request: HttpRequest) -> bool:
    """Return whether this user may see names of users."""
    opts = get_user_model()._meta
    right = f"{opts.app_label}.view_{opts.model_name}"
    user: Any = request.user
    return bool(user.has_perm(right))


def _people(request: HttpRequest, seen: Visibility, numbers: Numbers) -> People:
    return people(
        seen.conditions,
        seen.groups,
        demands=seen.demands,
        can=request.GET.get("show") != "cannot",
        page=request.GET.get("page", ""),
        counts=(numbers.can, numbers.everybody - numbers.can),
    )


class Numbers:
    """How many people remain after each condition; one query."""

    def __init__(self, seen: Visibility) -> None:
        self._seen = seen
        counts = counts_of(seen.conditions)
        self.everybody, self.active = counts["everybody"], counts["active"]
        self.superusers = counts["superusers"]
        self._remaining = [
            counts[f"after_{place}"] for place in range(len(seen.conditions))
        ]

    @property
    def can(self) -> int:
        """How many people meet all conditions that can be counted."""
        if self._seen.closed:
            return 0
        return [self.active, *self._remaining][-1]

    @property
    def at_most(self) -> bool:
        return any(each.which is None for each in self._seen.conditions)

    def sentence(self) -> str:
        seen = self._seen
        if seen.closed:
            return f"{NOBODY[seen.kind]} {seen.closed}"
        demands = seen.demands
        who = everyone(demands.permissions, demands.groups)
        if demands.permissions or demands.groups:
            who = and_superusers(who, self.superusers)
        return counted_text(seen.kind, self.can, who, at_most=self.at_most)

    def steps(self) -> Iterator[Step]:
        yield Step(
            _("People who may log in"), "", count_text(self.active, at_most=False)
        )
        shut = False
        for gate in self._seen.gates:
            shut = shut or bool(gate.closed)
            count = count_text(0 if shut else self.active, at_most=False)
            yield Step(
                gate.label,
                "no" if gate.closed else "yes",
                count,
                gate.closed,
                gate.change,
            )
        at_most = False
        for condition, number in zip(
            self._seen.conditions, self._remaining, strict=True
        ):
            at_most = at_most or condition.which is None
            count = count_text(0 if shut else number, at_most=at_most and not shut)
            yield Step(first_letter(condition), "", count, condition.note)


# -- one ----------------------------------------------------------------------------


def _public(seen: Visibility) -> dict[str, Any]:
    """Return the context for a public server, where every caller is anonymous."""
    holder = Holder(Principal.ANONYMOUS, seen.slug, mcp.rules)
    admitted = seen.admits(holder)
    said = str((ANYONE if admitted else NOBODY)[seen.kind])
    if seen.closed:
        said = f"{said} {seen.closed}"
    else:
        why = _("The server is public: anyone may use it without signing in.")
        if not admitted:
            why = _(
                "The server is public: anyone may use it without signing in, so nobody"
                " has the rights that are required."
            )
        said = f"{said} {why}"
    return {"sentence": said, "steps": [*steps_of(seen, holder)]}


def check_person(seen: Visibility, name: str) -> dict[str, Any]:
    """Return the context about one person, looked up by user name.

    The same code decides about requests of clients.
    """
    model = get_user_model()
    found = None
    # Some databases refuse queries with characters that no name contains.
    if not text_problem(name):
        found = permissions.users().filter(**{model.USERNAME_FIELD: name}).first()
    told: dict[str, Any] = {"person": visible(name)}
    if found is None:
        missing = _("There is no user “%(name)s”.") % {"name": visible(name)}
        return {**told, "missing": missing}
    principal = Principal(
        kind=ACCESS_TOKEN, user_id=str(found.pk), user_name=found.get_username()
    )
    holder = Holder(principal, seen.slug, mcp.rules)
    admitted = holder.user is not None and seen.admits(holder)
    said = (ONE_CAN if admitted else ONE_CANNOT)[seen.kind]
    return {
        **told,
        "verdict": str(said) % {"name": visible(found.get_username())},
        "admitted": admitted,
        "checks": [*steps_of(seen, holder, of_person=True)],
    }


def steps_of(
    seen: Visibility, holder: Holder, *, of_person: bool = False
) -> Iterator[Step]:
    """Yield each condition, whether it holds, and what would change that."""
    for gate in seen.gates:
        look = "no" if gate.closed else "yes"
        yield Step(gate.label, look, "", gate.closed, gate.change)
    if of_person and holder.user is None:
        change = _("Make the user active. Until then nothing else is checked.")
        yield Step(_("May log in"), "no", "", "", change)
        return
    if of_person:
        yield Step(_("May log in"), "yes")
    for each in seen.conditions:
        held = each.holds(holder)
        change = "" if held else each.change
        if not of_person and not held:
            change = _(
                "Anonymous callers have no permissions. Make the server require"
                " authentication, or remove the permission."
            )
        yield Step(first_letter(each), "yes" if held else "no", "", each.note, change)
