"""Tools from an OpenAPI document of this site: django-ninja's, or any other.

The document is read like those of other sites (`mcp_app.kinds.openapi`).  Calls go to
the site's own views by `mcp_app.toolsets.site_views`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from django.contrib.admindocs.views import (
    extract_views_from_urlpatterns,
    simplify_regex,
)
from django.core.serializers.json import DjangoJSONEncoder
from django.urls import get_resolver, get_script_prefix
from django.utils.text import capfirst

from mcp_app.catalog.findings import record_problem
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.registered_function import Declaration, DeclaredTool, ReadyFunction
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.runnable import Runnable
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.conf import mcp_settings
from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import Site
from mcp_app.interface.context import SyncContext
from mcp_app.interface.definitions import ToolDefinition, ToolHints
from mcp_app.interface.errors import RegistrationError, ToolError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.rules import NO_REQUIREMENTS, AccessRequirements
from mcp_app.kinds.http.config import HttpCall, read_http_config
from mcp_app.kinds.http.request import JSON, request_for
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import Offer, read_document
from mcp_app.kinds.placeholders import names_in_value
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.answers import answer_output, check_answer
from mcp_app.toolsets.site_views import OWN_RIGHTS, SiteCall, has_own_rights, site_views

HERE: Final = Site(
    key="here", title="This site", scheme="http", host="", port=80, prefix=""
)
"""This site as a target of calls, which go to its own views; it is in no setting."""

_HINTS: Final[Mapping[str, ToolHints]] = {
    "GET": ToolHints(read_only=True),
    "POST": ToolHints(read_only=False),
    "PUT": ToolHints(read_only=False, destructive=True, idempotent=True),
    "PATCH": ToolHints(read_only=False, destructive=True, idempotent=True),
    "DELETE": ToolHints(read_only=False, destructive=True),
}


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Yield a tool for each operation of a document."""
    source = toolset.subject() if callable(toolset.subject) else toolset.subject
    document = plain_document(source)
    # The path of the document's server is the prefix of all its paths.
    servers = document.get("servers") or [{}]
    path = urlsplit(servers[0].get("url", "")).path
    maker = ToolMaker(toolset, registry, replace(HERE, prefix=path.rstrip("/")))
    views: Any = extract_views_from_urlpatterns(get_resolver().url_patterns)
    # If two views have one path, the first answers: it must come last in the dict.
    views = {_blank_path(simplify_regex(path)): view for view, path, *_ in views[::-1]}
    offers = {each.name: each for each in offers_of(document, maker.site)}
    prefix = f"{toolset.options['name']}_" if "name" in toolset.options else ""
    for name in toolset.wanted_tools([*offers]):
        offer = offers[name]
        path = maker.site.prefix + offer.path.partition("?")[0]
        view = views.get(_blank_path(path))
        bar = offer.bar
        if view is None:
            bar = bar or "no URL of this site leads there"
        elif view.__module__.startswith("mcp_app."):
            bar = "it is a page of mcp_app"
        yield from maker.tools_of(replace(offer, name=prefix + name, bar=bar), view)


def plain_document(document: object) -> JsonObject:
    """Return a document as plain JSON values; raise `RegistrationError`."""
    try:
        content = json.dumps(document, cls=DjangoJSONEncoder).encode()
        return read_document(content, mcp_settings.limits.document)
    except (TypeError, ValueError) as error:
        raise RegistrationError(str(error)) from None


@dataclass(frozen=True)
class ToolMaker:
    """Makes tools from the offers of a document."""

    toolset: Toolset
    registry: Registry
    site: Site = HERE

    def remark_on(self, offer: Offer, *remarks: str) -> None:
        """Record remarks about an operation for its developer."""
        for each in remarks:
            sentence = f"{self.toolset.call}: {offer.key}: {each}."
            place = self.toolset.origin.place
            record_problem(self.registry.toolset_remarks, place, sentence)

    def tools_of(
        self,
        offer: Offer,
        view: object,
        accept: str = JSON,
        demands: AccessRequirements = NO_REQUIREMENTS,
        hints: ToolHints | None = None,
    ) -> Iterator[DeclaredTool]:
        """Yield the tool of an operation, unless something bars it.

        Without `hints`, the hints follow from the method.
        """
        offer = offer.with_parameters(self.toolset.options.get("parameters"))
        self.remark_on(offer, *offer.remarks)
        self.registry.rule(OWN_RIGHTS)(has_own_rights)
        demands = AccessRequirements(rules=(OWN_RIGHTS,)).combined_with(demands)
        if offer.bar:
            self.remark_on(offer, f"is no tool: {offer.bar}")
            return
        names = offer.input_schema["properties"]
        asked, problems = read_http_config(offer.config, names, "parameter", self.site)
        if asked is None:
            raise problems[0]
        definition = ToolDefinition(
            name=offer.name,
            # Without a description, the summary serves as one, and not as a title.
            title=(offer.description and offer.summary)
            or capfirst(offer.name.replace("_", " ")),
            description=offer.description or offer.summary,
            # Without this, unknown arguments would be dropped without an error.
            input_schema={**offer.input_schema, "additionalProperties": False},
            hints=replace(hints or _HINTS[offer.method], open_world=False),
            demands=self.toolset.demands.combined_with(demands),
            tags=self.toolset.tags,
        )
        view_call = ViewCall(asked, view, accept)
        call, place = self.toolset.call, self.toolset.origin.place
        request = f"{offer.method} {self.site.prefix}{offer.path}"
        ready = ReadyFunction(call, place, view_call.runnable(), request)
        yield Declaration(definition, ready)


# -- calls -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ViewCall:
    """A call of a view of the site; arguments fill its placeholders."""

    call: HttpCall
    view: object
    accept: str

    def runnable(self) -> Runnable[ToolOutput]:
        """Return the runnable of the calls; Django itself handles ATOMIC_REQUESTS."""
        return Runnable(
            run=self._run,
            style="sync",
            bind=lambda arguments: {"values": arguments},
            convert=content_output,
            context="ctx",
            atomic=False,
            judged=names_in_value((self.call.body or {}).get("json")),
        )

    def _run(self, *, ctx: SyncContext, values: Mapping[str, object]) -> ToolOutput:
        try:
            # Missing arguments are not sent, so that the view's defaults count.
            request = request_for(self.call, values, idempotent=False)
        except Forbidden as error:
            raise ToolError(error.message) from None
        headers = dict(request.headers)
        call = SiteCall(
            path=get_script_prefix().rstrip("/") + self.call.site.prefix + request.path,
            is_view=lambda match: match.func is self.view,
            method=request.method,
            query=request.query,
            body=request.body or b"",
            content_type=headers.pop("Content-Type", ""),
            accept=self.accept,
            headers=headers,
        )
        with site_views().visit(call, ctx) as visit:
            check_answer(visit)
            return answer_output(visit)


def _blank_path(path: str) -> str:
    return re.sub(r"\{[^{}]*\}|<[^<>]*>", "{}", path)
