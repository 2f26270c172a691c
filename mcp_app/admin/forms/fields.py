"""Form fields and widgets for definitions."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, cast

from django import forms
from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.catalog.apps import CHART, TABLE, our_app_title
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import Definition, Label, ToolDefinition
from mcp_app.interface.rules import permission_problem, visible
from mcp_app.kinds import KindError
from mcp_app.kinds.text import properties_of
from mcp_app.models.definitions import AS_TEXT
from mcp_app.models.fields import group_problem, split_lines
from mcp_app.protocol.apps import is_app

ATTRIBUTES = {"class": "vLargeTextField mcp-json", "spellcheck": "false"}


class JsonField(forms.CharField):
    """JSON as text; if nobody changed it, the stored text is kept exactly."""

    def __init__(self, *, rows: int = 5, is_schema: bool = False) -> None:
        widget = forms.Textarea({**ATTRIBUTES, "rows": rows})
        super().__init__(required=False, strip=False, widget=widget)
        self._is_schema = is_schema
        self.stored = ""

    def prepare_value(self, value: Any) -> Any:
        return json_texts.formatted_text(value) if isinstance(value, str) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        initial_text = json_texts.formatted_text(str(initial or ""))
        return lines_from_browser(data).strip() != initial_text.strip()

    def parts(self, value: Any) -> Mapping[str, object]:
        return {"": lines_from_browser(value).strip()}

    def clean(self, value: Any) -> str:
        text = lines_from_browser(value)
        if not self.has_changed(self.stored, text):
            return self.stored
        if not text.strip():
            return ""
        try:
            if self._is_schema:
                json_texts.check_schema_text(text)
            else:
                json_texts.parse_strict_json(text)
        except ValueError as error:
            raise ValidationError(str(error)) from None
        return text.strip()


MAX_MILLISECONDS: Final = 2_147_483_647
"""The largest value of the column."""


def seconds_of(milliseconds: int) -> str:
    """Return milliseconds as seconds, written without zeros at the end."""
    return format(Decimal(milliseconds).scaleb(-3).normalize(), "f")


class SecondsField(forms.DecimalField):
    """Seconds, for a column of milliseconds; an empty field means 0."""

    def __init__(self) -> None:
        limit = Decimal(MAX_MILLISECONDS).scaleb(-3)
        super().__init__(required=False, min_value=0, max_value=limit, decimal_places=3)

    def prepare_value(self, value: Any) -> Any:
        return seconds_of(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        seconds = super().clean(value)
        return int(seconds.scaleb(3)) if seconds is not None else 0

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.clean(data) != (initial or 0))
        except ValidationError:
            return True


class PlaceholderTextarea(forms.Textarea):
    """A text area with the names that may be used in it as `{{name}}`."""

    template_name = "mcp_app/widgets/placeholders.html"

    def __init__(self, attrs: Mapping[str, Any] | None = None) -> None:
        super().__init__(dict(attrs or {}))
        self.names: Iterable[str] = ()
        self.source = ""
        """The field from which the page's script reads the names."""

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        return {**context, "names": list(self.names), "source": self.source}


class Panel(forms.Widget):
    """A read-only part in the middle of a form; it sends nothing."""

    def __init__(self, template_name: str) -> None:
        super().__init__()
        self.template_name = template_name
        self.build_context: Callable[[], Mapping[str, Any]] = dict

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        return {**super().get_context(name, value, attrs), **self.build_context()}

    def id_for_label(self, id_: str | None) -> str:
        return ""


class PanelField(forms.Field):
    """The field that holds a panel's place in a form."""

    def __init__(self, template_name: str) -> None:
        super().__init__(required=False, widget=Panel(template_name))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return False

    def parts(self, value: Any) -> Mapping[str, object]:
        return {}

    def shows(self, **context: Any) -> None:
        """Set the context of the panel's template."""
        self.shows_later(lambda: context)

    def shows_later(self, build_context: Callable[[], Mapping[str, Any]]) -> None:
        """Set a function that builds the context when the panel is rendered."""
        cast("Panel", self.widget).build_context = build_context


# -- demands ---------------------------------------------------------------------------
# Form fields for access rules: a permission, groups, and a rule in code.

MOST_OFFERED: Final = 1_000
"""How many permissions a form lists; others can be typed."""
_MAX_PERMISSION_LENGTH: Final = 255
"""Characters that the column holds."""


class PermissionInput(forms.TextInput):
    """A text input that offers the site's permissions; it needs no script."""

    template_name = "mcp_app/widgets/permission.html"

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        context["widget"]["attrs"]["list"] = f"id_{name}-list"
        return {**context, "offered": list(_permissions().items())[:MOST_OFFERED]}


class PermissionField(forms.CharField):
    """A permission of the site, written as `app_label.codename`."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            max_length=_MAX_PERMISSION_LENGTH,
            widget=PermissionInput({"class": "vTextField", "spellcheck": "false"}),
        )
        self._stored = ""

    def clean(self, value: Any) -> str:
        name = str(super().clean(value))
        # The model reports a badly written name; check only others here.
        if name != self._stored and not permission_problem(name):
            _check_permission(name)
        return name

    def offer_stored(self, stored: str) -> None:
        """Accept the stored permission, even if it no longer exists."""
        self._stored = stored


class NamesField(forms.MultipleChoiceField):
    """Names that are stored one per line."""

    def prepare_value(self, value: Any) -> Any:
        return list(split_lines(value)) if isinstance(value, str) else value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return super().has_changed(self.prepare_value(initial), data)

    def clean(self, value: Any) -> Any:
        return "\n".join(super().clean(value))


class ParametersField(NamesField):
    """A choice of parameters of the tool that `tool` returns, and of stored ones."""

    tool: Callable[[], Definition | None] = staticmethod(lambda: None)

    def __init__(self) -> None:
        widget = forms.CheckboxSelectMultiple({"class": "mcp-ticked"})
        super().__init__(required=False, widget=widget)

    def offer_stored(self, stored: str) -> None:
        """Offer the parameters when the field is rendered or read."""
        self.choices = lazy(lambda: self._names(split_lines(stored)), list)()

    def _names(self, stored: Iterable[str]) -> list[tuple[str, str]]:
        try:
            tool = self.tool()
        except (KindError, ValueError):
            tool = None
        properties = properties_of(tool) if isinstance(tool, ToolDefinition) else ()
        names = dict.fromkeys((*properties, *stored))
        return [(name, visible(name)) for name in names]


class GroupsField(NamesField):
    """Groups of the site, stored as their names, one per line."""

    def __init__(self) -> None:
        super().__init__(
            required=False, widget=forms.SelectMultiple({"class": "mcp-groups"})
        )
        # Query when the field is rendered or read, not when the form is created.
        self.choices = lazy(_group_choices, list)()

    def validate(self, value: Any) -> None:
        super().validate(value)
        for problem in filter(None, map(group_problem, value)):
            raise forms.ValidationError(problem, code="group")

    def offer_stored(self, stored: str) -> None:
        """Also offer the stored groups, even those that no longer exist."""
        names = split_lines(stored)
        self.choices = lazy(lambda: _with_missing(_group_choices(), names), list)()


class RuleField(forms.ChoiceField):
    """The key of a rule that developers have registered."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def offer_stored(self, stored: str) -> None:
        """Offer the registered rules, and the stored one even if it is gone."""
        rules = [(key, key) for key in sorted(mcp.rules) if not mcp.rules[key].object]
        self.choices = _with_missing([("", _("None")), *rules], [stored])


class AppField(forms.ChoiceField):
    """The address of the page that shows a tool's answers."""

    def __init__(self) -> None:
        super().__init__(required=False)

    def offer_stored(self, stored: str, empty: Label = "") -> None:
        """Offer each app, and the stored one; `empty` is the label of no choice."""
        titles = app_titles()
        # If "" has no label of its own, it means text.
        choices = {"": empty or titles.pop(AS_TEXT), **titles}
        self.choices = [*{**choices, stored: choices.get(stored, stored)}.items()]


def app_titles() -> dict[str, Label]:
    """Return the labels of text, our two pages and the pages of code, by URI."""
    pages = [resource.definition for resource in mcp.resources.values()]
    apps = {
        page.uri: page.title or page.name for page in pages if is_app(page.mime_type)
    }
    ours = {uri: our_app_title(uri) for uri in (TABLE, CHART)}
    return {AS_TEXT: _("Text"), **ours, **apps}


def _permissions() -> dict[str, str]:
    """Return the names of all permissions by their `app_label.codename`."""
    rows = Permission.objects.values_list("content_type__app_label", "codename", "name")
    return {
        written: visible(name)
        for app, codename, name in rows
        if not permission_problem(written := f"{app}.{codename}")
    }


def _check_permission(name: str) -> None:
    names = _permissions()
    if not name or name in names:
        return
    close = difflib.get_close_matches(name, names, 1)
    message = (
        _("“%(permission)s” does not exist. Did you mean “%(near)s”?")
        if close
        else _("“%(permission)s” does not exist.")
    )
    values = {"permission": name, "near": "".join(close)}
    raise forms.ValidationError(message, code="permission", params=values)


def _group_choices() -> list[tuple[str, str]]:
    names = Group.objects.order_by("name").values_list("name", flat=True)
    return [(name, visible(name)) for name in names]


def _with_missing(
    choices: Iterable[tuple[str, str]], stored: Iterable[str]
) -> list[tuple[str, str]]:
    """Return the choices, and the stored values that are missing in them."""
    offered, label = dict(choices), _("%(name)s (does not exist any more)")
    missing = [(name, label % {"name": visible(name)}) for name in stored]
    return [*offered.items(), *(pair for pair in missing if pair[0] not in offered)]


FIELDS = {
    "app": AppField,
    "permission": PermissionField,
    "groups": GroupsField,
    "rule": RuleField,
    "hidden_values": ParametersField,
}
"""The form fields of columns that need more than a text input."""
