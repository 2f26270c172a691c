"""Admin pages of tools, resources, templates, prompts and event types."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm, modelform_factory
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.filters import read_filter
from mcp_app.admin.calls.log import calls_page
from mcp_app.admin.calls.presentation import MODELS
from mcp_app.admin.definitions.actions import ListActions
from mcp_app.admin.definitions.kinds import KindAdmin
from mcp_app.admin.definitions.lists import (
    ChangesFilter,
    KindFilter,
    ServerFilter,
    StateFilter,
    name_column,
    problems,
    state,
    tokens,
    try_it,
)
from mcp_app.admin.definitions.openapi_pages import OpenApiPages
from mcp_app.admin.forms import form_of
from mcp_app.admin.forms.fields import FIELDS, PanelField
from mcp_app.admin.forms.fieldsets import (
    HISTORY,
    Fieldset,
    overlay_fieldsets,
    values_of_declaration,
)
from mcp_app.admin.forms.overlay import OverlayForm
from mcp_app.admin.page.concurrency import PageViews
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import page_url
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.admin.publishing.who_can_see import WhoPages
from mcp_app.admin.trying.tabs import TryPages
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.kinds import Kind
from mcp_app.kinds.registry import is_guarded
from mcp_app.models import (
    DefinitionRow,
    EventType,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Tool,
)
from mcp_app.publishing.overlays import (
    declaration_of,
    declared_definition,
    reset_columns,
)
from mcp_app.publishing.rights import WHO_COLUMNS, lacking_sentence, require_right
from mcp_app.site_time import time_html

# -- guarded fields --------------------------------------------------------------------
# Fields that need a permission of their own: without it they are read-only.
#
# A request that sends such a field without the permission gets 403.

Published = TypeVar("Published", bound=PublishedRow)


class GuardedAdmin(PublishedAdmin[Published]):
    """Lets only people with the permission `grant` say who may use a row."""

    def formfield_for_dbfield(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        if db_field.name in FIELDS:
            return FIELDS[db_field.name]()
        return super().formfield_for_dbfield(db_field, request, **options)

    def guarded_fields(
        self, request: HttpRequest, obj: Published | None
    ) -> dict[str, str]:
        """Return the fields that this user may not change, and the right for each."""
        if has_right(request, "grant"):
            return {}
        guarded = (each for each in WHO_COLUMNS if hasattr(self.model, each))
        return dict.fromkeys(guarded, "grant")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Published | None = None
    ) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return [*fields, *self.guarded_fields(request, obj)]

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        if request.method == "POST":
            row = None if object_id is None else self.get_object(request, object_id)
            self._refuse_guarded(request, row)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _refuse_guarded(self, request: HttpRequest, row: Published | None) -> None:
        """Raise 403 if a guarded field was sent, or a copy would lose its value."""
        copied = row if "_saveasnew" in request.POST else None
        names = (*request.POST, *request.FILES)
        for name, right in self.guarded_fields(request, row).items():
            # A field with several inputs sends its parts.
            sent = any(each == name or each.startswith(f"{name}-") for each in names)
            # *Save as new* would drop a value that this user may not write.
            if sent or getattr(copied, name, None):
                raise PermissionDenied(lacking_sentence(right))

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **options: Any,
    ) -> HttpResponse:
        row = options.get("obj")
        fields = flatten_fieldsets(self.get_fieldsets(request, row))
        guarded = self.guarded_fields(request, row)
        rights = dict.fromkeys(guarded[name] for name in guarded if name in fields)
        text = _("Some fields cannot be changed here. %(right)s")
        may_change = row is None or self.has_change_permission(request, row)
        sentences = map(lacking_sentence, rights if may_change else ())
        context["lacking"] = [text % {"right": sentence} for sentence in sentences]
        return super().render_change_form(request, context, *positional, **options)


# -- definition admin ------------------------------------------------------------------

Row = TypeVar("Row", bound=DefinitionRow)


class DefinitionAdmin(
    ListActions[Row],
    TryPages[Row],
    WhoPages[Row],
    GuardedAdmin[Row],
    KindAdmin[Row],
):
    """The base of the pages of all definitions."""

    list_display = [name_column, state, problems, tokens, try_it]
    list_filter = [StateFilter, KindFilter, "source", ServerFilter]
    search_fields = ["name", "title", "description", "tags"]
    show_full_result_count = False
    save_as = True
    readonly_fields = [*HISTORY]
    list_select_related = ["published"]
    # The type stubs do not allow functions here.
    sortable_by: ClassVar[Any] = [name_column, problems, tokens]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        return super().get_queryset(request).defer("published__content")

    def get_list_display(self, request: HttpRequest) -> Any:
        columns = super().get_list_display(request)
        may_try = has_right(request, "try")
        return [column for column in columns if may_try or column is not try_it]

    @admin.display(description=gettext_lazy("created"))
    def created_at(self, row: Row) -> str:
        return time_html(row.created)

    @admin.display(description=gettext_lazy("updated"))
    def updated_at(self, row: Row) -> str:
        return time_html(row.updated)

    # -- what code declares -------------------------------------------------------

    def get_fieldsets(
        self, request: HttpRequest, obj: Row | None = None
    ) -> list[Fieldset]:
        if obj is None or not obj.from_code:
            return super().get_fieldsets(request, obj)
        return overlay_fieldsets(isinstance(obj, Tool))

    def get_form(
        self,
        request: HttpRequest,
        obj: Row | None = None,
        change: bool = False,
        **options: Any,
    ) -> type[ModelForm[Row]]:
        if obj is None or not obj.from_code:
            return super().get_form(request, obj, change, **options)
        fixed = self.get_readonly_fields(request, obj)
        columns = [name for name in obj.content_columns() if name not in fixed]
        form: type[ModelForm[Any]] = OverlayForm
        return modelform_factory(
            self.model,
            form=form,
            fields=columns,
            formfield_callback=partial(self.formfield_for_dbfield, request=request),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return [*fields, "code"] if obj is not None and obj.from_code else fields

    @admin.display(description=gettext_lazy("Declared"))
    def code(self, row: Row) -> SafeString:
        """Show what code declares under this name."""
        declared = declaration_of(row, mcp)
        if declared is None:
            broken = row.broken or _("It is no longer in the code.")
            return format_html("{}", visible(broken, None))
        function_html = render_to_string(
            "mcp_app/widgets/function.html", {**values_of_declaration(declared)}
        )
        text = '<div class="mcp-panel"><p><code>{}</code></p>{}</div>'
        return format_html(text, visible(row.identity, None), function_html)

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **options: Any,
    ) -> HttpResponse:
        response = super().render_change_form(request, context, *positional, **options)
        row = options.get("obj")
        if row is not None and row.from_code:
            # A copy would have no function. Set this last: Django overwrites `save_as`.
            context["save_as"] = False
        return response

    @redirect_missing_row
    def reset_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Reset one column (`?field=`) or all columns of an overlay to the code's."""
        row = self._find_row(request, object_id)
        may_change = self.has_change_permission(request, row)
        if request.method != "POST" or not row.from_code or not may_change:
            raise PermissionDenied
        column = request.GET.get("field", "")
        names = [
            name
            for name in row.content_columns()
            if column in {"", name} and name not in self.guarded_fields(request, row)
        ]
        with transaction.atomic():
            locked = self._lock_row(request, row)
            reset_columns(locked, names, mcp, author=request.user)
            self.log_change(request, locked, _("Everything is as in the code again."))
        message = _(
            "The working copy is as in the code. Publish it to let clients see it."
        )
        remaining = [name for name in row.content_columns() if name not in names]
        if not column and any(getattr(locked, name) for name in remaining):
            message = f"{message} {lacking_sentence('grant')}"
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(page_url(row, "change"))

    @redirect_missing_row
    def calls_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the calls of a definition, under the name that clients call."""
        row = self._find_row(request, object_id, whole=True)
        require_right(request.user, "view_call")
        name = row.published_content().get(row.IDENTITY) or row.identity
        kind = next(kind for kind, model in MODELS.items() if model is self.model)
        wanted = replace(read_filter(request), kind=kind, name=name)
        render_page, title = self._render_page, _("Calls")
        render = partial(render_page, request, row, "calls", title, template="calls")
        return calls_page(request, wanted, render)

    def page_views(self) -> PageViews:
        return {
            "<path:object_id>/reset/": ("reset", self.reset_view),
            "<path:object_id>/calls/": ("calls", self.calls_view),
            **super().page_views(),
        }

    # -- rights and saving --------------------------------------------------------

    def guarded_fields(self, request: HttpRequest, obj: Row | None) -> dict[str, str]:
        guarded = super().guarded_fields(request, obj)
        if not has_right(request, "behind"):
            # `behind`: what is behind a definition, such as the site that it calls.
            guarded |= dict.fromkeys(self._config_fields(request, obj), "behind")
        return guarded

    def _config_fields(self, request: HttpRequest, obj: Row | None) -> set[str]:
        """Return the fields that change the kind's config, if the kind is guarded."""
        kind = self.kind_of_form(request, obj)
        if not is_guarded(kind):
            return set()
        form = form_of(self.model, kind)
        behind = form.kind_fields(None)
        fields = form.base_fields.items()
        panels = {name for name, field in fields if isinstance(field, PanelField)}
        # The fields in `BESIDE` are other columns, and panels send nothing.
        return {"config", *behind.fields, *behind.more} - {*form.BESIDE, *panels}

    def has_delete_permission(
        self, request: HttpRequest, obj: Row | None = None
    ) -> bool:
        allowed = super().has_delete_permission(request, obj)
        if obj is None or not obj.from_code:
            return allowed
        # The code would restore a declared definition: delete only vanished ones.
        return allowed and declared_definition(obj, mcp) is None

    def save_model(
        self, request: HttpRequest, obj: Row, form: ModelForm[Row], change: bool
    ) -> None:
        obj.updated_by_id = request.user.pk
        super().save_model(request, obj, form, change)


@admin.register(Tool)
class ToolAdmin(OpenApiPages, DefinitionAdmin[Tool]):
    list_filter = [StateFilter, KindFilter, ChangesFilter, "source", ServerFilter]

    def offer_of_kind(
        self, request: HttpRequest, key: str, kind: Kind
    ) -> dict[str, Any]:
        offer = super().offer_of_kind(request, key, kind)
        labels = {
            "http": _("Many at once, from OpenAPI…"),
            "upstream": _("Choose from what it offers…"),
        }
        if key in labels and self.may_make_tools(request):
            url = reverse("admin:mcp_app_tool_openapi")
            offer["starts"].append((labels[key], url))
        return offer


@admin.register(Resource)
class ResourceAdmin(DefinitionAdmin[Resource]):
    search_fields = [*DefinitionAdmin.search_fields, "uri"]


@admin.register(ResourceTemplate)
class ResourceTemplateAdmin(DefinitionAdmin[ResourceTemplate]):
    search_fields = [*DefinitionAdmin.search_fields, "uri_template"]


@admin.register(Prompt)
class PromptAdmin(DefinitionAdmin[Prompt]):
    """Prompts."""


@admin.register(EventType)
class EventTypeAdmin(DefinitionAdmin[EventType]):
    """Event types."""
