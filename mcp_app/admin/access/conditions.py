"""Why a person sees a row: gates hold for everybody, conditions for some people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.access.sentences import join_alternatives, join_required
from mcp_app.admin.page.header import why_broken
from mcp_app.auth import user_queries
from mcp_app.auth.authenticators import SESSION_INSTEAD
from mcp_app.auth.permissions import Holder
from mcp_app.auth.user_queries import KnownGroup
from mcp_app.catalog.findings import qualified_name
from mcp_app.catalog.registry import mcp
from mcp_app.conf import BY_TOKEN, mcp_settings
from mcp_app.interface.rules import AccessRequirements, visible
from mcp_app.interface.server import PUBLIC, ServerDefinition
from mcp_app.models import DefinitionRow, PublishedRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A requirement that holds for everybody or for nobody.

    `closed` says why it does not hold, "" if it holds; `change` says what would open
    the gate.
    """

    label: str
    closed: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A requirement that some people meet; `lack` says what the others lack.

    `which` filters users, None if the database cannot. `note` is a remark.
    """

    label: str
    lack: str
    change: str
    which: Q | None
    holds: Callable[[Holder], bool]
    note: str = ""


def gates_without_stops(
    row: PublishedRow, server: ServerDefinition | None, tags: frozenset[str]
) -> Iterator[Gate]:
    """Yield the gates of a row at a server, without stops."""
    yield _publication_gate(row)
    if isinstance(row, DefinitionRow):
        yield _offer_gate(row, server, tags)
    if server is not None:
        yield _authentication_gate(server)


def _publication_gate(row: PublishedRow) -> Gate:
    label = _("Published")
    from_code = isinstance(row, DefinitionRow) and row.from_code
    if row.published is None and not from_code:
        closed = _("It is not published.")
        return Gate(label=label, closed=closed, change=_("Publish it."))
    if why := why_broken(row):
        change = _("Ask a developer to bring back the missing code.")
        return Gate(label=label, closed=visible(why, None), change=change)
    return Gate(label=label)


def _offer_gate(
    row: DefinitionRow, server: ServerDefinition | None, tags: frozenset[str]
) -> Gate:
    if server is None:
        return Gate(
            label=_("Offered by a server"),
            closed=_("There is no published server."),
            change=_("Publish a server."),
        )
    values = {"server": visible(server.title or server.slug)}
    label = _("Offered by the server “%(server)s”") % values
    if server.offers_definition(tags, (row.kind_of_row, str(row.pk))):
        return Gate(label=label)
    change = _(
        "Choose this definition on the page of the server, and publish the server."
    )
    if server.selection == "tags":
        change = _(
            "Give this definition a tag of the server (%(tags)s), and publish it."
        ) % {"tags": join_alternatives(server.tags)}
    closed = _("The server “%(server)s” does not offer this definition.") % values
    return Gate(label=label, closed=closed, change=change)


def _authentication_gate(server: ServerDefinition) -> Gate:
    methods = mcp_settings.authentication
    unknown = [name for name in server.access if name not in methods]
    values = {"methods": join_alternatives(server.access)}
    label = _("The server requires authentication (%(methods)s)") % values
    if server.is_public:
        unknown, label = [], _("The server lets in anyone, without signing in")
    fill_in = _("Fill in “Who may come in” on the page of the server.")
    if not server.access:
        label = _("The server has at least one way to come in")
        closed = _("The server lets nobody in.")
        return Gate(label=label, closed=closed, change=fill_in)
    if unknown:
        closed = _(
            "The server lets nobody in: the settings have no authentication method"
            " “%(names)s”."
        ) % {"names": join_alternatives(unknown)}
        return Gate(label=label, closed=closed, change=fill_in)
    return Gate(label=label)


def conditions(
    server: AccessRequirements,
    own: AccessRequirements,
    groups: Sequence[KnownGroup],
    *,
    is_server: bool,
) -> list[Condition]:
    """Return the conditions of the server, then those of the row itself."""
    by_server = [*_required_conditions(server, groups)]
    if is_server:
        return by_server
    label = _("Required by the server: %(what)s")
    first = [replace(each, label=label % {"what": each.label}) for each in by_server]
    return [*first, *_required_conditions(own, groups)]


def _required_conditions(
    demands: AccessRequirements, groups: Sequence[KnownGroup]
) -> Iterator[Condition]:
    yield from map(_permission, demands.permissions)
    for names in demands.groups:
        yield _group_condition(names, groups)
    yield from map(_rule_condition, demands.rules)


def _permission(permission: str) -> Condition:
    values = {"permission": visible(permission)}
    which = user_queries.with_permission(permission)
    change = _(
        "Give the user, or a group that the user is in, the permission %(permission)s."
    )
    return Condition(
        label=_("permission %(permission)s") % values,
        lack=_("lacks %(permission)s") % values,
        change=change % values,
        which=which,
        holds=lambda holder: holder.has_permission(permission),
        note=_uncountable_reason() if which is None else "",
    )


def _uncountable_reason() -> str:
    backends = user_queries.uncounted_backends()
    if not backends:
        return _(
            "This site's user model checks permissions in its own way, so"
            " this condition can only be checked for one person at a time."
        )
    return _(
        "The authentication backend %(backends)s does not list who has the permission,"
        " so this condition can only be checked for one person at a time."
    ) % {"backends": join_required(backends)}


def _group_condition(names: frozenset[str], groups: Iterable[KnownGroup]) -> Condition:
    known_names = {each.name for each in groups}
    values = {"groups": join_alternatives(names)}
    note = ""
    if missing_names := names - known_names:
        text = _("There is no group “%(groups)s”.")
        note = text % {"groups": join_alternatives(missing_names)}
    return Condition(
        label=_("group %(groups)s") % values,
        lack=_("not in %(groups)s") % values,
        change=_("Put the user into the group %(groups)s.") % values,
        which=user_queries.in_groups(names, groups),
        holds=lambda holder: holder.is_in_one_of(names),
        note=note,
    )


def _rule_condition(key: str) -> Condition:
    rule = mcp.rules.get(key)
    values = {"rule": visible(key)}
    parts: dict[str, Any] = {
        "label": _("rule in code: %(rule)s") % values,
        "lack": _("the rule %(rule)s says no") % values,
        "holds": lambda holder: holder.satisfies(key),
    }
    if rule is None:
        missing = _("The code has no rule “%(rule)s”, so nobody is let in.") % values
        change = _("Ask a developer to register the rule, or choose another one.")
        return Condition(
            which=user_queries.NOBODY, change=change, note=missing, **parts
        )
    if rule.object:
        note = _(
            "The permission %(rule)s is checked for each resource: people without it do"
            " not find that resource. Lists show the template in any case."
        )
        return Condition(
            which=user_queries.EVERYBODY, change="", note=note % values, **parts
        )
    written = {"function": visible(qualified_name(rule.judge))}
    note = _(
        "This rule is written in code (%(function)s), so it can only"
        " be checked for one person at a time."
    )
    note %= written
    if rule.arguments:
        remark = _(
            "The rule also runs at each call, and may refuse the call"
            " because of its arguments."
        )
        note = f"{note} {remark}"
    change = _("To change this, change the code of %(function)s.") % written
    return Condition(which=None, change=change, note=note, **parts)


LABELS: Final = {
    BY_TOKEN["token"]: gettext_lazy("Access token"),
    "mcp_app.authentication.oauth": gettext_lazy("OAuth sign-in"),
    SESSION_INSTEAD: gettext_lazy("Signed-in users of this site"),
}
"""Labels of the built-in authentication methods, by their paths."""


def method_label(name: str) -> str:
    """Return the label of an authentication method, or of being open to everybody."""
    if name == PUBLIC:
        return str(gettext_lazy("Public: anyone on the internet, without signing in"))
    return str(LABELS.get(str(mcp_settings.authentication.get(name)), name))
