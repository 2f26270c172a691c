"""prompts/get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.interface.outcomes import Outcome
from mcp_app.protocol import results
from mcp_app.protocol.content import block_to_wire
from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server import call as calls
from mcp_app.server import parameters

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import PromptEntry
    from mcp_app.server.exchange import Exchange


async def get(exchange: Exchange) -> JsonObject:
    """Fill a prompt with its arguments."""
    name = parameters.string(exchange.params, "name")
    exchange.entry = entry = exchange.catalog.prompts.get(name)
    if entry is None:
        calls.check_switched_off(exchange, "prompts", name, "prompt")
    if entry is None or not exchange.sees(entry.definition):
        raise calls.unknown(exchange, f"Unknown prompt: {name:.200}")
    arguments = parameters.strings(exchange.params, "arguments")
    try:
        check_arguments(entry, arguments)
        bound = entry.runnable.bind(dict(arguments))
    except ArgumentsRefused as error:
        told = "; ".join(f"{each.path}: {each.message}" for each in error.violations)
        said = f"The prompt {name}: {told}"
        exchange.record_outcome(Outcome.ARGUMENTS, said)
        raise InvalidParams(said) from None
    except InvalidParams as error:
        exchange.record_outcome(Outcome.ARGUMENTS, error.message)
        raise
    if not await exchange.allows(entry.definition, arguments):
        raise InvalidParams(calls.forbidden(exchange, entry))
    with calls.failures_as_errors(exchange, entry):
        output = await calls.run(exchange, entry, entry.runnable, bound)
    result: JsonObject = {
        "messages": [
            {
                "role": message.role,
                "content": block_to_wire(message.content, exchange.revision),
            }
            for message in output.messages
        ]
    }
    description = output.description or entry.definition.description
    if description:
        result["description"] = description
    return results.complete(
        result, exchange.revision, exchange.catalog.server_info(exchange.revision)
    )


def check_arguments(entry: PromptEntry, arguments: dict[str, str]) -> None:
    """Raise for an argument that is missing or that the prompt does not have."""
    known = {each.name for each in entry.definition.arguments}
    for name in arguments:
        if name not in known:
            raise InvalidParams(
                f"The prompt {entry.identity} has no argument {name!r}."
            )
    for each in entry.definition.arguments:
        if each.required and each.name not in arguments:
            raise InvalidParams(
                f"The prompt {entry.identity} needs the argument {each.name!r}."
            )
