"""Admin pages of tools, resources, resource templates and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar, cast

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from mcp_app.admin.forms import (
    PromptForm,
    ResourceForm,
    ResourceTemplateForm,
    ToolForm,
)
from mcp_app.admin.locking import LockingAdmin
from mcp_app.admin.switched import SwitchedOn, switched_on
from mcp_app.admin.wording import Said
from mcp_app.models import DefinitionRow, Prompt, Resource, ResourceTemplate, Tool

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldOpts

    from mcp_app.models.definitions import DefinitionRows

Row = TypeVar("Row", bound=DefinitionRow)
Fieldset: TypeAlias = "tuple[Said | None, _FieldOpts]"

WHO: Fieldset = (_("Who may use it"), {"fields": ["permission"]})
CHANGES: Fieldset = (
    _("What it changes"),
    {
        "fields": ["read_only", "destructive", "idempotent", "open_world"],
        "description": _("Clients show this to people before they agree to a call."),
    },
)
ADVICE = {
    "tool": _("Put a parameter in double braces: Good morning, {{name}}."),
    "prompt": _(
        "Most prompts are one text. Name the arguments that people fill in, and put "
        "them into the text in double braces: Write an answer to order {{order}}."
    ),
    "template": _(
        "Put a name of the address pattern in double braces: Order {{number}}."
    ),
}


class DefinitionAdmin(LockingAdmin[Row]):
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


def texts(*fields: str) -> Fieldset:
    return _("What clients see"), {"fields": [*fields, "description"]}


def content(*before: str, after: Sequence[str] = (), advice: Said = "") -> Fieldset:
    return (
        _("What it answers"),
        {
            "fields": ["kind", "function", *before, "text", *after],
            "description": advice,
        },
    )


def where(*fields: str) -> Fieldset:
    names = ("enabled", "tags", "position", "timeout", *fields, "opened_version")
    return _("Where and how"), {"fields": names}


def more(*fields: str) -> Fieldset:
    return (
        _("More: JSON, icons, history"),
        {
            "classes": ["collapse"],
            "fields": ["config", *fields, "icons", "created", "updated", "updated_by"],
        },
    )


@admin.register(Tool)
class ToolAdmin(DefinitionAdmin[Tool]):
    form = ToolForm
    fieldsets = [
        texts("title", "name"),
        content("input_schema", advice=ADVICE["tool"]),
        CHANGES,
        WHO,
        where(),
        more("output_schema"),
    ]


@admin.register(Resource)
class ResourceAdmin(DefinitionAdmin[Resource]):
    form = ResourceForm
    search_fields = [*DefinitionAdmin.search_fields, "uri"]
    fieldsets = [
        texts("title", "name", "uri"),
        content(after=["upload", "mime_type"]),
        WHO,
        where("ttl_ms", "public"),
        more("annotations"),
    ]

    def save_model(
        self,
        request: HttpRequest,
        obj: Resource,
        form: ModelForm[Resource],
        change: bool,
    ) -> None:
        if isinstance(form, ResourceForm):
            form.keep_upload()
        super().save_model(request, obj, form, change)


@admin.register(ResourceTemplate)
class ResourceTemplateAdmin(DefinitionAdmin[ResourceTemplate]):
    form = ResourceTemplateForm
    search_fields = [*DefinitionAdmin.search_fields, "uri_template"]
    fieldsets = [
        texts("title", "name", "uri_template"),
        content(after=["mime_type"], advice=ADVICE["template"]),
        WHO,
        where("ttl_ms", "public"),
        more("annotations"),
    ]


@admin.register(Prompt)
class PromptAdmin(DefinitionAdmin[Prompt]):
    form = PromptForm
    fieldsets = [
        texts("title", "name"),
        content("arguments", advice=ADVICE["prompt"]),
        WHO,
        where(),
        more(),
    ]
