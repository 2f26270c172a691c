"""Admin pages of tools, resources, resource templates and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mcp_app.admin.kinds import KindAdmin
from mcp_app.admin.switched import SwitchedOn, switched_on
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from mcp_app.models.definitions import DefinitionRows

Row = TypeVar("Row", bound=DefinitionRow)


class DefinitionAdmin(KindAdmin[Row]):
    """What the pages of all definitions share."""

    list_display = ["name", "title", "kind", "tags", switched_on, "updated"]
    list_filter = [("enabled", SwitchedOn), "kind"]
    prepopulated_fields = {"name": ["title"]}
    search_fields = ["name", "title", "description", "tags"]
    search_help_text = _("Searches names, titles, descriptions and tags.")
    show_full_result_count = False
    save_as = True
    readonly_fields = ["created", "updated", "updated_by"]
    list_select_related = False
    actions = ["switch_on", "switch_off"]

    def save_model(
        self, request: HttpRequest, obj: Row, form: ModelForm[Row], change: bool
    ) -> None:
        obj.updated_by_id = request.user.pk
        super().save_model(request, obj, form, change)

    @admin.action(description=_("Switch on"), permissions=["change"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        self._switch(request, queryset, on=True)

    @admin.action(description=_("Switch off"), permissions=["change"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Row]) -> None:
        self._switch(request, queryset, on=False)

    def _switch(
        self, request: HttpRequest, queryset: QuerySet[Row], *, on: bool
    ) -> None:
        said = _("Switched on.") if on else _("Switched off.")
        with transaction.atomic():
            # The admin's own queryset may be joined, ordered or sliced.
            rows = self.model._default_manager.filter(pk__in=queryset.values("pk"))
            chosen = cast("DefinitionRows[Row]", rows)
            LogEntry.objects.log_actions(
                str(request.user.pk), chosen, CHANGE, change_message=str(said)
            )
            count = chosen.switch(on)
        message = ngettext("%d was changed.", "%d were changed.", count) % count
        self.message_user(request, f"{said} {message}", messages.SUCCESS)


@admin.register(Tool)
class ToolAdmin(DefinitionAdmin[Tool]):
    """Tools."""


@admin.register(Resource)
class ResourceAdmin(DefinitionAdmin[Resource]):
    search_fields = [*DefinitionAdmin.search_fields, "uri"]


@admin.register(ResourceTemplate)
class ResourceTemplateAdmin(DefinitionAdmin[ResourceTemplate]):
    search_fields = [*DefinitionAdmin.search_fields, "uri_template"]


@admin.register(Prompt)
class PromptAdmin(DefinitionAdmin[Prompt]):
    """Prompts."""
