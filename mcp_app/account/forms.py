"""The forms of access tokens: a new one, a replacement, and a new name."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.auth.permissions import find_user
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Server
from mcp_app.models.fields import digest

DAYS: Final = (1, 7, 30, 90)
USUAL_DAYS: Final = 30
LONGEST: Final = timedelta(days=366)
"""How long a token made on a page lasts at most, unless endless ones are allowed."""
LAST_DAY: Final = date(9999, 12, 30)
"""The latest end date: a token ends when the next day begins, which must exist."""
UNTIL: Final = "date"
NEVER: Final = "never"
OVERLAPS: Final = {
    "0": (timedelta(), gettext_lazy("now")),
    "1": (timedelta(hours=1), gettext_lazy("in 1 hour")),
    "24": (timedelta(hours=24), gettext_lazy("in 24 hours")),
}
ONCE: Final = re.compile(r"[0-9a-f]{32}")

if TYPE_CHECKING:
    TokenForm = forms.ModelForm[AccessToken]
    ServersField = forms.ModelMultipleChoiceField[Server]
else:
    TokenForm = forms.ModelForm
    ServersField = forms.ModelMultipleChoiceField


def _new_page() -> str:
    return secrets.token_hex(16)


class OnceForm(forms.Form):
    """A form that takes effect once, however often it is sent."""

    once = forms.CharField(
        widget=forms.HiddenInput,
        initial=_new_page,
        validators=[RegexValidator(ONCE, gettext_lazy("Load this page again."))],
    )

    def made_with(self, user: AbstractBaseUser) -> UUID:
        """Return the id to store for this form and user."""
        once = digest(f"{user.pk} {self.cleaned_data['once']}")
        # MariaDB refuses UUIDs without a version.
        return UUID(once[:32], version=5)


class ChosenServers(ServersField):
    """Rejects keys that are too large for SQLite."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise ValidationError(_("There is no such server.")) from None


class NewTokenForm(OnceForm, TokenForm):
    """A token for the user of the form; `servers` are those to choose from."""

    ends = forms.ChoiceField(label=gettext_lazy("Ends"), initial=str(USUAL_DAYS))
    until = forms.DateField(
        label=gettext_lazy("Until"),
        required=False,
        help_text=gettext_lazy(
            "For “Until a date”: the token is valid until the end of this day, at"
            " most a year ahead."
        ),
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
    )

    class Meta:
        model = AccessToken
        fields = ["name", "servers", "may", "networks", "tags"]
        labels = {
            "name": gettext_lazy("Name"),
            "servers": gettext_lazy("Servers"),
            "may": gettext_lazy("May"),
            "networks": gettext_lazy("Allowed networks"),
            "tags": gettext_lazy("Tags"),
        }
        help_texts = {
            "name": gettext_lazy(
                "The program that uses the token, and where, for example: Claude Code"
                " on my laptop."
            ),
            "servers": gettext_lazy("If you choose none: all servers that let you in."),
            "may": gettext_lazy(
                "“Read” is enough for tools that only look something up."
            ),
            "networks": gettext_lazy(
                "The token is valid from these addresses only, for example"
                " 192.0.2.0/24. Separated by spaces. Empty: from everywhere."
            ),
            "tags": gettext_lazy(
                "The token is valid only for tools and other definitions with"
                " one of these tags. Separated by spaces. Empty: for"
                " everything that you may use."
            ),
        }
        field_classes = {"servers": ChosenServers}
        widgets = {"servers": forms.CheckboxSelectMultiple({"class": "mcp-boxes"})}

    def __init__(
        self,
        *positional: Any,
        user: AbstractBaseUser,
        servers: QuerySet[Server],
        **options: Any,
    ) -> None:
        super().__init__(*positional, **options)
        self.user = user
        ends: Any = self.fields["ends"]
        ends.choices = list(_ends())
        chosen: Any = self.fields["servers"]
        chosen.queryset = servers

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("ends") == UNTIL and "until" in cleaned:
            self._check_date(cleaned["until"])
        return cleaned

    def _check_date(self, until: date | None) -> None:
        today = timezone.localdate()
        latest = LAST_DAY if mcp_settings.endless_tokens else today + LONGEST
        if until is None:
            self.add_error("until", _("Fill in a date, or choose a number of days."))
        elif until < today:
            said = _("%(date)s is in the past. Choose a later day.")
            self.add_error("until", said % {"date": date_format(until)})
        elif until > latest:
            said = _("%(date)s is too far ahead. The latest day is %(latest)s.")
            told = {"date": date_format(until), "latest": date_format(latest)}
            self.add_error("until", said % told)

    def columns(self) -> Mapping[str, Any]:
        """Return the arguments of `AccessToken.objects.make`, from a valid form."""
        cleaned = self.cleaned_data
        return {
            "user": self.user,
            "expires": _end(cleaned["ends"], cleaned["until"]),
            **{name: cleaned[name] for name in ("name", "may", "networks", "tags")},
            "servers": list(cleaned["servers"]),
        }


class AnyonesTokenForm(NewTokenForm):
    """The form for superusers, who can also make tokens for service users."""

    service_user = forms.CharField(
        label=gettext_lazy("For a service user"),
        required=False,
        help_text=gettext_lazy(
            "The login name of a service user, which is the account of a program."
            " Empty: for you. Colleagues make their own tokens."
        ),
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    def clean_service_user(self) -> str:
        name: str = self.cleaned_data["service_user"]
        if name:
            user = find_user(name)
            if user is None:
                said = _("There is no active user “%(name)s” here.")
                raise ValidationError(said % {"name": visible(name)})
            self.user = user
        return name


class ReplaceForm(OnceForm):
    """A replacement: when the old token ends, once the new one exists."""

    overlap = forms.ChoiceField(
        label=gettext_lazy("The old token ends"),
        choices=[(name, label) for name, (_time, label) in OVERLAPS.items()],
        initial="24",
        widget=forms.RadioSelect,
    )

    def overlap_time(self) -> timedelta:
        return OVERLAPS[self.cleaned_data["overlap"]][0]


class NameForm(TokenForm):
    class Meta:
        model = AccessToken
        fields = ["name"]
        labels = {"name": gettext_lazy("Name")}

    def save(self, commit: bool = True) -> AccessToken:
        """Store only the name, so that a concurrent revocation is not undone."""
        if commit:
            self.instance.save(update_fields=["name"])
        return self.instance


def _ends() -> Any:
    for days in DAYS:
        said = ngettext("In %(days)d day", "In %(days)d days", days)
        yield str(days), said % {"days": days}
    yield UNTIL, _("Until a date")
    if mcp_settings.endless_tokens:
        yield NEVER, _("Never")


def _end(ends: str, until: date | None) -> datetime | None:
    if ends == NEVER:
        return None
    if ends == UNTIL and until is not None:
        # The token is good until the end of this day.
        midnight = datetime.combine(until + timedelta(days=1), time.min)
        return timezone.make_aware(midnight)
    return timezone.now() + timedelta(days=int(ends))
