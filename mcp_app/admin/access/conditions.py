"""What must hold for a person to see a row: gates for all, then conditions for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Q
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from mcp_app.admin.access.sentences import all_of, either
from mcp_app.admin.page.header import why_broken
from mcp_app.admin.page.stop_banner import sentence
from mcp_app.auth import permission_queries
from mcp_app.auth.permission_queries import KnownGroup
from mcp_app.auth.permissions import Holder
from mcp_app.catalog.problems import qualified_name
from mcp_app.catalog.registry import mcp
from mcp_app.conf import mcp_settings
from mcp_app.interface.access_requirements import AccessRequirements
from mcp_app.interface.rules import visible
from mcp_app.interface.server import ServerDefinition
from mcp_app.models import DefinitionRow, PublishedRow, Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Something that holds for everybody or for nobody.

    `closed` says why it does not hold, "" if it does; `change` says what would change
    that.
    """

    label: str
    closed: str = ""
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that holds for some people: `which`, or None if it cannot be counted.

    `lack` says what the others lack; `note` is a remark.
    """

    label: str
    lack: str
    change: str
    which: Q | None
    holds: Callable[[Holder], bool]
    note: str = ""


def stop_gate(stop: Stop) -> Gate:
    """Return the gate that a stop closes."""
    return Gate(
        label=_("Not stopped"), closed=sentence(stop), change=_("Start it again.")
    )


def gates(
    row: PublishedRow, server: ServerDefinition | None, tags: frozenset[str]
) -> Iterator[Gate]:
    """Yield the gates of a row at a server, without stops."""
    yield _published(row)
    if isinstance(row, DefinitionRow):
        yield _offered(row, server, tags)
    if server is not None:
        yield _lets_in(server)


def _published(row: PublishedRow) -> Gate:
    label = _("Published")
    from_code = isinstance(row, DefinitionRow) and row.from_code
    if row.published is None and not from_code:
        closed = _("It is not published.")
        return Gate(label=label, closed=closed, change=_("Publish it."))
    if why := why_broken(row):
        change = _("Ask a developer to bring back the missing code.")
        return Gate(label=label, closed=visible(why, None), change=change)
    return Gate(label=label)


def _offered(
    row: DefinitionRow, server: ServerDefinition | None, tags: frozenset[str]
) -> Gate:
    if server is None:
        return Gate(
            label=_("Offered by a server"),
            closed=_("There is no published server."),
            change=_("Publish a server."),
        )
    named = {"server": visible(server.title or server.slug)}
    label = _("Offered by the server “%(server)s”") % named
    if server.offers(tags, (row.kind_of_row, str(row.pk))):
        return Gate(label=label)
    change = _(
        "Choose this definition on the page of the server, and publish the server."
    )
    if server.selection == "tags":
        shared = {"tags": either(server.tags)}
        change = (
            _("Give this definition a tag of the server (%(tags)s), and publish it.")
            % shared
        )
    closed = _("The server “%(server)s” does not offer this definition.") % named
    return Gate(label=label, closed=closed, change=change)


def _lets_in(server: ServerDefinition) -> Gate:
    known = mcp_settings.authentication
    unknown = [name for name in server.access if name not in known]
    methods = {"methods": either(server.access)}
    label = _("The server requires authentication (%(methods)s)") % methods
    if server.public:
        unknown, label = [], _("The server lets in anyone, without signing in")
    fill_in = _("Fill in “Who may come in” on the page of the server.")
    if not server.access:
        closed = _("The server lets nobody in.")
        return Gate(
            label=_("The server has at least one way to come in"),
            closed=closed,
            change=fill_in,
        )
    if unknown:
        closed = _(
            "The server lets nobody in: the settings have no authentication method"
            " “%(names)s”."
        ) % {"names": either(unknown)}
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
    by_server = [*_demanded(server, groups)]
    if is_server:
        return by_server
    return [*map(_by_server, by_server), *_demanded(own, groups)]


def _by_server(condition: Condition) -> Condition:
    label = _("Required by the server: %(what)s") % {"what": condition.label}
    return replace(condition, label=label)


def _demanded(
    demands: AccessRequirements, groups: Sequence[KnownGroup]
) -> Iterator[Condition]:
    yield from map(_permission, demands.permissions)
    for names in demands.groups:
        yield _groups(names, groups)
    yield from map(_rule, demands.rules)


def _permission(permission: str) -> Condition:
    named = {"permission": visible(permission)}
    which = permission_queries.with_permission(permission)
    note = ""
    if which is None:
        note = _uncounted()
    return Condition(
        label=_("permission %(permission)s") % named,
        lack=_("lacks %(permission)s") % named,
        change=_(
            "Give the user, or a group that the user is in, the permission"
            " %(permission)s."
        )
        % named,
        which=which,
        holds=lambda holder: holder.has_permission(permission),
        note=note,
    )


def _uncounted() -> str:
    backends = permission_queries.uncounted_backends()
    if not backends:
        return _(
            "This site's user model checks permissions in its own way, so"
            " this condition can only be checked for one person at a time."
        )
    return _(
        "The authentication backend %(backends)s does not list who has"
        " the permission, so this condition can only be checked for"
        " one person at a time."
    ) % {"backends": all_of(backends)}


def _groups(names: frozenset[str], known: Iterable[KnownGroup]) -> Condition:
    there = {each.name for each in known}
    gone = [name for name in names if name not in there]
    named = {"groups": either(names)}
    note = ""
    if gone:
        note = _("There is no group “%(groups)s”.") % {"groups": either(gone)}
    return Condition(
        label=_("group %(groups)s") % named,
        lack=_("not in %(groups)s") % named,
        change=_("Put the user into the group %(groups)s.") % named,
        which=permission_queries.in_groups(names, known),
        holds=lambda holder: holder.is_in_one_of(names),
        note=note,
    )


def _rule(key: str) -> Condition:
    rule = mcp.rules.get(key)
    named = {"rule": visible(key)}
    parts: dict[str, Any] = {
        "label": _("rule in code: %(rule)s") % named,
        "lack": _("the rule %(rule)s says no") % named,
        "holds": lambda holder: holder.satisfies(key),
    }
    if rule is None:
        missing = _("The code has no rule “%(rule)s”, so nobody is let in.") % named
        change = _("Ask a developer to register the rule, or choose another one.")
        return Condition(
            which=permission_queries.NOBODY, change=change, note=missing, **parts
        )
    if rule.object:
        note = _(
            "The permission %(rule)s is checked for each resource: people"
            " without it do not find that resource. Lists show the"
            " template in any case."
        )
        return Condition(
            which=permission_queries.EVERYBODY, change="", note=note % named, **parts
        )
    written = {"function": visible(qualified_name(rule.judge))}
    notes = [
        _(
            "This rule is written in code (%(function)s), so it can only"
            " be checked for one person at a time."
        )
        % written
    ]
    if rule.arguments:
        notes.append(
            _(
                "The rule also runs at each call, and may refuse the call"
                " because of its arguments."
            )
        )
    change = _("To change this, change the code of %(function)s.") % written
    return Condition(which=None, change=change, note=" ".join(notes), **parts)


def first_letter(condition: Condition) -> str:
    """Return a condition's label with a capital first letter."""
    return str(capfirst(condition.label))
