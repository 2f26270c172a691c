"""Form fields for access rules: groups, and a rule in code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.contrib.auth.models import Group
from django.utils.functional import lazy
from django.utils.translation import gettext as _

from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.models.demands import group_problem
from mcp_app.models.listings import lines


class GroupsField(forms.MultipleChoiceField):
    """Groups of the site, stored as their names, one per line."""

    def __init__(self) -> None:
        super().__init__(
            required=False, widget=forms.SelectMultiple({"class": "mcp-groups"})
        )
        # Query when the field is rendered or read, not when the form is created.
        self.choices = lazy(_groups, list)()

    def prepare_value(self, value: Any) -> Any:
        return list(lines(value)) if isinstance(value, str) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value: Any) -> Any:
        names = super().clean(value)
        for problem in filter(None, map(group_problem, names)):
            raise forms.ValidationError(problem, code="group")
        return "\n".join(names)

    def offer(self, stored: str) -> None:
        """Also offer the stored groups, even those that no longer exist."""
        gone = [(name, _missing(name)) for name in lines(stored)]
        self.choices = lazy(lambda: _with_missing(_groups(), gone), list)()


class RuleField(forms.ChoiceField):
    """The key of a rule that developers have registered."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def offer(self, stored: str) -> None:
        """Offer the registered rules, and the stored one even if it is gone."""
        there = [(key, key) for key in sorted(mcp.rules) if not mcp.rules[key].object]
        nothing = ("", _("None"))
        self.choices = _with_missing([nothing, *there], [(stored, _missing(stored))])


def _groups() -> list[tuple[str, str]]:
    names = Group.objects.order_by("name").values_list("name", flat=True)
    return [(name, visible(name)) for name in names]


def _with_missing(
    there: Iterable[tuple[str, str]], gone: Iterable[tuple[str, str]]
) -> list[tuple[str, str]]:
    offered = dict(there)
    return [*offered.items(), *(each for each in gone if each[0] not in offered)]


def _missing(name: str) -> str:
    return _("%(name)s (does not exist any more)") % {"name": visible(name)}


FIELDS: Final = {"groups": GroupsField, "rule": RuleField}
"""The form fields of columns that need more than a text input."""
