"""The config of a query as a form, in which each part is a line of words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, cast

from django import forms
from django.forms.boundfield import BoundField
from django.utils.choices import flatten_choices
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import EditorInput, Initial, parse_or_none
from mcp_app.admin.editors.lines import LineForm, Lines, is_same, with_values
from mcp_app.admin.editors.lookup_choices import (
    NONE,
    both_directions,
    field_entry,
    group_entries,
    grouped_choices,
    measure_entries,
    sort_entries,
)
from mcp_app.admin.editors.lookup_filters import FilterForm, NameField, filter_lines
from mcp_app.admin.editors.lookup_values import Person, RowTexts
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet
from mcp_app.admin.editors.rows import NotRepresentable, Rows
from mcp_app.catalog.open_models import (
    FieldKind,
    OpenModel,
    OpenModels,
    rows_of_everybody,
)
from mcp_app.kinds.kind import Incomplete
from mcp_app.kinds.query.config import (
    DATES,
    GROUPS,
    MAX_GROUPINGS,
    MAX_LISTED_ROWS,
    MAX_MEASURES,
    MAX_NAME_LENGTH,
    MAX_ROWS,
    MAX_SORT_TERMS,
    ONE,
    ROWS,
    SCHEMA,
    USUAL_LISTED,
    USUAL_ROWS,
)
from mcp_app.kinds.query.labels import (
    field_label,
    label_and_field,
    measure_label,
    unit_label,
)
from mcp_app.kinds.query.reading import is_sortable, read_query_config
from mcp_app.protocol.json_types import JsonObject

MAX_LISTS: Final = 3
PRESET_COLUMNS: Final = 8
REDRAW: Final = {"data-mcp-redraw": "config"}

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
    config["fields"] = [*_own_columns(model)][:PRESET_COLUMNS]
    order = () if one else model.model._meta.ordering or ()
    names = [each for each in order if isinstance(each, str)]
    if names and _may_sort(names[0], model) and "order" not in config:
        config["order"] = names[:1]
    return config


def usual_name(path: str, model: OpenModel) -> str:
    """Return the name of a number that nobody has named: hires, sum_net_total."""
    rows = slugify(str(model.model._meta.verbose_name_plural)).replace("-", "_")
    name = rows if path == "count" else path.replace("/", "_").replace(".", "_")
    return name[:MAX_NAME_LENGTH] or "count"


def _own_columns(model: OpenModel, target: OpenModel | None = None) -> Iterator[str]:
    """Yield the fields of a model; of a list without the way back to its model."""
    for name, field in model.fields.items():
        is_back = target is not None and field.source.related_model is target.model
        is_key = field.kind is FieldKind.KEY and field.source.is_relation
        if field.kind is not FieldKind.TO_MANY and not is_key and not is_back:
            yield name


def _may_sort(term: str, model: OpenModel) -> bool:
    field = model.fields.get(term.removeprefix("-"))
    return field is not None and is_sortable(field)


# -- lines -----------------------------------------------------------------------------


class ChoiceLine(LineForm):
    """A line with one choice: a group, a measure, a term of an order."""

    path = forms.ChoiceField(widget=forms.Select(REDRAW))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.offer_choices("path", self.choices_with(self.sent_value("path")))
        self.fields["path"].widget.attrs["aria-label"] = self.about

    about: ClassVar[Any]
    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]
    entry: ClassVar[Any]

    @classmethod
    def choices_with(cls, chosen: str = "") -> list[Any]:
        return grouped_choices(cls.model, cls.opened, cls.entry, [chosen])

    def label(self) -> str:
        flat = dict(_flat(self.fields["path"].choices))  # type: ignore[attr-defined]
        return str(flat.get(self.sent_value("path"), self.sent_value("path")))

    def line_config(self) -> Any:
        return self.values["path"]


class GroupLine(ChoiceLine):
    about = _("Group by")
    entry = staticmethod(group_entries)

    def line_config(self) -> Any:
        path, _slash, unit = str(self.values["path"]).partition("/")
        return {"path": path, "unit": unit} if unit else path


class TermLine(ChoiceLine):
    about = _("Sorted by")
    entry = staticmethod(sort_entries)

    @classmethod
    def choices_with(cls, chosen: str = "") -> list[Any]:
        return [NONE, *super().choices_with(chosen)]


class MeasureLine(ChoiceLine):
    about = _("Number of each group")
    entry = staticmethod(measure_entries)

    name = NameField(label=_("named"), widget=forms.TextInput(REDRAW))

    @classmethod
    def choices_with(cls, chosen: str = "") -> list[Any]:
        rows = cls.model.model._meta.verbose_name_plural
        count = capfirst(measure_label("count", str(rows), None))
        offered = grouped_choices(
            cls.model, cls.opened, cls.entry, {chosen} - {"count"}
        )
        return [("count", count), *offered]

    def __init__(
        self, data: Mapping[str, Any] | None = None, *, prefix: str, **options: Any
    ) -> None:
        super().__init__(data, prefix=prefix, **options)
        name, usual = self.sent_value("name"), self.usual_name(self.sent_value("path"))
        keys: Any = flatten_choices(self.choices_with())
        drafts = {self.usual_name(key) for key, _label in keys} - {usual}
        if self.is_bound and name in drafts and name == self.sent_value("was"):
            # A drafted name follows what is counted or added up.
            self.data = with_values(self.data, prefix, name=usual, was=usual)

    @classmethod
    def usual_name(cls, path: str) -> str:
        return usual_name(path, cls.model)

    def line_config(self) -> JsonObject:
        key = str(self.values["path"])
        aggregate, _slash, path = key.partition("/")
        name = self.values.get("name") or self.usual_name(key)
        return {
            "aggregate": aggregate,
            **({"path": path} if path else {}),
            "name": name,
        }

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        name = cls.usual_name(path)
        return {"path": path, "name": name, "was": name}


class ListLine(LineForm):
    """The rows that a relation to many leads to, with filters of their own."""

    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]
    filter_form: ClassVar[type[FilterForm]]

    path = forms.CharField(widget=forms.HiddenInput)
    shown = forms.MultipleChoiceField(
        label=_("Columns"),
        widget=forms.CheckboxSelectMultiple({"class": "mcp-ticked"}),
    )
    order = forms.ChoiceField(label=_("Sorted by"), required=False)
    limit = forms.IntegerField(
        label=_("at most"), min_value=1, max_value=MAX_LISTED_ROWS, required=False
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        prefix: str,
        initial: Mapping[str, Any],
    ) -> None:
        super().__init__(data, prefix=prefix, initial={**initial})
        path = self.sent_value("path")
        self.base: JsonObject = initial.get("config", {"path": path})
        _label, field = label_and_field(path, self.model, self.opened)
        label = "" if field is None else field.target_model._meta.label
        self.target = self.opened.get(label)
        self.filters: Lines | None = None
        if self.target is None:
            return
        chosen = self.initial.get("shown", ())
        offered = grouped_choices(self.target, self.opened, field_entry, chosen)
        self.offer_choices("shown", [*_flat(offered)])
        term = self.sent_value("order")
        terms = grouped_choices(self.target, self.opened, sort_entries, [term])
        self.offer_choices("order", [NONE, *terms])
        make = type("FilterForm", (self.filter_form,), {"model": self.target})
        filters = self.base.get("filters", ())
        self.filters = filter_lines(make, data, self.add_prefix("filters"), filters)

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        target = cls.opened[cls.model.fields[path].target_model._meta.label]
        columns = [*_own_columns(target, cls.model)][:PRESET_COLUMNS]
        return cls.initial_line({"path": path, "fields": columns})

    @classmethod
    def initial_line(cls, config: JsonObject) -> dict[str, Any]:
        return {
            "config": config,
            "path": config["path"],
            "shown": config["fields"],
            "order": next(iter(config.get("order", ())), ""),
            "limit": config.get("limit", USUAL_LISTED),
        }

    def label(self) -> str:
        return label_and_field(self.sent_value("path"), self.model, self.opened)[0]

    @property
    def is_wrong(self) -> bool:
        return super().is_wrong or not (self.filters is None or self.filters.is_valid())

    def inner_lines(self) -> Sequence[Lines]:
        return () if self.filters is None else (self.filters,)

    def words(self) -> str:
        """Return what the line shows: “code, begins; newest first, at most 5”."""
        labels = dict(_flat(self.fields["shown"].choices))  # type: ignore[attr-defined]
        columns = ", ".join(str(labels.get(each, each)) for each in self._shown())
        orders = dict(_flat(self.fields["order"].choices))  # type: ignore[attr-defined]
        order = self.sent_value("order")
        texts = [columns, str(orders[order]) if order in orders and order else ""]
        most = _("at most %(limit)s") % {"limit": self["limit"].value()}
        return "; ".join(filter(None, (*texts, most)))

    def _shown(self) -> Sequence[str]:
        return self["shown"].value() or ()

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        yield from super().error_places(self.label())
        if self.filters is not None:
            yield from self.filters.error_places()

    def line_config(self) -> JsonObject:
        values, config = self.values, dict(self.base)
        _put_columns(config, values["shown"])
        order = [values["order"]] if values["order"] else []
        _put(config, "order", [*order, *config.get("order", ())[1:]] if order else [])
        _put_limit(config, values["limit"], USUAL_LISTED)
        if self.filters is not None:
            _put(config, "filters", self.filters.configs())
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
        self.shown_answer = ONE if self.one else self.base.get("answer", ROWS)
        offered = [(each.label, each.title) for each in self.opened.values()]
        self.offer_choices("model", [NONE, *offered])
        if self.open_model is None:
            del self.fields["answer"], self.fields["limit"]
            return
        del self.fields["model"]
        if self.one:
            del self.fields["answer"], self.fields["limit"]
        if self.is_bound:
            self.shown_answer = sent or self.shown_answer
        self.initial["shows"] = self.initial["answer"] = self.shown_answer
        self._add_parts(self.open_model)

    def _add_parts(self, model: OpenModel) -> None:
        data = self.data if self.is_bound else None
        members = {"model": model, "opened": self.opened}
        make = type(
            "FilterForm",
            (FilterForm,),
            {**members, "texts": self.texts, "taken": set()},
        )

        def add_lines(
            name: str, line: type[LineForm], initial: Sequence[Any], most: int
        ) -> None:
            kind = type(line.__name__, (line,), {**members, "filter_form": make})
            add = kind.choices_with() if issubclass(kind, ChoiceLine) else self._lists()
            place = self.add_prefix(name)
            self.lines[name] = Lines(kind, data, place, initial, add, most)

        config, groups = self.base, self.shown_answer == GROUPS
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
        choices = [
            choice
            for line in (*self.lines["group_by"], *self.lines["measures"])
            for choice in both_directions(*self._named(line))
        ]
        renamed = {
            line.sent_value("was"): self._named(line)[0]
            for line in self.lines["measures"]
        }
        usual = self._usual_order()
        term = next(iter(self.base.get("order", ())), "")
        if self.is_bound:
            term = str(self.data.get(self.add_prefix("group_order"), term))
        name = term.removeprefix("-")
        term = term.replace(name, renamed.get(name, name), 1) if name else ""
        labels = dict(choices)
        self.sorted_by = term if term in labels else ""
        if usual and self.sorted_by != usual:
            # Nobody chose it: it follows from groups and numbers.
            choices = [("", labels.pop(usual)), *labels.items()]
        self.fields["group_order"] = forms.CharField(
            label=_("Sorted by"), required=False, widget=forms.Select(choices=choices)
        )
        self.initial["group_order"] = self.sorted_by
        self.initial["limit"] = self.base.get("limit", MAX_ROWS)

    def _named(self, line: LineForm) -> tuple[str, str, FieldKind | None]:
        """Return the name of a group or a number in the answer, its label and kind."""
        key = line.sent_value("path")
        if isinstance(line, MeasureLine):
            _aggregate, _slash, path = key.partition("/")
            name = line.sent_value("name") or key.replace("/", "_").replace(".", "_")
            _label, field = label_and_field(path, self.open_model, self.opened)
            return name, name, FieldKind.NUMBER if field is None else field.kind
        path, _slash, unit = key.partition("/")
        label, field = label_and_field(path, self.open_model, self.opened)
        name = "_".join(filter(None, (path.replace(".", "_"), unit)))
        label = unit_label(unit, label) if unit else label
        return name, label, None if field is None else field.kind

    def _usual_order(self) -> str:
        """Return the order that groups have by themselves."""
        for line in self.lines["group_by"]:
            name, _label, kind = self._named(line)
            if kind in DATES:
                return name
        lines = [*self.lines["measures"]]
        sums = [each for each in lines if each.sent_value("path").startswith("sum/")]
        first = next(iter([*sums, *lines]), None)
        return "" if first is None else f"-{self._named(first)[0]}"

    # -- what the page shows

    def names(self) -> Any:
        """Return what has the names of the model: for one row, and for several."""
        return None if self.open_model is None else self.open_model.model._meta

    def limited(self) -> str:
        """Return what the rows belong to of which a caller sees some only."""
        found = rows_of_everybody(self.opened)
        names = [
            str(o.model._meta.verbose_name)
            for m, o, _how in found
            if m is self.open_model
        ]
        return ", ".join(dict.fromkeys(names))

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
            _put(config, "answer", ONE if self.is_bound else config.get("answer"))
        _put(config, "filters", self.lines["filters"].configs())
        if self.shown_answer == GROUPS:
            _put(config, "group_by", self.lines["group_by"].configs())
            _put(config, "measures", self.lines["measures"].configs())
            others = config.get("order", ())[1:] if self.sorted_by else ()
            _put(config, "order", [*filter(None, [self.sorted_by]), *others])
            _put_limit(config, values.get("limit"), MAX_ROWS)
        else:
            _put_columns(config, values.get("shown", ()))
            _put(config, "lists", self.lines["lists"].configs())
            if not self.one:
                _put(config, "order", self.lines["order"].configs())
                _put(config, "count", values.get("count"))
                _put_limit(config, values.get("limit"), USUAL_ROWS)
        answer = values.get("answer")
        if answer and answer != self.shown_answer:
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


def _flat(choices: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for value, label in choices:
        if isinstance(label, list):
            yield from label
        else:
            yield value, label


def _put(config: JsonObject, name: str, value: Any) -> None:
    """Set a member, or leave it out where it says nothing."""
    if value or (name in config and value == config[name]):
        config[name] = value
    else:
        config.pop(name, None)


def _put_columns(config: JsonObject, ticked: Sequence[str]) -> None:
    """Put what was ticked, in the order that it had."""
    known = [each for each in config.get("fields", ()) if each in ticked]
    _put(config, "fields", known + [each for each in ticked if each not in known])


def _put_limit(config: JsonObject, limit: int | None, usual: int) -> None:
    if limit != config.get("limit", usual):
        _put(config, "limit", limit)


def _group_key(config: Any) -> str:
    if isinstance(config, str):
        return config
    return f"{config['path']}/{config['unit']}"


def _measure_key(measure: JsonObject) -> str:
    """Return the value of the choice that stands for a measure."""
    return "/".join(filter(None, (measure["aggregate"], measure.get("path"))))
