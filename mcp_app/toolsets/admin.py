"""Tools that list and change rows of models through the pages of the admin.

Callers see and change only what these pages allow.  `get_queryset`,
`has_change_permission`, `get_form`, inlines, `save_model`, actions and the history are
the site's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from django.apps import apps
from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from pydantic import Field

from mcp_app.catalog.decorators import declared_tool
from mcp_app.catalog.findings import record_problem
from mcp_app.catalog.form_filling import Pair
from mcp_app.catalog.registered_function import (
    Declaration,
    DeclaredTool,
    ReadyFunction,
    RegisteredFunction,
)
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.secret_fields import (
    SECRET_APPS,
    comes_from,
    is_secret_model,
    secret_in_sight,
)
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.context import SyncContext
from mcp_app.interface.errors import RegistrationError, ToolError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.rules import AccessRequirements
from mcp_app.toolsets import admin_forms, admin_lists
from mcp_app.toolsets.admin_pages import AdminPages, Key
from mcp_app.toolsets.answers import (
    MAX_NAME_LENGTH,
    MOST_ITEMS,
    answer_output,
    known_item,
    message_output,
    object_output,
    plain_text,
    redirect_path,
)
from mcp_app.toolsets.site_views import has_own_rights

Models: TypeAlias = Mapping[str, type[Model]]
Words: TypeAlias = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]
Inlines: TypeAlias = dict[str, list[dict[str, Any]]]

MAX_NAMES: Final = 10
"""How many models a description names; `admin_models` has all."""
STAFF_RULE: Final = "mcp_app.active_staff"
_FORBIDDEN: Final = frozenset({"mcp_app", "sessions", "admin.logentry"})
"""Apps and models that `mcp.admin_tools()` refuses, also as a parent of a model."""


def is_active_staff(request: AccessRequest) -> bool:
    """Active staff, with all their rights."""
    user = request.user
    is_staff = user is not None and user.is_active and user.is_staff
    return is_staff and has_own_rights(request)


# -- making the tools ------------------------------------------------------------------


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Make the tools of a line `mcp.admin_tools()`."""
    site = toolset.options.get("site", default_site)
    if site is default_site and not apps.is_installed("django.contrib.admin"):
        raise RegistrationError(
            'this site has no admin. Add "django.contrib.admin" to INSTALLED_APPS, and'
            " its pages to the URLs."
        )
    if not isinstance(site, AdminSite):
        raise RegistrationError(f"site is {site!r}, and no AdminSite.")
    change = _models_by_label(toolset.options.get("change", ()), site)
    models = toolset.options.get("models")
    if models is None:
        read, secret = _usual_models(site)
        if left_out := ", ".join(sorted(secret - change.keys())):
            sentence = (
                f"{toolset.call} leaves out {left_out}, which may hold secrets. To have"
                " them, name all models that you want, as in models=[…]."
            )
            record_problem(registry.toolset_remarks, toolset.origin.place, sentence)
    else:
        read = _models_by_label(models, site)
    tools = AdminTools(site, {**read, **change}, change)
    tools.check_mounted()
    registry.rule(STAFF_RULE)(is_active_staff)
    demands = toolset.demands.combined_with(AccessRequirements(rules=(STAFF_RULE,)))
    offered = {**tools.reading, **(tools.changing if change else {})}
    prefix = toolset.options.get("name", "admin")
    for position, suffix in enumerate(toolset.wanted_tools([*offered])):
        function = RegisteredFunction(offered[suffix], atomic=False)
        reads, adds = suffix in tools.reading, suffix == "add"
        text = function.description.replace("admin_", f"{prefix}_")
        if not reads:
            text = f"{text} Models: {_names_text([*change])}."
        declared = declared_tool(
            function,
            {
                "name": f"{prefix}_{suffix}",
                "description": text,
                "tags": toolset.tags,
                "position": position,
                "read_only": reads,
                "destructive": not (reads or adds),
                "idempotent": reads,
                "open_world": False,
                "title": f"Admin: {offered[suffix].__name__.replace('_', ' ')}",
                # The members of the object depend on the pages of the site.
                "output_schema": {"type": "object"} if reads else None,
            },
        )
        definition = replace(declared.definition, demands=demands)
        ready = ReadyFunction(
            toolset.call, toolset.origin.place, function.tool_runnable()
        )
        yield Declaration(definition, ready)


def _names_text(labels: list[str]) -> str:
    # Some clients cut a description at 1,024 characters.
    endings = ["and others"] if len(labels) > MAX_NAMES else []
    return ", ".join([*labels[:MAX_NAMES], *endings])


def _usual_models(site: AdminSite) -> tuple[Models, Set[str]]:
    """Return models without secrets, and labels of others outside of `SECRET_APPS`."""
    types = [each for each in site._registry if not comes_from(each, _FORBIDDEN)]
    usual = {e._meta.label_lower: e for e in types if not is_secret_model(e)}
    names = {e._meta.label_lower for e in types if e._meta.app_label not in SECRET_APPS}
    return usual, names - usual.keys()


def _models_by_label(models: Iterable[Any], site: AdminSite) -> Models:
    for model in models:
        if not (isinstance(model, type) and issubclass(model, Model)):
            raise RegistrationError(f"{model!r} is no model, such as Order.")
        label = model._meta.label
        if comes_from(model, _FORBIDDEN):
            raise RegistrationError(f"{label} is for nobody but people in the admin.")
        if name := secret_in_sight(model):
            raise RegistrationError(
                f"{label} cannot be named: the key or the text of its rows shows a"
                f" secret, their {name}."
            )
        if not site.is_registered(model):
            raise RegistrationError(
                f"{label} is not registered in the admin site {site.name!r}."
            )
    return {model._meta.label_lower: model for model in models}


# -- the tools -------------------------------------------------------------------------


class AdminTools:
    """The tools of one call of `mcp.admin_tools()`; AI models read their docstrings.

    Django's models are called like "shop.order".
    """

    def __init__(self, site: AdminSite, readable: Models, changeable: Models) -> None:
        self._site = site
        self._readable, self._changeable = readable, changeable
        self._admins = {each: site._registry[each] for each in readable.values()}
        self.reading: Mapping[str, Callable[..., ToolOutput]] = {
            "models": self.list_models,
            "list": self.list_rows,
            "get": self.get_row,
            "form": self.describe_form,
        }
        self.changing: Mapping[str, Callable[..., ToolOutput]] = {
            "add": self.add_row,
            "change": self.change_row,
            "delete": self.delete_row,
            "act": self.run_action,
        }

    def check_mounted(self) -> None:
        """Raise `RegistrationError` if the URLconf does not have this admin."""
        try:
            reverse(f"{self._site.name}:index")
        except NoReverseMatch:
            raise RegistrationError(
                f"the admin site {self._site.name!r} is in no URLconf. Add"
                ' path("admin/", admin.site.urls) to its urlpatterns.'
            ) from None

    def _pages(
        self, ctx: SyncContext, label: str, key: Key | None = None
    ) -> AdminPages:
        """Return the pages of a model, or of a row."""
        model = known_item("model", label, self._readable)
        return AdminPages(self._site, ctx, model, key)

    @contextmanager
    def _changing_pages(
        self, ctx: SyncContext, label: str, key: Key | None = None
    ) -> Iterator[AdminPages]:
        """Open a transaction around the pages of a model whose rows may be changed."""
        if label not in self._changeable:
            names = ", ".join(self._changeable)
            raise ToolError(f"Rows of “{label}” cannot be changed; those of: {names}.")
        pages = self._pages(ctx, label, key)
        with pages.transaction():
            yield pages

    def list_models(self, ctx: SyncContext) -> ToolOutput:
        """List the models of the admin, and what you may do with the rows of each."""
        pages = AdminPages(self._site, ctx)
        models = [
            {
                "model": label,
                "name": plain_text(each["name"]),
                "may": ["view", *self._rights(label, each.get("perms", {}))],
            }
            for app in pages.read("index", lambda _, context: context["app_list"])
            for each in app["models"]
            # Sites may add links of their own, which have no model.
            if (model := each.get("model"))
            and (label := model._meta.label_lower) in self._readable
        ]
        return object_output({"models": models})

    def _rights(self, label: str, rights: Mapping[str, bool]) -> list[str]:
        changeable = label in self._changeable
        return [n for n in ("add", "change", "delete") if changeable and rights.get(n)]

    def list_rows(
        self,
        ctx: SyncContext,
        model: Words,
        search: Words = "",
        filters: dict[str, str] | None = None,
        sort: Words = "",
        page: int = 1,
    ) -> ToolOutput:
        """List the rows of a model as the admin lists them.

        It also tells the filters with their choices, and the actions that admin_act
        can run.

        Args:
            model: A model, such as shop.order.
            search: Words to look for.
            filters: One choice by the title of a filter.
            sort: A column; with - in front the other way round.
            page: The number of the page, from 1.
        """
        pages, query = self._pages(ctx, model), list[Pair]()
        if filters or sort:
            choose = partial(admin_lists.list_query, filters or {}, sort)
            query = pages.read("changelist", choose)
        query += [("q", search)] if search else []
        query += [("p", str(page))] if page != 1 else []
        read = partial(admin_lists.list_page, model in self._changeable)
        return object_output(pages.read("changelist", read, query))

    def get_row(
        self, ctx: SyncContext, model: Words, key: Key, history: bool = False
    ) -> ToolOutput:
        """Get a row with all that its page in the admin shows.

        Args:
            model: A model, such as shop.order.
            key: The key of the row, as the list shows it.
            history: Also tell who changed what of it in the admin.
        """
        pages = self._pages(ctx, model, key)
        row = pages.read("change", admin_forms.row_page)
        if history:
            read = partial(admin_lists.history_page, self._admins)
            row["history"] = pages.read("history", read)
        return object_output(row)

    def describe_form(
        self,
        ctx: SyncContext,
        model: Words,
        key: Key | None = None,
        field: Words = "",
        search: Words = "",
    ) -> ToolOutput:
        """Describe what you can enter for a new row, or for one that is there.

        With a field it lists what can be chosen for a relation.

        Args:
            model: A model, such as shop.order.
            key: The key of a row that is there.
            field: A field that holds a relation, such as customer or lines.product.
            search: Words to look for in its choices.
        """
        pages, view = self._pages(ctx, model, key), "add" if key is None else "change"
        if not field:
            return object_output(pages.read(view, admin_forms.page_schema))
        read = partial(admin_forms.choices_of, self._site, field, search)
        return object_output({"choices": pages.read(view, read)})

    def add_row(
        self,
        ctx: SyncContext,
        model: Words,
        values: dict[str, Any],
        inlines: Inlines | None = None,
    ) -> ToolOutput:
        """Add a row, as its page in the admin does.

        Args:
            model: The model.
            values: Values by field, as admin_form describes them. Dates and times are
                ISO 8601, relations are keys.
            inlines: New rows that belong to it, by the prefix that admin_form shows.
        """
        fill = partial(admin_forms.filled_pairs, values, inlines or {})
        with self._changing_pages(ctx, model) as pages:
            # With `_continue`, the site redirects to the page of the new row.
            pairs = [*pages.read("add", fill), ("_continue", "1")]
            with pages.submit("add", pairs) as visit:
                return message_output(visit, **pages.new_key(visit))

    def change_row(
        self,
        ctx: SyncContext,
        model: Words,
        key: Key,
        values: dict[str, Any] | None = None,
        inlines: Inlines | None = None,
    ) -> ToolOutput:
        """Change a row, as its page in the admin does; its history says who did it.

        Args:
            model: The model.
            key: The key of the row.
            values: New values by field, as admin_form describes them. Dates and times
                are ISO 8601, relations are keys. What is left out stays.
            inlines: Rows that belong to it, by the prefix that admin_get shows. With a
                key they change, or go with "delete" = true; without one they are new.
        """
        fill = partial(admin_forms.filled_pairs, values or {}, inlines or {})
        with self._changing_pages(ctx, model, key) as pages:
            pairs = [*pages.read("change", fill), ("_save", "1")]
            with pages.submit("change", pairs) as visit:
                return message_output(visit, key=str(key))

    def delete_row(
        self, ctx: SyncContext, model: Words, key: Key, confirm: Words = ""
    ) -> ToolOutput:
        """Delete a row with all that goes along.

        The first call deletes nothing: it tells what would go, and gives the confirm
        for the second. Let the person decide in between.

        Args:
            model: The model.
            key: The key of the row.
            confirm: What the first call gave.
        """
        with self._changing_pages(ctx, model, key) as pages:
            read = partial(admin_lists.deletion_page, self._admins)
            rows, texts = pages.read("delete", read)
            state = [ctx.principal.key, self._site.name, model, str(key), rows]
            seal = salted_hmac(__name__, json.dumps(state), algorithm="sha256")
            expected = seal.hexdigest()
            if constant_time_compare(confirm, expected):
                with pages.submit("delete", [("post", "yes")]) as visit:
                    return message_output(visit, key=str(key))
        answer = {
            "deletes": texts[:MOST_ITEMS],
            "total": len(rows),
            "confirm": expected,
            "note": "Nothing is deleted yet. Call again with this confirm.",
        }
        return object_output(answer)

    def run_action(
        self,
        ctx: SyncContext,
        model: Words,
        action: Words,
        keys: Annotated[list[Key], Field(min_length=1, max_length=100)],
    ) -> ToolOutput:
        """Run an action of the admin on rows; admin_list tells the actions.

        Args:
            model: The model.
            action: The name of the action.
            keys: The keys of the rows.
        """
        texts = [*dict.fromkeys(map(str, keys))]
        with self._changing_pages(ctx, model) as pages:
            read = partial(admin_lists.action_pairs, action, texts)
            pairs = pages.read("changelist", read)
            with pages.submit("changelist", pairs) as visit:
                if redirect_path(visit) == visit.call.path:
                    return message_output(visit)
                return answer_output(visit)
