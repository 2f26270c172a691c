"""*Who may come in*: a checkbox for each authentication method, and one for everybody.

Opening a server to everybody needs a typed confirmation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.composite import CompositeWidget
from mcp_app.auth.authenticators import SESSION_INSTEAD
from mcp_app.conf import BY_ISSUER, BY_TOKEN, mcp_settings
from mcp_app.interface.server import PUBLIC
from mcp_app.models.listings import words

LABELS: Final = {
    BY_TOKEN["token"]: _("Access token"),
    "mcp_app.authentication.oauth": _("OAuth sign-in"),
    SESSION_INSTEAD: _("Signed-in users of this site"),
}
"""Labels of the built-in authentication methods, by their paths."""


def method_label(name: str) -> str:
    """Return the label of an authentication method, or of being open to everybody."""
    if name == PUBLIC:
        return str(_("Public: anyone on the internet, without signing in"))
    return str(LABELS.get(str(mcp_settings.authentication.get(name)), name))


@dataclass(frozen=True, slots=True)
class Answer:
    """The ticked methods, in order, and the word typed to confirm."""

    names: tuple[str, ...] = ()
    confirmed: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """A method as the page shows it; `path` is its class, "" for built-in ones."""

    name: str
    control: str
    label: object
    path: str
    is_ticked: bool
    is_lacking: bool = False
    """Whether the settings have no such method."""


class AccessWidget(CompositeWidget):
    """Checkboxes; a hidden input keeps the order of the methods ticked before."""

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
            # No confirmation if the saved server is already public.
            "asks": isinstance(value, Answer) or PUBLIC not in answer.names,
            "confirmed": answer.confirmed,
        }


class AccessField(forms.Field):
    """A field whose value is an `Answer`; its initial value may be a column's words."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=AccessWidget())

    def parts(self, value: object) -> dict[str, object]:
        """Return what to compare: staff cannot change the order here."""
        return {"": sorted(answer_of(value).names)}

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.parts(initial) != self.parts(data))


def answer_of(value: object) -> Answer:
    """Return an answer unchanged, or the one that a column's words stand for."""
    return value if isinstance(value, Answer) else Answer(words(str(value or "")))


def _boxes(field: str, ticked: tuple[str, ...]) -> Iterator[Box]:
    known = mcp_settings.authentication
    for name in dict.fromkeys((*known, *ticked)):
        if name != PUBLIC:
            given = known.get(name, "")
            path = given if isinstance(given, str) else given.get("path", "")
            label = LABELS.get(path, "")
            if path == BY_ISSUER and not isinstance(given, str):
                label = _("Users of %(issuer)s") % {"issuer": given.get("issuer")}
            yield Box(
                name=name,
                control=f"{field}-way-{name}",
                label=label,
                path="" if label else path,
                is_ticked=name in ticked,
                is_lacking=name not in known,
            )
