"""Forms of the admin, read inside the middleware from the contexts of templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain, repeat
from typing import Any, Final, TypeAlias

from django.contrib.admin.utils import lookup_field
from django.contrib.admin.widgets import AutocompleteMixin
from django.core.exceptions import ObjectDoesNotExist
from django.db.models import ManyToManyField, Model, QuerySet
from django.forms import FileField, ModelChoiceField
from django.forms.formsets import DELETION_FIELD_NAME, TOTAL_FORM_COUNT
from django.forms.widgets import ChoiceWidget
from django.http import QueryDict
from django.utils import timezone
from django.utils.http import urlencode

from mcp_app.catalog.form_filling import (
    Bound,
    Pair,
    UnfitValue,
    inner_widget,
    is_secret,
    is_settable,
    page_pairs,
    pairs_with_value,
)
from mcp_app.catalog.form_schemas import form_problems, parameter_schema, wants_value
from mcp_app.catalog.outputs import jsonable_value
from mcp_app.catalog.secret_fields import is_secret_name, searches_secret
from mcp_app.interface.errors import ToolError
from mcp_app.interface.log_secrets import hide_members
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.answers import NOT_ALLOWED, known_item, plain_text
from mcp_app.toolsets.site_views import Context, SiteRequest

Page: TypeAlias = Any
"""An `AdminForm`, an `InlineAdminFormSet` or a part; the type stubs are incomplete."""

MOST_RELATED: Final = 20
"""How many rows of a relation are listed."""
MOST_SEARCHED: Final = 1_000
"""How many rows' texts are searched if the admin has no search for the rows."""
_ROW_NAMES: Final = frozenset({"key", "delete"})
"""Names in the row of an inline that are ours, and no fields of the form."""


# -- values ----------------------------------------------------------------------------


def plain_value(value: object) -> object:
    """Return a value as JSON, without HTML, with times in the zone of the page."""
    if isinstance(value, datetime) and timezone.is_aware(value):
        return timezone.localtime(value).isoformat()
    if isinstance(value, Model):
        return str(value)
    if isinstance(value, Decimal):
        # Pages show decimals without exponents.
        value = f"{value:f}"
    if hasattr(value, "__html__"):
        return plain_text(value)
    if isinstance(value, QuerySet):
        return [str(each) for each in value[:MOST_RELATED]]
    try:
        return hide_members(jsonable_value(value))
    except (TypeError, ValueError):
        return plain_text(value)


def cell_value(name: Any, row: Model, model_admin: Any) -> object:
    """Return the value of a row that the admin shows in a column or read-only field."""
    try:
        field, _attribute, value = lookup_field(name, row, model_admin)
    except (AttributeError, ValueError, ObjectDoesNotExist):
        return None
    if isinstance(field, ManyToManyField):
        return plain_value(value.all())
    choices = dict(field.flatchoices) if field is not None else {}
    return plain_value(choices[value] if choices and value in choices else value)


def _field_value(field: Bound) -> object:
    """Return the value of an editable field; relations have a key and a text."""
    value = field.initial
    if isinstance(field.field, ModelChoiceField):
        if isinstance(value, list | tuple):
            return [_related_value(field, each) for each in value]
        return None if value is None else _related_value(field, value)
    if isinstance(field.field, FileField):
        return str(value) if value else None
    return plain_value(value)


def _related_value(field: Bound, value: object) -> JsonObject:
    if isinstance(value, Model):
        key = value.serializable_value(field.field.to_field_name or "pk")
        return {"key": plain_value(key), "text": str(value)}
    related = getattr(field.form.instance, field.name, None)
    text = {"text": str(related)} if isinstance(related, Model) else {}
    return {"key": plain_value(value), **text}


# -- reading ---------------------------------------------------------------------------


def row_page(_: SiteRequest, context: Context) -> JsonObject:
    """Return the values on a form page, and the rows of its inlines by prefix."""
    inlines = {
        inline.formset.prefix: [
            {"key": plain_value(each.form.instance.pk), **_form_values(each)}
            for each in _page_rows(inline)
        ]
        for inline in context["inline_admin_formsets"]
    }
    row: JsonObject = {"text": str(context["original"])}
    row |= {"values": _form_values(context["adminform"])}
    return {**row, "inlines": inlines} if inlines else row


def _form_values(admin_form: Page) -> JsonObject:
    values: JsonObject = {}
    for each in _page_fields(admin_form):
        name = _field_name(each)
        if each.is_readonly:
            row, column = each.form.instance, each.field["field"]
            if not is_secret_name(name, type(row)):
                values[name] = cell_value(column, row, each.model_admin)
        elif not is_secret(each.field):
            values[name] = _field_value(each.field)
    return values


def _page_fields(admin_form: Page) -> Iterator[Page]:
    """Yield all fields that a page shows, including read-only ones."""
    for fieldset in admin_form:
        for line in fieldset:
            yield from line


def _page_rows(inline: Page) -> list[Page]:
    """Return the forms of rows that already exist."""
    return [*inline][: inline.formset.initial_form_count()]


def _field_name(field: Page) -> str:
    name = str(field.field["name"]) if field.is_readonly else field.field.name
    form = field.form if field.is_readonly else field.field.form
    # Forms of inlines have a prefix.
    return row_name(name) if form.prefix else name


def row_name(name: str) -> str:
    """Return the name of a value in a row; names that we use get a “_” at the end."""
    return f"{name}_" if name in _ROW_NAMES else name


def problem_lines(_: SiteRequest, context: Context) -> list[str]:
    """Return a line for each problem of a form that was sent."""
    if "adminform" not in context:
        return []
    lines = [*form_problems(context["adminform"].form)]
    for inline in context["inline_admin_formsets"]:
        formset = inline.formset
        lines += [f"{formset.prefix}: {each}" for each in _formset_problems(formset)]
        for index, form in enumerate(formset.forms):
            lines += [
                f"{formset.prefix}[{index}].{each}" for each in form_problems(form)
            ]
    return lines


def _formset_problems(formset: Any) -> Iterator[str]:
    """Yield problems of a whole inline; rows that prevent a deletion stay hidden."""
    for error in formset.non_form_errors().as_data():
        if error.code == "deleting_protected":
            yield f"Other rows need {error.params['instance']}."
        else:
            yield from error.messages


# -- filling ---------------------------------------------------------------------------


def filled_pairs(
    values: Mapping[str, Any],
    inlines: Mapping[str, Sequence[Mapping[str, Any]]],
    _: SiteRequest,
    context: Context,
) -> list[Pair]:
    """Return what a browser would send after somebody typed these values.

    A value that this person may not change is refused by name: Django would ignore it
    and report success.
    """
    problems: list[str] = []
    pairs = [*_form_pairs(context["adminform"], values, "", problems)]
    inline_of = {each.formset.prefix: each for each in context["inline_admin_formsets"]}
    for prefix, inline in inline_of.items():
        pairs += _InlinePairs(inline, problems).fill(inlines.get(prefix, ()))
    problems += [
        f"{prefix:.200}: there are no such rows here. {_known_text(inline_of)}"
        for prefix in inlines
        if prefix not in inline_of
    ]
    if problems:
        raise ToolError("\n".join(problems))
    return pairs


def _form_pairs(
    admin_form: Page, values: Mapping[str, Any], where: str, problems: list[str]
) -> Iterator[Pair]:
    fields = {_field_name(each): each for each in _page_fields(admin_form)}
    for name in values:
        if name not in fields:
            problems.append(f"{where}{name:.200}: no such field. {_known_text(fields)}")
        elif fields[name].is_readonly or not is_settable(fields[name].field):
            problems.append(f"{where}{name}: it cannot be changed here.")
    for name, each in fields.items():
        if each.is_readonly:
            continue
        if name not in values:
            yield from page_pairs(each.field)
            continue
        try:
            yield from pairs_with_value(each.field, values[name])
        except UnfitValue as error:
            problems.append(f"{where}{name}: {error}.")


def _known_text(names: Iterable[str]) -> str:
    return f"There is {', '.join(names)}." if names else "There is none."


class _InlinePairs:
    """Fills the rows of one inline; `problems` gets a line for each refused value."""

    def __init__(self, inline: Page, problems: list[str]) -> None:
        self._inline, self._problems = inline, problems
        self._formset = inline.formset
        self._prefix = self._formset.prefix

    def fill(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[Pair]:
        """Yield the pairs of all rows; those without a key are new."""
        pages = {str(each.form.instance.pk): each for each in _page_rows(self._inline)}
        changes: dict[str, Mapping[str, Any]] = {}
        for row in rows:
            key = str(row.get("key"))
            if "key" in row and (key not in pages or key in changes):
                reason = "no such row here" if key not in pages else "it is there twice"
                self._problems.append(f"{self._prefix}, key {key}: {reason}.")
            changes[key] = row
        for key, page in pages.items():
            yield from self._known_row(page, key, changes.get(key, {}))
        new_rows, total = [row for row in rows if "key" not in row], len(pages)
        for page, new_row in self._new_rows(len(pages), new_rows):
            yield from self._new_row(page, total, new_row)
            total += 1
        for field in self._formset.management_form:
            if field.name == TOTAL_FORM_COUNT:
                yield field.html_name, str(total)
            else:
                yield from page_pairs(field)

    def _known_row(
        self, page: Page, key: str, row: Mapping[str, Any]
    ) -> Iterator[Pair]:
        where = f"{self._prefix}, key {key}: "
        values = {name: row[name] for name in row if name not in _ROW_NAMES}
        yield from _form_pairs(page, values, where, self._problems)
        yield from _key_pairs(page)
        if not row.get("delete"):
            return
        if self._formset.can_delete and self._inline.has_delete_permission:
            yield f"{page.form.prefix}-{DELETION_FIELD_NAME}", "on"
        else:
            self._problems.append(f"{where}you may not delete it.")

    def _new_rows(
        self, count: int, rows: list[Mapping[str, Any]]
    ) -> Iterable[tuple[Page, Mapping[str, Any] | None]]:
        """Return new rows with their forms; the empty forms on the page come first.

        A form without a row is sent only if the page requires that many rows.
        """
        max_rows, pages = self._formset.max_num, [*self._inline][count:]
        if rows and not self._inline.has_add_permission:
            self._problems.append(f"{self._prefix}: you may not add rows.")
        elif rows and count + len(rows) > max_rows:
            self._problems.append(f"{self._prefix}: there may be {max_rows} rows.")
        elif pages:
            lacking = [None] * (self._formset.min_num - count - len(rows))
            # The last form is the template of all further ones.
            return zip(chain(pages, repeat(pages[-1])), [*rows, *lacking], strict=False)
        return ()

    def _new_row(
        self, page: Page, index: int, row: Mapping[str, Any] | None
    ) -> Iterator[Pair]:
        where, prefix = f"{self._prefix}[{index}].", self._formset.add_prefix(index)
        pairs = [
            (name.replace(page.form.prefix, prefix, 1), value)
            for name, value in (
                *_form_pairs(page, row or {}, where, self._problems),
                *_key_pairs(page),
            )
        ]
        if row is not None and not self._is_changed(page, prefix, pairs):
            self._problems.append(
                f"{self._prefix}[{index}]: all values are those of an empty row, which"
                " Django does not save. Give another value."
            )
        yield from pairs

    def _is_changed(self, page: Page, prefix: str, pairs: list[Pair]) -> bool:
        """Whether a new row differs from an empty one, so that Django saves it."""
        form = self._formset.form(
            data=QueryDict(urlencode(pairs)),
            initial=page.form.initial,
            prefix=prefix,
            empty_permitted=True,
            use_required_attribute=False,
            **self._formset.get_form_kwargs(None),
        )
        self._formset.add_fields(form, None)
        return bool(form.has_changed())


def _key_pairs(page: Page) -> Iterator[Pair]:
    """Yield the hidden keys of an inline's row and of its parent row."""
    if page.needs_explicit_pk_field():
        yield from page_pairs(page.pk_field().field)
    if owner := page.fk_field():
        yield from page_pairs(owner.field)


# -- describing ------------------------------------------------------------------------


def page_schema(_: SiteRequest, context: Context) -> JsonObject:
    """Return the schema of what this person can enter on a form page now."""
    inlines: JsonObject = {}
    for inline in context["inline_admin_formsets"]:
        rights = ("add", "change", "delete")
        may = [each for each in rights if getattr(inline, f"has_{each}_permission")]
        inlines[inline.formset.prefix] = {
            "may": may,
            "most": inline.formset.max_num,
            "row": _form_schema(_pattern_row(inline)) if may else {},
        }
    schema = {"values": _form_schema(context["adminform"])}
    return {**schema, "inlines": inlines} if inlines else schema


def _pattern_row(inline: Page) -> Page:
    """Return the last form of an inline, which shows its fields; () if it has none."""
    return next(iter([*inline][::-1]), ())


def _form_schema(admin_form: Page) -> JsonObject:
    fields = {
        _field_name(each): each.field
        for each in _page_fields(admin_form)
        if not each.is_readonly and is_settable(each.field)
    }
    schemas = {name: parameter_schema(name, e.field) for name, e in fields.items()}
    return {
        "type": "object",
        "properties": schemas,
        "required": [n for n, e in fields.items() if wants_value(e.field, e.initial)],
    }


def choices_of(
    site: Any, name: str, words: str, request: SiteRequest, context: Context
) -> list[JsonObject]:
    """Return rows that a relation can refer to, only those that the page offers."""
    field = _known_relation(name, context)
    rows, model_admin = field.queryset, site._registry.get(field.queryset.model)
    widget = inner_widget(field.widget)
    if isinstance(widget, AutocompleteMixin) or not isinstance(widget, ChoiceWidget):
        # The page has no choices, but a search in the admin of the related model.
        if model_admin is None or not model_admin.has_view_permission(request):
            raise ToolError(NOT_ALLOWED)
        rows = rows.filter(pk__in=model_admin.get_queryset(request).values("pk"))
    searched = model_admin.get_search_fields(request) if model_admin else ()
    if words and searched and not searches_secret(searched, rows.model):
        rows, _repeats = model_admin.get_search_results(request, rows, words)
        words = ""
    texts = {row: field.label_from_instance(row) for row in rows[:MOST_SEARCHED]}
    choices = [
        {"key": plain_value(field.prepare_value(row)), "text": str(text)}
        for row, text in texts.items()
        if words.lower() in str(text).lower()
    ]
    return choices[:MOST_RELATED]


def _known_relation(name: str, context: Context) -> Any:
    """Return the field of a relation by its name; in an inline: “lines.product”."""
    pages = {"": context["adminform"]}
    for inline in context["inline_admin_formsets"]:
        pages[f"{inline.formset.prefix}."] = _pattern_row(inline)
    relations = {
        f"{prefix}{_field_name(each)}": each.field.field
        for prefix, page in pages.items()
        for each in _page_fields(page)
        if not each.is_readonly and isinstance(each.field.field, ModelChoiceField)
    }
    return known_item("relation", name, relations)
