"""The config of a query as a form: each part is a line in words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, Final, cast

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import EditorInput, Initial
from mcp_app.admin.editors.json_texts import parse_or_none
from mcp_app.admin.editors.lines import LineForm, Lines, is_same
from mcp_app.admin.editors.lookup_choices import (
    NONE,
    both_directions,
    field_entries,
    grouped_choices,
)
from mcp_app.admin.editors.lookup_filters import FilterForm, is_representable
from mcp_app.admin.editors.lookup_lines import (
    GroupLine,
    ListLine,
    MeasureLine,
    TermLine,
    put_columns,
    put_limit,
    put_order,
    usual_columns,
    usual_name,
)
from mcp_app.admin.editors.lookup_values import REDRAW, Person, RowTexts
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet, put_member
from mcp_app.admin.editors.rows import NotRepresentable, Rows
from mcp_app.catalog.open_models import OpenModels, rows_of_everybody
from mcp_app.kinds.kind import Incomplete
from mcp_app.kinds.query.config import (
    GROUPS,
    MAX_ROWS,
    ONE,
    ROWS,
    SCHEMA,
    TOTALS,
    USUAL_ROWS,
)
from mcp_app.kinds.query.description import QueryText
from mcp_app.kinds.query.reading import is_sortable, read_query_config
from mcp_app.protocol.json_types import JsonObject

# -- sheet -----------------------------------------------------------------------------
# A query's config as a page: the form, or the same as JSON.


class LookupSheet(OneFormSheet):
    """The config of the kind `query`; with `one`, the answer is one row (templates).

    `user` fills in the form, which offers only values of rows that this user can see.
    """

    row_template = "mcp_app/widgets/lookup.html"

    schema: ClassVar[JsonObject] = SCHEMA
    form: ClassVar[type[LookupForm]]

    def __init__(self, opened: OpenModels, *, one: bool, user: Person = None) -> None:
        members = {"opened": opened, "one": one, "texts": RowTexts(user)}
        super().__init__(self.form, self.schema, **members)

    def unfold_rows(self, rows: Rows | None, data: Mapping[str, Any]) -> None:
        for form in () if rows is None else rows.forms:
            for lines in cast("LookupForm", form).inner_formsets():
                lines.unfold_lines(data)

    def initial_rows(self, value: Any) -> Initial:
        rows, config = super().initial_rows(value), value or {}
        for each in (config, *config.get("lists", ())):
            if not all(map(is_representable, each.get("filters", ()))):
                raise NotRepresentable(_("a value does not fit its comparison"))
        return rows


def typed_query(sent: EditorInput) -> tuple[JsonObject, list[str]]:
    """Return the typed config without the wrong lines, and the labels of these."""
    if not sent.result.problem:
        return parse_or_none(sent.result.text) or {}, []
    rows = sent.submitted_rows
    form = None if rows is None or sent.result.way == "json" else rows.forms[0]
    if isinstance(form, LookupForm):
        return form.build_config(), form.wrong_labels()
    return {}, []


def begin_config(config: JsonObject, opened: OpenModels, *, one: bool) -> JsonObject:
    """Return a config with the usual columns, measures and order if it has none."""
    model = opened.get(config.get("model", ""))
    if model is None:
        return config
    config = {"model": model.label, "answer": ONE if one else ROWS, **config}
    if config["answer"] == GROUPS:
        count = {"aggregate": "count", "name": usual_name("count", model)}
        return config if config.get("measures") else {**config, "measures": [count]}
    if config.get("fields") or config.get("lists"):
        return config
    config["fields"] = usual_columns(model)
    # Sort by the first term of the model's `Meta.ordering`, if a query can.
    term = next(iter(() if one else model.model._meta.ordering or ()), None)
    field = model.fields.get(term.removeprefix("-")) if isinstance(term, str) else None
    if field is not None and is_sortable(field) and "order" not in config:
        config["order"] = [term]
    return config


# -- form ------------------------------------------------------------------------------

_LINES: Final[Mapping[str, type[LineForm]]] = {
    "filters": FilterForm,
    "group_by": GroupLine,
    "measures": MeasureLine,
    TOTALS: MeasureLine,
    "lists": ListLine,
    "order": TermLine,
}
_PARTS: Final = {
    "": ("model",),
    ROWS: ("answer", "limit", "columns", "count", "filters", "lists", "order", TOTALS),
    GROUPS: ("answer", "limit", "group_order", "filters", "group_by", "measures"),
}
"""Fields and lines of the page, by kind of answer; "" if no model is chosen."""


class LookupForm(OneForm):
    """All of a query's config; subclasses set `opened`, `one` and `texts`.

    Members without a field on the page keep their stored value.
    """

    wrong_row = _("A line has an error.")
    opened: ClassVar[OpenModels]
    one: ClassVar[bool]
    """Whether the answer is one row, as for templates."""
    begin = staticmethod(begin_config)
    read_config = staticmethod(read_query_config)
    one_parts: ClassVar[tuple[str, ...]] = ("columns", "filters", "lists")
    """Fields and lines of the page for one row."""
    texts: ClassVar[RowTexts]

    model = forms.ChoiceField(
        label=_("Look up"), widget=forms.Select(REDRAW), required=False
    )
    answer = forms.ChoiceField(
        widget=forms.RadioSelect(REDRAW),
        choices=[(ROWS, ""), (GROUPS, "")],
        required=False,
    )
    columns = forms.MultipleChoiceField(label=_("Columns"), required=False)
    count = forms.BooleanField(
        label=_("Say how many rows there are in all"), required=False
    )
    group_order = forms.CharField(
        label=_("Sorted by"), required=False, widget=forms.Select()
    )
    limit = forms.IntegerField(
        label=_("at most"), min_value=1, max_value=MAX_ROWS, required=False
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        config, data = self.base, self.data if self.is_bound else None
        self.row_model = self.opened.get(config.get("model", ""))
        has_groups = config.get("answer") == GROUPS
        self.page_answer = ONE if self.one else GROUPS if has_groups else ROWS
        parts = _PARTS.get(self.page_answer, self.one_parts)
        if self.row_model is None:
            parts = _PARTS[""]
        for name in self.fields.keys() - {"was", *parts}:
            del self.fields[name]
        self.lines: dict[str, Lines] = {}
        if self.row_model is None:
            offered = [(each.label, each.title) for each in self.opened.values()]
            self.offer_choices("model", [NONE, *offered])
            return
        members = {
            "model": self.row_model,
            "opened": self.opened,
            "texts": self.texts,
            "used_names": set[str](),
        }
        for name in parts:
            if name in _LINES:
                self.lines[name] = _LINES[name].make_lines(
                    data, self.add_prefix(name), config.get(name, ()), **members
                )
        columns = config.get("fields", ())
        self.initial = {
            **self.initial,
            "answer": self.page_answer,
            "columns": list(columns),
            "count": config.get("count", False),
            "limit": config.get("limit", self._usual_limit),
        }
        if self.page_answer == GROUPS:
            self._offer_group_order()
        else:
            choices = grouped_choices(
                self.row_model, self.opened, field_entries, columns
            )
            self.offer_choices("columns", choices)

    @property
    def _usual_limit(self) -> int:
        return MAX_ROWS if self.page_answer == GROUPS else USUAL_ROWS

    def _offer_group_order(self) -> None:
        """Offer an order by each group and each measure."""
        parts = {name: self.lines[name].configs() for name in ("group_by", "measures")}
        config = {"model": self.base["model"], "answer": GROUPS, **parts}
        text = QueryText(config, self.opened)
        terms = [both_directions(*each) for each in text.group_terms()]
        labels = dict(chain.from_iterable(terms))
        stored = self.base.get("order", ())
        self.initial["group_order"] = next(iter(stored), "")
        first = str(self["group_order"].value() or "")
        self.sorted_by = first if first in labels else ""
        # The page shows only the first term; the others stay if they still exist.
        self.sorted_then = [each for each in stored[1:] if each in labels]
        choices = [*labels.items()]
        usual = next(iter(text.usual_order()), "")
        if usual and self.sorted_by != usual:
            # Offer the usual order as "": it follows from groups and numbers.
            choices = [("", labels.pop(usual)), *labels.items()]
        cast("forms.Select", self.fields["group_order"].widget).choices = choices
        self.initial["group_order"] = self.sorted_by

    # -- what the page shows

    def model_meta(self) -> Any:
        """Return the model's `_meta`, with its names in singular and plural."""
        return None if self.row_model is None else self.row_model.model._meta

    def owner_name(self) -> str:
        """Return the name of the per-caller model that the rows belong to, or ""."""
        pairs = rows_of_everybody(self.opened)
        owners = (owner for model, owner, _how in pairs if model is self.row_model)
        return next((str(each.model._meta.verbose_name) for each in owners), "")

    def column_groups(self) -> list[tuple[str | None, list[dict[str, Any]], bool]]:
        """Return the boxes for columns in groups, each with whether a box is ticked."""
        shown = self["columns"]
        widget = cast("forms.SelectMultiple", shown.field.widget)
        groups = widget.optgroups(shown.html_name, shown.value() or [])
        return [
            (label, boxes, any(box["selected"] for box in boxes))
            for label, boxes, _at in groups
        ]

    # -- what was sent

    def inner_formsets(self) -> list[Any]:
        return [*self.lines.values()]

    def full_clean(self) -> None:
        """Also check the query, and show each problem at its line."""
        super().full_clean()
        if not self.is_bound or self.row_model is None:
            return
        # [1] are the problems. The place of one is such as "filters.0.value".
        for problem in self.read_config(self.build_config(), self.opened)[1]:
            name, _dot, line_place = problem.place.partition(".")
            lines = None if isinstance(problem, Incomplete) else self.lines.get(name)
            if lines is not None and lines.place_problem(line_place, problem.message):
                self.add_error(None, self.wrong_row)

    def has_changed(self) -> bool:
        return bool(self.errors) or not is_same(self.build_config(), self.base)

    def build_config(self) -> JsonObject:
        """Return the config of the page without the wrong lines."""
        values = self.cleaned_data if self.is_bound else self.initial
        config = dict(self.base)
        if self.row_model is None:
            if chosen := values.get("model"):
                config["model"] = chosen
            return self.begin(config, self.opened, one=self.one)
        for name, lines in self.lines.items():
            put_member(config, name, lines.configs())
        self._put_fields(config, values)
        answer = values.get("answer")
        if answer and answer != self.page_answer:
            # Drop order and limit, which are different for rows and groups.
            members = {k: v for k, v in config.items() if k not in ("order", "limit")}
            return begin_config({**members, "answer": answer}, self.opened, one=False)
        return config

    def _put_fields(self, config: JsonObject, values: Mapping[str, Any]) -> None:
        if "group_order" in self.fields:
            put_order(config, self.sorted_by, self.sorted_then)
        else:
            put_columns(config, values.get("columns", ()))
        if self.one:
            # An unsent form must not change the stored config.
            put_member(config, "answer", ONE if self.is_bound else config.get("answer"))
            return
        put_limit(config, values.get("limit"), self._usual_limit)
        if "count" in self.fields:
            put_member(config, "count", values.get("count"))

    def wrong_labels(self) -> list[str]:
        """Return the labels of the wrong lines."""
        word = str(_("filter %(number)s"))
        return [
            word % {"number": line.number} if name == "filters" else line.label()
            for name, lines in self.lines.items()
            for line in lines.wrong
        ]


LookupSheet.form = LookupForm
