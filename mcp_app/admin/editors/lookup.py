"""The config of a query as a form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors import lookup_choices
from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.lookup_filters import (
    FilterForm,
    NameField,
    filter_rows,
    initial_of,
)
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
    LONGEST_NAME,
    MOST_GROUPED,
    MOST_LISTED,
    MOST_MEASURED,
    MOST_ROWS,
    MOST_SORTED,
    ONE,
    ROWS,
    SCHEMA,
    USUAL_LISTED,
    USUAL_ROWS,
)
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject

# -- sheet -----------------------------------------------------------------------------
# A query's config as a page: the form, or the same as JSON.


class LookupSheet(OneFormSheet):
    """The config of the kind `query`; `one` for templates."""

    row_template = "mcp_app/widgets/lookup.html"

    def __init__(self, opened: OpenModels, *, one: bool) -> None:
        form = type("LookupForm", (LookupForm,), {"opened": opened, "one": one})
        super().__init__(form)

    def initial(self, value: Any) -> Initial:
        config = value or {}
        for violation in schemas.compile(SCHEMA).violations(config):
            raise NotRepresentable(f"{violation.path}: {violation.message}")
        for part in (config, *config.get("lists", ())):
            initial_of(part.get("filters", ()))
        paths = [each["path"] for each in config.get("lists", ())]
        if len(set(paths)) < len(paths):
            raise NotRepresentable(_("a relation is listed twice"))
        return [{"config": config}]


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
    most: BoundField
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
        label, _slash, self._answer = self._showing().partition("/")
        self.open_model: OpenModel | None = self.opened.get(label)
        self.initial["shows"] = f"{label}/{self._answer}"
        self._offer_models(str(self.base.get("model", "")))
        if self.open_model is not None:
            self._add_parts(self.open_model)

    def _showing(self) -> str:
        if self.is_bound:
            return str(self.data.get(self.add_prefix("shows"), ""))
        answer = ONE if self.one else self.base.get("answer", ROWS)
        return f"{self.base.get('model', '')}/{answer}"

    def _offer_models(self, chosen: str) -> None:
        field: forms.ChoiceField = self.fields["model"]  # type: ignore[assignment]
        offered = [(each.label, each.title) for each in self.opened.values()]
        field.choices = [lookup_choices.NONE, *offered]
        self.initial["model"] = chosen

    def everybody(self) -> bool:
        """Whether it looks up all rows of a model that belongs to a limited one."""
        return any(
            each[0] is self.open_model for each in rows_of_everybody(self.opened)
        )

    # -- the parts of the page -------------------------------------------------------

    def _add_parts(self, model: OpenModel) -> None:
        self._add_filters(model)
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
        self._add_shown(model)
        for field in model.fields.values():
            if field.kind is FieldKind.TO_MANY:
                target = self.opened.get(field.target._meta.label)
                if target is not None:
                    self._add_list(field, target)
        if not self.one:
            self._add_sorting(model)

    def _add_filters(self, model: OpenModel) -> None:
        self.filters = self._rows("filters", model, self.base.get("filters", ()))

    def _rows(self, name: str, model: OpenModel, filters: Sequence[JsonObject]) -> Rows:
        return filter_rows(model, self.opened)(
            self.data if self.is_bound else None,
            initial=initial_of(filters),
            prefix=self.add_prefix(name),
            form_kwargs={"use_required_attribute": False},
        )

    def _several(
        self,
        name: str,
        label: Any,
        offered: lookup_choices.Choices,
        chosen: Sequence[str],
    ) -> None:
        self.fields[name] = forms.MultipleChoiceField(
            label=label,
            choices=offered,
            widget=forms.CheckboxSelectMultiple,
            required=False,
        )
        self.initial[name] = list(chosen)

    def _one_each(
        self,
        name: str,
        labels: Sequence[Any],
        entry: lookup_choices.Entry,
        model: OpenModel,
        first: Sequence[Any] = (),
    ) -> None:
        """Add selects of which each takes one, under `name_1` and further."""
        chosen = [*self.initial.get(name, ())]
        for at, label in enumerate(labels):
            now = chosen[at] if at < len(chosen) else ""
            groups = lookup_choices.groups_of(model, self.opened)
            known = {value for value, _label in first}
            offered = lookup_choices.choices(groups, entry, {now} - known)
            self.fields[f"{name}_{at + 1}"] = forms.ChoiceField(
                label=label,
                choices=[lookup_choices.NONE, *first, *offered],
                required=False,
            )
            self.initial[f"{name}_{at + 1}"] = now

    def _add_shown(self, model: OpenModel) -> None:
        chosen = self.base.get("fields", ())
        groups = lookup_choices.groups_of(model, self.opened)
        offered = lookup_choices.choices(groups, lookup_choices.field_entry, chosen)
        self._several("shown", _("What is shown"), offered, chosen)

    def _add_sorting(self, model: OpenModel) -> None:
        self.initial["order"] = self.base.get("order", ())
        labels = (_("Sorted by"), _("then by"), _("and by"))
        self._one_each("order", labels, lookup_choices.sort_entries, model)
        self.fields["most"] = forms.IntegerField(
            label=_("At most so many rows at once"),
            min_value=1,
            max_value=MOST_ROWS,
            required=False,
        )
        self.initial["most"] = self.base.get("most", USUAL_ROWS)
        self.fields["count"] = forms.BooleanField(
            label=_("Say also how many rows there are in all"), required=False
        )
        self.initial["count"] = self.base.get("count", False)

    def _add_groups(self, model: OpenModel) -> None:
        self.initial["by"] = [
            each if isinstance(each, str) else f"{each['path']}/{each['each']}"
            for each in self.base.get("by", ())
        ]
        labels = (_("A group for each"), _("and each"), _("and each"))
        self._one_each("by", labels, lookup_choices.group_entries, model)
        measures = self.base.get("measures", ())
        self.initial["measures"] = [*map(_measure_key, measures)]
        told = (_("What is told"), *[_("and")] * (MOST_MEASURED - 1))
        count = (lookup_choices.COUNT, _("How many"))
        self._one_each("measures", told, lookup_choices.measure_entries, model, [count])
        for at in range(MOST_MEASURED):
            self.fields[f"measures_{at + 1}_name"] = NameField(label=_("called"))
        for at, each in enumerate(measures):
            if each["as"] != _usual_name(_measure_key(each)):
                self.initial[f"measures_{at + 1}_name"] = each["as"]

    def _add_list(self, field: OpenField, target: OpenModel) -> None:
        name = f"list_{field.name}"
        listed = self._listed().get(field.name, {})
        chosen = listed.get("fields", ())
        groups = list(lookup_choices.groups_of(target, self.opened))
        offered = lookup_choices.choices(groups, lookup_choices.field_entry, chosen)
        self._several(name, _("What is shown of them"), offered, chosen)
        self.initial[f"{name}_order"] = listed.get("order", ())
        self._one_each(
            f"{name}_order", (_("Sorted by"),), lookup_choices.sort_entries, target
        )
        self.fields[f"{name}_most"] = forms.IntegerField(
            label=_("At most"), min_value=1, max_value=MOST_LISTED, required=False
        )
        self.initial[f"{name}_most"] = listed.get("most", USUAL_LISTED)
        rows = self._rows(f"{name}_filters", target, listed.get("filters", ()))
        self._lists[field.name] = field, rows

    def _listed(self) -> dict[str, JsonObject]:
        return {each["path"]: each for each in self.base.get("lists", ())}

    def lists(self) -> Iterator[ListPart]:
        """Yield what the page shows of each relation to many."""
        for name, (field, rows) in self._lists.items():
            prefix = f"list_{name}"
            yield ListPart(
                lookup_choices.label_of(field),
                self[prefix],
                self[f"{prefix}_order_1"],
                self[f"{prefix}_most"],
                rows,
            )

    def sorting(self) -> list[BoundField]:
        return self._bound("order", MOST_SORTED)

    def grouping(self) -> list[BoundField]:
        return self._bound("by", MOST_GROUPED)

    def measuring(self) -> list[tuple[BoundField, BoundField]]:
        bound = self._bound("measures", MOST_MEASURED)
        return [(each, self[f"{each.name}_name"]) for each in bound]

    def _bound(self, name: str, most: int) -> list[BoundField]:
        names = (f"{name}_{at + 1}" for at in range(most))
        return [self[each] for each in names if each in self.fields]

    # -- what was sent ---------------------------------------------------------------

    def formsets(self) -> list[Rows]:
        return [
            *([] if self.filters is None else [self.filters]),
            *(rows for _field, rows in self._lists.values()),
        ]

    def config(self) -> JsonObject:
        """Return the config that the page makes, which is valid."""
        given = self.cleaned_data
        config = dict(self.base)
        if given.get("model") and not config.get("model"):
            config["model"] = given["model"]
        if self.one:
            config["answer"] = ONE
        if self.filters is None:
            return config
        self.put(config, "filters", _filters(self.filters))
        if not self.one:
            config["answer"] = given["answer"] or ROWS
        if self._answer == GROUPS:
            self._put_groups(config)
        else:
            self._put_rows(config)
        return config

    def _put_rows(self, config: JsonObject) -> None:
        given = self.cleaned_data
        self.put(config, "fields", _in_order(given["shown"], config.get("fields")))
        self.put(config, "lists", [*self._given_lists()])
        if self.one:
            return
        self.put(config, "order", self._picked("order", MOST_SORTED))
        if given["most"] != config.get("most", USUAL_ROWS):
            self.put(config, "most", given["most"])
        self.put(config, "count", given["count"])

    def _picked(self, name: str, most: int) -> list[str]:
        given = (self.cleaned_data.get(f"{name}_{at + 1}") for at in range(most))
        return [each for each in given if each]

    def _given_lists(self) -> Iterator[JsonObject]:
        before = self._listed()
        for name, (_field, rows) in self._lists.items():
            fields = self.cleaned_data[f"list_{name}"]
            if not fields:
                continue
            listed = dict(before.get(name, {"path": name}))
            self.put(listed, "fields", _in_order(fields, listed.get("fields")))
            self.put(listed, "filters", _filters(rows))
            self.put(listed, "order", self._picked(f"list_{name}_order", 1))
            most = self.cleaned_data[f"list_{name}_most"]
            if most != listed.get("most", USUAL_LISTED):
                self.put(listed, "most", most)
            yield listed

    def _put_groups(self, config: JsonObject) -> None:
        by = [_group(each) for each in self._picked("by", MOST_GROUPED)]
        self.put(config, "by", by)
        self.put(config, "measures", [*self._given_measures()])

    def _given_measures(self) -> Iterator[JsonObject]:
        for at in range(MOST_MEASURED):
            what = self.cleaned_data[f"measures_{at + 1}"]
            if what:
                name = self.cleaned_data[f"measures_{at + 1}_name"]
                yield _measure(what, name or _usual_name(what))


def _filters(rows: Rows) -> list[JsonObject]:
    forms_there = (form for form in rows.ordered_forms if isinstance(form, FilterForm))
    return [form.filter() for form in forms_there]


def _in_order(given: Sequence[str], before: Sequence[str] | None) -> list[str]:
    """Return what was ticked, in the order that it had."""
    known = [each for each in before or () if each in given]
    return known + [each for each in given if each not in known]


def _group(text: str) -> Any:
    path, _slash, each = text.partition("/")
    return {"path": path, "each": each} if each else path


def _measure_key(measure: JsonObject) -> str:
    """Return the value of the choice that stands for a measure."""
    return "/".join(filter(None, (measure["do"], measure.get("path"))))


def _measure(text: str, name: str) -> JsonObject:
    do, _slash, path = text.partition("/")
    return {"do": do, "path": path, "as": name} if path else {"do": do, "as": name}


def _usual_name(text: str) -> str:
    return text.replace("/", "_").replace(".", "_")[:LONGEST_NAME]
