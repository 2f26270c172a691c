"""The config of a call of another site as a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import json_texts
from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.json_texts import lines_from_browser
from mcp_app.admin.editors.lookup_choices import NONE
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet, put_member
from mcp_app.admin.editors.rows import LinesField, NotRepresentable, Rows
from mcp_app.admin.editors.site_call import answer_tree
from mcp_app.admin.editors.site_call.call_rows import (
    PART_ROWS,
    ROWS,
    PartForm,
    initial_pairs,
)
from mcp_app.admin.editors.site_call.parameters import (
    CallPart,
    NamedPart,
    name_parts,
    parts_of_call,
)
from mcp_app.admin.editors.site_call.paste import NoCall, PastedCall, call_from_text
from mcp_app.conf import KIB
from mcp_app.egress.sites import usable_sites
from mcp_app.kinds.http.config import MAX_ENTRIES, METHODS, SCHEMA, SEVERAL
from mcp_app.kinds.http.request import is_json_type
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject

# -- sheet -----------------------------------------------------------------------------
# The config of a call of another site as a page: the form, or the same as JSON.


class CallSheet(OneFormSheet):
    """The config of the kind `http`; for resources, `only_reads` allows only GET.

    `parameters` is the schema that the page shows; None if the form has no parameters
    of its own. `beside` returns the context that the page shows beside the form.
    `answer` has the parts of the answer that the site has just given.
    """

    row_template = "mcp_app/widgets/site_call.html"

    def __init__(self, *, only_reads: bool, **options: Any) -> None:
        super().__init__(CallForm, SCHEMA, only_reads=only_reads, **options)
        self._only_reads = only_reads

    def initial_rows(self, value: Any) -> Initial:
        rows = super().initial_rows(value)
        for name in ("method", "body"):
            if self._only_reads and (value or {}).get(name, "GET") != "GET":
                raise NotRepresentable(f"“{name}”")
        return rows

    def rows_again(self, value: Any, sent: Rows) -> Initial:
        """Return the rows to show again, with the tree and note of the last page."""
        rows = self.initial_rows(value)
        for form in sent.forms:
            if isinstance(form, CallForm) and form.is_valid():
                rows[0]["names"] = form.cleaned_data["names"]
                rows[0]["note"] = form.pasted.sentence if form.pasted else ""
        return rows


# -- call form -------------------------------------------------------------------------
# The form behind a call of another site.

NO_BODY, JSON, FORM, TEXT = "", "json", "form", "text"
BODIES: Final = {
    NO_BODY: _("Nothing"),
    JSON: _("JSON"),
    FORM: _("The fields of a form"),
    TEXT: _("A text"),
}
ADD: Final = "add "
"""Begins the value of a button that makes a placeholder a parameter."""


class CallForm(OneForm):
    """The form of the whole config; `only_reads` hides the method and the body."""

    only_reads: ClassVar[bool] = False
    parameters: ClassVar[JsonObject | None] = None
    beside: ClassVar[Callable[[], Mapping[str, Any]]] = dict
    answer: ClassVar[Sequence[answer_tree.Part]] = ()
    pasted: PastedCall | None = None

    paste = LinesField(
        label=_("Paste an address or a curl command"),
        max_length=64 * KIB,
        widget=forms.Textarea(
            {
                "class": "mcp-grow",
                "rows": 2,
                "cols": 50,
                "spellcheck": "false",
                "aria-label": _("Address or curl command"),
            }
        ),
    )
    site = forms.ChoiceField(label=_("Site"), required=False)
    method = forms.ChoiceField(
        label=_("Method"), choices=[(each, each) for each in METHODS], required=False
    )
    path = forms.CharField(
        label=_("Path"),
        required=False,
        max_length=4_000,
        widget=forms.TextInput(
            {"class": "mcp-grow", "placeholder": "/tickets/{{number}}"}
        ),
    )
    several = forms.BooleanField(
        label=_("Its last value may have several segments, such as docs/plan.txt"),
        required=False,
    )
    sends = forms.ChoiceField(
        label=_("Body"),
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
    take = forms.CharField(label=_("Part"), required=False, max_length=200)
    keep = forms.CharField(label=_("Of that only"), required=False)
    names = forms.CharField(required=False, widget=forms.HiddenInput)
    limit = forms.IntegerField(
        label=_("at most … entries"),
        required=False,
        min_value=1,
        max_value=MAX_ENTRIES,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        config = self.base
        chosen = config.get("site", "")
        offered = {key: each.title for key, each in usable_sites().items()}
        if chosen:
            offered.setdefault(chosen, chosen)
        self.offer_choices("site", [NONE, *offered.items()])
        if self.only_reads:
            for name in ("method", "sends", "body", "media_type"):
                del self.fields[name]
        self.initial.update(_initial_values(config))
        errors = config.get("errors", {}).items()
        members: dict[str, list[JsonObject]] = {
            "query": config.get("query", []),
            "headers": config.get("headers", []),
            FORM: (config.get("body") or {}).get("form", []),
            "errors": [{"name": name, "value": value} for name, value in errors],
        }
        if self.only_reads:
            del members[FORM]
        self.rows = {
            name: self.make_rows(ROWS[name], f"{name}s", initial_pairs(each))
            for name, each in members.items()
        }
        parts: list[dict[str, Any]] = []
        if self.parameters is not None:
            schema = self.parameters
            parts = [_initial_part(each, schema) for each in parts_of_call(config)]
        self.rows["parts"] = self.make_rows(PART_ROWS, "parts", parts)
        self.named: list[NamedPart] = []
        self.typed_config: JsonObject = {}

    def inner_formsets(self) -> Sequence[Rows]:
        return [*self.rows.values()]

    @property
    def _new_name(self) -> str:
        """The placeholder that a button turns into a parameter, "" for none."""
        _before, add, name = str(self.data.get("show-config", "")).rpartition(ADD)
        return name if add else ""

    def has_changed(self) -> bool:
        return bool(self._new_name) or super().has_changed()

    def tree(self) -> Sequence[answer_tree.Part]:
        """Return the parts of the answer, ticked as sent or else as in the config."""
        parts = [*self.answer]
        if not parts:
            parts = answer_tree.parts_of_names(str(self["names"].value() or ""))
        if parts:
            take, keep = self._tree_choice() or (self.base.get("take", ""), None)
            kept = self.base.get("keep", []) if keep is None else keep
            answer_tree.tick(parts, take, kept)
        return parts

    @property
    def tree_name(self) -> str:
        """The name of the radio buttons of the tree."""
        return self.add_prefix("tree")

    def body_in_words(self) -> str:
        """Return the kind of the body in one or two words."""
        return str(BODIES.get(str(self["sends"].value() or ""), ""))

    def tree_names(self) -> str:
        """Return the names of the tree, which the page sends back."""
        return answer_tree.names_of_parts(self.tree())

    def _tree_choice(self) -> tuple[str, list[str] | None] | None:
        """Return the part and the paths that are ticked in the sent tree.

        The paths are [] for all, and None if nothing is ticked.
        """
        parts = answer_tree.parts_of_names(self._text_of("names"))
        take = self._text_of("tree")
        part = next((each for each in parts if each.path == take), None)
        if part is None:
            return None
        sent = cast("QueryDict", self.data)
        ticked = sent.getlist(self.add_prefix(f"tree-{take}"))
        return take, answer_tree.paths_to_keep(part, ticked)

    def _text_of(self, name: str) -> str:
        return str(self.data.get(self.add_prefix(name)) or "") if self.is_bound else ""

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        values = self.cleaned_data
        if values.get("sends") == JSON and values.get("body"):
            try:
                values["json"] = json_texts.parse_strict_json(values["body"])
            except ValueError as error:
                self.add_error("body", str(error))
        # Read only one call: the pasted one, or else a whole address in `path`.
        for name in ("paste", "path"):
            text = values.get(name, "")
            if text and (name == "paste" or "://" in text):
                try:
                    self.pasted = call_from_text(text)
                except NoCall as error:
                    self.add_error(name, str(error))
                break
        # [1] are the ticked paths.
        if (self._tree_choice() or ("", []))[1] is None:
            self.add_error("names", _("Tick something: clients would get nothing."))
        if self.pasted and self.only_reads and self.pasted.config.get("method"):
            self.add_error("paste", _("A resource is read with GET."))
        return cleaned

    def blame(self, place: str, message: str) -> None:
        """Show an error at its field, if the page still shows the typed values."""
        part, _dot, row_place = place.partition(".")
        if self.pasted is not None or self.named:
            return
        if part in self.fields:
            self.add_error(part, message)
        elif row_place and part in self.rows:
            key, _dot, name = row_place.partition(".")
            for at, row in enumerate(self.rows[part].ordered_forms):
                # Error texts have their status as key, other rows their number.
                if key == (str(at) if name else row.cleaned_data["name"]):
                    row.add_error(name or "value", message)
                    self.add_error(None, self.wrong_row)

    def build_config(self) -> JsonObject:
        config = self._typed_config()
        if self.pasted is not None:
            # A pasted call replaces everything except the error texts.
            errors = {"errors": config["errors"]} if config.get("errors") else {}
            config = {**self.pasted.config, **errors}
        self.typed_config = config
        self.named = [
            form.part_name()
            for form in self.rows["parts"].forms
            if isinstance(form, PartForm)
            and (
                form.has_changed() or (form.is_new and form.part.name == self._new_name)
            )
        ]
        # [0] is the config; [1], the schema with the parameters, is not stored in it.
        return name_parts(config, self.parameters or {}, self.named)[0]

    def _typed_config(self) -> JsonObject:
        values, config = self.cleaned_data, dict(self.base)
        sends: JsonObject = {}
        if not self.only_reads:
            # GET is the default: do not store it.
            method = values["method"].removeprefix("" if "method" in config else "GET")
            sends = {"method": method, "body": self._request_body()}
        errors = self._members("errors")
        names = [*filter(None, map(str.strip, values["keep"].split(",")))]
        take, keep = self._tree_choice() or (values["take"], names)
        for name, value in {
            "site": values["site"],
            "path": values["path"],
            "segments": SEVERAL if values["several"] else "",
            **sends,
            "query": self._members("query"),
            "headers": self._members("headers"),
            "take": take,
            "keep": keep,
            "limit": values["limit"],
            "errors": {error["name"]: error["value"] for error in errors},
        }.items():
            put_member(config, name, value)
        return config

    def _members(self, name: str) -> list[JsonObject]:
        """Return the JSON of the pairs or error texts in valid rows, in their order."""
        rows: list[Any] = self.rows[name].ordered_forms
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


def _initial_part(part: CallPart, schema: JsonObject) -> dict[str, Any]:
    props = schema.get("properties", {})
    about = props.get(part.name)
    text = about.get("description", "") if isinstance(about, dict) else ""
    return {
        "part": part,
        "name": part.name,
        # An input has one line.
        "description": " ".join(str(text).split()),
        "is_known": part.name in props,
        "optional": part.name in props and part.name not in schema.get("required", ()),
    }


def _initial_values(config: JsonObject) -> dict[str, Any]:
    body = config.get("body") or {}
    sends = next((each for each in (JSON, FORM, TEXT) if each in body), NO_BODY)
    text = jsonrpc.pretty_text(body["json"]) if sends == JSON else body.get("text", "")
    return {
        **{name: config.get(name, "") for name in ("site", "path", "take", "limit")},
        "method": config.get("method", "GET"),
        "several": config.get("segments") == SEVERAL,
        "sends": sends,
        "body": lines_from_browser(text),
        "media_type": body.get("type", ""),
        "keep": ", ".join(config.get("keep", ())),
    }
