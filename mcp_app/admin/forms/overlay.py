"""The form of a definition that code declares: staff's values beside the code's.

If a field is empty, the code's value counts; a button resets each changed field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from django.forms import ChoiceField, Select
from django.utils.translation import gettext as _

from mcp_app.admin.forms.definition import FormMeta
from mcp_app.admin.forms.fields import AppField, ParametersField, app_titles
from mcp_app.admin.forms.watched_form import WatchedForm
from mcp_app.admin.page.wording import HINTS
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import APPROVERS, Definition, ToolDefinition
from mcp_app.interface.rules import visible
from mcp_app.models import DefinitionRow, Tool
from mcp_app.models.definitions import ApprovalChoice, TaskChoice
from mcp_app.models.fields import DEMANDS
from mcp_app.protocol.skills import SKILL_FILE
from mcp_app.protocol.tasks import FORBIDDEN
from mcp_app.publishing.overlays import declared_definition

MAX_CODE_TEXT_LENGTH: Final = 300
"""Characters of a text from code to show beside its field."""


def from_code(definition: Definition) -> Mapping[str, str]:
    """Return the code's value for each column that staff may change."""
    groups = [_(" or ").join(sorted(names)) for names in definition.demands.groups]
    values = {
        "title": definition.title,
        "description": definition.description,
        "permission": ", ".join(definition.demands.permissions),
        "groups": "; ".join(groups),
        "rule": ", ".join(definition.demands.rules),
        "timeout": "" if definition.timeout is None else f"{definition.timeout:g}",
        "tags": " ".join(sorted(definition.tags)),
        "position": str(definition.position or ""),
    }
    if isinstance(definition, ToolDefinition):
        rate, answers = definition.calls_per_minute, {True: _("yes"), False: _("no")}
        values["calls_per_minute"] = "" if rate is None else f"{rate}"
        is_task = definition.task != FORBIDDEN
        values["task"] = str(TaskChoice(definition.task).label) if is_task else ""
        values["app"] = str(app_titles().get(definition.app, definition.app))
        values["approval"] = ""
        if (approval := definition.approval) is not None:
            label = ApprovalChoice(approval.by).label
            limit = "" if approval.when is None else f", {_('for some calls')}"
            values["approval"] = f"{label}{limit}"
        for name in Tool.HINTS:
            values[name] = answers.get(getattr(definition.hints, name), "")
    return values


class OverlayForm(WatchedForm[DefinitionRow]):
    """The form of what staff changed of code; subclasses replace `Meta.model`."""

    WORDS = HINTS

    class Meta(FormMeta):
        model = Tool

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields.pop("name", None)
        definition = declared_definition(self.instance, mcp)
        self._show_code(definition)
        for name in self.fields.keys() & {*Tool.HINTS, "position"}:
            self.fields[name].required = False
            widget = self.fields[name].widget
            if isinstance(widget, Select):
                widget.choices = [
                    ("unknown", _("As in the code")),
                    ("true", _("Yes")),
                    ("false", _("No")),
                ]
        if "hidden_values" in self.fields:
            field = cast(ParametersField, self.fields["hidden_values"])
            field.tool = lambda: definition
        approval = getattr(definition, "approval", None)
        if "approval" in self.fields and approval is not None:
            # Offer no weaker approval than the code's, except the stored one.
            stricter = APPROVERS[APPROVERS.index(approval.by) :]
            offered = {*stricter, self.initial["approval"]} - {""}
            choices = [each for each in ApprovalChoice.choices if each[0] in offered]
            choice_field = cast(ChoiceField, self.fields["approval"])
            choice_field.choices = [("", _("As in the code")), *choices]
        app_field = self.fields.get("app")
        if isinstance(app_field, AppField):
            app_field.offer_stored(self.initial["app"], _("As in the code"))

    def _show_code(self, definition: Definition | None) -> None:
        """Show the code's value beside each field."""
        is_skill = getattr(definition, "uri", "").endswith(f"/{SKILL_FILE}")
        if is_skill and "description" in self.fields:
            # Clients compare the description with the skill's file.
            self.fields["description"].disabled = True
        code_values = {} if definition is None else from_code(definition)
        for name, text in code_values.items():
            if name in self.fields:
                self.fields[name].help_text = self._help_text(name, text)

    def _help_text(self, name: str, text: str) -> str:
        short_text = visible(text, MAX_CODE_TEXT_LENGTH)
        in_code = (
            _("From code: “%(text)s”.") % {"text": short_text} if short_text else ""
        )
        if name in DEMANDS:
            required = _("Your entry here is required in addition.")
            return f"{in_code} {required}" if in_code else ""
        if name == "approval" and in_code:
            in_code = f"{in_code} {_('The stricter of both applies.')}"
        changed = _("Changed here.") if self.is_changed(name) else ""
        return f"{changed} {in_code}".strip()

    def is_changed(self, name: str) -> bool:
        """Return whether the working copy differs from the code in a column."""
        column = self.instance._meta.get_field(name)
        return bool(getattr(self.instance, name) != column.get_default())  # type: ignore[union-attr]

    def keep_uploads(self) -> None:
        """Do nothing: overlays have no uploads."""

    def clean_position(self) -> int:
        return self.cleaned_data.get("position") or 0

    @property
    def changed_here(self) -> list[tuple[str, str]]:
        """The changed columns with their labels, for the buttons that reset them."""
        return [
            (name, str(self.fields[name].label or name))
            for name in self.instance.content_columns()
            if name in self.fields and self.is_changed(name)
        ]
