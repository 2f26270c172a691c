"""The forms of access tokens: a new one, a replacement, and a new name."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.account.expiry_choice import ExpiryChoice
from mcp_app.auth.permissions import find_user, no_such_user
from mcp_app.models import AccessToken, Server
from mcp_app.models.fields import digest

DAYS: Final = (1, 7, 30, 90)
USUAL_DAYS: Final = 30
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


class NewTokenForm(OnceForm, ExpiryChoice, TokenForm):
    """A token for the user of the form; `servers` are those to choose from."""

    days = DAYS
    usual_days = USUAL_DAYS
    may_never_end = True

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
        chosen: Any = self.fields["servers"]
        chosen.queryset = servers

    def columns(self) -> Mapping[str, Any]:
        """Return the arguments of `AccessToken.objects.make`, from a valid form."""
        cleaned = self.cleaned_data
        return {
            "user": self.user,
            "expires": self.end(),
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
                raise ValidationError(no_such_user(name))
            self.user = user
        return name


class ServerTokenForm(OnceForm, TokenForm):
    """A token for one server and the usual time, which reads unless more is ticked."""

    change = forms.BooleanField(
        label=gettext_lazy("May also use tools that change things"), required=False
    )

    class Meta:
        model = AccessToken
        fields = ["name"]
        labels = {"name": gettext_lazy("Name of the token")}

    def columns(self, user: AbstractBaseUser, server: Server) -> Mapping[str, Any]:
        """Return the arguments of `AccessToken.objects.make`, from a valid form."""
        may = AccessToken.May
        return {
            "user": user,
            "name": self.cleaned_data["name"],
            "may": may.CHANGE if self.cleaned_data["change"] else may.READ,
            "expires": timezone.now() + timedelta(days=USUAL_DAYS),
            "servers": [server],
        }


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
