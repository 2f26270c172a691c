"""Tools for any number of models, by the pages of the admin.

Whoever uses them sees and changes what the pages let them: `get_queryset`,
`has_change_permission`, `get_form`, inlines, `save_model`, actions and the history are
the site's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

from django.contrib.admin import AdminSite
from django.contrib.admin import site as default_site
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.db.models import Model
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.http import urlencode
from pydantic import Field

from mcp_app.catalog.decorators import declared_tool
from mcp_app.catalog.form_fields import is_secret_name
from mcp_app.catalog.registered_function import (
    Declaration,
    DeclaredTool,
    ReadyTool,
    RegisteredFunction,
)
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.context import SyncContext
from mcp_app.interface.errors import RegistrationError, ToolError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.rules import AccessRequirements
from mcp_app.pools.statement_time import limit_transaction
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets import admin_forms, admin_lists
from mcp_app.toolsets.answers import (
    MOST_ITEMS,
    NOT_ALLOWED,
    answer_output,
    check_answer,
    is_redirect,
    message_output,
    object_output,
    plain_text,
    redirect_place,
)
from mcp_app.toolsets.filling import Pair
from mcp_app.toolsets.site_views import Read, SiteCall, Visit, site_views

Models: TypeAlias = Mapping[str, type[Model]]
Key: TypeAlias = str | int
Inlines: TypeAlias = dict[str, list[dict[str, Any]]]

STAFF_RULE: Final = "mcp_app.active_staff"
OWN_PAGE: Final = "asks something on a page of its own. Use the admin for it."
_FORBIDDEN: Final = frozenset({"mcp_app", "sessions"})
"""Apps whose models no line can name."""
_SECRET_APPS: Final = frozenset(
    {
        *("auth", "contenttypes", "authtoken", "knox", "oauth2_provider", "mfa"),
        *("otp_email", "otp_hotp", "otp_static", "otp_totp", "otp_webauthn"),
        *("socialaccount", "django_celery_beat", "constance"),
    }
)
"""Apps whose models must be named: they hold secrets, or say who may do what."""


def is_active_staff(request: AccessRequest) -> bool:
    """Active staff, with all their rights.

    The pages see the user's own rights, so nobody may come by with fewer.
    """
    user, rights = request.user, request.principal.permissions
    if user is None or not (user.is_active and user.is_staff):
        return False
    return rights is None or rights >= user.get_all_permissions()


# -- the line --------------------------------------------------------------------------


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Make the tools of a line `mcp.admin_tools()`."""
    site = toolset.options.get("site", default_site)
    change = _models_by_label(toolset.options.get("change", ()), site)
    models = toolset.options.get("models")
    read = _usual_models(site) if models is None else _models_by_label(models, site)
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
            text = f"{text} Models: {', '.join(change)}."
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
            },
        )
        definition = replace(declared.definition, demands=demands)
        ready = ReadyTool(toolset.call, toolset.origin.place, function.tool_runnable())
        yield Declaration(definition, ready)


def _is_forbidden(model: type[Model]) -> bool:
    options = model._meta
    return options.app_label in _FORBIDDEN or options.label_lower == "admin.logentry"


def _usual_models(site: AdminSite) -> Models:
    """Return the models of an admin but those that hold secrets."""
    return {
        model._meta.label_lower: model
        for model in site._registry
        if not _is_forbidden(model)
        and model._meta.app_label not in _SECRET_APPS
        and not any(is_secret_name(each.name) for each in model._meta.concrete_fields)
    }


def _models_by_label(models: Iterable[type[Model]], site: AdminSite) -> Models:
    for model in models:
        label = model._meta.label
        if _is_forbidden(model):
            raise RegistrationError(f"{label} is for nobody but people in the admin.")
        if not site.is_registered(model):
            raise RegistrationError(
                f"{label} is not registered in the admin site {site.name!r}."
            )
    return {model._meta.label_lower: model for model in models}


# -- the tools -------------------------------------------------------------------------


class AdminTools:
    """What the tools of one line do; the texts of their methods are what models read.

    Models are named like "shop.order", rows by their keys.
    """

    def __init__(self, site: AdminSite, readable: Models, changeable: Models) -> None:
        self._site = site
        self._readable, self._changeable = readable, changeable
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
        """Raise `RegistrationError` if the URLconf has no such admin."""
        try:
            reverse(f"{self._site.name}:index")
        except NoReverseMatch:
            raise RegistrationError(
                f"the admin site {self._site.name!r} is in no URLconf. Add"
                ' path("admin/", admin.site.urls) to its urlpatterns.'
            ) from None

    def list_models(self, ctx: SyncContext) -> ToolOutput:
        """List the models of the admin, and what you may do with the rows of each."""
        apps = self._read(ctx, lambda _, context: context["app_list"], "index")
        models = [
            {
                "model": label,
                "name": plain_text(each["name"]),
                "may": self._rights(label, each["perms"]),
            }
            for app in apps
            for each in app["models"]
            if (label := each["model"]._meta.label_lower) in self._readable
        ]
        return object_output({"models": models})

    def _rights(self, label: str, rights: Mapping[str, bool]) -> list[str]:
        others = [each for each in ("add", "change", "delete") if rights.get(each)]
        return ["view", *(others if label in self._changeable else ())]

    def list_rows(
        self,
        ctx: SyncContext,
        model: str,
        search: str = "",
        filters: dict[str, str] | None = None,
        sort: str = "",
        page: int = 1,
    ) -> ToolOutput:
        """List the rows of a model as the admin lists them.

        It also tells the filters with their choices, and the actions that admin_act
        can run.

        Args:
            model: A model as admin_models names it.
            search: Words to look for.
            filters: One choice by the title of a filter.
            sort: A column; with - in front the other way round.
            page: The number of the page, from 1.
        """
        query: list[Pair] = []
        if filters or sort:
            choose = partial(admin_lists.list_query, filters or {}, sort)
            query = self._read(ctx, choose, "changelist", model)
        query += [("q", search)] if search else []
        query += [("p", str(page))] if page != 1 else []
        read = partial(admin_lists.list_page, model in self._changeable)
        rows = self._read(ctx, read, "changelist", model, query=query)
        return object_output(rows)

    def get_row(
        self, ctx: SyncContext, model: str, key: Key, history: bool = False
    ) -> ToolOutput:
        """Get a row with all that its page in the admin shows.

        Args:
            model: A model as admin_models names it.
            key: The key of the row, as admin_list shows it.
            history: Also tell who changed what of it in the admin.
        """
        row = self._read(ctx, admin_forms.row_page, "change", model, key)
        if history:
            read = admin_lists.history_page
            row["history"] = self._read(ctx, read, "history", model, key)
        return object_output(row)

    def describe_form(
        self,
        ctx: SyncContext,
        model: str,
        key: Key | None = None,
        field: str = "",
        search: str = "",
    ) -> ToolOutput:
        """Describe what you can enter for a new row, or for one that is there.

        With a field it lists what can be chosen for a relation.

        Args:
            model: A model as admin_models names it.
            key: The key of a row that is there.
            field: A field that holds a relation, such as customer or lines.product.
            search: Words to look for in its choices.
        """
        view = "add" if key is None else "change"
        if not field:
            schema = self._read(ctx, admin_forms.page_schema, view, model, key)
            return object_output(schema)
        read = partial(admin_forms.choices_of, self._site, field, search)
        choices = self._read(ctx, read, view, model, key)
        return object_output({"choices": choices})

    def add_row(
        self,
        ctx: SyncContext,
        model: str,
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
        with self._transaction(ctx, model):
            # Where it goes on is the page of the new row.
            pairs = self._fill_form(ctx, "add", model, None, values, inlines)
            with self._submit_form(
                ctx, "add", model, None, [*pairs, ("_continue", "1")]
            ) as visit:
                return message_output(visit, self._new_key(visit, model))

    def change_row(
        self,
        ctx: SyncContext,
        model: str,
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
        with self._transaction(ctx, model, key):
            pairs = self._fill_form(ctx, "change", model, key, values, inlines)
            with self._submit_form(
                ctx, "change", model, key, [*pairs, ("_save", "1")]
            ) as visit:
                return message_output(visit, {"key": str(key)})

    def delete_row(
        self, ctx: SyncContext, model: str, key: Key, confirm: str = ""
    ) -> ToolOutput:
        """Delete a row with all that goes along.

        The first call deletes nothing: it tells what would go, and gives the confirm
        for the second. Let the person decide in between.

        Args:
            model: The model.
            key: The key of the row.
            confirm: What the first call gave.
        """
        with self._transaction(ctx, model, key):
            rows = self._read(ctx, admin_lists.deletion_page, "delete", model, key)
            state = [ctx.principal.key, self._site.name, model, str(key), rows]
            digest = salted_hmac(__name__, json.dumps(state), algorithm="sha256")
            if not constant_time_compare(confirm, digest.hexdigest()):
                note = "Nothing is deleted yet. Call again with this confirm."
                rows_text = [plain_text(each) for each in rows[:MOST_ITEMS]]
                gone = {"deletes": rows_text, "total": len(rows)}
                return object_output(
                    {**gone, "confirm": digest.hexdigest(), "note": note}
                )
            with self._submit_form(
                ctx, "delete", model, key, [("post", "yes")]
            ) as visit:
                return message_output(visit, {"key": str(key)})

    def run_action(
        self,
        ctx: SyncContext,
        model: str,
        action: str,
        keys: Annotated[list[Key], Field(min_length=1, max_length=100)],
    ) -> ToolOutput:
        """Run an action of the admin on rows; admin_list tells the actions.

        Args:
            model: The model.
            action: The name of the action.
            keys: The keys of the rows.
        """
        texts = [*dict.fromkeys(map(str, keys))]
        with self._transaction(ctx, model):
            read = partial(admin_lists.action_pairs, action, texts)
            pairs = self._read(ctx, read, "changelist", model)
            with self._submit_form(ctx, "changelist", model, None, pairs) as visit:
                if is_redirect(visit):
                    return message_output(visit)
                return answer_output(visit)

    # -- pages ------------------------------------------------------------------

    def _fill_form(
        self,
        ctx: SyncContext,
        view: str,
        label: str,
        key: Key | None,
        values: dict[str, Any] | None,
        inlines: Inlines | None,
    ) -> list[Pair]:
        read = partial(admin_forms.filled_pairs, values or {}, inlines or {})
        pairs: list[Pair] = self._read(ctx, read, view, label, key)
        return pairs

    def _page_name(self, view: str, label: str) -> str:
        return f"{self._site.name}:{label.replace('.', '_')}_{view}"

    @contextmanager
    def _visit(
        self, ctx: SyncContext, view: str, label: str, key: Key | None, **how: Any
    ) -> Iterator[Visit]:
        name, arguments = f"{self._site.name}:{view}", list[Key]()
        if label:
            if label not in self._readable:
                near = get_close_matches(label, self._readable, 3) or self._readable
                text = f"There is no model “{label}” here; there is: {', '.join(near)}."
                raise ToolError(text)
            name = self._page_name(view, label)
            arguments = [] if key is None else [quote(key) or "_"]
        call = SiteCall(
            path=reverse(name, args=arguments, current_app=self._site.name),
            is_view=lambda match: match.view_name == name,
            **how,
        )
        with site_views().visit(call, ctx) as visit:
            yield visit

    def _read(
        self,
        ctx: SyncContext,
        read: Read,
        view: str,
        label: str = "",
        key: Key | None = None,
        query: Sequence[Pair] = (),
    ) -> Any:
        """Return what is read of a page, inside the middleware."""
        encoded = urlencode(query)
        with self._visit(ctx, view, label, key, query=encoded, read_page=read) as visit:
            if is_redirect(visit) and visit.is_reached:
                self._check_login(visit)
                # The admin leads elsewhere from what is not there.
                missing = "There is no such page."
                if key is not None:
                    name = self._readable[label]._meta.verbose_name
                    missing = f"There is no {name} with the key {key}."
                raise ToolError(missing)
            check_answer(visit)
            if visit.page is None:
                raise ToolError("This page of the admin cannot be read here.")
            return visit.page

    @contextmanager
    def _submit_form(
        self,
        ctx: SyncContext,
        view: str,
        label: str,
        key: Key | None,
        pairs: Sequence[Pair],
    ) -> Iterator[Visit]:
        """Send a form; raise for what the site answers with a page."""
        form = {
            "method": "POST",
            "body": urlencode(pairs).encode(),
            "content_type": "application/x-www-form-urlencoded",
            "read_page": admin_forms.problem_lines,
        }
        with self._visit(ctx, view, label, key, **form) as visit:
            if is_redirect(visit):
                self._check_login(visit)
            check_answer(visit)
            if visit.page is not None:
                raise ToolError("\n".join(visit.page) or f"This {OWN_PAGE}")
            yield visit

    def _check_login(self, visit: Visit) -> None:
        """Raise if the admin wants somebody else to log in."""
        login = reverse(f"{self._site.name}:login", current_app=self._site.name)
        if redirect_place(visit) == login:
            raise ToolError(NOT_ALLOWED)

    def _new_key(self, visit: Visit, label: str) -> JsonObject:
        """Return the key of a new row, if its page is where the site goes on."""
        with suppress(Resolver404, KeyError):
            prefix = get_script_prefix()
            match = resolve(f"/{redirect_place(visit).removeprefix(prefix)}")
            if match.view_name == self._page_name("change", label):
                return {"key": unquote(match.kwargs["object_id"])}
        return {}

    @contextmanager
    def _transaction(
        self, ctx: SyncContext, label: str, key: Key | None = None
    ) -> Iterator[None]:
        """Do it all or nothing, and lock the row from reading its page to saving it."""
        if label not in self._changeable:
            names = ", ".join(self._changeable)
            raise ToolError(f"Rows of “{label}” cannot be changed; those of: {names}.")
        model = self._changeable[label]
        alias = router.db_for_write(model)
        with transaction.atomic(using=alias):
            if (left := ctx.deadline) is not None:
                limit_transaction(alias, left)
            if key is not None:
                rows = model._base_manager.using(alias).select_for_update()
                # The page itself says that there is no such row.
                with suppress(ValidationError, ValueError, TypeError, OverflowError):
                    rows.filter(pk=model._meta.pk.to_python(key)).values("pk").first()
            yield
            if ctx.cancelled:
                transaction.set_rollback(True, using=alias)
