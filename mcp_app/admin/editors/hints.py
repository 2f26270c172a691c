"""*What it changes*: three choices and two checkboxes for the four hints of a tool.

If the choices cannot show a hint, it keeps its value until somebody changes the answer
(specification: server/tools, `ToolAnnotations`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.rows import CompositeWidget
from mcp_app.interface.definitions import ToolHints

READS: Final = "reads"
ADDS: Final = "adds"
DELETES: Final = "deletes"
EFFECTS: Final = {
    READS: _("Nothing: it only reads"),
    ADDS: _("It adds or changes things"),
    DELETES: _("It may delete or overwrite"),
}
BOXES: Final = {
    "idempotent": _("Calling it twice does the same as calling it once"),
    "open_world": _("It reaches outside this site"),
}
PROTOCOL_NAMES: Final = {
    READS: "readOnlyHint: true",
    ADDS: "readOnlyHint: false, destructiveHint: false",
    DELETES: "readOnlyHint: false, destructiveHint: true",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}

FIELD_BY_COLUMN: Final = dict.fromkeys(
    ("read_only", "destructive", "idempotent", "open_world"), "changes"
)
"""The form field of each column that one common field edits."""


_EFFECTS: Final[Mapping[str, tuple[bool, bool | None]]] = {
    READS: (True, None),
    ADDS: (False, False),
    DELETES: (False, True),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a form; `effect` is "" if nothing is chosen."""

    effect: str = ""
    idempotent: bool = False
    open_world: bool = False


def answer_of(hints: ToolHints) -> Answer:
    """Return the answer that shows the hints best."""
    # A tool that is not read-only is destructive by the protocol's default.
    effect = "" if hints.read_only is None else DELETES
    if hints.read_only:
        effect = READS
    elif hints.destructive is not None:
        effect = DELETES if hints.destructive else ADDS
    return Answer(effect, bool(hints.idempotent), bool(hints.open_world))


def hints_of_answer(answer: Answer, before: ToolHints) -> ToolHints:
    """Return the hints of an answer; unchanged parts keep their values."""
    previous = answer_of(before)
    read_only, destructive = before.read_only, before.destructive
    if answer.effect and answer.effect != previous.effect:
        read_only, destructive = _EFFECTS[answer.effect]
    # The first answer also decides the checkboxes, even if they stay empty.
    is_first = bool(answer.effect) and not previous.effect
    boxes = {
        box: getattr(answer, box)
        if is_first or getattr(answer, box) != getattr(previous, box)
        else getattr(before, box)
        for box in BOXES
    }
    return ToolHints(read_only=read_only, destructive=destructive, **boxes)


class HintsWidget(CompositeWidget):
    """Radio buttons and checkboxes."""

    template_name = "mcp_app/widgets/hints.html"
    there = "-asked"
    ticked: frozenset[str] = frozenset()
    """The boxes that are always ticked and cannot be changed."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Answer:
        return Answer(
            data.get(name, ""),
            *(box in self.ticked or f"{name}-{box}" in data for box in BOXES),
        )

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        answer = value if isinstance(value, Answer) else Answer()
        effects = [
            (effect, label, PROTOCOL_NAMES[effect], effect == answer.effect)
            for effect, label in EFFECTS.items()
        ]
        boxes = [
            (box, label, PROTOCOL_NAMES[box], getattr(answer, box), box in self.ticked)
            for box, label in BOXES.items()
        ]
        return {**context, "effects": effects, "boxes": boxes}


class HintsField(forms.Field):
    """A field whose value is an `Answer`; choosing nothing is valid."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=HintsWidget())

    def clean(self, value: Answer) -> Answer:
        if value.effect and value.effect not in EFFECTS:
            raise ValidationError(_("Choose one of the three."))
        return value

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(initial != data)
