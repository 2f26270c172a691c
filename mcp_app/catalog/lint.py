"""Lint: what prevents publishing a definition, and what is unwise.

The admin and `manage.py check` both use it.  Saving a row refuses most of what must be
fixed, but a row may be older than a rule, and code is never saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.catalog.definition_texts import texts_of_definition, tokens
from mcp_app.catalog.findings import (
    RULES,
    Finding,
    Level,
    Place,
    advice,
    count_text,
    must_fix,
    worst_first,
)
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.schema_lint import (
    description_findings,
    hidden_findings,
    names_text,
    order_findings,
    parameter_findings,
    required_findings,
    schema_findings,
)
from mcp_app.catalog.server_lint import server_findings
from mcp_app.interface.definitions import (
    Definition,
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import name_problem, uri_problem, visible
from mcp_app.protocol.uri_templates import UriTemplate

# -- cross references ------------------------------------------------------------------
# Names to which declarations refer, although no code declares them.
#
# They can be checked only after all modules are loaded.


def registry_problems(registry: Registry) -> list[str]:
    """Return a sentence for each problem in code, sorted by files and lines."""
    places = {
        **registry.problems,
        **dict(_unknown_arguments(registry)),
        **dict(_unopened_targets(registry)),
    }
    return sorted(places, key=places.__getitem__)


def _unknown_arguments(registry: Registry) -> Iterator[tuple[str, Place]]:
    """Yield the completers of arguments that a prompt or a template does not have.

    If no code declares the prompt or template, staff may have made it in the admin.
    """
    for (reference, argument), function in registry.completers.items():
        if reference in registry.prompts:
            prompt = registry.prompts[reference].definition
            names = [each.name for each in prompt.arguments]
        elif reference in registry.templates:
            names = [*UriTemplate.parse(reference).variables]
        else:
            continue
        if argument not in names:
            has = f"It has {', '.join(names)}." if names else "It has none."
            place = registry.origins["completer", (reference, argument)].place
            sentence = f"{reference!r} has no argument {argument!r} to complete. {has}"
            yield f"{place}: {function.qualified_name}: {sentence}", place


def _unopened_targets(registry: Registry) -> Iterator[tuple[str, Place]]:
    """Yield the relations that open models have to models that are not opened."""
    if not registry.open_models:
        return
    # Models can be imported only after the app registry is ready.
    from mcp_app.catalog.open_models import missing_targets  # noqa: PLC0415

    opened, wanted = registry.open_models, registry.wanted_models.keys()
    for sentence, label in missing_targets(opened, wanted):
        place = registry.origins["open model", label].place
        yield f"{place}: {sentence}", place


def trial_problems(registry: Registry) -> Iterator[str]:
    """Yield a sentence for each form that cannot be made; a form may read rows."""
    for kind, declared in ("tool", registry.tools), ("prompt", registry.prompts):
        for key, each in declared.items():
            form = getattr(getattr(each.function, "signature", None), "form", None)
            if form is not None and (problem := form.problem_of(form.source)):
                yield f"{registry.origins[kind, key].place}: {problem}"


def unknown_rules(registry: Registry) -> Iterator[tuple[str, str]]:
    """Yield a sentence and the rule's key for each rule that no code registers.

    A module that is imported later may still register it.
    """
    for kind, declared in (
        ("tool", registry.tools),
        ("resource", registry.resources),
        ("resource template", registry.templates),
        ("prompt", registry.prompts),
        ("event", registry.events),
    ):
        for key, each in declared.items():
            place = registry.origins[kind, key].place
            for rule in each.definition.demands.rules:
                if rule in registry.rules:
                    continue
                close = get_close_matches(rule, registry.rules, 1)
                meant = f" Did you mean {close[0]!r}?" if close else ""
                sentence = f"{key!r} requires the rule {rule!r}, which no code"
                yield (
                    f"{place}: {sentence} registers, so nobody will see it.{meant}",
                    rule,
                )


# -- lint ------------------------------------------------------------------------------

__all__ = ["RULES", "Finding", "Level", "findings", "server_findings", "tokens"]

LONG_NAME: Final = 64
MANY_TOKENS: Final = 1_000
MANY_FIELDS: Final = 20
FEW_WORDS: Final = 4

_EVERYWHERE = re.compile(r"[A-Za-z0-9_-]+")
"""Names of tools that all clients accept."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_CHANGING = {"create", "delete", "destroy", "erase", "purge", "remove", "send"}


def findings(definition: Definition) -> list[Finding]:
    """Return what is wrong with a definition, apart from its kind; the worst first."""
    rules = _RULES[type(definition)]
    return worst_first(finding for rule in rules for finding in rule(definition))


def _name_findings(definition: Definition) -> Iterator[Finding]:
    name = definition.name
    if problem := name_problem(name):
        yield must_fix("name-not-allowed", "name", problem)
    if not isinstance(definition, ToolDefinition):
        # Only names of tools reach the APIs of models, which have these limits.
        return
    values = {"name": visible(name), "count": len(name), "limit": LONG_NAME}
    if len(name) > LONG_NAME:
        message = _(
            "“%(name)s” has %(count)s characters; Claude and ChatGPT accept at most "
            "%(limit)s in a name."
        )
        yield advice("name-refused", "name", message % values)
    elif not _EVERYWHERE.fullmatch(name):
        message = _(
            "“%(name)s” does not work with every client: Claude and ChatGPT accept"
            " only letters, digits, _ and - in a name."
        )
        yield advice("name-refused", "name", message % values)


def _uri_findings(definition: ResourceDefinition) -> Iterator[Finding]:
    if problem := uri_problem(definition.uri):
        yield must_fix("uri-not-allowed", "uri", problem)
    yield from _web_findings("uri", definition.uri)


def _web_findings(field: str, uri: str) -> Iterator[Finding]:
    """Advise against https://, which clients may load themselves (server/resources)."""
    if uri.lower().startswith("https://"):
        message = _(
            "https:// tells clients that they can load this address from the web"
            " themselves, without this server. If they cannot, use another scheme."
        )
        yield advice("uri-of-the-web", field, message)


def _uri_template(definition: ResourceTemplateDefinition) -> Iterator[Finding]:
    unused: list[str] = []
    try:
        template = UriTemplate.parse(definition.uri_template)
    except ValueError as error:
        problem: str | None = str(error)
    else:
        variables = template.variables
        unused = [name for name in definition.suggestions if name not in variables]
        problem = uri_problem(template.expand(dict.fromkeys(variables, "x")))
    if problem:
        yield must_fix("uri-not-allowed", "uri_template", problem)
    yield from _web_findings("uri_template", definition.uri_template)
    for name in unused:
        message = _(
            "The suggestions for %(name)s are never used: the address pattern has "
            "no {%(name)s}."
        ) % {"name": visible(name)}
        yield advice("suggestions-unused", "suggestions", message)


def _media_type(definition: ResourceDefinition) -> Iterator[Finding]:
    if not definition.mime_type:
        message = _(
            "The type of contents is missing, for example text/markdown. Clients need"
            " it to show the resource in the right way."
        )
        yield advice("media-type-missing", "mime_type", message)


def _title_findings(definition: ToolDefinition) -> Iterator[Finding]:
    if not str(definition.title).strip():
        message = _("The title is missing. People read it in their client.")
        yield advice("title-missing", "title", message)


def _hint_findings(definition: ToolDefinition) -> Iterator[Finding]:
    hints = definition.hints
    if hints.read_only is None and hints.destructive is None:
        message = _("Say whether this tool changes anything.")
        yield must_fix("changes-unsaid", "read_only", message)
    elif hints.read_only and hints.destructive:
        message = _(
            "The tool is marked as read-only, and also as deleting or overwriting."
            " Only one can be true."
        )
        yield must_fix("hints-contradict", "destructive", message)
    elif hints.read_only is False and hints.destructive is None:
        message = _(
            "Say whether this tool may delete or overwrite something. If"
            " you do not say it, clients assume that it may."
        )
        yield advice("deleting-unsaid", "destructive", message)
    if hints.open_world is None:
        message = _("Say whether this tool reaches outside this site.")
        yield advice("outside-unsaid", "open_world", message)
    match = _WORD.match(definition.name.rpartition(".")[2])
    verb = match.group() if match else ""
    if hints.read_only and verb.lower() in _CHANGING:
        message = _(
            "The name begins with “%(verb)s”, but the tool is marked as read-only."
            " Check which is right."
        )
        yield advice("hints-doubtful", "read_only", message % {"verb": verb})


def _approval_findings(definition: ToolDefinition) -> Iterator[Finding]:
    hints = definition.hints
    if not hints.destructive or hints.read_only or definition.demands:
        return
    if definition.approval is None:
        message = _(
            "Whoever comes in can delete or overwrite with this tool. Ask for a"
            " permission or a group, or let a person approve each call."
        )
        yield advice("approval-missing", "destructive", message)


def _tool_schema_findings(definition: ToolDefinition) -> Iterator[Finding]:
    input_findings = list(schema_findings("input_schema", definition.input_schema))
    yield from input_findings
    if not any(finding.rule == "schema-refused" for finding in input_findings):
        yield from parameter_findings(definition.input_schema)
        yield from required_findings(definition.input_schema)
    if definition.output_schema is not None:
        yield from schema_findings("output_schema", definition.output_schema)


def _arguments(definition: PromptDefinition) -> Iterator[Finding]:
    arguments = definition.arguments
    names = [each.name for each in arguments if not str(each.description).strip()]
    if names:
        message = ngettext(
            "The argument %(names)s has no description. People read it when they fill"
            " in the argument.",
            "The arguments %(names)s have no description. People read it when they"
            " fill in the arguments.",
            len(names),
        ) % {"names": names_text(names)}
        yield advice("argument-description-missing", "arguments", message)


def _moment_findings(definition: EventDefinition) -> Iterator[Finding]:
    text = str(definition.description)
    if len(text.split()) < FEW_WORDS:
        message = _(
            "Say in the description when this happens. A model reads it to decide"
            " whether it wants to be told. One or two sentences."
        )
        yield advice("moment-unsaid", "description", message)
    elif text:
        yield from description_findings(definition)


def _event_schema_findings(definition: EventDefinition) -> Iterator[Finding]:
    schema: Any = definition.payload_schema
    if len(schema.get("properties", {})) > MANY_FIELDS:
        message = _(
            "More than %(limit)s fields are told. Tell the key: the client reads the"
            " rest with a tool."
        )
        yield advice("event-large", "config", message % {"limit": MANY_FIELDS})
    schema = definition.input_schema
    properties = schema.get("properties", {})
    required = {name: properties.get(name, {}) for name in schema.get("required", ())}
    names = [name for name, each in required.items() if not each.get("description")]
    if names:
        message = _("Describe what clients must say: %(names)s.")
        words = message % {"names": names_text(names)}
        yield advice("event-argument-undescribed", "config", words)


def _size_findings(definition: ToolDefinition) -> Iterator[Finding]:
    count = tokens(definition)
    if count > MANY_TOKENS:
        message = _(
            "This tool takes ≈ %(count)s tokens of the model's memory on every request;"
            " more than %(limit)s is a lot. Shorten the description or the parameters."
        ) % {"count": count_text(count), "limit": count_text(MANY_TOKENS)}
        yield advice("tokens-many", "", message)


def _hidden_text_findings(definition: Definition) -> Iterator[Finding]:
    return hidden_findings(texts_of_definition(definition))


_EVERY: tuple[Callable[[Any], Iterator[Finding]], ...] = (
    description_findings,
    _hidden_text_findings,
    order_findings,
)
_RULES: Mapping[type[Definition], tuple[Callable[[Any], Iterator[Finding]], ...]] = {
    ToolDefinition: (
        _name_findings,
        _title_findings,
        *_EVERY,
        _hint_findings,
        _approval_findings,
        _tool_schema_findings,
        _size_findings,
    ),
    ResourceDefinition: (_uri_findings, *_EVERY, _media_type),
    ResourceTemplateDefinition: (_uri_template, *_EVERY),
    PromptDefinition: (_name_findings, *_EVERY, _arguments),
    EventDefinition: (
        _name_findings,
        _moment_findings,
        *_EVERY[1:],  # `_moment_findings` judges the description.
        _event_schema_findings,
    ),
}
