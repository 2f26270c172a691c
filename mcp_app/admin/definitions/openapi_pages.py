"""Imports tools of other sites, from an OpenAPI document or an MCP server.

Later, staff can read the document again and take over the changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.core.paginator import Paginator
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.admin.page.concurrency import PageViews
from mcp_app.admin.page.header import render_page
from mcp_app.admin.page.keys import ROW_KEY
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.page.wording import CALL, EVERY, TOOL
from mcp_app.admin.publishing.difference_labels import labeled_differences
from mcp_app.admin.publishing.pages import PublishedAdmin, author_of
from mcp_app.catalog.registry import mcp
from mcp_app.conf import mcp_settings
from mcp_app.egress.sites import Site, upstream_sites, usable_sites
from mcp_app.interface.definitions import ToolHints
from mcp_app.kinds.http.config import MAX_PAIRS
from mcp_app.kinds.openapi.reading import DocumentError, Offer
from mcp_app.models import OpenApiDocument, Tool
from mcp_app.models.fields import digest, parse_json
from mcp_app.publishing import openapi
from mcp_app.publishing.differences import client_view, differences, hint_words
from mcp_app.publishing.openapi import (
    ComparedOperation,
    Standing,
    column_value,
    make_tools,
)
from mcp_app.publishing.rights import require_right
from mcp_app.publishing.upstream import look_at_server

if TYPE_CHECKING:
    from mcp_app.admin.definitions.actions import ListActions

PAGE: Final = 100
MAX_TAGS: Final = 200
WORDS: Final = {**EVERY, **TOOL, **CALL}
FILTERS: Final = ("q", "tag", "reads")


class OpenApiPages(PublishedAdmin[Tool]):
    """The pages that import operations."""

    change_list_template = "admin/mcp_app/openapi/tools.html"

    def page_views(self) -> PageViews:
        return {
            "openapi/": ("openapi", self.documents_view),
            "openapi/<int:pk>/": ("openapi_operations", self.operations_view),
            "openapi/<int:pk>/again/": ("openapi_again", self.again_view),
            **super().page_views(),
        }

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        has_sites = bool(usable_sites() or upstream_sites())
        may_read = self.may_make_tools(request) and has_sites
        extra = {**(extra_context or {}), "may_read_documents": may_read}
        response = super().changelist_view(request, extra)
        assert isinstance(response, HttpResponse)  # noqa: S101 - Django's stub says less
        return response

    def may_make_tools(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and has_right(request, "behind")

    def _demand_both(self, request: HttpRequest) -> None:
        """Raise 403 if the user may not add tools, or not say what they call."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        require_right(request.user, "behind")

    # -- the document -----------------------------------------------------------------

    def documents_view(self, request: HttpRequest) -> HttpResponse:
        """Show the imported documents; on POST, read another one."""
        self._demand_both(request)
        context: dict[str, Any] = {}
        if request.method == "POST":
            try:
                return self._read_document(request)
            except DocumentError as error:
                context = {"problem": str(error), "typed": request.POST}
        rows = OpenApiDocument.objects.defer("offers")
        server_lists = {row.site: row for row in rows if row.site in upstream_sites()}
        context |= {
            "documents": [row for row in rows if row.site not in server_lists],
            "servers": [
                (site, server_lists.get(key)) for key, site in upstream_sites().items()
            ],
            "sites": usable_sites().values(),
        }
        title = _("From another server")
        return self._openapi_page(request, "documents", title, context)

    def _read_document(self, request: HttpRequest) -> HttpResponse:
        key = request.POST.get("site", "")
        if (server := upstream_sites().get(key)) is not None:
            row = self._look_at_server(request, server)
            return HttpResponseRedirect(_openapi_url("operations", row))
        site = openapi.configured_site(key)
        content, location = _fetch_document(request, site.key)
        row = openapi.store(content, site, location=location, author=author_of(request))
        message = ngettext(
            "The document offers %d operation. Nothing is made yet.",
            "The document offers %d operations. Nothing is made yet.",
            row.operations,
        )
        self.message_user(request, message % row.operations, messages.SUCCESS)
        return HttpResponseRedirect(_openapi_url("operations", row))

    def _look_at_server(self, request: HttpRequest, site: Site) -> OpenApiDocument:
        row, is_complete = look_at_server(site, author_of(request))
        message = ngettext(
            "%(site)s lists %(number)d tool.",
            "%(site)s lists %(number)d tools.",
            row.operations,
        )
        words = {"site": site.title, "number": row.operations}
        self.message_user(request, message % words, messages.SUCCESS)
        if not is_complete:
            warning = _("It has more, which were not read.")
            self.message_user(request, warning, messages.WARNING)
        return row

    # -- its operations ---------------------------------------------------------------

    def operations_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show the operations, 100 a page; make tools of the chosen ones."""
        self._demand_both(request)
        row = get_object_or_404(OpenApiDocument, pk=pk)
        if request.POST.get("action"):
            return self._publish_tools(request, [])
        if request.method == "POST":
            return self._make_chosen_tools(request, row)
        contents = list(openapi.offers_in(row).values())
        offers = _matching_offers(contents, request)
        page = Paginator(offers, PAGE).get_page(request.GET.get("page"))
        digests = [digest(each.key) for each in page.object_list]
        imported = row.imported.select_related("tool").filter(key_digest__in=digests)
        tools = {each.key: each.tool for each in imported}
        context = {
            "document": row,
            "site": {**usable_sites(), **upstream_sites()}.get(row.site),
            "page": page,
            "shown": [_offer_row(each, tools) for each in page.object_list],
            "found": len(offers),
            "tags": sorted({tag for each in contents for tag in each.tags})[:MAX_TAGS],
            "chosen": {name: request.GET.get(name, "") for name in ("q", "tag")},
            "only_reads": "reads" in request.GET,
            "may_publish": has_right(request, "publish"),
            # For links to the other pages.
            "query": urlencode(
                {each: request.GET[each] for each in FILTERS if each in request.GET}
            ),
        }
        title = _("%s: tools to take over") % row
        return self._openapi_page(request, "operations", title, context)

    def _make_chosen_tools(
        self, request: HttpRequest, row: OpenApiDocument
    ) -> HttpResponse:
        back = HttpResponseRedirect(request.get_full_path())
        keys = request.POST.getlist("key")
        if not keys:
            self.message_user(request, _("Choose something first."), messages.ERROR)
            return back
        try:
            with transaction.atomic():
                ticked = {each: request.POST.getlist(f"of {each}") for each in keys}
                chosen = {key: names for key, names in ticked.items() if names}
                tools = make_tools(row, keys, mcp, author_of(request), chosen)
                for tool in tools:
                    self.log_addition(request, tool, _("Made from %s.") % row)
        except DocumentError as error:
            self.message_user(request, str(error), messages.ERROR)
            return back
        message = ngettext(
            "%d tool was made. Clients do not see it yet.",
            "%d tools were made. Clients do not see them yet.",
            len(tools),
        )
        self.message_user(request, message % len(tools), messages.SUCCESS)
        return (
            self._publish_tools(request, tools) if "publish" in request.POST else back
        )

    def _publish_tools(
        self, request: HttpRequest, tools: Sequence[Tool]
    ) -> HttpResponse:
        """Show the changes of publishing the tools; publish them if confirmed."""
        require_right(request.user, "publish")
        keys = [tool.pk for tool in tools]
        for text in request.POST.getlist(ACTION_CHECKBOX_NAME):
            keys += [int(text)] if ROW_KEY.fullmatch(text) else []
        # Only `ToolAdmin` extends this class, and it has the actions of lists.
        admin = cast("ListActions[Tool]", self)
        page = admin.publish_chosen(request, Tool.rows().filter(pk__in=keys))
        self._hold_response()
        return page or HttpResponseRedirect(reverse("admin:mcp_app_tool_changelist"))

    # -- later ------------------------------------------------------------------------

    def again_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Read the document again, show differences, and take over the chosen ones."""
        self._demand_both(request)
        row = get_object_or_404(OpenApiDocument, pk=pk)
        problem = ""
        if request.method == "POST":
            try:
                return self._look_or_take(request, row)
            except DocumentError as error:
                problem = str(error)
        compared = openapi.compare_operations(row)
        # Count again: tools may have been deleted since the last page.
        openapi.count_differing(row, compared)
        context = {
            "document": row,
            "unread_since": OpenApiDocument.objects.filter(pk=pk)
            .values_list("unread_since", flat=True)
            .first(),
            "problem": problem,
            "changed": [*map(_describe_operation, _with_standing(compared, "changed"))],
            "gone": _with_standing(compared, "gone"),
            "same": len(_with_standing(compared, "same")),
        }
        is_server = row.site in upstream_sites()
        title = (_("Look again: %s") if is_server else _("Read it again: %s")) % row
        return self._openapi_page(request, "again", title, context)

    def _look_or_take(self, request: HttpRequest, row: OpenApiDocument) -> HttpResponse:
        if "take" in request.POST:
            if not self.has_change_permission(request):
                raise PermissionDenied
            texts = request.POST.getlist("key")
            keys = [int(text) for text in texts if ROW_KEY.fullmatch(text)]
            self._take_over_tools(request, row, keys)
        elif (server := upstream_sites().get(row.site)) is not None:
            self._look_at_server(request, server)
        else:
            site = openapi.configured_site(row.site)
            content, location = _fetch_document(request, site.key, row.location)
            author = author_of(request)
            openapi.store(content, site, location=location, author=author, row=row)
            self.message_user(request, _("The document was read again."))
        return HttpResponseRedirect(_openapi_url("again", row))

    def _take_over_tools(
        self, request: HttpRequest, row: OpenApiDocument, keys: Sequence[int]
    ) -> None:
        with transaction.atomic():
            changed, kept = openapi.take_over(row, keys, mcp, author_of(request))
            for each in changed:
                self.log_change(request, each, _("Taken over from %s.") % row)
        message = ngettext(
            "%d working copy was changed. Publish it to let clients see it.",
            "%d working copies were changed. Publish them to let clients see them.",
            len(changed),
        )
        self.message_user(request, message % len(changed), messages.SUCCESS)
        if kept:
            warning = _("Kept, because they were changed here: %s.") % ", ".join(kept)
            self.message_user(request, warning, messages.WARNING)

    def _openapi_page(
        self, request: HttpRequest, name: str, title: str, context: dict[str, Any]
    ) -> HttpResponse:
        context["has_change_permission"] = self.has_change_permission(request)
        document = context.get("document")
        context["is_server"] = document and document.site in upstream_sites()
        return render_page(self, request, f"openapi/{name}", title, context)


def _fetch_document(
    request: HttpRequest, site: str, location: str = ""
) -> tuple[bytes, str]:
    """Return the bytes of the document and its path at the site, "" for a file."""
    file: UploadedFile[Any] | None = request.FILES.get("file")
    if file is not None:
        max_bytes = mcp_settings.limits.document
        if (file.size or 0) > max_bytes:
            message = _("The file has %(size)s bytes; at most %(most)s are allowed.")
            raise DocumentError(message % {"size": file.size, "most": max_bytes})
        return file.read(), ""
    site_path = request.POST.get("path", location).strip()
    at = openapi.configured_site(site)
    if not site_path:
        return openapi.find_document(at, author_of(request))
    return openapi.fetch_document(at, site_path, author_of(request)), site_path


def _openapi_url(name: str, row: OpenApiDocument) -> str:
    return reverse(f"admin:mcp_app_tool_openapi_{name}", args=[row.pk])


def _matching_offers(offers: Any, request: HttpRequest) -> list[Offer]:
    """Return the offers that match the filters of the page."""
    words = request.GET.get("q", "").lower().split()
    tag = request.GET.get("tag", "")
    only_reads = "reads" in request.GET
    return [
        each
        for each in offers
        if (not tag or tag in each.tags)
        and (not only_reads or each.only_reads)
        and all(
            word in f"{each.key} {each.name} {each.summary} {each.description}".lower()
            for word in words
        )
    ]


def _offer_row(offer: Offer, tools: dict[str, Tool]) -> dict[str, Any]:
    """Return an operation for the page; `tool` is the tool made from it, if any."""
    tool = tools.get(offer.key)
    size = len(str(offer.input_schema)) + len(offer.description or offer.summary)
    can_be_made = tool is None and not offer.bar
    return {
        "offer": offer,
        "tool": tool,
        # About 4 characters are a token.
        "tokens": size // 4,
        "changes": hint_words(ToolHints(**offer.hints)),
        "can_be_made": can_be_made,
        "choices": offer.choices if len(offer.pair_names) > MAX_PAIRS else (),
    }


def _with_standing(
    compared: Sequence[ComparedOperation], standing: str
) -> list[ComparedOperation]:
    return [each for each in compared if each.standing == Standing(standing)]


def _describe_operation(compared: ComparedOperation) -> dict[str, Any]:
    """Return a changed operation, with its differences in the words of the form.

    `own` has the label and the text of each column that staff have changed, too.
    """
    before = {e.column: _column_value(e.column, e.before) for e in compared.differences}
    now = {e.column: _column_value(e.column, e.now) for e in compared.differences}
    tool = compared.operation.tool
    conflicts = [
        (_label_of(difference.column), difference.yours)
        for difference in compared.differences
        if difference.is_own
    ]
    views = (client_view(tool, each, mcp) for each in (before, now))
    changes = labeled_differences(tool, differences(*views))
    return {"compared": compared, "differences": changes, "own": conflicts}


def _label_of(column: str) -> str:
    """Return the label of a column; the form has one field for all hints: `changes`."""
    return str(WORDS["changes" if column in Tool.HINTS else column][0])


def _column_value(column: str, text: str) -> object:
    """Return the value of a column from its text, parsed if it is a JSON object."""
    try:
        return parse_json(text) if text[:1] == "{" else column_value(column, text)
    except ValueError:
        return text
