"""completion/complete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mcp_app.catalog.suggestions import fitting, suggestions_of
from mcp_app.interface.results import Completion
from mcp_app.protocol import results
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import call as calls
from mcp_app.server import parameters

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Entry
    from mcp_app.server.exchange import Exchange

MOST_VALUES = 100


async def complete(exchange: Exchange) -> JsonObject:
    """Suggest values for an argument of a prompt or a variable of a template.

    A completer in code replaces the suggestions of staff.
    """
    reference = parameters.mapping(exchange.params, "ref", required=True)
    argument = parameters.mapping(exchange.params, "argument", required=True)
    context = parameters.mapping(exchange.params, "context")
    entry = _referenced(exchange, reference)
    name = parameters.string(argument, "name", "params.argument")
    bound: JsonObject = {
        "value": parameters.string(argument, "value", "params.argument"),
        "arguments": parameters.strings(context, "arguments", "params.context"),
    }
    completion = await _completed(exchange, entry, name, bound)
    return results.complete(
        {"completion": _to_wire(completion)},
        exchange.revision,
        exchange.catalog.server_info(exchange.revision),
    )


def _referenced(exchange: Exchange, reference: JsonObject) -> Entry[Any, Any]:
    kind = reference.get("type")
    entry: Entry[Any, Any] | None
    if kind == "ref/prompt":
        named = parameters.string(reference, "name", "params.ref")
        entry = exchange.catalog.prompts.get(named)
        if entry is None:
            calls.check_switched_off(exchange, "prompts", named, "prompt")
    elif kind == "ref/resource":
        named = parameters.string(reference, "uri", "params.ref")
        entry = _template(exchange, named)
    else:
        raise InvalidParams(
            f"params.ref.type is {kind!r}: it must be ref/prompt or ref/resource."
        )
    exchange.entry = entry
    if entry is None or not exchange.sees(entry.definition):
        said = f"There is nothing to complete with the name {named!r:.200}."
        raise calls.unknown(exchange, said)
    return entry


def _template(exchange: Exchange, uri: str) -> Entry[Any, Any] | None:
    """Return the template with this text, else one that the URI matches."""
    template = exchange.catalog.templates.get(uri)
    if template is not None and exchange.sees(template.definition):
        return template
    calls.check_switched_off(exchange, "templates", uri, "resource")
    fitting = list(exchange.catalog.matching(uri))
    seen = (each for each in fitting if exchange.sees(each.entry.definition))
    matched = next(seen, None)
    if matched is None:
        return fitting[0].entry if fitting else None
    if matched.stopped:
        exchange.entry = matched.entry
        calls.refuse_switched_off(exchange, "resource")
    return matched.entry


async def _completed(
    exchange: Exchange, entry: Entry[Any, Any], name: str, bound: JsonObject
) -> Completion:
    runnable = exchange.catalog.completers.get((entry.identity, name))
    runnable = runnable or entry.completers.get(name)
    if runnable is None:
        return fitting(_suggestions(entry, name), bound["value"])
    with calls.failures_as_errors(exchange, entry):
        return await calls.run(exchange, entry, runnable, runnable.bind(bound))


def _suggestions(entry: Entry[Any, Any], name: str) -> Sequence[str]:
    return suggestions_of(entry.definition).get(name, ())


def _to_wire(completion: Completion) -> JsonObject:
    values = list(completion.values)
    shown = values[:MOST_VALUES]
    total = len(values) if completion.total is None else completion.total
    more = completion.has_more
    return {
        "values": shown,
        "total": total,
        "hasMore": total > len(shown) if more is None else more,
    }
