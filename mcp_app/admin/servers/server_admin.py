"""The admin page of servers."""

from __future__ import annotations

from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.widgets import ManyToManyRawIdWidget
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.db.models import Count, QuerySet, Value
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from mcp_app.admin.definitions.actions import ACTIONS, ListActions
from mcp_app.admin.definitions.definition_admin import GuardedAdmin
from mcp_app.admin.definitions.lists import StateFilter, state
from mcp_app.admin.forms import ServerForm
from mcp_app.admin.forms.fieldsets import OPENED
from mcp_app.admin.home.groups import GroupPages
from mcp_app.admin.operations.stops import StopPages
from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import PAGE_MEDIA, page_url
from mcp_app.admin.page.rights import has_right, whom_to_ask
from mcp_app.admin.publishing.bundles import ImportPages
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.admin.publishing.who_can_see import WhoPages
from mcp_app.admin.servers.connect import ConnectPages
from mcp_app.admin.trying.tabs import ListsPages
from mcp_app.catalog.row_loader import DEFINITION_ROWS
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import DefinitionRow, Server
from mcp_app.models.fields import DEMANDS

MAX_CHECKBOXES = 1_000
"""The greatest number of rows that a form lists as checkboxes."""
TEXTS = ("title", "slug", "description", "instructions", "version", "website_url")
OFFERED = ("selection", "tags", *Server.CHOICES, "listing", "listed_tags")

Row = TypeVar("Row", bound=Server)
AnyRow = TypeVar("AnyRow", bound=models.Model)


class FindPages(SettledAdmin[AnyRow]):
    """The page *Find*: it shows only rows that the user may view in the admin."""

    def page_views(self) -> PageViews:
        return {"find/": ("find", self.find_view), **super().page_views()}

    def find_view(self, request: HttpRequest) -> HttpResponse:
        """Show the hits for the query string."""
        if not request.user.has_module_perms("mcp_app"):
            raise PermissionDenied
        # Import here: processes that serve clients load the admin, but never search.
        from mcp_app.admin.home import find  # noqa: PLC0415

        return find.find_response(request, self)


class CheckPages(PublishedAdmin[Row]):
    """The page that checks a server from outside and from inside."""

    def page_views(self) -> PageViews:
        page = {"<path:object_id>/check/": ("check", self.check_view)}
        return {**page, **super().page_views()}

    @csrf_exempt
    @redirect_missing_row
    def check_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the page; judge its script's answers; on the button, check here.

        Judging answers needs no CSRF token. It changes nothing, and if a proxy loses
        the Host, Django would refuse every form, so that nobody could see the finding.
        """
        # Import the workbench only when it is used.
        from mcp_app.admin.servers import check_page  # noqa: PLC0415

        row = self._find_row(request, object_id)
        if request.method == "POST" and request.content_type == "application/json":
            return check_page.judged_fragment(request, row)
        return self._check_page(request, row)

    @method_decorator(csrf_protect)
    def _check_page(self, request: HttpRequest, row: Row) -> HttpResponse:
        from mcp_app.admin.servers import check_page  # noqa: PLC0415

        context: dict[str, Any] = {
            **check_page.probe_context(request, row),
            "media": PAGE_MEDIA,
            "why_not_here": whom_to_ask(request, "stop"),
        }
        if request.method == "POST":
            if not has_right(request, "stop"):
                raise PermissionDenied
            context["here"] = check_page.here_lines(row)
            context["directory"] = check_page.directory_lines(request, row)
        title = _("Check")
        response = self._render_page(request, row, "check", title, context, "check")
        response.headers["Cache-Control"] = "no-store"
        return response


@admin.register(Server)
class ServerAdmin(
    ListActions[Server],
    ImportPages[Server],
    StopPages[Server],
    FindPages[Server],
    GroupPages[Server],
    ListsPages[Server],
    WhoPages[Server],
    CheckPages[Server],
    ConnectPages[Server],
    GuardedAdmin[Server],
):
    form = ServerForm
    list_display = ["address", "title", state, "who_may_come_in", "offers"]
    list_filter = [StateFilter]
    list_select_related = ["published"]
    search_fields = ["slug", "title", "description", "tags"]
    actions = [*ACTIONS, "copy_chosen"]
    fieldsets = [
        (gettext_lazy("What clients see"), {"fields": TEXTS}),
        (
            gettext_lazy("What it offers"),
            {
                "fields": OFFERED,
                "description": gettext_lazy("Published with the texts above."),
            },
        ),
        (
            gettext_lazy("Who may come in, and limits"),
            {
                "fields": ("access", *DEMANDS, "listed", "page_size", *OPENED),
                "description": gettext_lazy("Applies as soon as you save."),
            },
        ),
        (gettext_lazy("More"), {"classes": ["collapse"], "fields": ["icons"]}),
    ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Server]:
        return super().get_queryset(request).defer("published__content")

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **options: Any
    ) -> Any:
        """Offer all rows as checkboxes, or a field for keys if there are too many."""
        # Checkboxes work without scripts; a search field does not.
        widget: Any = CheckboxSelectMultiple({"class": "mcp-boxes"})
        if self._row_counts(request)[db_field.remote_field.model] > MAX_CHECKBOXES:
            widget = ManyToManyRawIdWidget(db_field.remote_field, self.admin_site)
        options["widget"] = widget
        return super().formfield_for_manytomany(db_field, request, **options)

    def _row_counts(self, request: HttpRequest) -> dict[type[DefinitionRow], int]:
        """Return the number of rows of each model, queried once per request."""
        counts: dict[type[DefinitionRow], int] | None
        counts = getattr(request, "mcp_counts", None)
        if counts is None:
            models = list(DEFINITION_ROWS)
            # One query: in the union, `index` says which model a row counts.
            first, *others = (
                model._default_manager.order_by()
                .annotate(index=Value(index))
                .values("index")
                .annotate(count=Count("pk"))
                .values_list("index", "count")
                for index, model in enumerate(models)
            )
            counted = dict(first.union(*others).order_by())
            counts = {model: counted.get(n, 0) for n, model in enumerate(models)}
            vars(request)["mcp_counts"] = counts
        return counts

    @admin.display(description=gettext_lazy("address"), ordering="slug")
    def address(self, server: Server) -> str:
        return "/mcp" if server.slug == DEFAULT_SLUG else f"/mcp/{server.slug}"

    @admin.display(description=gettext_lazy("who may come in"), ordering="access")
    def who_may_come_in(self, server: Server) -> str:
        return server.access or str(_("nobody"))

    @admin.display(description=gettext_lazy("what it offers"))
    def offers(self, server: Server) -> str:
        if server.selection == Server.Selection.TAGS:
            return server.tags
        return str(server.get_selection_display())

    @admin.action(description=gettext_lazy("Copy this server"), permissions=["add"])
    def copy_chosen(
        self, request: HttpRequest, queryset: QuerySet[Server]
    ) -> HttpResponse | None:
        """Copy the chosen server to a new address, unpublished."""
        servers = list(self._plain_queryset(queryset)[:2])
        if len(servers) != 1:
            message = _("Choose one server to copy.")
            self.message_user(request, message, messages.ERROR)
            return None
        message = _("Copied from %(server)s.") % {"server": servers[0]}
        with transaction.atomic():
            copy = copy_server(servers[0])
            self.log_addition(request, copy, message)
        message = _("This copy is not published. Check it, then publish it.")
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(page_url(copy, "change"))


def copy_server(server: Server) -> Server:
    """Save a copy of a server's working copy at a new address."""
    chosen: dict[str, list[Any]] = {
        name: list(getattr(server, name).all()) for name in Server.CHOICES
    }
    used_slugs = set(Server.objects.values_list("slug", flat=True))
    # One number more than there are servers, so that one is free.
    numbers = ["", *range(1, len(used_slugs) + 1)]
    # 56 characters leave space for the ending in the column, which takes 64.
    slugs = (f"{server.slug[:56]}-copy{number}" for number in numbers)
    copy = Server(
        slug=next(slug for slug in slugs if slug not in used_slugs),
        access=server.access,
        **{name: getattr(server, name) for name in DEMANDS},
        page_size=server.page_size,
    )
    copy.put_content(server.working_content())
    copy.save()
    for name, rows in chosen.items():
        getattr(copy, name).set(rows)
    return copy
