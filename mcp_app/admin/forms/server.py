"""The form of servers, with checkboxes for the methods of authentication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.access.conditions import LABELS
from mcp_app.admin.editors.rows import CompositeWidget
from mcp_app.admin.forms.definition import FormMeta
from mcp_app.admin.forms.fields import JsonField
from mcp_app.admin.forms.watched_form import Triple, WatchedForm
from mcp_app.admin.page.wording import SERVER
from mcp_app.catalog.definition_texts import has_full_text
from mcp_app.conf import BY_ISSUER, mcp_settings
from mcp_app.interface.server import PUBLIC
from mcp_app.models import Server
from mcp_app.models.fields import split_words


@dataclass(frozen=True, slots=True)
class Answer:
    """The ticked methods, in order, and the word typed to confirm."""

    names: tuple[str, ...] = ()
    confirmed: str = ""


class AccessWidget(CompositeWidget):
    """Checkboxes; a hidden input keeps the order of the methods ticked before."""

    template_name = "mcp_app/widgets/access.html"
    there = "-asked"

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Answer:
        prefix = f"{name}-way-"
        names = [key.removeprefix(prefix) for key in data if key.startswith(prefix)]
        if f"{name}-public" in data:
            names.append(PUBLIC)
        before = split_words(data.get(f"{name}-asked", ""))
        ordered = dict.fromkeys([*(each for each in before if each in names), *names])
        return Answer(tuple(ordered), data.get(f"{name}-confirm", "").strip())

    def get_context(
        self, name: str, value: Any, attrs: dict[str, Any] | None
    ) -> dict[str, Any]:
        answer = answer_of(value)
        return {
            **super().get_context(name, value, attrs),
            "order": " ".join(answer.names),
            "boxes": list(_method_boxes(name, answer.names)),
            "is_public": PUBLIC in answer.names,
            # No confirmation if the saved server is already public.
            "asks": isinstance(value, Answer) or PUBLIC not in answer.names,
            "confirmed": answer.confirmed,
        }


class AccessField(forms.Field):
    """A field whose value is an `Answer`; its initial value may be a column's text."""

    def __init__(self) -> None:
        super().__init__(required=False, widget=AccessWidget())

    def parts(self, value: object) -> dict[str, object]:
        """Return the names to compare: the order cannot be changed here."""
        return {"": sorted(answer_of(value).names)}

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.parts(initial) != self.parts(data))


def answer_of(value: object) -> Answer:
    """Return an answer unchanged, or the answer for a column's text."""
    return value if isinstance(value, Answer) else Answer(split_words(str(value or "")))


def _method_boxes(field: str, ticked: tuple[str, ...]) -> Iterator[dict[str, object]]:
    """Yield each method as the page shows it; the `path` of a built-in one is "".

    `is_lacking` means that the settings have no such method.
    """
    settings = mcp_settings.authentication
    for name in dict.fromkeys((*settings, *ticked)):
        if name == PUBLIC:
            continue
        setting = settings.get(name, "")
        path = setting if isinstance(setting, str) else setting.get("path", "")
        label = LABELS.get(path, "")
        if path == BY_ISSUER and not isinstance(setting, str):
            issuer = {"issuer": setting.get("issuer")}
            label = gettext_lazy("Users of %(issuer)s") % issuer
        yield {
            "name": name,
            "control": f"{field}-way-{name}",
            "label": label,
            "path": "" if label else path,
            "is_ticked": name in ticked,
            "is_lacking": name not in settings,
        }


class ServerForm(WatchedForm[Server]):
    """A server: what it offers, and who may use it."""

    WORDS = SERVER

    icons = JsonField()
    access = AccessField()

    class Meta(FormMeta):
        model = Server

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # A new row has the model's default, minus methods that the settings lack.
        methods = mcp_settings.authentication
        names = [name for name in self.instance.access_names if name in methods]
        self.initial.setdefault("access", " ".join(names))

    def clean_access(self) -> str:
        """Return the column's text; only a typed confirmation makes a server public."""
        answer: Answer = self.cleaned_data["access"]
        if not answer.names:
            # Clear it, so that the model reports no second error.
            self.instance.access = ""
            raise ValidationError(
                _("Nobody could connect. Tick at least one way to come in.")
            )
        opens = PUBLIC in answer.names and PUBLIC not in self.instance.access_names
        if opens and answer.confirmed != PUBLIC:
            raise ValidationError(_("Type the word public to confirm."))
        return " ".join(answer.names)

    def clean_listing(self) -> str:
        """Refuse the choice of search if the database has no full-text search."""
        listing = str(self.cleaned_data["listing"])
        if listing == Server.ToolList.SEARCH and not has_full_text():
            raise ValidationError(
                _(
                    "Clients cannot search here: the SQLite of this Python has no"
                    " FTS5. Ask an operator, or list all tools."
                )
            )
        return listing

    def _differences(self) -> Iterator[Triple]:
        yield from super()._differences()
        for name in self.fields.keys() & set(Server.CHOICES):
            saved, field = self.initial.get(name), self.fields[name]
            if field.has_changed(saved, self[name].data):
                theirs = ", ".join(map(str, saved or ()))
                mine = ", ".join(map(str, self.cleaned_data.get(name, ())))
                empty = _("(empty)")
                yield str(field.label), theirs or empty, mine or empty
