"""Lint: what stands in the way of publishing a definition, and what is unwise.

One implementation for the admin and for `manage.py check`.  Saving has refused most of
what must be fixed; rows may be older than a rule, and code is not saved.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.catalog.findings import (
    RULES,
    Finding,
    Level,
    advice,
    count_text,
    in_order,
    must_fix,
)
from mcp_app.catalog.schema_lint import (
    name_of,
    parameter_findings,
    required_findings,
    schema_findings,
)
from mcp_app.catalog.server_lint import server_findings
from mcp_app.catalog.text_lint import (
    description_findings,
    hidden_findings,
    order_findings,
)
from mcp_app.catalog.token_cost import texts, tokens
from mcp_app.interface.definitions import (
    Definition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import name_problem, uri_problem, visible
from mcp_app.protocol.uri_templates import UriTemplate

__all__ = ["RULES", "Finding", "Level", "findings", "server_findings", "tokens"]

LONG_NAME: Final = 64
MANY_TOKENS: Final = 1_000

_EVERYWHERE = re.compile(r"[A-Za-z0-9_-]+")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_CHANGING = {"create", "delete", "destroy", "erase", "purge", "remove", "send"}


def findings(definition: Definition) -> list[Finding]:
    """Return what is wrong with a definition by itself, the worst first."""
    rules = _RULES[type(definition)]
    return in_order(found for rule in rules for found in rule(definition))


def _name(definition: Definition) -> Iterator[Finding]:
    if problem := name_problem(definition.name):
        yield must_fix("name-not-allowed", "name", problem)


def _tool_name(definition: ToolDefinition) -> Iterator[Finding]:
    """Models' interfaces know tools by name; prompts do not reach them."""
    name = definition.name
    shown = {"name": visible(name), "count": len(name), "limit": LONG_NAME}
    if len(name) > LONG_NAME:
        message = _(
            "“%(name)s” has %(count)s characters; Claude and ChatGPT accept at most "
            "%(limit)s in a name."
        )
        yield advice("name-refused", "name", message % shown)
    elif not _EVERYWHERE.fullmatch(name):
        message = _(
            "“%(name)s” does not work with every client: Claude and ChatGPT accept"
            " only letters, digits, _ and - in a name."
        )
        yield advice("name-refused", "name", message % shown)


def _uri(definition: ResourceDefinition) -> Iterator[Finding]:
    if problem := uri_problem(definition.uri):
        yield must_fix("uri-not-allowed", "uri", problem)
    yield from _web("uri", definition.uri)


def _web(field: str, uri: str) -> Iterator[Finding]:
    """Clients may load https:// by themselves (server/resources, "https://")."""
    if uri.lower().startswith("https://"):
        message = _(
            "https:// tells clients that they can load this address from the web"
            " themselves, without this server. If they cannot, use another scheme."
        )
        yield advice("uri-of-the-web", field, message)


def _uri_template(definition: ResourceTemplateDefinition) -> Iterator[Finding]:
    try:
        template = UriTemplate.parse(definition.uri_template)
    except ValueError as error:
        problem: str | None = str(error)
    else:
        problem = uri_problem(template.expand(dict.fromkeys(template.variables, "x")))
    if problem:
        yield must_fix("uri-not-allowed", "uri_template", problem)
    yield from _web("uri_template", definition.uri_template)


def _suggestions(definition: ResourceTemplateDefinition) -> Iterator[Finding]:
    try:
        variables = set(UriTemplate.parse(definition.uri_template).variables)
    except ValueError:
        return
    for name in definition.suggestions:
        if name not in variables:
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


def _hints(definition: ToolDefinition) -> Iterator[Finding]:
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
    if hints.read_only and (verb := _changing(definition.name)):
        message = _(
            "The name begins with “%(verb)s”, but the tool is marked as read-only."
            " Check which is right."
        )
        yield advice("hints-doubtful", "read_only", message % {"verb": verb})


def _changing(name: str) -> str | None:
    """Return the verb that a name begins with, where it is one of change."""
    found = _WORD.match(name.rpartition(".")[2])
    verb = found.group() if found else ""
    return verb if verb.lower() in _CHANGING else None


def _schemas(definition: ToolDefinition) -> Iterator[Finding]:
    found = list(schema_findings("input_schema", definition.input_schema))
    yield from found
    if not any(each.rule == "schema-refused" for each in found):
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
        ) % {"names": name_of(names)}
        yield advice("argument-description-missing", "arguments", message)


def _size(definition: ToolDefinition) -> Iterator[Finding]:
    count = tokens(definition)
    if count > MANY_TOKENS:
        message = _(
            "This tool takes ≈ %(count)s tokens of the model's memory on every"
            " request; more than %(limit)s is a lot. Shorten the description or the"
            " parameters."
        ) % {"count": count_text(count), "limit": count_text(MANY_TOKENS)}
        yield advice("tokens-many", "", message)


def _hidden(definition: Definition) -> Iterator[Finding]:
    return hidden_findings(texts(definition))


_EVERY: tuple[Callable[[Any], Iterator[Finding]], ...] = (
    description_findings,
    _hidden,
    order_findings,
)
_RULES: Mapping[type[Definition], tuple[Callable[[Any], Iterator[Finding]], ...]] = {
    ToolDefinition: (_name, _tool_name, *_EVERY, _hints, _schemas, _size),
    ResourceDefinition: (_uri, *_EVERY, _media_type),
    ResourceTemplateDefinition: (_uri_template, *_EVERY, _suggestions),
    PromptDefinition: (_name, *_EVERY, _arguments),
}
