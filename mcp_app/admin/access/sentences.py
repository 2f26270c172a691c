"""The sentences of the page *Who can see it*, by kind of row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from django.utils.text import capfirst, format_lazy, get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.calls.charts import grouped_digits
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible

USES: Final[Mapping[str, Label]] = {
    "tool": gettext_lazy("list and call this tool"),
    "resource": gettext_lazy("list and read this resource"),
    "resourcetemplate": gettext_lazy("list and read what this template shows"),
    "prompt": gettext_lazy("list and use this prompt"),
    "eventtype": gettext_lazy("list this event type and be told of it"),
    "server": gettext_lazy("use this server"),
}
"""What people can do with a row of each kind."""


def _of_kinds(sentence: Label) -> Mapping[str, Label]:
    return {kind: format_lazy(sentence, use=use) for kind, use in USES.items()}


NOBODY_CAN: Final = _of_kinds(gettext_lazy("Nobody can {use}."))
ANYONE: Final = _of_kinds(gettext_lazy("Anyone on the internet can {use}."))
ONE_CAN: Final = _of_kinds(gettext_lazy("%(name)s can {use}."))
ONE_CANNOT: Final = _of_kinds(gettext_lazy("%(name)s cannot {use}."))


def count_text(number: int, *, at_most: bool) -> str:
    """Format a number of people, as an upper bound if not all can be counted."""
    digits = grouped_digits(number)
    return _("at most %(number)s") % {"number": digits} if at_most else digits


def counted_text(kind: str, number: int, who: str, *, at_most: bool) -> str:
    """Say how many people have access, and which people they are."""
    if not number:
        return str(NOBODY_CAN[kind])
    number_text = capfirst(count_text(number, at_most=at_most))
    sentence = ngettext(
        "%(number)s person can %(use)s: %(who)s.",
        "%(number)s people can %(use)s: %(who)s.",
        number,
    )
    return sentence % {"number": number_text, "use": USES[kind], "who": who}


def join_alternatives(names: Iterable[str]) -> str:
    """Join names if one of them is enough."""
    return str(get_text_list([visible(name) for name in sorted(names)], _("or")))


def join_required(names: Iterable[str]) -> str:
    """Join names that are all required."""
    return str(get_text_list(list(names), _("and")))


def describe_people(permissions: Iterable[str], groups: Iterable[Iterable[str]]) -> str:
    """Describe the people who meet these requirements, apart from superusers."""
    requirements = {
        "permissions": join_required(map(visible, permissions)),
        "groups": join_required(map(join_alternatives, groups)),
    }
    if requirements["permissions"] and requirements["groups"]:
        return _("everyone in %(groups)s with %(permissions)s") % requirements
    if requirements["groups"]:
        return _("everyone in %(groups)s") % requirements
    if requirements["permissions"]:
        return _("everyone with %(permissions)s") % requirements
    return _("everyone who may log in at this site")


def and_superusers(people: str, count: int) -> str:
    """Add the superusers, who need neither a permission nor a group."""
    if not count:
        return people
    return ngettext(
        "%(people)s, and %(number)s superuser",
        "%(people)s, and %(number)s superusers",
        count,
    ) % {"people": people, "number": grouped_digits(count)}


def anonymous(access: tuple[str, ...]) -> str:
    """Say what happens to callers without credentials."""
    if access == ("token",):
        return _("Anonymous callers cannot: the server requires a token.")
    return _(
        "Anonymous callers cannot: the server requires authentication (%(methods)s)."
    ) % {"methods": join_alternatives(access)}
