"""What a program may, of what it asked for: to look or change, which tools, until when.

Asked where it signs in, and again on the page of the connected app.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.account.expiry_choice import ExpiryChoice
from mcp_app.models import AccessToken
from mcp_app.models.listings import tag_problems, words
from mcp_app.process.visible import Visible

DAYS: Final = (30, 90, 365)
USUAL_DAYS: Final = 90
MOST_TAGS: Final = 30
"""With more, they are typed."""
ALL, SOME = "all", "some"


class RightsChoice(ExpiryChoice):
    """What a program may, no more than `may_ask`, and until when.

    `tags` are those of the tools that the person sees, with how many tools have them.
    """

    may = forms.ChoiceField(
        label=gettext_lazy("It may"),
        initial=AccessToken.May.READ,
        widget=forms.RadioSelect,
    )
    which = forms.ChoiceField(
        label=gettext_lazy("Which"),
        choices=[
            (ALL, gettext_lazy("all that I may use")),
            (SOME, gettext_lazy("only these:")),
        ],
        initial=ALL,
        required=False,
        widget=forms.RadioSelect,
    )

    days = DAYS
    usual_days = USUAL_DAYS

    def __init__(
        self, *positional: Any, may_ask: str, tags: Counter[str], **options: Any
    ) -> None:
        super().__init__(*positional, **options)
        may: Any = self.fields["may"]
        choices = [(AccessToken.May.READ.value, _("only look things up"))]
        if may_ask == AccessToken.May.CHANGE:
            choices.append((AccessToken.May.CHANGE.value, _("also change things")))
        # The widget has a list of its own.
        may.choices = choices
        self._add_tags(tags)

    def tell_what_is_missing(self, visible: Visible) -> None:
        """Say beside the choice how many tools only a program that may change has."""
        changing = sum(not each.only_reads for each in visible.tools)
        if changing and len(self.fields["may"].choices) > 1:  # type: ignore[attr-defined]
            self.fields["may"].help_text = ngettext(
                "It asked to change things, too; without that, %(changing)d of %(all)d"
                " tools is missing in it.",
                "It asked to change things, too; without that, %(changing)d of %(all)d"
                " tools are missing in it.",
                changing,
            ) % {"changing": changing, "all": len(visible.tools)}

    def _add_tags(self, tags: Counter[str]) -> None:
        # Without tags there is no choice; but whoever chose some that are gone since
        # did not choose all.
        if not tags and self.data.get("which") != SOME:
            del self.fields["which"]
        elif len(tags) <= MOST_TAGS:
            self.fields["tags"] = forms.MultipleChoiceField(
                label=_("Groups of tools"),
                required=False,
                choices=[(tag, _label(tag, tags[tag])) for tag in sorted(tags)],
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
        if cleaned.get("which") == SOME and "tags" in cleaned:
            self._check_tags()
        return cleaned

    def _check_tags(self) -> None:
        """Say what is wrong with the tags, as a column of tokens has them."""
        chosen, most = self.chosen_tags(), AccessToken._meta.get_field("tags")
        if not chosen:
            self.add_error("tags", _("Choose at least one group, or all."))
        elif len(chosen) > (most.max_length or 0):
            self.add_error(
                "tags", _("These are too many groups. Choose fewer, or all.")
            )
        for _field, sentence in tag_problems(chosen):
            self.add_error("tags", sentence)

    def chosen_tags(self) -> str:
        """Return the tags as a column has them, "" for all."""
        if self.cleaned_data.get("which") != SOME:
            return ""
        value = self.cleaned_data.get("tags")
        return " ".join(words(value) if isinstance(value, str) else value or [])


def _label(tag: str, count: int) -> str:
    return f"{tag} ({count})"


def tags_of(visible: Visible) -> Counter[str]:
    """Return the tags of the tools that a person sees, with how many have each."""
    return Counter(tag for each in visible.tools for tag in each.tags)
