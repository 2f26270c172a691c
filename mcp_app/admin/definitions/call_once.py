"""The page *Call it once*: what another site answers to the saved working copy.

Only calls that read can be tried.  It needs the right to change what stands behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from asgiref.sync import async_to_sync
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.publishing.pages import PublishedAdmin
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.egress.client import Connections
from mcp_app.egress.requests import SiteAnswer
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.rights import AccessRequest
from mcp_app.interface.rules import visible
from mcp_app.kinds import KindError, complete, kinds_of
from mcp_app.kinds.http.description import sentence
from mcp_app.kinds.http.kind import SiteCaller, call_of, defaults_of, names_of
from mcp_app.models import DefinitionRow
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Text, block_to_wire
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.revisions import LATEST
from mcp_app.server.coercion import read_strings

Row = TypeVar("Row", bound=DefinitionRow)

SHOWN: Final = 2_000
"""Characters of an answer that the page shows."""
PREFIX: Final = "value-"


class CallOncePages(PublishedAdmin[Row]):
    """The page that calls another site once."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.call_once_view)
        name = f"mcp_app_{self.opts.model_name}_call_once"
        return [path("<path:object_id>/call/", view, name=name), *super().get_urls()]

    @redirect_missing_row
    def call_once_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for values; on POST, call the site with them."""
        row = self._row(request, object_id)
        self._demand(request, "behind")
        if row.kind != "http":
            raise Http404
        title = _("Call it once")
        context = _context(request, row)
        return self._page(request, row, "change", title, context, "call_once")


def _context(request: HttpRequest, row: DefinitionRow) -> dict[str, Any]:
    try:
        stored = complete(stored_definition(row), kinds_of(mcp))
        call = call_of(stored.definition, stored.config)
    except (KindError, ValueError) as error:
        return {"problem": str(error)}
    if not call.only_reads:
        return {"problem": _("This call changes things, so it cannot be tried here.")}
    caller = SiteCaller(stored.definition.name, call)
    names, _noun = names_of(stored.definition)
    typed = {name: request.POST.get(f"{PREFIX}{name}", "") for name in names}
    context: dict[str, Any] = {
        "sentence": sentence(call, stored.definition),
        "fields": [(name, f"{PREFIX}{name}", value) for name, value in typed.items()],
    }
    if request.method == "POST":
        context["trial"] = trial(caller, stored.definition, typed, request.user)
    return context


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of a call: what the site sent, and what clients would get."""

    result: str
    is_error: bool = False
    status: int | None = None
    took_ms: int = 0
    body: str = ""


def trial(
    caller: SiteCaller, definition: Definition, typed: Mapping[str, str], user: Any
) -> Trial:
    """Call the site once as this user; blocks."""
    return async_to_sync(_trial)(
        caller, _values(definition, typed), AccessRequest.of_user(user)
    )


def _values(definition: Definition, typed: Mapping[str, str]) -> Mapping[str, object]:
    """Return what a client would send; an empty field is left out."""
    given: dict[str, Any] = {name: each for name, each in typed.items() if each}
    if isinstance(definition, ToolDefinition):
        read = read_strings(definition.input_schema, given)
        return {**defaults_of(definition), **read}
    return given


async def _trial(
    caller: SiteCaller, values: Mapping[str, object], asked: AccessRequest
) -> Trial:
    own = Connections()
    answer: SiteAnswer | None = None
    try:
        answer = await caller.answer(values, asked, repeatable=True, through=own)
        output = caller.output(await caller.content(answer, values))
        result, is_error = _shown(output), False
    except ExternalError as error:
        more = "" if error.detail in error.message else f"\n({error.detail})"
        result, is_error = error.message + more, True
    except ProtocolError as error:
        result, is_error = error.message, True
    finally:
        await own.close()
    if answer is None:
        return Trial(result, is_error)
    body = answer.secrets.blot(answer.body[: 4 * SHOWN].decode("utf-8", "replace"))
    return Trial(
        result=result,
        is_error=is_error,
        status=answer.status,
        took_ms=round(answer.took * 1_000),
        body=visible(body[:SHOWN], None),
    )


def _shown(output: Any) -> str:
    """Return a result as text: what is structured as JSON."""
    if output.structured is not None:
        return jsonrpc.pretty(output.structured)[:SHOWN]
    texts = [
        each.text
        if isinstance(each, Text)
        else jsonrpc.pretty(block_to_wire(each, LATEST))
        for each in output.content
    ]
    return "\n".join(texts)[:SHOWN]
