"""The forms: a new token, the one that replaces another, and a new name."""

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

from mcp_app.auth.permissions import named
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import visible
from mcp_app.models import AccessToken, Server
from mcp_app.models.fields import digest

DAYS: Final = (1, 7, 30, 90)
USUAL_DAYS: Final = 30
LONGEST: Final = timedelta(days=366)
"""No token made on a page lasts longer, unless the site allows endless ones."""
LAST_DAY: Final = date(9999, 12, 30)
"""After it there is one more, at whose beginning something may end."""
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
    """A page that does something once, however often it is sent."""

    once = forms.CharField(
        widget=forms.HiddenInput,
        initial=_new_page,
        validators=[RegexValidator(ONCE, gettext_lazy("Load this page again."))],
    )

    def made_with(self, user: AbstractBaseUser) -> UUID:
        """Return what the row keeps of the page; another person's is another one."""
        once = digest(f"{user.pk} {self.cleaned_data['once']}")
        # MariaDB refuses numbers that are of no version.
        return UUID(once[:32], version=5)


class ChosenServers(ServersField):
    """SQLite has no such great numbers as somebody may send."""

    def clean(self, value: Any) -> Any:
        try:
            return super().clean(value)
        except OverflowError:
            raise ValidationError(_("There is no such server.")) from None


class NewTokenForm(OnceForm, TokenForm):
    """A token for whoever fills it in; `servers` are those to choose from."""

    ends = forms.ChoiceField(label=gettext_lazy("Ends"), initial=str(USUAL_DAYS))
    until = forms.DateField(
        label=gettext_lazy("Until"),
        required=False,
        help_text=gettext_lazy(
            "For “Until a date”: good until the end of this day, at most a year ahead."
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
                "The program that gets it, and where: Claude Code on my laptop."
            ),
            "servers": gettext_lazy("None chosen: all that let you in."),
            "may": gettext_lazy(
                "“Read” is enough for tools that only look something up."
            ),
            "networks": gettext_lazy(
                "The token is good from these addresses only, for example "
                "192.0.2.0/24. Separated by spaces. Empty: from everywhere."
            ),
            "tags": gettext_lazy(
                "The token is good for what has one of these tags. Separated by "
                "spaces. Empty: for everything that you may use."
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
            self.add_error("until", _("Say until when, or choose a number of days."))
        elif until < today:
            said = _("%(date)s is over. Choose a day that is still to come.")
            self.add_error("until", said % {"date": date_format(until)})
        elif until > latest:
            said = _("%(date)s is too far ahead: %(latest)s is the latest.")
            told = {"date": date_format(until), "latest": date_format(latest)}
            self.add_error("until", said % told)

    def columns(self) -> Mapping[str, Any]:
        """Return what `AccessToken.objects.make` takes, once the form is valid."""
        cleaned = self.cleaned_data
        return {
            "user": self.user,
            "expires": _end(cleaned["ends"], cleaned["until"]),
            **{name: cleaned[name] for name in ("name", "may", "networks", "tags")},
            "servers": list(cleaned["servers"]),
        }


class AnyonesTokenForm(NewTokenForm):
    """The form of superusers, who make tokens of service users, too."""

    service_user = forms.CharField(
        label=gettext_lazy("For a service user"),
        required=False,
        help_text=gettext_lazy(
            "The login name of a user that stands for a program. Empty: for you. "
            "Colleagues make their own tokens."
        ),
        widget=forms.TextInput({"autocomplete": "off"}),
    )

    def clean_service_user(self) -> str:
        name: str = self.cleaned_data["service_user"]
        if name:
            user = named(name)
            if user is None:
                said = _("There is no active user “%(name)s” here.")
                raise ValidationError(said % {"name": visible(name)})
            self.user = user
        return name


class ReplaceForm(OnceForm):
    """When the old token ends, once there is the new one."""

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
        """Store the name alone: somebody may revoke the token in this moment."""
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
        # Good on this day, too.
        midnight = datetime.combine(until + timedelta(days=1), time.min)
        return timezone.make_aware(midnight)
    return timezone.now() + timedelta(days=int(ends))
