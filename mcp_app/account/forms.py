"""The forms for access tokens and for a connected app."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final
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

from mcp_app.auth.authenticators import sign_in_names
from mcp_app.auth.program_keys import read_public_key
from mcp_app.auth.resources import is_usable
from mcp_app.auth.rights import Choice
from mcp_app.auth.users import find_user, no_such_user
from mcp_app.conf import mcp_settings
from mcp_app.interface.errors import is_installed
from mcp_app.models import AccessToken, Connection, Server
from mcp_app.models.fields import digest, split_words, tag_problems
from mcp_app.process.visible import Visible
from mcp_app.site_time import DAY, local_date, local_time, site_time

# -- expiry choice ---------------------------------------------------------------------
# When something ends: one of some numbers of days, or a date.

MAX_LIFETIME: Final = timedelta(days=366)
"""The longest life of a token or an app, if endless ones are not allowed."""
LAST_DAY: Final = date(9999, 12, 30)
"""The latest end date; the day after it must exist, too."""
UNTIL: Final = "date"
NEVER: Final = "never"


class ExpiryChoice(forms.Form):
    """A form that asks when something ends; call `chosen_end` on a valid form."""

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
        ends.choices = list(self._expiry_choices())
        ends.initial = str(self.usual_days)

    def _expiry_choices(self) -> Iterator[tuple[str, str]]:
        for days in self.days:
            label = ngettext("In %(days)d day", "In %(days)d days", days)
            yield str(days), label % {"days": days}
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
        latest = LAST_DAY if endless else today + MAX_LIFETIME
        if until is None:
            self.add_error("until", _("Fill in a date, or choose a number of days."))
        elif until < today:
            message = _("%(date)s is in the past. Choose a later day.")
            self.add_error("until", message % {"date": date_format(until, DAY)})
        elif until > latest:
            message = _("%(date)s is too far ahead. The latest day is %(latest)s.")
            values = {
                "date": date_format(until, DAY),
                "latest": date_format(latest, DAY),
            }
            self.add_error("until", message % values)

    def chosen_end(self) -> datetime | None:
        """Return the time of the end, None for never."""
        ends, until = self.cleaned_data["ends"], self.cleaned_data["until"]
        if ends == NEVER:
            return None
        if ends == UNTIL and until is not None:
            # The token or app is valid until the end of this day.
            return site_time(datetime.combine(until + timedelta(days=1), time.min))
        return timezone.now() + timedelta(days=int(ends))


# -- rights choice ---------------------------------------------------------------------
# What a program may do, within what it asked for: rights, tools, and until when.
#
# The choice is shown at sign-in, and again on the page of the connected app.

MAX_TAGS: Final = 30
"""If there are more tags, people type them."""
ALL, SOME = "all", "some"


class RightsChoice(ExpiryChoice):
    """What a program may do, no more than `may_ask`, and until when.

    `tags` are the tags of the tools that the person sees, with the number of tools.
    """

    may = forms.ChoiceField(
        label=gettext_lazy("It may"),
        initial=AccessToken.May.READ,
        widget=forms.RadioSelect,
    )
    which = forms.ChoiceField(
        label=gettext_lazy("Which"),
        choices={
            ALL: gettext_lazy("all that I may use"),
            SOME: gettext_lazy("only these:"),
        },
        initial=ALL,
        required=False,
        widget=forms.RadioSelect,
    )

    days = (30, 90, 365)
    usual_days = 90

    def __init__(
        self, *positional: Any, may_ask: str, tags: Counter[str], **options: Any
    ) -> None:
        super().__init__(*positional, **options)
        may: Any = self.fields["may"]
        choices = {AccessToken.May.READ.value: _("only look things up")}
        if may_ask == AccessToken.May.CHANGE:
            choices[AccessToken.May.CHANGE.value] = _("also change things")
        # The widget has its own list, so set the choices of the field.
        may.choices = choices
        self._add_tags_field(tags)

    def tell_what_is_missing(self, visible: Visible) -> None:
        """Say beside the choice how many tools need the right to change things."""
        changing = sum(not tool.only_reads for tool in visible.tools)
        if changing and len(self.fields["may"].choices) > 1:  # type: ignore[attr-defined]
            self.fields["may"].help_text = ngettext(
                "It asked to change things, too; without that, %(changing)d of %(all)d"
                " tools is missing in it.",
                "It asked to change things, too; without that, %(changing)d of %(all)d"
                " tools are missing in it.",
                changing,
            ) % {"changing": changing, "all": len(visible.tools)}

    def _add_tags_field(self, tags: Counter[str]) -> None:
        # Without tags there is no choice.  But a person may have chosen tags that no
        # longer exist: then the answer was not "all".
        if not tags and self.data.get("which") != SOME:
            del self.fields["which"]
        elif len(tags) <= MAX_TAGS:
            self.fields["tags"] = forms.MultipleChoiceField(
                label=_("Groups of tools"),
                required=False,
                choices={tag: f"{tag} ({tags[tag]})" for tag in sorted(tags)},
                widget=forms.CheckboxSelectMultiple({"class": "mcp-boxes"}),
            )
        else:
            self.fields["tags"] = forms.CharField(
                label=_("Groups of tools"),
                required=False,
                help_text=_("Their tags, separated by spaces."),
            )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("which") != SOME or "tags" not in cleaned:
            return cleaned
        chosen, field = self.chosen_tags(), AccessToken._meta.get_field("tags")
        problems = [sentence for _field, sentence in tag_problems(chosen)]
        if not chosen:
            problems = [_("Choose at least one group, or all.")]
        elif len(chosen) > (field.max_length or 0):
            problems.append(_("These are too many groups. Choose fewer, or all."))
        for problem in problems:
            self.add_error("tags", problem)
        return cleaned

    def chosen_tags(self) -> str:
        """Return the tags as the column stores them, "" for all."""
        if self.cleaned_data.get("which") != SOME:
            return ""
        value = self.cleaned_data.get("tags")
        return " ".join(split_words(value) if isinstance(value, str) else value or [])


def visible_tag_counts(visible: Visible) -> Counter[str]:
    """Return the tags of the tools that a person sees, with the number of tools."""
    return Counter(tag for tool in visible.tools for tag in tool.tags)


# -- forms -----------------------------------------------------------------------------

USUAL_DAYS: Final = 30
OVERLAPS: Final = {
    "0": gettext_lazy("now"),
    "1": gettext_lazy("in 1 hour"),
    "24": gettext_lazy("in 24 hours"),
}
"""For how many hours an old token still works."""
ONCE: Final = re.compile(r"[0-9a-f]{32}")
"""The random text that tells apart the pages on which a form was shown."""

if TYPE_CHECKING:
    TokenForm = forms.ModelForm[AccessToken]
    ServersField = forms.ModelMultipleChoiceField[Server]
else:
    TokenForm = forms.ModelForm
    ServersField = forms.ModelMultipleChoiceField


class OnceForm(forms.Form):
    """A form that takes effect once, even if it is sent several times."""

    once = forms.CharField(
        widget=forms.HiddenInput,
        initial=partial(secrets.token_hex, 16),
        validators=[RegexValidator(ONCE, gettext_lazy("Load this page again."))],
    )

    def idempotency_key(self, user: AbstractBaseUser) -> UUID:
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


class UnshownText(forms.Textarea):
    """Never shows pasted text, because it may be a private key."""

    def format_value(self, value: Any) -> None:
        return None


class NewTokenForm(OnceForm, ExpiryChoice, TokenForm):
    """A token for the user of the form; `servers` are the servers to choose from."""

    days = (1, 7, 30, 90)
    usual_days = USUAL_DAYS
    may_never_end = True

    class Meta:
        model = AccessToken
        fields = ["name", "servers", "may", "networks", "tags", "tools", "public_key"]
        labels = {
            "public_key": gettext_lazy("How does the program prove itself?"),
            "networks": gettext_lazy("Allowed networks"),
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
            "tools": gettext_lazy(
                "The names of tools, separated by spaces: the token is valid for"
                " nothing else. Empty: no limit."
            ),
            "public_key": gettext_lazy(
                "Empty: by a secret that you see once. By its own key: paste the public"
                " one, as PEM or JWK."
            ),
        }
        field_classes = {"servers": ChosenServers}
        widgets = {
            "servers": forms.CheckboxSelectMultiple({"class": "mcp-boxes"}),
            "public_key": UnshownText({"rows": 4}),
        }

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
        if not (is_installed("jwt") and is_usable() and sign_in_names()):
            del self.fields["public_key"]

    def clean_public_key(self) -> str:
        text: str = self.cleaned_data["public_key"]
        return read_public_key(text) if text else ""

    def token_arguments(self) -> Mapping[str, Any]:
        """Return the arguments of `AccessToken.objects.make`, from a valid form."""
        cleaned = self.cleaned_data
        names = [field for field in self.Meta.fields if field != "servers"]
        return {
            "user": self.user,
            "expires": self.chosen_end(),
            **{name: cleaned.get(name, "") for name in names},
            "servers": list(cleaned["servers"]),
        }


class AnyonesTokenForm(NewTokenForm):
    """The form of tokens for other users; pages remove fields without the right."""

    service_user = forms.CharField(
        label=gettext_lazy("For a service user"),
        required=False,
        help_text=gettext_lazy(
            "The login name of a service user, which is the account of a program."
            " Empty: for you. Colleagues make their own tokens."
        ),
        widget=forms.TextInput({"autocomplete": "off"}),
    )
    colleague = forms.CharField(
        label=gettext_lazy("For a colleague"),
        required=False,
        help_text=gettext_lazy(
            "A login name. You get no token but a link to send: it makes the token"
            " once, within 24 hours, for this person alone."
        ),
    )

    def clean_service_user(self) -> str:
        return self._take_user(self.cleaned_data["service_user"])

    def clean_colleague(self) -> str:
        name: str = self.cleaned_data["colleague"]
        if name and self.cleaned_data.get("public_key"):
            raise ValidationError(_("With a key there is no link: leave one empty."))
        if name and self.cleaned_data.get("service_user"):
            raise ValidationError(_("Name a service user or a colleague, not both."))
        return self._take_user(name)

    def _take_user(self, name: str) -> str:
        if name:
            user = find_user(name)
            if user is None:
                raise ValidationError(no_such_user(name))
            self.user = user
        return name


class ServerTokenForm(OnceForm, TokenForm):
    """A token for one server and the usual time; by default it only reads."""

    change = forms.BooleanField(
        label=gettext_lazy("May also use tools that change things"), required=False
    )

    class Meta:
        model = AccessToken
        fields = ["name"]
        labels = {"name": gettext_lazy("Name of the token")}

    def token_arguments(
        self, user: AbstractBaseUser, server: Server
    ) -> Mapping[str, Any]:
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
        choices=OVERLAPS,
        initial="24",
        widget=forms.RadioSelect,
    )

    def overlap_time(self) -> timedelta:
        return timedelta(hours=int(self.cleaned_data["overlap"]))


class NameForm(TokenForm):
    class Meta:
        model = AccessToken
        fields = ["name"]


KEEP: Final = "keep"
"""The choice that an app ends when it would have ended anyway."""


class AppForm(RightsChoice):
    """The name and the rights of an app; `tags` are those of the tools it could see.

    `before` is a digest of the choice that was stored when the page was opened.
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
        self._now = now = Choice.of_connection(connection)
        chosen = list(split_words(now.tags))
        # A tag that no tool has now stays chosen: without it, all would be allowed.
        counts = Counter({**dict.fromkeys(chosen, 0), **tags})
        initial = {
            "before": digest(str(now)),
            "name": now.name,
            "may": now.may,
            "which": SOME if now.tags else ALL,
            "tags": now.tags if len(counts) > MAX_TAGS else chosen,
            "ends": KEEP,
        }
        super().__init__(data, may_ask=connection.may_ask, tags=counts, initial=initial)
        if "which" in self.fields:
            self.fields["which"].required = True

    def _expiry_choices(self) -> Iterator[tuple[str, str]]:
        end = self._now.until
        date = _("no date") if end is None else date_format(local_time(end), DAY)
        yield KEEP, _("As it is: %(date)s") % {"date": date}
        yield from super()._expiry_choices()

    def is_current(self) -> bool:
        """Whether the app has not been changed since the page was opened."""
        return bool(self.cleaned_data["before"] == digest(str(self._now)))

    def chosen_end(self) -> datetime | None:
        if self.cleaned_data["ends"] == KEEP:
            return self._now.until
        return super().chosen_end()

    def chosen_rights(self) -> Choice:
        """Return the new choice, from a valid form."""
        return Choice(
            name=self.cleaned_data["name"],
            may=self.cleaned_data["may"],
            tags=self.chosen_tags(),
            until=self.chosen_end(),
        )
