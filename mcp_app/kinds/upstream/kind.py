"""The kind `upstream`: a tool of another MCP server that the settings name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.findings import Finding
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.egress.sites import Site, upstream_sites
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.context import Context
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.rules import visible
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    OUTSIDE,
    AnyDefinition,
    Description,
    Effect,
    Kind,
    KindError,
    Missing,
    Uploads,
    object_schema,
)
from mcp_app.kinds.other_sites import (
    POSSIBLY,
    UNTRUSTED,
    access_request_of,
    shared_key_findings,
    site_runnable,
)
from mcp_app.kinds.upstream.calls import Upstream
from mcp_app.protocol.content import Block, Text
from mcp_app.protocol.content_reading import read_block
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.json_types import JsonObject

MAX_TOOL_NAME: Final = 128
ASKS: Final = (
    "{title} asks for something that this site does not pass on: a question, or a task."
)


class UpstreamKind(Kind):
    """Calls a tool of another MCP server."""

    name = gettext_lazy("Use a tool of another MCP server")
    examples = {
        ToolDefinition: gettext_lazy(
            "What another MCP server does, with this site's rights and words. Example:"
            " “Find issues in our tracker”."
        )
    }
    effect = Effect.ELSEWHERE
    forms = {ToolDefinition: "mcp_app.admin.forms.upstream.UpstreamToolForm"}
    schema = object_schema(
        "site",
        "tool",
        site={"type": "string"},
        tool={"type": "string", "minLength": 1, "maxLength": MAX_TOOL_NAME},
    )

    def missing(self) -> Missing | None:
        if upstream_sites():
            return None
        reason = gettext_lazy(
            "The settings name no other MCP server. A developer must add one first:"
        )
        line = (
            'MCP = {"HTTP": {"tracker": {"title": "Issue tracker", "mcp": True,'
            ' "url": "https://tracker.example.com/mcp"}}}'
        )
        return Missing(reason, line)

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Mark a tool as open-world."""
        if not isinstance(definition, ToolDefinition):
            return definition
        hints = replace(definition.hints, open_world=True)
        return cast("AnyDefinition", replace(definition, hints=hints))

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        target = _target_of(config)
        return [(str(OUTSIDE), target), (_("What it calls"), target)]

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        return _target_of(config)

    def changes_elsewhere(self, definition: Definition, config: JsonObject) -> str:
        return "" if definition.only_reads else _target_of(config)

    def check(
        self, definition: Definition, config: JsonObject, uploads: Uploads
    ) -> Iterator[str]:
        if config["site"] not in upstream_sites():
            yield str(_no_site(config))

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        site = upstream_sites().get(str(config.get("site")))
        return [*shared_key_findings(definition, site)]

    def tool_runnable(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        site, name = upstream_sites().get(config["site"]), definition.name
        if site is None:
            raise _no_site(config)
        only_reads, is_repeatable = definition.only_reads, definition.hints.repeatable
        mirrors = mirrored_parameters(definition.input_schema)

        async def run(*, ctx: Context, values: Mapping[str, object]) -> ToolOutput:
            access_request = await access_request_of(ctx, site, name, values)
            upstream = Upstream(site, access_request, only_reads=only_reads)
            result = await upstream.call_tool(
                config["tool"],
                values,
                mirrors=mirrors,
                is_repeatable=is_repeatable,
                tell_progress=ctx.progress,
            )
            return output_of(site, result, "" if only_reads else POSSIBLY)

        return site_runnable(site, run, content_output)


def _no_site(config: JsonObject) -> KindError:
    message = _("The settings have no MCP server “%s” that can be used.")
    return KindError(message % visible(str(config["site"])))


def _target_of(config: JsonObject) -> str:
    site = upstream_sites().get(str(config["site"]))
    words = {"tool": config["tool"], "site": site.title if site else config["site"]}
    return _("%(tool)s at %(site)s") % words


def output_of(site: Site, result: JsonObject, doubt: str = "") -> ToolOutput:
    """Convert a `CallToolResult` of another server into our output.

    Raises `ExternalError` for any other result; its text ends with the `doubt`.
    """
    if result.get("resultType", "complete") != "complete" or "task" in result:
        raise ExternalError(ASKS.format(title=site.title), Outcome.OTHER_SITE)
    blocks, structured = result.get("content", []), result.get("structuredContent")
    if not isinstance(blocks, list):
        text = f"The answer of {site.title} cannot be read.{doubt}"
        raise ExternalError(text, Outcome.SHAPE)
    if not isinstance(structured, dict | None):
        # 2026-07-28 allows any value; older revisions want an object.
        structured = {"result": structured}
    return ToolOutput(
        [*map(_block_of, blocks)],
        structured=structured,
        is_error=result.get("isError") is True,
        meta=UNTRUSTED,
    )


def _block_of(wire: object) -> Block:
    try:
        return read_block(wire)
    except ValueError as error:
        # If one block cannot be shown, the others still are.
        return Text(f"[{visible(str(error))}]")
