"""Lines of a query except filters: groups, measures, terms of an order, lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django import forms
from django.forms.boundfield import BoundField
from django.utils.choices import flatten_choices
from django.utils.text import capfirst, slugify
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.lines import LineForm, redrawing_field
from mcp_app.admin.editors.lookup_choices import (
    Choices,
    field_entries,
    group_entries,
    grouped_choices,
    measure_entries,
    sort_entries,
)
from mcp_app.admin.editors.lookup_filters import FilterForm, check_name
from mcp_app.admin.editors.lookup_values import REDRAW
from mcp_app.admin.editors.one_form import put_member
from mcp_app.catalog.open_models import FieldKind, OpenModel
from mcp_app.kinds.query.config import (
    MAX_GROUPINGS,
    MAX_LISTED_ROWS,
    MAX_MEASURES,
    MAX_NAME_LENGTH,
    MAX_SORT_TERMS,
    USUAL_LISTED,
)
from mcp_app.kinds.query.labels import field_label, label_and_field, measure_label
from mcp_app.protocol.json_types import JsonObject

PRESET_COLUMNS: Final = 8
UNSORTED: Final = ("", _("Choose an order …"))


class ChoiceLine(LineForm):
    """A line with one choice: a group, a measure, a term of an order."""

    entries: ClassVar[Any]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.offer_choices("path", self.choices_to_add(self.value_text("path")))

    @classmethod
    def choices_to_add(cls, chosen: str = "") -> Choices:
        return grouped_choices(cls.model, cls.opened, cls.entries, [chosen])

    @classmethod
    def initial_line(cls, config: Any) -> dict[str, Any]:
        return {"path": config}

    def label(self) -> str:
        return _chosen_label(self["path"])

    def line_config(self) -> Any:
        return self.values["path"]


class GroupLine(ChoiceLine):
    max_lines = MAX_GROUPINGS
    entries = staticmethod(group_entries)

    path = redrawing_field(_("Group by"))

    @classmethod
    def initial_line(cls, config: Any) -> dict[str, Any]:
        is_plain = isinstance(config, str)
        return {"path": config if is_plain else f"{config['path']}/{config['unit']}"}

    def line_config(self) -> Any:
        path, _slash, unit = str(self.values["path"]).partition("/")
        return {"path": path, "unit": unit} if unit else path


class TermLine(ChoiceLine):
    max_lines = MAX_SORT_TERMS
    entries = staticmethod(sort_entries)

    path = redrawing_field(_("Sorted by"))

    @classmethod
    def choices_to_add(cls, chosen: str = "") -> Choices:
        return ([UNSORTED] if chosen else []) + super().choices_to_add(chosen)


class MeasureLine(ChoiceLine):
    max_lines = MAX_MEASURES
    entries = staticmethod(measure_entries)

    path = redrawing_field(_("Number"))
    name = forms.CharField(
        label=_("named"),
        required=False,
        max_length=MAX_NAME_LENGTH,
        validators=[check_name],
        widget=forms.TextInput(REDRAW),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        usual = usual_name(self.value_text("path"), self.model)
        self.fields["name"].widget.attrs["placeholder"] = usual

    @classmethod
    def choices_to_add(cls, chosen: str = "") -> Choices:
        rows = str(cls.model.model._meta.verbose_name_plural)
        count = "count", capfirst(measure_label("count", rows, None))
        # `count` is no field: passed on, it would be shown as no longer open.
        return [count, *super().choices_to_add("" if chosen == "count" else chosen)]

    @classmethod
    def initial_line(cls, config: Any) -> dict[str, Any]:
        path = "/".join(filter(None, (config["aggregate"], config.get("path"))))
        is_usual = config["name"] == usual_name(path, cls.model)
        return {"path": path, "name": "" if is_usual else config["name"]}

    def line_config(self) -> JsonObject:
        key = str(self.values["path"])
        aggregate, _slash, path = key.partition("/")
        name = self.values.get("name") or usual_name(key, self.model)
        config = {"aggregate": aggregate, "path": path, "name": name}
        return {member: each for member, each in config.items() if each}


class ListLine(LineForm):
    """The rows behind a to-many relation, with their own filters."""

    max_lines = 3

    path = forms.CharField(widget=forms.HiddenInput)
    columns = forms.MultipleChoiceField(
        label=_("Columns"),
        widget=forms.CheckboxSelectMultiple({"class": "mcp-ticked"}),
    )
    order = forms.ChoiceField(label=_("Sorted by"), required=False)
    limit = forms.IntegerField(
        label=_("at most"), min_value=1, max_value=MAX_LISTED_ROWS, required=False
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        path = self.value_text("path")
        self.base: JsonObject = self.initial.get("config", {"path": path})
        _label, field = label_and_field(path, self.model, self.opened)
        label = "" if field is None else field.target_model._meta.label
        target = self.opened.get(label)
        if target is None:
            return
        columns = self.initial.get("columns", ())
        offered = grouped_choices(target, self.opened, field_entries, columns)
        self.offer_choices("columns", [*flatten_choices(offered)])
        term = self.value_text("order")
        terms = grouped_choices(target, self.opened, sort_entries, [term])
        self.offer_choices("order", [UNSORTED, *terms])
        filters = FilterForm.make_lines(
            self.data if self.is_bound else None,
            self.add_prefix("filters"),
            self.base.get("filters", ()),
            model=target,
            opened=self.opened,
            texts=self.texts,
            used_names=self.used_names,
        )
        self.inner = [filters]

    @classmethod
    def choices_to_add(cls) -> Choices:
        return [
            (field.name, field_label(field))
            for field in cls.model.fields.values()
            if field.kind is FieldKind.TO_MANY
            and field.target_model._meta.label in cls.opened
        ]

    @classmethod
    def initial_line(cls, config: JsonObject) -> dict[str, Any]:
        return {
            "config": config,
            "path": config["path"],
            "columns": config["fields"],
            "order": next(iter(config.get("order", ())), ""),
            "limit": config.get("limit", USUAL_LISTED),
        }

    @classmethod
    def begin_line(cls, path: str) -> dict[str, Any]:
        target = cls.opened[cls.model.fields[path].target_model._meta.label]
        columns = usual_columns(target, cls.model)
        return cls.initial_line({"path": path, "fields": columns})

    def label(self) -> str:
        return label_and_field(self.value_text("path"), self.model, self.opened)[0]

    def words(self) -> str:
        """Return what the line shows: “code, begins; newest first, at most 5”."""
        labels = _labels_of(self["columns"])
        shown = [labels.get(each, each) for each in self["columns"].value() or ()]
        order = _chosen_label(self["order"]) if self["order"].value() else ""
        limit = _("at most %(limit)s") % {"limit": self["limit"].value()}
        return "; ".join(filter(None, (", ".join(shown), order, limit)))

    def line_config(self) -> JsonObject:
        values, config = self.values, dict(self.base)
        put_columns(config, values["columns"])
        put_order(config, values["order"], config.get("order", ())[1:])
        put_limit(config, values["limit"], USUAL_LISTED)
        for filters in self.inner:
            put_member(config, "filters", filters.configs())
        return config


def _labels_of(bound: BoundField) -> dict[Any, str]:
    pairs: Any = flatten_choices(bound.field.choices)  # type: ignore[attr-defined]
    return {value: str(label) for value, label in pairs}


def _chosen_label(bound: BoundField) -> str:
    value = bound.value() or ""
    return _labels_of(bound).get(value, value)


def usual_name(path: str, model: OpenModel) -> str:
    """Return the default name of "count" (hires) or "sum/net_total" (sum_net_total)."""
    rows = slugify(str(model.model._meta.verbose_name_plural)).replace("-", "_")
    name = rows if path == "count" else path.replace("/", "_").replace(".", "_")
    return name[:MAX_NAME_LENGTH] or "count"


def usual_columns(model: OpenModel, owner: OpenModel | None = None) -> list[str]:
    """Return the first fields of a model, without the relation to `owner`."""
    return [
        name
        for name, field in model.fields.items()
        if field.kind is not FieldKind.TO_MANY
        and not (field.kind is FieldKind.KEY and field.source.is_relation)
        and (owner is None or field.source.related_model is not owner.model)
    ][:PRESET_COLUMNS]


def put_columns(config: JsonObject, ticked: Sequence[str]) -> None:
    """Store the ticked fields: first the stored ones in their order, then new ones."""
    kept = [each for each in config.get("fields", ()) if each in ticked]
    put_member(config, "fields", kept + [each for each in ticked if each not in kept])


def put_order(config: JsonObject, first: str, rest: Sequence[str]) -> None:
    put_member(config, "order", [first, *rest] if first else [])


def put_limit(config: JsonObject, limit: int | None, usual: int) -> None:
    """Store a changed limit; without a stored limit, `usual` is no change."""
    if limit != config.get("limit", usual):
        put_member(config, "limit", limit)
