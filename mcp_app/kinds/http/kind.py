"""The kind `http`: staff describe one call of a site that the settings name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar, cast

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.findings import Finding, advice, must_fix
from mcp_app.catalog.outputs import content_output
from mcp_app.catalog.runnable import Runnable
from mcp_app.egress.client import Connections, connections
from mcp_app.egress.resolving import EgressError, Forbidden
from mcp_app.egress.sites import usable_sites
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.context import Context
from mcp_app.interface.definitions import (
    Definition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.errors import ExternalError
from mcp_app.interface.principal import AccessRequest
from mcp_app.interface.questions import ToolOutput
from mcp_app.kinds import placeholders
from mcp_app.kinds.http.config import (
    SCHEMA,
    HttpCall,
    describe_call,
    draft_texts,
    read_http_config,
)
from mcp_app.kinds.http.request import Media, content_of, refusal_error, request_for
from mcp_app.kinds.kind import (
    NO_UPLOADS,
    AnyDefinition,
    Description,
    Effect,
    Kind,
    KindError,
    Missing,
    Uploads,
)
from mcp_app.kinds.other_sites import (
    UNTRUSTED,
    access_request_of,
    shared_key_findings,
    site_failure,
    site_runnable,
)
from mcp_app.kinds.text import UNUSED, properties_of, unused_findings
from mcp_app.protocol.content import Audio, Image, Text
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.uri_templates import UriTemplate

if TYPE_CHECKING:
    from mcp_app.egress.requests import SiteAnswer

Output = TypeVar("Output")

DONE: Final = "Done."
SUCCESS: Final = 2
"""The first digit of each status of a success."""
OBSERVER: Final[ContextVar[Callable[[SiteAnswer], object] | None]] = ContextVar(
    "observer", default=None
)
"""A function that gets each full answer of a site, for *Try it* in the admin."""


class HttpKind(Kind):
    """Calls another site."""

    name = gettext_lazy("Call another site")
    examples = {
        ToolDefinition: gettext_lazy(
            "Another site that a developer has added gives the answer, or does what it"
            " is asked for. Example: “Create a ticket in our help desk”."
        ),
        ResourceDefinition: gettext_lazy(
            "What another site shows. Example: “Today's exchange rates”."
        ),
        ResourceTemplateDefinition: gettext_lazy(
            "What another site shows for each address. Example: “One ticket”."
        ),
    }
    effect = Effect.ELSEWHERE
    schema = SCHEMA
    forms = {
        ToolDefinition: "mcp_app.admin.forms.http.HttpToolForm",
        ResourceDefinition: "mcp_app.admin.forms.http.HttpResourceForm",
        ResourceTemplateDefinition: "mcp_app.admin.forms.http.HttpTemplateForm",
    }

    def missing(self) -> Missing | None:
        if usable_sites():
            return None
        reason = gettext_lazy(
            "The settings name no other site. A developer must add one first:"
        )
        line = (
            'MCP = {"HTTP": {"helpdesk": {"title": "Help desk", "url":'
            ' "https://help.example.com/api"}}}'
        )
        return Missing(reason, line)

    def complete(self, definition: AnyDefinition, config: JsonObject) -> AnyDefinition:
        """Mark a tool as open-world; an answer for a caller's own key is not public."""
        if isinstance(definition, ToolDefinition):
            hints = replace(definition.hints, open_world=True)
            return cast("AnyDefinition", replace(definition, hints=hints))
        site = usable_sites().get(str(config.get("site")))
        if site is None or not site.per_caller:
            return definition
        if isinstance(definition, ResourceDefinition | ResourceTemplateDefinition):
            return cast("AnyDefinition", replace(definition, public=False))
        return definition

    def describe(self, definition: Definition, config: JsonObject) -> Description:
        return list(describe_call(config))

    def sentence(self, definition: Definition, config: JsonObject) -> str:
        return draft_texts(config).get("description", "")

    def changes_elsewhere(self, definition: Definition, config: JsonObject) -> str:
        """Return the method and address of a call that changes something, else ""."""
        call = configured_call(definition, config)
        return "" if call.only_reads else f"{call.method} {call.url}"

    def tool_runnable(
        self,
        definition: ToolDefinition,
        config: JsonObject,
        uploads: Uploads = NO_UPLOADS,
    ) -> Runnable[ToolOutput]:
        caller = SiteCaller(definition.name, configured_call(definition, config))
        # A default of null is left out, because null would be sent.
        items = definition.default_arguments.items()
        defaults = {name: value for name, value in items if value is not None}
        repeatable = definition.hints.repeatable

        async def run(*, ctx: Context, values: Mapping[str, object]) -> ToolOutput:
            arguments = {**defaults, **values}
            access_request = await access_request_of(
                ctx, caller.call.site, caller.name, arguments
            )
            answer = await caller.request_answer(arguments, access_request, repeatable)
            return caller.tool_output(await caller.read_content(answer, arguments))

        return site_runnable(caller.call.site, run, content_output)

    def resource_runnable(
        self, definition: Definition, config: JsonObject, uploads: Uploads = NO_UPLOADS
    ) -> Runnable[object]:
        caller = SiteCaller(definition.name, configured_call(definition, config))

        async def run(*, ctx: Context, values: Mapping[str, object]) -> object:
            access_request = await access_request_of(
                ctx, caller.call.site, caller.name, values
            )
            answer = await caller.request_answer(values, access_request, True)
            try:
                content = await caller.read_content(answer, values)
            except NothingThere:
                return None
            return content.body if isinstance(content, Media) else content

        return site_runnable(caller.call.site, run, lambda value: value)

    template_runnable = resource_runnable

    def _config_errors(
        self, definition: Definition, config: JsonObject, uploads: Uploads
    ) -> Iterator[KindError]:
        if errors := list(super()._config_errors(definition, config, uploads)):
            yield from errors
            return
        call, problems = read_http_config(config, *allowed_names(definition))
        yield from problems
        if call and not call.only_reads and not isinstance(definition, ToolDefinition):
            yield KindError(_("A resource is read with GET."))

    def findings(self, definition: Definition, config: JsonObject) -> list[Finding]:
        """Return unused parameters, and effects that people may not expect."""
        used = placeholders.names_in_value(config)
        names, _noun = allowed_names(definition)
        findings = []
        if isinstance(definition, ToolDefinition):
            message = _(
                "The parameter %(name)s is not used anywhere. Use it in the call, or"
                " remove it."
            )
            tell = partial(must_fix, UNUSED, "input_schema")
            findings += unused_findings(names, used, tell, message)
            findings += _hint_findings(definition, config.get("method", "GET"))
        findings += _brace_findings(names, config)
        findings += shared_key_findings(
            definition, usable_sites().get(str(config.get("site")))
        )
        return findings


def configured_call(definition: Definition, config: JsonObject) -> HttpCall:
    """Return the call that a config asks for; raise `KindError` if there is none."""
    call, problems = read_http_config(config, *allowed_names(definition))
    if call is None:
        raise problems[0]
    return call


def allowed_names(definition: Definition) -> tuple[Collection[str], str]:
    """Return the names that placeholders may have, and the noun for them."""
    if isinstance(definition, ToolDefinition):
        return properties_of(definition), "parameter"
    if isinstance(definition, ResourceTemplateDefinition):
        return UriTemplate.parse(definition.uri_template).variables, "variable"
    return (), "parameter"


def _hint_findings(definition: ToolDefinition, method: str) -> Iterator[Finding]:
    if not definition.hints.read_only or method == "GET":
        return
    if method == "POST":
        message = _(
            "The tool is marked as one that only reads, but it sends POST. Make sure"
            " that nothing changes at the other site."
        )
        yield advice("hints-doubtful", "hints", message)
    else:
        message = _("%(method)s changes things, so the tool cannot only read.")
        yield must_fix("hints-contradict", "hints", message % {"method": method})


def _brace_findings(names: Collection[str], config: JsonObject) -> Iterator[Finding]:
    """Advise on the first `{name}` of a parameter; other braces, as in GraphQL, fit."""
    parts = [config.get(each) for each in ("query", "headers", "body")]
    parameters = [each for each in placeholders.single_braces(parts) if each in names]
    for name in parameters[:1]:
        message = _(
            "“{%(name)s}” is sent as it is. If a parameter is meant, write"
            " {{%(name)s}}."
        )
        yield advice("braces-single", "config", message % {"name": name})


class NothingThere(ExternalError):
    """The other site has nothing at this address."""


@dataclass(frozen=True)
class SiteCaller:
    """Runs the call of a definition; `name` is the name of the definition."""

    name: str
    call: HttpCall

    async def request_answer(
        self,
        values: Mapping[str, object],
        access_request: AccessRequest,
        repeatable: bool,
        through: Connections | None = None,
    ) -> SiteAnswer:
        """Call the site `through` connections, by default those of the event loop."""
        try:
            request = request_for(self.call, values, idempotent=repeatable)
        except Forbidden as error:
            # The caller gave the value, and can correct it.
            raise ExternalError(error.message, Outcome.ARGUMENTS) from None
        try:
            client = through or connections()
            answer = await client.call_site(self.call.site, request, access_request)
        except EgressError as error:
            raise site_failure(self.call.site, error, self.call.only_reads) from None
        if (observe := OBSERVER.get()) is not None:
            observe(answer)
        return answer

    async def read_content(
        self, answer: SiteAnswer, values: Mapping[str, object]
    ) -> object:
        """Return the content of an answer as JSON, text or `Media`; raise on errors."""
        if answer.status // 100 == SUCCESS:
            return await content_of(self.call, answer)
        error = refusal_error(self.call, answer, values)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise NothingThere(error.message, error.outcome, error.detail)
        raise error

    def tool_output(self, content: object) -> ToolOutput:
        """Return a tool's output; raise `ExternalError` if it cannot be shown."""
        if content is None:
            return ToolOutput((Text(DONE),))
        if isinstance(content, str):
            return ToolOutput((Text(content),), meta=UNTRUSTED)
        if not isinstance(content, Media):
            structured = content if isinstance(content, dict) else {"result": content}
            return ToolOutput((), structured=structured, meta=UNTRUSTED)
        media_type = content.media_type
        for family, make in (("image/", Image), ("audio/", Audio)):
            if media_type.startswith(family):
                return ToolOutput((make(content.body, media_type),), meta=UNTRUSTED)
        type_text = media_type or _("something without a type")
        message = f"{self.call.site.title} sent {type_text}, which cannot be shown."
        raise ExternalError(message, Outcome.SHAPE)
