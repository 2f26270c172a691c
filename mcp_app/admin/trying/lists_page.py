"""What the page *What clients see* shows: the lists of a server for one person."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, Final, TypeVar

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
)
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.debug import sensitive_post_parameters

from mcp_app.admin.page.concurrency import has_right, lacking_sentence
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.publishing.pages import PublishedAdmin, author_of
from mcp_app.admin.trying.presentation import REFUSED
from mcp_app.admin.trying.setup import console_principal
from mcp_app.auth.permissions import find_user, no_such_user
from mcp_app.interface.definitions import Label
from mcp_app.interface.principal import Principal
from mcp_app.interface.rules import text_problem, visible
from mcp_app.interface.server import PUBLIC, Key
from mcp_app.models import DefinitionRow, Server
from mcp_app.protocol.revisions import LATEST
from mcp_app.transports.in_process import Caller
from mcp_app.workbench.trying.listings import Item, ServerLists, read_lists
from mcp_app.workbench.viewer import run_on_loop

Row = TypeVar("Row", bound=Server)

ME: Final = "me"
NOBODY: Final = "nobody"
USER: Final = "user"
HEADINGS: Final[Mapping[str, Label]] = {
    "tools": gettext_lazy("Tools"),
    "prompts": gettext_lazy("Prompts"),
    "resources": gettext_lazy("Resources"),
    "templates": gettext_lazy("Resource templates"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """An item with its page; `url` is "" if it has none."""

    name: str
    title: str
    tokens: int
    url: str


@dataclass(frozen=True, slots=True)
class Section:
    """A list of the page."""

    heading: Label
    lines: Sequence[Line]
    tokens: int


def lists_context(request: HttpRequest, row: Server) -> dict[str, Any]:
    """Return the context of the page; raises 403 without the right to ask for others.

    What is asked is answered by the process that serves, and not by the rows.
    """
    who = request.GET.get("who", ME)
    name = request.GET.get("user", "").strip()
    may_ask = has_right(request, "try_as")
    values: dict[str, Any] = {"who": who, "user_name": name, "may_ask": may_ask}
    if who == USER and not may_ask:
        raise PermissionDenied(lacking_sentence("try_as"))
    is_public = row.access_names == (PUBLIC,)
    principal = _principal(request, NOBODY if is_public else who, name)
    if principal is None:
        return {**values, "missing": no_such_user(name)}
    server_lists = run_on_loop(
        request, partial(read_lists, row.slug, _lists_caller(request, principal))
    )
    return {**values, **_listing_context(server_lists), "is_public": is_public}


def _principal(request: HttpRequest, who: str, name: str) -> Principal | None:
    """Return who asks; None if there is no such user."""
    if who == NOBODY:
        return console_principal(request, None)
    user: Any = author_of(request)
    if who == USER:
        user = find_user(name) if name and not text_problem(name) else None
    return None if user is None else console_principal(request, user)


def _lists_caller(request: HttpRequest, principal: Principal) -> Caller:
    return Caller(
        principal=principal,
        person=f"u{author_of(request).pk}",
        revision=LATEST,
        name="What clients see",
        capabilities={},
    )


def _listing_context(server_lists: ServerLists) -> dict[str, Any]:
    return {
        "refused": REFUSED.get(server_lists.refused, "")
        if server_lists.refused
        else "",
        "reason": visible(server_lists.reason, None),
        "tokens": server_lists.token_count,
        "sections": [*_list_sections(server_lists)],
    }


def _list_sections(server_lists: ServerLists) -> Iterator[Section]:
    for name, items in server_lists.items.items():
        lines = [_item_line(each) for each in items]
        yield Section(HEADINGS[name], lines, sum(each.tokens for each in lines))


def _item_line(item: Item) -> Line:
    url = "" if item.key is None else _try_page_url(item.key)
    return Line(visible(item.identity), visible(item.title), item.tokens, url)


def _try_page_url(key: Key) -> str:
    kind, pk = key
    return reverse(f"admin:mcp_app_{kind}_try", args=[pk])


# -- tabs ------------------------------------------------------------------------------
# The tabs *Try it* of definitions, and *What clients see* of servers.
#
# Processes that serve clients load the admin, too: what runs a trial is imported by the
# first page that needs it.


Definition = TypeVar("Definition", bound=DefinitionRow)
Listing = TypeVar("Listing", bound=Server)
View = TypeVar("View", bound=Callable[..., Any])


def outside_transactions(view: View) -> View:
    """Exempt a view from `ATOMIC_REQUESTS` of every database.

    What it writes first must be there whatever becomes of the call, and its locks must
    not hold up the call.
    """
    for alias in connections:
        view = transaction.non_atomic_requests(using=alias)(view)
    return view


class NoVariables(SafeExceptionReporterFilter):
    """Hides on error pages what staff and models have said, with DEBUG, too."""

    def is_active(self, request: HttpRequest | None) -> bool:
        return True

    def get_traceback_frame_variables(
        self, request: HttpRequest | None, tb_frame: FrameType
    ) -> ItemsView[str, Any]:
        """Show no variable: each function of the page has some of it."""
        return dict[str, Any]().items()


class TryPages(PublishedAdmin[Definition]):
    """The page that tries a definition."""

    def get_urls(self) -> list[URLPattern]:
        view = outside_transactions(self.admin_site.admin_view(self.try_view))
        name = f"mcp_app_{self.opts.model_name}_try"
        return [path("<path:object_id>/try/", view, name=name), *super().get_urls()]

    @csrf_exempt
    @method_decorator(sensitive_post_parameters())
    @redirect_missing_row
    def try_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show the form; on POST, try it and show what a client gets.

        The request has no transaction of its own: its locks would hold up the call.
        The token of the form is looked for in here, where a form that is too large to
        have one can be answered.
        """
        request.exception_reporter_filter = NoVariables()
        try:
            return self._try_definition(request, object_id)
        except (RequestDataTooBig, TooManyFieldsSent) as error:
            return self._too_large(request, object_id, error)

    def _too_large(
        self, request: HttpRequest, object_id: str, error: SuspiciousOperation
    ) -> HttpResponse:
        """Show an empty form with a sentence; nothing can be read of what was sent."""
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        self._require_right(request, "try")
        page = pages.TryPage(request, row, None)
        page.refuse_run(pages.too_large(error))
        response = self._render_try_page(request, row, page.page_context())
        response.status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return response

    @method_decorator(csrf_protect)
    def _try_definition(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        from mcp_app.admin.trying import pages  # noqa: PLC0415

        row = self._find_row(request, object_id, whole=True)
        data = request.POST if request.method == "POST" else None
        page = pages.TryPage(request, row, data)
        if data is not None:
            self._require_right(request, "try")
            lines = page.run(partial(self.log_change, request, row))
            if lines is not None:
                return lines
        return self._render_try_page(request, row, page.page_context())

    def _render_try_page(
        self, request: HttpRequest, row: Definition, context: dict[str, Any]
    ) -> HttpResponse:
        response = self._render_page(request, row, "try", _("Try it"), context, "try")
        response["Cache-Control"] = "no-store"
        return response


class ListsPages(PublishedAdmin[Listing]):
    """The page with the lists of a server."""

    def get_urls(self) -> list[URLPattern]:
        view = outside_transactions(self.admin_site.admin_view(self.lists_view))
        name = f"mcp_app_{self.opts.model_name}_seen"
        return [path("<path:object_id>/seen/", view, name=name), *super().get_urls()]

    @redirect_missing_row
    def lists_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what a person sees: `?who=` and `?user=` say which."""

        row = self._find_row(request, object_id)
        values = lists_context(request, row)
        return self._render_page(
            request, row, "seen", _("What clients see"), values, "seen"
        )
