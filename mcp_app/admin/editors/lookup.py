"""The config of a query as a form, in which each part is a line of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import EditorInput, Initial, parse_or_none
from mcp_app.admin.editors.lines import LineForm, Lines, is_same
from mcp_app.admin.editors.lookup_choices import (
    NONE,
    both_directions,
    field_entry,
    grouped_choices,
)
from mcp_app.admin.editors.lookup_filters import REDRAW, FilterForm, filter_lines
from mcp_app.admin.editors.lookup_lines import (
    PRESET_COLUMNS,
    ChoiceLine,
    GroupLine,
    ListLine,
    MeasureLine,
    TermLine,
    may_sort,
    own_columns,
    put_columns,
    put_limit,
    usual_name,
)
from mcp_app.admin.editors.lookup_values import Person, RowTexts
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet, put_member
from mcp_app.admin.editors.rows import NotRepresentable, Rows
from mcp_app.catalog.open_models import (
    FieldKind,
    OpenModel,
    OpenModels,
    rows_of_everybody,
)
from mcp_app.kinds.kind import Incomplete
from mcp_app.kinds.query.config import (
    GROUPS,
    MAX_GROUPINGS,
    MAX_MEASURES,
    MAX_ROWS,
    MAX_SORT_TERMS,
    ONE,
    ROWS,
    SCHEMA,
    USUAL_ROWS,
)
from mcp_app.kinds.query.labels import field_label
from mcp_app.kinds.query.reading import read_query_config
from mcp_app.protocol.json_types import JsonObject

MAX_LISTS: Final = 3

# -- sheet -----------------------------------------------------------------------------
# A query's config as a page: the form, or the same as JSON.


class LookupSheet(OneFormSheet):
    """The config of the kind `query`; `one` for templates.

    `user` is who fills it in: values are offered of rows that they see.
    """

    row_template = "mcp_app/widgets/lookup.html"

    def __init__(self, opened: OpenModels, *, one: bool, user: Person = None) -> None:
        members = {"opened": opened, "one": one, "texts": RowTexts(user)}
        super().__init__(LookupForm, SCHEMA, **members)

    def open_rows(self, rows: Rows | None, data: Mapping[str, Any]) -> None:
        for form in () if rows is None else rows.forms:
            cast("LookupForm", form).open_lines(data)

    def initial_rows(self, value: Any) -> Initial:
        rows, config = super().initial_rows(value), value or {}
        form = cast("LookupForm", self.formset.form(initial=rows[0]))
        if not is_same(form.draft(), config):
            raise NotRepresentable(_("it has more than the form"))
        return rows


def typed_query(sent: EditorInput) -> tuple[JsonObject, list[str]]:
    """Return the config that was typed, without what is wrong, and what that is."""
    if not sent.result.problem:
        return parse_or_none(sent.result.text) or {}, []
    rows = sent.submitted_rows
    form = None if rows is None or sent.result.way == "json" else rows.forms[0]
    return (form.draft(), form.left_out()) if isinstance(form, LookupForm) else ({}, [])


def begin_config(config: JsonObject, opened: OpenModels, *, one: bool) -> JsonObject:
    """Return a config with what most want, where it does not say yet what comes."""
    model = opened.get(config.get("model", ""))
    if model is None:
        return config
    config = {"model": model.label, "answer": ONE if one else ROWS, **config}
    if config["answer"] == GROUPS:
        count = {"aggregate": "count", "name": usual_name("count", model)}
        return config if config.get("measures") else {**config, "measures": [count]}
    if config.get("fields") or config.get("lists"):
        return config
    config["fields"] = [*own_columns(model)][:PRESET_COLUMNS]
    order = () if one else model.model._meta.ordering or ()
    names = [each for each in order if isinstance(each, str)]
    if names and may_sort(names[0], model) and "order" not in config:
        config["order"] = names[:1]
    return config


# -- form ------------------------------------------------------------------------------


class LookupForm(OneForm):
    """All of a query's config; subclasses know what code opens, and for what it is.

    `shows` carries what the page had: only that is read from what it sent, so that
    other members stay as they were.
    """

    wrong_row = _("A line has an error.")
    opened: ClassVar[OpenModels]
    one: ClassVar[bool]
    """Whether the answer is one row, as that of a template."""
    texts: ClassVar[RowTexts]

    shows = forms.CharField(required=False, widget=forms.HiddenInput)
    model = forms.ChoiceField(
        label=_("Look up"), widget=forms.Select(REDRAW), required=False
    )
    answer = forms.ChoiceField(
        widget=forms.RadioSelect(REDRAW),
        choices=[(ROWS, ""), (GROUPS, "")],
        required=False,
    )
    limit = forms.IntegerField(
        label=_("at most"), min_value=1, max_value=MAX_ROWS, required=False
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.lines: dict[str, Lines] = {}
        sent = str(self.data.get(self.add_prefix("shows"), "")) if self.is_bound else ""
        label = self.base.get("model", "") or sent
        self.open_model: OpenModel | None = self.opened.get(label)
        self.page_answer = ONE if self.one else self.base.get("answer", ROWS)
        offered = [(each.label, each.title) for each in self.opened.values()]
        self.offer_choices("model", [NONE, *offered])
        if self.open_model is None:
            del self.fields["answer"], self.fields["limit"]
            return
        del self.fields["model"]
        if self.one:
            del self.fields["answer"], self.fields["limit"]
        if self.is_bound:
            self.page_answer = sent or self.page_answer
        self.initial["shows"] = self.initial["answer"] = self.page_answer
        self._add_parts(self.open_model)

    def _add_parts(self, model: OpenModel) -> None:
        data = self.data if self.is_bound else None
        members = {"model": model, "opened": self.opened}
        make = type(
            "FilterForm",
            (FilterForm,),
            {**members, "texts": self.texts, "used_names": set()},
        )

        def add_lines(
            name: str, line: type[LineForm], initial: Sequence[Any], most: int
        ) -> None:
            kind = type(line.__name__, (line,), {**members, "filter_form": make})
            add = kind.choices_with() if issubclass(kind, ChoiceLine) else self._lists()
            place = self.add_prefix(name)
            self.lines[name] = Lines(kind, data, place, initial, add, most)

        config, groups = self.base, self.page_answer == GROUPS
        filters = config.get("filters", ())
        self.lines["filters"] = filter_lines(
            make, data, self.add_prefix("filters"), filters
        )
        if groups:
            by = [{"path": _group_key(each)} for each in config.get("group_by", ())]
            add_lines("group_by", GroupLine, by, MAX_GROUPINGS)
            measures = [
                {"path": _measure_key(each), "name": each["name"], "was": each["name"]}
                for each in config.get("measures", ())
            ]
            add_lines("measures", MeasureLine, measures, MAX_MEASURES)
            self._add_group_order()
            return
        chosen = config.get("fields", ())
        self.fields["shown"] = forms.MultipleChoiceField(
            label=_("Columns"),
            choices=grouped_choices(model, self.opened, field_entry, chosen),
            required=False,
        )
        self.initial["shown"] = list(chosen)
        lists = [*map(ListLine.initial_line, config.get("lists", ()))]
        add_lines("lists", ListLine, lists, MAX_LISTS)
        if not self.one:
            order = [{"path": each} for each in config.get("order", ())]
            add_lines("order", TermLine, order, MAX_SORT_TERMS)
            self.fields["count"] = forms.BooleanField(
                label=_("Say how many rows there are in all"), required=False
            )
            self.initial["count"] = config.get("count", False)
            self.initial["limit"] = config.get("limit", USUAL_ROWS)

    def _lists(self) -> list[tuple[str, str]]:
        fields = () if self.open_model is None else self.open_model.fields.values()
        return [
            (each.name, field_label(each))
            for each in fields
            if each.kind is FieldKind.TO_MANY
            and each.target_model._meta.label in self.opened
        ]

    # -- groups

    def _add_group_order(self) -> None:
        """Offer the names of groups and numbers; those that changed go along."""
        groups, measures = (self.lines[n].right for n in ("group_by", "measures"))
        parts = {name: self.lines[name].configs() for name in ("group_by", "measures")}
        config = {"model": self.base["model"], "answer": GROUPS, **parts}
        query, _problems = read_query_config(config, self.opened)
        choices: list[tuple[str, str]] = []
        renamed, usual = {}, ""
        if query is not None:
            for line, group in zip(groups, query.group_by, strict=True):
                kind = group.path.end_field.kind
                choices += both_directions(group.name, line.label(), kind)
            for line, measure in zip(measures, query.measures, strict=True):
                kind = FieldKind.NUMBER if not measure.path else measure.path.field.kind
                choices += both_directions(measure.name, measure.name, kind)
                renamed[line.value_text("was") or measure.name] = measure.name
            first = query.group_order[0]
            usual = f"{'-' if first.descending else ''}{first.name}"
        term = next(iter(self.base.get("order", ())), "")
        if self.is_bound:
            term = str(self.data.get(self.add_prefix("group_order"), term))
        labels = dict(choices)

        def follow(old: str) -> str:
            sign, name = "-" * old.startswith("-"), old.removeprefix("-")
            new = f"{sign}{renamed.get(name, name)}"
            return new if new in labels or query is None else ""

        self.sorted_by = follow(term)
        # The page shows the first one alone.
        self.sorted_then = [*filter(None, map(follow, self.base.get("order", ())[1:]))]
        if usual and self.sorted_by != usual:
            # Nobody chose it: it follows from groups and numbers.
            choices = [("", labels.pop(usual)), *labels.items()]
        self.fields["group_order"] = forms.CharField(
            label=_("Sorted by"), required=False, widget=forms.Select(choices=choices)
        )
        self.initial["group_order"] = self.sorted_by
        self.initial["limit"] = self.base.get("limit", MAX_ROWS)

    # -- what the page shows

    def names(self) -> Any:
        """Return what has the names of the model: for one row, and for several."""
        return None if self.open_model is None else self.open_model.model._meta

    def owner_name(self) -> str:
        """Return what the rows belong to of which a caller sees some only."""
        found = rows_of_everybody(self.opened)
        owners = (owner for model, owner, _how in found if model is self.open_model)
        return "".join(str(each.model._meta.verbose_name) for each in [*owners][:1])

    def columns(self) -> list[tuple[str, list[tuple[str, str, bool]], bool]]:
        """Return the boxes for columns in groups, and whether one is ticked."""
        ticked = {*(self["shown"].value() or ())}
        own: list[tuple[str, str, bool]] = []
        groups = [("", own, True)]
        for value, label in self.fields["shown"].choices:  # type: ignore[attr-defined]
            if isinstance(label, list):
                boxes = [(v, t, v in ticked) for v, t in label]
                groups.append((value, boxes, any(each[2] for each in boxes)))
            else:
                own.append((value, label, value in ticked))
        return groups

    # -- what was sent

    def open_lines(self, data: Mapping[str, Any]) -> None:
        for lines in self.lines.values():
            lines.open_lines(data)

    def inner_formsets(self) -> list[Any]:
        return [*self.lines.values()]

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound and self.open_model is not None:
            self._check_query()

    def _check_query(self) -> None:
        """Show what is wrong with the query at the line that it is about."""
        _query, problems = read_query_config(self.draft(), self.opened)
        for problem in problems:
            name, _dot, rest = problem.place.partition(".")
            lines = self.lines.get(name)
            if isinstance(problem, Incomplete) or lines is None:
                continue
            if lines.place_problem(rest, problem.message):
                self.add_error(None, self.wrong_row)

    def has_changed(self) -> bool:
        return bool(self.errors) or not is_same(self.draft(), self.base)

    def build_config(self) -> JsonObject:
        """Return the config that the page makes, which is valid."""
        return self.draft()

    def draft(self) -> JsonObject:
        """Return the config that the page makes, without the lines that are wrong."""
        values = self.cleaned_data if self.is_bound else self.initial
        config = dict(self.base)
        if self.open_model is None:
            if chosen := values.get("model"):
                config = begin_config(
                    {**config, "model": chosen}, self.opened, one=self.one
                )
            return config
        if self.one:
            put_member(config, "answer", ONE if self.is_bound else config.get("answer"))
        put_member(config, "filters", self.lines["filters"].configs())
        if self.page_answer == GROUPS:
            put_member(config, "group_by", self.lines["group_by"].configs())
            put_member(config, "measures", self.lines["measures"].configs())
            others = self.sorted_then if self.sorted_by else ()
            put_member(config, "order", [*filter(None, [self.sorted_by]), *others])
            put_limit(config, values.get("limit"), MAX_ROWS)
        else:
            put_columns(config, values.get("shown", ()))
            put_member(config, "lists", self.lines["lists"].configs())
            if not self.one:
                put_member(config, "order", self.lines["order"].configs())
                put_member(config, "count", values.get("count"))
                put_limit(config, values.get("limit"), USUAL_ROWS)
        answer = values.get("answer")
        if answer and answer != self.page_answer:
            for name in ("order", "limit"):
                config.pop(name, None)
            config = begin_config({**config, "answer": answer}, self.opened, one=False)
        return config

    def left_out(self) -> list[str]:
        """Return which lines are wrong."""
        word = str(_("filter %(number)s"))
        names = []
        for name, lines in self.lines.items():
            for at, line in enumerate(lines, start=1):
                if line.is_wrong:
                    label = line.label()
                    names.append(word % {"number": at} if name == "filters" else label)
        return names

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        for name, sentences in self.errors.items():
            if name in self.fields:
                yield "", self[name], " ".join(map(str, sentences))
        for lines in self.lines.values():
            yield from lines.error_places()


def _group_key(config: Any) -> str:
    if isinstance(config, str):
        return config
    return f"{config['path']}/{config['unit']}"


def _measure_key(measure: JsonObject) -> str:
    """Return the value of the choice that stands for a measure."""
    return "/".join(filter(None, (measure["aggregate"], measure.get("path"))))
