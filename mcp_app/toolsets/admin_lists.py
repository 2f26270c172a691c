"""Lists, history and deletion pages of the admin, read inside the middleware."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import DataError
from django.db.models import Model
from django.utils.text import capfirst
from django.utils.translation import gettext

from mcp_app.catalog.form_filling import Pair
from mcp_app.catalog.secret_fields import (
    is_secret_model,
    is_secret_name,
    is_secret_path,
    searches_secret,
)
from mcp_app.interface.errors import ToolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.admin_forms import cell_value, plain_value, row_name
from mcp_app.toolsets.answers import MOST_ITEMS, known_item, plain_text
from mcp_app.toolsets.site_views import Context, SiteRequest

Pages: TypeAlias = Mapping[type[Model], Any]
"""The `ModelAdmin` of each model that clients may read by a toolset."""


def list_page(changeable: bool, request: SiteRequest, context: Context) -> JsonObject:
    """Return rows, filters and pages of a list; if `changeable`, also its actions."""
    changelist = context["cl"]
    words = request.GET.get("q", "").strip()
    # `query` is empty if Django refused the words.
    if words and not (changelist.search_fields and changelist.query):
        raise ToolError("This list cannot be searched like this.")
    if words and searches_secret(changelist.search_fields, changelist.model):
        raise ToolError(
            "This list cannot be searched: it would look at a secret, or into JSON."
        )
    columns = _columns(changelist)
    rows = [
        {
            "key": str(row.serializable_value(changelist.pk_attname)),
            **{
                name: cell_value(column, row, changelist.model_admin)
                for name, column in columns.items()
            },
        }
        for row in changelist.result_list
    ]
    filters = {
        name: [*_choices(each, changelist)][:MOST_ITEMS]
        for name, each in _filters(changelist).items()
    }
    answer = {"rows": rows, "total": changelist.result_count, "filters": filters}
    answer |= {"page": changelist.page_num, "pages": changelist.paginator.num_pages}
    return {**answer, "actions": _actions(context)} if changeable else answer


def list_query(
    filters: Mapping[str, str], sort: str, _: SiteRequest, context: Context
) -> list[Pair]:
    """Return the query of a list with these filters, as the page's links have it."""
    changelist = context["cl"]
    specs, pairs = _filters(changelist), list[Pair]()
    for title, choice in filters.items():
        choices = _choices(known_item("filter", title, specs), changelist)
        query = known_item("choice", choice, choices)
        pairs += parse_qsl(query.removeprefix("?"), keep_blank_values=True)
    if sort:
        column = known_item("column", sort.removeprefix("-"), _columns(changelist))
        order = changelist.get_ordering_field(column)
        if is_secret_path(str(getattr(order, "name", order)), changelist.model):
            raise ToolError(f"The column “{sort}” is sorted by a secret.")
        direction = "-" if sort.startswith("-") else ""
        pairs.append(("o", f"{direction}{[*changelist.list_display].index(column)}"))
    return [*dict.fromkeys(pairs)]


def _columns(changelist: Any) -> dict[str, Any]:
    """Return the columns of a list by their names, without secrets."""
    names = {
        row_name(getattr(each, "__name__", str(each)).strip("_")): each
        for each in changelist.list_display
    }
    return {
        name: each
        for name, each in names.items()
        if name != "action_checkbox" and not is_secret_name(name, changelist.model)
    }


def _filters(changelist: Any) -> dict[str, Any]:
    """Return the filters of a list by titles; if two have one title, by fields."""
    # With facets, the names of choices would include numbers of rows.
    changelist.add_facets = False
    titles = Counter(plain_text(spec.title) for spec in changelist.filter_specs)
    filters = {}
    for spec in changelist.filter_specs:
        title = plain_text(spec.title)
        field = next(iter(spec.expected_parameters()), title)
        if not is_secret_path(field, changelist.model):
            filters[title if titles[title] == 1 else field] = spec
    return filters


def _choices(spec: Any, changelist: Any) -> dict[str, str]:
    """Return the query of each choice of a filter, by the text that people see."""
    return {
        plain_text(each["display"]): each["query_string"]
        for each in spec.choices(changelist)
        if "display" in each and "query_string" in each
    }


def _actions(context: Context) -> dict[str, str]:
    """Return the actions of the page, without deletion: another tool does that."""
    form = context["action_form"]
    choices = () if form is None else form.fields["action"].choices
    return {
        name: plain_text(text)
        for name, text in choices
        if name and name != "delete_selected"
    }


def action_pairs(
    action: str, keys: Sequence[str], request: SiteRequest, context: Context
) -> list[Pair]:
    """Return what a list sends for an action; an action with own fields is refused.

    All rows must be in the list without filters.
    """
    changelist = context["cl"]
    known_item("action", action, _actions(context))
    if context["action_form"].fields.keys() - {"action", "select_across"}:
        raise ToolError("This action has fields of its own. Use the admin for it.")
    try:
        rows = changelist.get_queryset(request).filter(pk__in=keys)
        listed = {str(key) for key in rows.values_list("pk", flat=True)}
    except (ValueError, TypeError, OverflowError, ValidationError, DataError):
        listed = set()
    if not listed.issuperset(keys):
        missing = ", ".join(key for key in keys if key not in listed)
        raise ToolError(f"Nothing was done. The list has no row {missing}.")
    fields = {"action": action, "select_across": "0", "index": "0"}
    return [*fields.items(), *(("_selected_action", key) for key in keys)]


def history_page(
    pages: Pages, request: SiteRequest, context: Context
) -> list[JsonObject]:
    """Return the history of a row: who changed what, and when."""
    kinds = _readable_kinds(pages, request)
    return [
        {
            "time": plain_value(entry.action_time),
            "user": str(entry.user),
            "change": plain_text(_without_texts(entry, kinds).get_change_message()),
        }
        for entry in context["action_list"]
    ]


def _without_texts(entry: Any, kinds: Set[str]) -> Any:
    """Return an entry of the history without the texts of rows of hidden models."""
    # The message may be a text of the site, and no JSON.
    with suppress(ValueError, TypeError, AttributeError):
        parts = json.loads(entry.change_message)
        for about in (each for part in parts for each in part.values()):
            if "object" in about and capfirst(gettext(about["name"])) not in kinds:
                about["object"] = "…"
        entry.change_message = json.dumps(parts)
    return entry


def deletion_page(
    pages: Pages, request: SiteRequest, context: Context
) -> tuple[list[str], list[str]]:
    """Return the rows to delete, in the texts of the admin and in texts for clients.

    Raises if something prevents it.  Clients see rows of hidden models by kind alone.
    """
    kinds = _readable_kinds(pages, request)
    needing = dict.fromkeys(_public_text(each, kinds) for each in context["protected"])
    obstacles = [
        *(f"You may not delete: {plain_text(e)}." for e in context["perms_lacking"]),
        *(f"It is needed by: {each}." for each in needing),
    ]
    if obstacles:
        raise ToolError("\n".join(obstacles))
    # The first one is the row itself, which the client may read.
    first, *related = rows = [*_flat_texts(context["deleted_objects"])]
    return rows, [plain_text(first), *(_public_text(each, kinds) for each in related)]


def _public_text(row: object, kinds: Set[str]) -> str:
    """Return a row as “Order: A-1”; only “Order” if its kind is not in `kinds`."""
    text = plain_text(row)
    kind = text.partition(": ")[0]
    return text if kind in kinds else kind


def _readable_kinds(pages: Pages, request: SiteRequest) -> Set[str]:
    """Return the names of models that the caller can read, by pages or as inlines.

    A name that a hidden model has, too, is left out: texts of rows have only the name.
    """
    readable = set[type[Model]]()
    for model, model_admin in pages.items():
        if model_admin.has_view_permission(request):
            inlines = {e.model for e in model_admin.get_inline_instances(request)}
            readable |= {model, *(e for e in inlines if not is_secret_model(e))}
    hidden = {*apps.get_models(include_auto_created=True)} - readable
    kinds, other_kinds = (
        {str(capfirst(each._meta.verbose_name)) for each in models}
        for models in (readable, hidden)
    )
    return kinds - other_kinds


def _flat_texts(nested: Iterable[Any]) -> Iterator[str]:
    for each in nested:
        if isinstance(each, list | tuple):
            yield from _flat_texts(each)
        else:
            yield str(each)
