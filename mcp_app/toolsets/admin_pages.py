"""Calls the pages of the admin, and reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from django.contrib.admin import AdminSite
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import ValidationError
from django.db import router, transaction
from django.db.models import Model
from django.urls import Resolver404, get_script_prefix, resolve, reverse
from django.utils.http import urlencode
from pydantic import Field

from mcp_app.catalog.form_filling import Pair
from mcp_app.interface.context import SyncContext
from mcp_app.interface.errors import ToolError
from mcp_app.pools.statement_time import limit_transaction
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.admin_forms import problem_lines
from mcp_app.toolsets.answers import (
    NOT_ALLOWED,
    check_answer,
    is_redirect,
    redirect_path,
)
from mcp_app.toolsets.site_views import Read, SiteCall, Visit, site_views

Key: TypeAlias = Annotated[str, Field(max_length=1_000)] | int


@dataclass(frozen=True)
class AdminPages:
    """The pages of an admin for a caller: of the whole site, of a model or of a row."""

    site: AdminSite
    ctx: SyncContext
    model: type[Model] | None = None
    key: Key | None = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction, and lock the row before its page is read."""
        model: Any = self.model
        alias = router.db_for_write(model)
        with transaction.atomic(using=alias):
            if (seconds_left := self.ctx.deadline) is not None:
                limit_transaction(alias, seconds_left)
            if self.key is not None:
                rows = model._base_manager.using(alias).select_for_update()
                # A wrong key is reported by the page itself.
                with suppress(ValidationError, ValueError, TypeError, OverflowError):
                    key = model._meta.pk.to_python(self.key)
                    rows.filter(pk=key).values("pk").first()
            yield
            if self.ctx.cancelled:
                transaction.set_rollback(True, using=alias)

    def read(self, view: str, read: Read, query: Sequence[Pair] = ()) -> Any:
        """Open a page, and return what `read` returns for it inside the middleware."""
        with self._visit(view, query=urlencode(query), read_page=read) as visit:
            if is_redirect(visit) and visit.is_reached:
                # If there is no such row, the admin redirects.
                self._check_login(visit)
                if self.key is None or self.model is None:
                    raise ToolError("There is no such page.")
                name = self.model._meta.verbose_name
                raise ToolError(f"There is no {name} with the key {self.key}.")
            check_answer(visit)
            if visit.page is None:
                raise ToolError("This page of the admin cannot be read here.")
            return visit.page

    @contextmanager
    def submit(self, view: str, pairs: Sequence[Pair]) -> Iterator[Visit]:
        """Send a form; raise if the site answers with a page instead of a redirect."""
        form = {
            "method": "POST",
            "body": urlencode(pairs).encode(),
            "content_type": "application/x-www-form-urlencoded",
            "read_page": problem_lines,
        }
        with self._visit(view, **form) as visit:
            if is_redirect(visit):
                self._check_login(visit)
            check_answer(visit)
            if visit.page is not None:
                text = "This asks something on a page of its own. Use the admin for it."
                raise ToolError("\n".join(visit.page) or text)
            yield visit

    def new_key(self, visit: Visit) -> JsonObject:
        """Return the key of a new row, if the site redirects to the row's page."""
        with suppress(Resolver404, KeyError):
            path = redirect_path(visit).removeprefix(get_script_prefix())
            match = resolve(f"/{path}")
            if match.view_name == self._view_name("change"):
                return {"key": unquote(match.kwargs["object_id"])}
        return {}

    def _view_name(self, view: str) -> str:
        label = "" if self.model is None else self.model._meta.label_lower
        page = f"{label.replace('.', '_')}_{view}" if label else view
        return f"{self.site.name}:{page}"

    @contextmanager
    def _visit(self, view: str, **how: Any) -> Iterator[Visit]:
        name, site = self._view_name(view), self.site.name
        # No URL can have an empty key; no row has the key “_”.
        keys = [] if self.key is None else [quote(self.key) or "_"]
        call = SiteCall(
            path=reverse(name, args=keys, current_app=site),
            is_view=lambda match: match.view_name == name,
            **how,
        )
        with site_views().visit(call, self.ctx) as visit:
            yield visit

    def _check_login(self, visit: Visit) -> None:
        """Raise if the admin redirects to its login page."""
        login = reverse(f"{self.site.name}:login", current_app=self.site.name)
        if redirect_path(visit) == login:
            raise ToolError(NOT_ALLOWED)
