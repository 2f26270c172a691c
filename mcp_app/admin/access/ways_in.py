"""*Who may come in*: a box for each way in that the settings have, and one for all.

To open a server to everyone is the only thing that asks to type a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.composite import CompositeWidget
from mcp_app.auth.ways import SESSION_INSTEAD
from mcp_app.conf import BY_TOKEN, mcp_settings
from mcp_app.interface.server import PUBLIC
from mcp_app.models.listings import words

LABELS: Final = {
    BY_TOKEN["token"]: _("Access token"),
    SESSION_INSTEAD: _("Signed-in users of this site"),
}
"""What people call what comes with the app, by its path."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was ticked, in its order, and what was typed to confirm it."""

    names: tuple[str, ...] = ()
    confirmed: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A way in as the page shows it; `path` is what verifies, "" where that is said."""

    name: str
    control: str
    label: object
    path: str
    is_ticked: bool
    is_lacking: bool = False
    """Whether the settings have no such way."""


class AccessWidget(CompositeWidget):
    """Boxes; the order in which they were ticked before comes along."""

    template_name = "mcp_app/widgets/access.html"
    there = "-asked"

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Answer:
        way = f"{name}-way-"
        sent = [key.removeprefix(way) for key in data if key.startswith(way)]
        if f"{name}-public" in data:
            sent.append(PUBLIC)
        before = [each for each in words(data.get(f"{name}-asked", "")) if each in sent]
        return Answer(
            tuple(dict.fromkeys([*before, *sent])),
            data.get(f"{name}-confirm", "").strip(),
        )

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        answer = answer_of(value)
        return {
            **super().get_context(name, value, attrs),
            "order": " ".join(answer.names),
            "boxes": list(_boxes(name, answer.names)),
            "is_public": PUBLIC in answer.names,
            # Where it is saved so already, nobody is asked again.
            "asks": isinstance(value, Answer) or PUBLIC not in answer.names,
            "confirmed": answer.confirmed,
        }


class AccessField(forms.Field):
    """An `Answer`; what is shown is one, or the words of the column."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=AccessWidget())

    def parts(self, value: object) -> dict[str, object]:
        """Return what is compared: the order is nobody's to change here."""
        return {"": sorted(answer_of(value).names)}

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.parts(initial) != self.parts(data))


def answer_of(value: object) -> Answer:
    """Return an answer as it is, and that of a column."""
    return value if isinstance(value, Answer) else Answer(words(str(value or "")))


def _boxes(field: str, ticked: tuple[str, ...]) -> Iterator[Box]:
    known = mcp_settings.authentication
    for name in dict.fromkeys((*known, *ticked)):
        if name != PUBLIC:
            given = known.get(name, "")
            path = given if isinstance(given, str) else given.get("path", "")
            yield Box(
                name=name,
                control=f"{field}-way-{name}",
                label=LABELS.get(path, ""),
                path="" if path in LABELS else path,
                is_ticked=name in ticked,
                is_lacking=name not in known,
            )
