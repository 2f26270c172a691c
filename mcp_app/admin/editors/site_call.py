"""The config of a call of another site as a form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, ClassVar, Final
from urllib.parse import parse_qsl

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet
from mcp_app.admin.editors.rows import (
    LinesField,
    NotRepresentable,
    RowForm,
    Rows,
    formset_class_of,
)
from mcp_app.egress.sites import usable_sites
from mcp_app.kinds.http.config import (
    BRACKETS,
    COMMAS,
    MAX_ENTRIES,
    MAX_PAIRS,
    METHODS,
    PIPES,
    REPEAT,
    SCHEMA,
    SEVERAL,
    SPACES,
)
from mcp_app.kinds.http.request import is_json_type
from mcp_app.kinds.placeholders import split_pieces
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

# -- sheet -----------------------------------------------------------------------------
# The config of a call of another site as a page: the form, or the same as JSON.


class CallSheet(OneFormSheet):
    """The config of the kind `http`; resources only read."""

    row_template = "mcp_app/widgets/site_call.html"

    def __init__(self, *, only_reads: bool) -> None:
        super().__init__(CallForm, SCHEMA, only_reads=only_reads)
        self._only_reads = only_reads

    def initial_rows(self, value: Any) -> Initial:
        rows = super().initial_rows(value)
        for name in ("method", "body"):
            if self._only_reads and (value or {}).get(name, "GET") != "GET":
                raise NotRepresentable(f"“{name}”")
        return rows


# -- pair rows -------------------------------------------------------------------------
# Names and values of a call as rows: after the “?”, headers, a form, own words.

STYLES: Final = {
    REPEAT: _("name=a&name=b"),
    COMMAS: _("name=a,b"),
    SPACES: _("name=a b"),
    PIPES: _("name=a|b"),
    BRACKETS: _("name[a]=b"),
}
"""How lists and objects are written."""


class MemberForm(RowForm):
    """A row that stays as it was if nobody changed it."""

    key_field: ClassVar[str] = "name"

    def legend(self) -> str:
        return str(self[self.key_field].value() or "")

    def config_member(self) -> JsonObject:
        """Return the member of the config that the valid row makes."""
        if not self.has_changed():
            return dict(self.initial["member"])
        values = self.cleaned_data
        member = {"name": values[self.key_field], "value": values["value"]}
        if values.get("style", "") not in ("", REPEAT):
            member["style"] = values["style"]
        return member

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        missing = self.has_changed() and not self.cleaned_data.get(self.key_field)
        if missing and self.key_field not in self.errors:
            self.add_error(self.key_field, _("Write it, or remove this row."))
        return cleaned


class PairForm(MemberForm):
    """A pair of a query or of a form."""

    name = forms.CharField(label=_("Name"), required=False, max_length=200)
    value = forms.CharField(label=_("Value"), required=False, strip=False)
    style = forms.ChoiceField(
        label=_("Lists and objects as"),
        choices=[*STYLES.items()],
        initial=REPEAT,
        required=False,
    )


class HeaderForm(MemberForm):
    """A header."""

    name = forms.CharField(label=_("Name"), required=False, max_length=200)
    value = forms.CharField(label=_("Value"), required=False)


class ErrorForm(MemberForm):
    """What clients read if the other site answers with a status."""

    key_field = "status"

    status = forms.TypedChoiceField(
        label=_("Status"),
        choices=[
            NONE,
            *(
                (str(each.value), f"{each.value} {each.phrase}")
                for each in HTTPStatus
                if each.value >= HTTPStatus.MULTIPLE_CHOICES
            ),
        ],
        required=False,
    )
    value = LinesField(label=_("What clients read"), rows=2)


def initial_pairs(members: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return the rows that show the pairs of a config."""
    return [
        {
            "name": each["name"],
            "status": each["name"],
            "value": each["value"],
            "style": each.get("style", REPEAT),
            "was": str(at),
            "member": each,
        }
        for at, each in enumerate(members)
    ]


ROWS: Final[Mapping[str, type[Rows]]] = {
    "query": formset_class_of(PairForm, MAX_PAIRS),
    "headers": formset_class_of(HeaderForm, MAX_PAIRS),
    "form": formset_class_of(PairForm, MAX_PAIRS),
    "errors": formset_class_of(ErrorForm, MAX_PAIRS),
}
"""The rows inside the form, by what they are."""


# -- call form -------------------------------------------------------------------------
# The form behind a call of another site.

NO_BODY, JSON, FORM, TEXT = "", "json", "form", "text"
BODIES: Final = {
    NO_BODY: _("Nothing"),
    JSON: _("JSON"),
    FORM: _("The fields of a form"),
    TEXT: _("A text"),
}


class CallForm(OneForm):
    """All of the config; subclasses say whether it may only read."""

    only_reads: ClassVar[bool] = False

    site = forms.ChoiceField(label=_("Site"), required=False)
    method = forms.ChoiceField(
        label=_("Method"), choices=[(each, each) for each in METHODS], required=False
    )
    path = forms.CharField(
        label=_("Path"),
        required=False,
        widget=forms.TextInput({"class": "vLargeTextField"}),
        help_text=_("For example /tickets/{{number}}."),
    )
    several = forms.BooleanField(
        label=_("Its last value may have several segments"),
        required=False,
        help_text=_(
            "Such as docs/plan.txt. Otherwise a value with a slash is refused."
        ),
    )
    sends = forms.ChoiceField(
        label=_("What is sent"),
        choices=[*BODIES.items()],
        widget=forms.RadioSelect,
        required=False,
    )
    body = LinesField(
        label=_("JSON or text"),
        rows=6,
        help_text=_(
            "In JSON, a text that is only {{name}} becomes the value itself: a number"
            " stays a number. If a client leaves it out, so does the call."
        ),
    )
    media_type = forms.CharField(
        label=_("Type of the JSON or text"), required=False, max_length=200
    )
    take = forms.CharField(
        label=_("From the answer take"),
        required=False,
        max_length=200,
        help_text=_("For example “ticket”, or “data.items”. Empty: all of it."),
    )
    keep = forms.CharField(
        label=_("Of that only"),
        required=False,
        help_text=_("Names with commas between them: id, url, user.name."),
    )
    limit = forms.IntegerField(
        label=_("At most so many entries"),
        required=False,
        min_value=1,
        max_value=MAX_ENTRIES,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        config = self.base
        chosen = config.get("site", "")
        offered = {
            key: f"{each.title} ({each.url})" for key, each in usable_sites().items()
        }
        if chosen:
            offered.setdefault(chosen, chosen)
        self.offer_choices("site", [NONE, *offered.items()])
        if self.only_reads:
            for name in ("method", "sends", "body", "media_type"):
                del self.fields[name]
        self.initial.update(_initial_values(config))
        self._rows = {
            name: self.make_rows(ROWS[name], f"{name}s", initial_pairs(members))
            for name, members in _members_by_name(config).items()
            if name != FORM or not self.only_reads
        }

    def inner_formsets(self) -> Sequence[Rows]:
        return [*self._rows.values()]

    def rows(self) -> dict[str, Rows]:
        """Return the rows by what they are, for the template."""
        return self._rows

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        values = self.cleaned_data
        if values.get("sends") == JSON and values.get("body"):
            try:
                values["json"] = json_texts.parse_strict_json(values["body"])
            except ValueError as error:
                self.add_error("body", str(error))
        return cleaned

    def build_config(self) -> JsonObject:
        values, config = self.cleaned_data, dict(self.base)
        path, query = _split_query(values["path"])
        sends: JsonObject = {}
        if not self.only_reads:
            sends = {"method": values["method"] or "GET", "body": self._request_body()}
        errors = self._members("errors")
        for name, value in {
            "site": values["site"],
            "path": path,
            "segments": SEVERAL if values["several"] else "",
            **sends,
            "query": [*self._members("query"), *query],
            "headers": self._members("headers"),
            "take": values["take"],
            "keep": [*filter(None, map(str.strip, values["keep"].split(",")))],
            "limit": values["limit"],
            "errors": {each["name"]: each["value"] for each in errors},
        }.items():
            self.put_member(config, name, value)
        return config

    def _members(self, name: str) -> list[JsonObject]:
        """Return what valid rows make, in their order."""
        rows: list[Any] = self._rows[name].ordered_forms
        return [form.config_member() for form in rows]

    def _request_body(self) -> JsonObject:
        values = self.cleaned_data
        media_type = values["media_type"]
        if values["sends"] == JSON and "json" in values:
            is_json = is_json_type(media_type)
            return {"json": values["json"], **({"type": media_type} if is_json else {})}
        if values["sends"] == FORM:
            return {"form": self._members(FORM)}
        if values["sends"] == TEXT:
            media_type = media_type or "text/plain; charset=utf-8"
            return {"text": values["body"], "type": media_type}
        return {}


def _members_by_name(config: JsonObject) -> dict[str, list[JsonObject]]:
    """Return the members that rows show."""
    errors = config.get("errors", {}).items()
    return {
        "query": config.get("query", []),
        "headers": config.get("headers", []),
        FORM: (config.get("body") or {}).get("form", []),
        "errors": [{"name": name, "value": value} for name, value in errors],
    }


def _initial_values(config: JsonObject) -> dict[str, Any]:
    body = config.get("body") or {}
    sends = next((each for each in (JSON, FORM, TEXT) if each in body), NO_BODY)
    text = jsonrpc.pretty_text(body["json"]) if sends == JSON else body.get("text", "")
    return {
        "site": config.get("site", ""),
        "method": config.get("method", "GET"),
        "path": config.get("path", ""),
        "several": config.get("segments") == SEVERAL,
        "sends": sends,
        "body": lines_from_browser(text),
        "media_type": body.get("type", ""),
        "take": config.get("take", ""),
        "keep": ", ".join(config.get("keep", ())),
        "limit": config.get("limit"),
    }


def _split_query(path: str) -> tuple[str, list[JsonObject]]:
    """Take a pasted address apart: what follows the “?” becomes rows."""
    before, mark, after = path.partition("?")
    if not mark or "?" not in "".join(split_pieces(path)[0::2]):
        return path, []
    pairs = parse_qsl(after, keep_blank_values=True)
    return before, [{"name": name, "value": value} for name, value in pairs]
