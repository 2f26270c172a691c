"""The form of servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from mcp_app.admin.access.conditions import AccessField, Answer
from mcp_app.admin.forms.definition import FormMeta
from mcp_app.admin.forms.fields import JsonField
from mcp_app.admin.forms.watched_form import Difference, WatchedForm
from mcp_app.admin.page.wording import SERVER
from mcp_app.catalog.definition_texts import has_full_text
from mcp_app.conf import mcp_settings
from mcp_app.interface.server import PUBLIC
from mcp_app.models import Server


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
        known = mcp_settings.authentication
        new = [name for name in self.instance.access_names if name in known]
        self.initial.setdefault("access", " ".join(new))

    def clean_access(self) -> str:
        """Return the column's words; making it public needs a typed confirmation."""
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
        """Refuse a search where nothing can be searched."""
        listing = str(self.cleaned_data["listing"])
        if listing == Server.ToolList.SEARCH and not has_full_text():
            raise ValidationError(
                _(
                    "Clients cannot search here: the SQLite of this Python has no"
                    " FTS5. Ask an operator, or list all tools."
                )
            )
        return listing

    def _differences(self) -> Iterator[Difference]:
        yield from super()._differences()
        for name in self.fields.keys() & set(Server.CHOICES):
            saved, field = self.initial.get(name), self.fields[name]
            if field.has_changed(saved, self[name].data):
                mine = self.cleaned_data.get(name, ())
                yield Difference(
                    label=str(field.label),
                    theirs=", ".join(map(str, saved or ())) or _("(empty)"),
                    mine=", ".join(map(str, mine)) or _("(empty)"),
                )
