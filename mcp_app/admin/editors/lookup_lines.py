"""Lines of a query beside its filters: groups, numbers, terms of an order, lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.forms.boundfield import BoundField
from django.utils.choices import flatten_choices
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lines import LineForm, Lines, with_values
from mcp_app.admin.editors.lookup_choices import (
    NONE,
    field_entry,
    group_entries,
    grouped_choices,
    measure_entries,
    sort_entries,
)
from mcp_app.admin.editors.lookup_filters import (
    REDRAW,
    FilterForm,
    NameField,
    filter_lines,
)
from mcp_app.admin.editors.one_form import put_member
from mcp_app.catalog.open_models import FieldKind, OpenModel, OpenModels
from mcp_app.kinds.query.config import MAX_LISTED_ROWS, MAX_NAME_LENGTH, USUAL_LISTED
from mcp_app.kinds.query.labels import label_and_field, measure_label
from mcp_app.kinds.query.reading import is_sortable
from mcp_app.protocol.json_types import JsonObject

PRESET_COLUMNS: Final = 8


class ChoiceLine(LineForm):
    """A line with one choice: a group, a measure, a term of an order."""

    path = forms.ChoiceField(widget=forms.Select(REDRAW))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.offer_choices("path", self.choices_with(self.value_text("path")))
        self.fields["path"].widget.attrs["aria-label"] = self.about

    about: ClassVar[Any]
    model: ClassVar[OpenModel]
    opened: ClassVar[OpenModels]
    entry: ClassVar[Any]

    @classmethod
    def choices_with(cls, chosen: str = "") -> list[Any]:
        return grouped_choices(cls.model, cls.opened, cls.entry, [chosen])

    def label(self) -> str:
        flat = dict(flat_choices(self.fields["path"].choices))  # type: ignore[attr-defined]
        return str(flat.get(self.value_text("path"), self.value_text("path")))

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
        name, usual = self.value_text("name"), self.usual_name(self.value_text("path"))
        keys: Any = flatten_choices(self.choices_with())
        drafts = {self.usual_name(key) for key, _label in keys} - {usual}
        if self.is_bound and name in drafts and name == self.value_text("was"):
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


def usual_name(path: str, model: OpenModel) -> str:
    """Return the name of a number that nobody has named: hires, sum_net_total."""
    rows = slugify(str(model.model._meta.verbose_name_plural)).replace("-", "_")
    name = rows if path == "count" else path.replace("/", "_").replace(".", "_")
    return name[:MAX_NAME_LENGTH] or "count"


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
        path = self.value_text("path")
        self.base: JsonObject = initial.get("config", {"path": path})
        _label, field = label_and_field(path, self.model, self.opened)
        label = "" if field is None else field.target_model._meta.label
        self.target = self.opened.get(label)
        self.filters: Lines | None = None
        if self.target is None:
            return
        chosen = self.initial.get("shown", ())
        offered = grouped_choices(self.target, self.opened, field_entry, chosen)
        self.offer_choices("shown", [*flat_choices(offered)])
        term = self.value_text("order")
        terms = grouped_choices(self.target, self.opened, sort_entries, [term])
        self.offer_choices("order", [NONE, *terms])
        make = type("FilterForm", (self.filter_form,), {"model": self.target})
        filters = self.base.get("filters", ())
        self.filters = filter_lines(make, data, self.add_prefix("filters"), filters)

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        target = cls.opened[cls.model.fields[path].target_model._meta.label]
        columns = [*own_columns(target, cls.model)][:PRESET_COLUMNS]
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
        return label_and_field(self.value_text("path"), self.model, self.opened)[0]

    @property
    def is_wrong(self) -> bool:
        return super().is_wrong or not (self.filters is None or self.filters.is_valid())

    def inner_lines(self) -> Sequence[Lines]:
        return () if self.filters is None else (self.filters,)

    def words(self) -> str:
        """Return what the line shows: “code, begins; newest first, at most 5”."""
        labels = dict(flat_choices(self.fields["shown"].choices))  # type: ignore[attr-defined]
        columns = ", ".join(
            str(labels.get(each, each)) for each in self._column_names()
        )
        orders = dict(flat_choices(self.fields["order"].choices))  # type: ignore[attr-defined]
        order = self.value_text("order")
        texts = [columns, str(orders[order]) if order in orders and order else ""]
        most = _("at most %(limit)s") % {"limit": self["limit"].value()}
        return "; ".join(filter(None, (*texts, most)))

    def _column_names(self) -> Sequence[str]:
        return self["shown"].value() or ()

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        yield from super().error_places(self.label())
        if self.filters is not None:
            yield from self.filters.error_places()

    def line_config(self) -> JsonObject:
        values, config = self.values, dict(self.base)
        put_columns(config, values["shown"])
        others = config.get("order", ())[1:] if values["order"] else ()
        put_member(config, "order", [*filter(None, [values["order"]]), *others])
        put_limit(config, values["limit"], USUAL_LISTED)
        if self.filters is not None:
            put_member(config, "filters", self.filters.configs())
        return config


def own_columns(model: OpenModel, target: OpenModel | None = None) -> Iterator[str]:
    """Yield the fields of a model; of a list without the way back to its model."""
    for name, field in model.fields.items():
        is_back = target is not None and field.source.related_model is target.model
        is_key = field.kind is FieldKind.KEY and field.source.is_relation
        if field.kind is not FieldKind.TO_MANY and not is_key and not is_back:
            yield name


def may_sort(term: str, model: OpenModel) -> bool:
    field = model.fields.get(term.removeprefix("-"))
    return field is not None and is_sortable(field)


def flat_choices(choices: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for value, label in choices:
        for each, text in label if isinstance(label, list) else ():
            is_whole = str(text).startswith(str(value))
            yield each, text if is_whole else f"{value}: {text}"
        if not isinstance(label, list):
            yield value, label


def put_columns(config: JsonObject, ticked: Sequence[str]) -> None:
    """Put what was ticked, in the order that it had."""
    known = [each for each in config.get("fields", ()) if each in ticked]
    put_member(config, "fields", known + [each for each in ticked if each not in known])


def put_limit(config: JsonObject, limit: int | None, usual: int) -> None:
    if limit != config.get("limit", usual):
        put_member(config, "limit", limit)
