"""When something ends: one of some numbers of days, or a date."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, ClassVar, Final

from django import forms
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.conf import mcp_settings
from mcp_app.site_time import local_date, site_time

LONGEST: Final = timedelta(days=366)
"""How long what is made on a page lasts at most, unless endless ones are allowed."""
LAST_DAY: Final = date(9999, 12, 30)
"""The latest end date: the next day begins then, which must exist."""
UNTIL: Final = "date"
NEVER: Final = "never"


class ExpiryChoice(forms.Form):
    """A form that asks when something ends; `end` is called once it is valid."""

    ends = forms.ChoiceField(label=gettext_lazy("Ends"))
    until = forms.DateField(
        label=gettext_lazy("Until"),
        required=False,
        help_text=gettext_lazy(
            "For “Until a date”: it is valid until the end of this day, at most a year"
            " ahead."
        ),
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
    )

    days: ClassVar[tuple[int, ...]]
    usual_days: ClassVar[int]
    may_never_end: ClassVar[bool] = False

    def __init__(self, *positional: Any, **options: Any) -> None:
        super().__init__(*positional, **options)
        ends: Any = self.fields["ends"]
        ends.choices = list(self._choices())
        ends.initial = str(self.usual_days)

    def _choices(self) -> Iterator[tuple[str, str]]:
        for days in self.days:
            said = ngettext("In %(days)d day", "In %(days)d days", days)
            yield str(days), said % {"days": days}
        yield UNTIL, _("Until a date")
        if self.may_never_end and mcp_settings.endless_tokens:
            yield NEVER, _("Never")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("ends") == UNTIL and "until" in cleaned:
            self._check_date(cleaned["until"])
        return cleaned

    def _check_date(self, until: date | None) -> None:
        today = local_date()
        endless = self.may_never_end and mcp_settings.endless_tokens
        latest = LAST_DAY if endless else today + LONGEST
        if until is None:
            self.add_error("until", _("Fill in a date, or choose a number of days."))
        elif until < today:
            said = _("%(date)s is in the past. Choose a later day.")
            self.add_error("until", said % {"date": date_format(until)})
        elif until > latest:
            said = _("%(date)s is too far ahead. The latest day is %(latest)s.")
            told = {"date": date_format(until), "latest": date_format(latest)}
            self.add_error("until", said % told)

    def end(self) -> datetime | None:
        """Return when it ends, None for never."""
        ends, until = self.cleaned_data["ends"], self.cleaned_data["until"]
        if ends == NEVER:
            return None
        if ends == UNTIL and until is not None:
            # It is good until the end of this day.
            midnight = datetime.combine(until + timedelta(days=1), time.min)
            return site_time(midnight)
        return timezone.now() + timedelta(days=int(ends))
