"""The form of a connected app: its name, and what it may from now on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django import forms
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account.rights_choice import ALL, MOST_TAGS, SOME, RightsChoice
from mcp_app.auth.app_changes import Choice
from mcp_app.models import AccessToken, Connection
from mcp_app.models.fields import digest
from mcp_app.models.listings import words
from mcp_app.site_time import local_time

KEEP: Final = "keep"


class AppForm(RightsChoice):
    """What an app is called and may; `tags` are those of the tools that it could see.

    `before` is what held when the page was opened.
    """

    before = forms.CharField(widget=forms.HiddenInput)
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=AccessToken._meta.get_field("name").max_length,
    )

    field_order = ["before", "name"]

    def __init__(
        self, data: Any, *, connection: Connection, tags: Counter[str]
    ) -> None:
        now = Choice.of(connection)
        self._now = now
        known = Counter(tags)
        for tag in words(now.tags):
            # One that nothing has any more stays chosen, or all would be allowed.
            known.setdefault(tag, 0)
        super().__init__(
            data,
            may_ask=connection.may_ask,
            tags=known,
            initial=_initial(now, many=len(known) > MOST_TAGS),
        )
        if "which" in self.fields:
            self.fields["which"].required = True

    def _choices(self) -> Iterator[tuple[str, str]]:
        end = self._now.until
        date = _("no date") if end is None else date_format(local_time(end))
        yield KEEP, _("As it is: %(date)s") % {"date": date}
        yield from super()._choices()

    def is_current(self) -> bool:
        """Whether nobody has changed the app since the page was opened."""
        return bool(self.cleaned_data["before"] == _state(self._now))

    def end(self) -> datetime | None:
        if self.cleaned_data["ends"] == KEEP:
            return self._now.until
        return super().end()

    def choice(self) -> Choice:
        """Return what is to hold from now on, from a valid form."""
        return Choice(
            name=self.cleaned_data["name"],
            may=self.cleaned_data["may"],
            tags=self.chosen_tags(),
            until=self.end(),
        )


def _initial(now: Choice, *, many: bool) -> dict[str, Any]:
    return {
        "before": _state(now),
        "name": now.name,
        "may": now.may,
        "which": SOME if now.tags else ALL,
        "tags": now.tags if many else list(words(now.tags)),
        "ends": KEEP,
    }


def _state(choice: Choice) -> str:
    return digest(str(choice))
