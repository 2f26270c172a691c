"""The config of a query as a form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.lookup_choices import (
    COUNT,
    NONE,
    Entry,
    field_entry,
    field_label,
    group_entries,
    grouped_choices,
    groups_of,
    measure_entries,
    sort_entries,
)
from mcp_app.admin.editors.lookup_filters import NameField, filter_rows, initial_of
from mcp_app.admin.editors.one_form import OneForm, OneFormSheet
from mcp_app.admin.editors.rows import NotRepresentable, Rows
from mcp_app.catalog.open_models import (
    FieldKind,
    OpenField,
    OpenModel,
    OpenModels,
    rows_of_everybody,
)
from mcp_app.kinds.query.config import (
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
from mcp_app.protocol.json_types import JsonObject

# -- sheet -----------------------------------------------------------------------------
# A query's config as a page: the form, or the same as JSON.


class LookupSheet(OneFormSheet):
    """The config of the kind `query`; `one` for templates."""

    row_template = "mcp_app/widgets/lookup.html"

    def __init__(self, opened: OpenModels, *, one: bool) -> None:
        super().__init__(LookupForm, SCHEMA, opened=opened, one=one)

    def initial_rows(self, value: Any) -> Initial:
        rows, config = super().initial_rows(value), value or {}
        for part in (config, *config.get("lists", ())):
            initial_of(part.get("filters", ()))
        paths = [each["path"] for each in config.get("lists", ())]
        if len(set(paths)) < len(paths):
            raise NotRepresentable(_("a relation is listed twice"))
        return rows


# -- lookup form -----------------------------------------------------------------------
# The form behind a query: one row of a sheet, with the filters as rows inside it.

ANSWERS: Final = {
    ROWS: _("Rows"),
    GROUPS: _("Groups: how many, and how much"),
}


class ListPart(NamedTuple):
    """What the page has of a relation to many."""

    label: str
    fields: BoundField
    order: BoundField
    limit: BoundField
    filters: Rows


class LookupForm(OneForm):
    """All of a query's config; subclasses know what code opens, and for what it is.

    `shows` carries what the page had: only that is read from what it sent, so that
    other members stay as they were.
    """

    wrong_row = _("A filter has an error.")
    opened: ClassVar[OpenModels]
    one: ClassVar[bool]
    """Whether the answer is one row, as that of a template."""

    shows = forms.CharField(required=False, widget=forms.HiddenInput)
    model = forms.ChoiceField(
        label=_("What to look up"),
        widget=forms.Select({"data-mcp-redraw": "config"}),
        required=False,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.filters: Rows | None = None
        self._lists: dict[str, tuple[OpenField, Rows]] = {}
        answer = ONE if self.one else self.base.get("answer", ROWS)
        shows = f"{self.base.get('model', '')}/{answer}"
        if self.is_bound:
            shows = str(self.data.get(self.add_prefix("shows"), ""))
        label, _slash, self._answer = shows.partition("/")
        self.open_model: OpenModel | None = self.opened.get(label)
        self.initial["shows"] = f"{label}/{self._answer}"
        self.initial["model"] = str(self.base.get("model", ""))
        offered = [(each.label, each.title) for each in self.opened.values()]
        self.offer_choices("model", [NONE, *offered])
        if self.open_model is not None:
            self._add_parts(self.open_model)

    def everybody(self) -> bool:
        """Whether it looks up all rows of a model that belongs to a limited one."""
        models = (model for model, *_ in rows_of_everybody(self.opened))
        return any(each is self.open_model for each in models)

    # -- the parts of the page -------------------------------------------------------

    def _add_parts(self, model: OpenModel) -> None:
        self.filters = self._filter_rows("filters", model, self.base)
        if not self.one:
            self.fields["answer"] = forms.ChoiceField(
                label=_("The answer is"),
                choices=[*ANSWERS.items()],
                widget=forms.RadioSelect({"data-mcp-redraw": "config"}),
                required=False,
            )
            self.initial["answer"] = self._answer
        if self._answer == GROUPS:
            self._add_groups(model)
            return
        self._add_checkboxes("shown", _("What is shown"), model, self.base)
        for field in model.fields.values():
            if field.kind is FieldKind.TO_MANY:
                target = self.opened.get(field.target_model._meta.label)
                if target is not None:
                    self._add_relation_list(field, target)
        if not self.one:
            self._add_sorting(model)

    def _filter_rows(self, name: str, model: OpenModel, config: JsonObject) -> Rows:
        initial = initial_of(config.get("filters", ()))
        return self.make_rows(filter_rows(model, self.opened), name, initial)

    def _add_checkboxes(
        self, name: str, label: Any, model: OpenModel, config: JsonObject
    ) -> None:
        chosen = config.get("fields", ())
        groups = groups_of(model, self.opened)
        entry = field_entry
        self.fields[name] = forms.MultipleChoiceField(
            label=label,
            choices=grouped_choices(groups, entry, chosen),
            widget=forms.CheckboxSelectMultiple,
            required=False,
        )
        self.initial[name] = list(chosen)

    def _add_selects(
        self,
        name: str,
        labels: Sequence[Any],
        entry: Entry,
        model: OpenModel,
        first: Sequence[Any] = (),
    ) -> None:
        """Add selects of which each takes one, under `name_1` and further."""
        chosen = [*self.initial.get(name, ())]
        for at, label in enumerate(labels):
            now = chosen[at] if at < len(chosen) else ""
            groups = groups_of(model, self.opened)
            lost = {now} - {value for value, _label in first}
            offered = grouped_choices(groups, entry, lost)
            choices = [NONE, *first, *offered]
            self.fields[f"{name}_{at + 1}"] = forms.ChoiceField(
                label=label, choices=choices, required=False
            )
            self.initial[f"{name}_{at + 1}"] = now

    def _add_sorting(self, model: OpenModel) -> None:
        self.initial["order"] = self.base.get("order", ())
        labels = (_("Sorted by"), _("then by"), _("and by"))
        self._add_selects("order", labels, sort_entries, model)
        self.fields["limit"] = forms.IntegerField(
            label=_("At most so many rows at once"),
            min_value=1,
            max_value=MAX_ROWS,
            required=False,
        )
        self.initial["limit"] = self.base.get("limit", USUAL_ROWS)
        self.fields["count"] = forms.BooleanField(
            label=_("Say also how many rows there are in all"), required=False
        )
        self.initial["count"] = self.base.get("count", False)

    def _add_groups(self, model: OpenModel) -> None:
        self.initial["by"] = [
            each if isinstance(each, str) else f"{each['path']}/{each['unit']}"
            for each in self.base.get("group_by", ())
        ]
        labels = (_("A group for each"), _("and each"), _("and each"))
        self._add_selects("by", labels, group_entries, model)
        measures = self.base.get("measures", ())
        self.initial["measures"] = [*map(_measure_key, measures)]
        measure_labels = (_("What is told"), *[_("and")] * (MAX_MEASURES - 1))
        count = (COUNT, _("How many"))
        self._add_selects("measures", measure_labels, measure_entries, model, [count])
        for at in range(MAX_MEASURES):
            self.fields[f"measures_{at + 1}_name"] = NameField(label=_("called"))
        for at, each in enumerate(measures):
            if each["name"] != _usual_name(_measure_key(each)):
                self.initial[f"measures_{at + 1}_name"] = each["name"]

    def _add_relation_list(self, field: OpenField, target: OpenModel) -> None:
        name = f"list_{field.name}"
        listed = self._lists_by_path().get(field.name, {})
        self._add_checkboxes(name, _("What is shown of them"), target, listed)
        self.initial[f"{name}_order"] = listed.get("order", ())
        self._add_selects(f"{name}_order", (_("Sorted by"),), sort_entries, target)
        self.fields[f"{name}_limit"] = forms.IntegerField(
            label=_("At most"), min_value=1, max_value=MAX_LISTED_ROWS, required=False
        )
        self.initial[f"{name}_limit"] = listed.get("limit", USUAL_LISTED)
        rows = self._filter_rows(f"{name}_filters", target, listed)
        self._lists[field.name] = field, rows

    def _lists_by_path(self) -> dict[str, JsonObject]:
        return {each["path"]: each for each in self.base.get("lists", ())}

    def lists(self) -> Iterator[ListPart]:
        """Yield what the page shows of each relation to many."""
        for name, (field, rows) in self._lists.items():
            prefix = f"list_{name}"
            yield ListPart(
                field_label(field),
                self[prefix],
                self[f"{prefix}_order_1"],
                self[f"{prefix}_limit"],
                rows,
            )

    def sorting(self) -> list[BoundField]:
        return self._numbered_fields("order", MAX_SORT_TERMS)

    def grouping(self) -> list[BoundField]:
        return self._numbered_fields("by", MAX_GROUPINGS)

    def measuring(self) -> list[tuple[BoundField, BoundField]]:
        bound = self._numbered_fields("measures", MAX_MEASURES)
        return [(each, self[f"{each.name}_name"]) for each in bound]

    def _numbered_fields(self, name: str, most: int) -> list[BoundField]:
        names = (f"{name}_{at + 1}" for at in range(most))
        return [self[each] for each in names if each in self.fields]

    # -- what was sent ---------------------------------------------------------------

    def inner_formsets(self) -> list[Rows]:
        lists = [rows for _field, rows in self._lists.values()]
        return lists if self.filters is None else [self.filters, *lists]

    def build_config(self) -> JsonObject:
        """Return the config that the page makes, which is valid."""
        values = self.cleaned_data
        config = dict(self.base)
        if values.get("model") and not config.get("model"):
            config["model"] = values["model"]
        if self.one:
            config["answer"] = ONE
        if self.filters is None:
            return config
        self.put_member(config, "filters", _filter_configs(self.filters))
        if not self.one:
            config["answer"] = values["answer"] or ROWS
        if self._answer == GROUPS:
            by = self._chosen_values("by", MAX_GROUPINGS)
            self.put_member(config, "group_by", [*map(_group_config, by)])
            self.put_member(config, "measures", [*self._chosen_measures()])
            return config
        self._put_fields(config, values["shown"])
        self.put_member(config, "lists", [*self._chosen_lists()])
        if not self.one:
            order = self._chosen_values("order", MAX_SORT_TERMS)
            self.put_member(config, "order", order)
            if values["limit"] != config.get("limit", USUAL_ROWS):
                self.put_member(config, "limit", values["limit"])
            self.put_member(config, "count", values["count"])
        return config

    def _chosen_values(self, name: str, most: int) -> list[str]:
        values = (self.cleaned_data.get(f"{name}_{at + 1}") for at in range(most))
        return [each for each in values if each]

    def _put_fields(self, config: JsonObject, ticked: Sequence[str]) -> None:
        """Put what was ticked, in the order that it had."""
        known = [each for each in config.get("fields", ()) if each in ticked]
        new = [each for each in ticked if each not in known]
        self.put_member(config, "fields", known + new)

    def _chosen_lists(self) -> Iterator[JsonObject]:
        before = self._lists_by_path()
        for name, (_field, rows) in self._lists.items():
            fields = self.cleaned_data[f"list_{name}"]
            if not fields:
                continue
            listed = dict(before.get(name, {"path": name}))
            self._put_fields(listed, fields)
            self.put_member(listed, "filters", _filter_configs(rows))
            order = self._chosen_values(f"list_{name}_order", 1)
            self.put_member(listed, "order", order)
            limit = self.cleaned_data[f"list_{name}_limit"]
            if limit != listed.get("limit", USUAL_LISTED):
                self.put_member(listed, "limit", limit)
            yield listed

    def _chosen_measures(self) -> Iterator[JsonObject]:
        for at in range(MAX_MEASURES):
            what = self.cleaned_data[f"measures_{at + 1}"]
            if what:
                name = self.cleaned_data[f"measures_{at + 1}_name"]
                yield _measure_config(what, name or _usual_name(what))


def _filter_configs(rows: Rows) -> list[JsonObject]:
    forms_there: list[Any] = rows.ordered_forms
    return [form.filter_config() for form in forms_there]


def _group_config(text: str) -> Any:
    path, _slash, unit = text.partition("/")
    return {"path": path, "unit": unit} if unit else path


def _measure_key(measure: JsonObject) -> str:
    """Return the value of the choice that stands for a measure."""
    return "/".join(filter(None, (measure["aggregate"], measure.get("path"))))


def _measure_config(text: str, name: str) -> JsonObject:
    aggregate, _slash, path = text.partition("/")
    measured = {"path": path} if path else {}
    return {"aggregate": aggregate, **measured, "name": name}


def _usual_name(text: str) -> str:
    return text.replace("/", "_").replace(".", "_")[:MAX_NAME_LENGTH]
