"""tools/call: arguments against the schema, the call, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.catalog.type_hints import ScalarOutput
from mcp_app.interface.call_record import Outcome
from mcp_app.interface.errors import (
    ClientCannot,
    ClientRefused,
    ExternalError,
    ToolError,
    TooManyQuestions,
)
from mcp_app.interface.questions import ToolOutput
from mcp_app.interface.server import GET_TASK_RESULT
from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Block, Text, block_to_wire
from mcp_app.protocol.errors import (
    InvalidParams,
    MissingClientCapability,
    ProtocolError,
)
from mcp_app.protocol.headers import check_mirrored
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import UnserializableValue
from mcp_app.protocol.schemas import Violation
from mcp_app.protocol.texts import CleanBlocks, clean_text, json_text
from mcp_app.server import call as calls
from mcp_app.server import coercion
from mcp_app.server.exchange import Exchange
from mcp_app.server.round_trip import TaskStarted
from mcp_app.server.tasks import answer_with_task, call_as_task, create_task
from mcp_app.server.waiting import call_and_wait, get_task_result, waits_for_task

if TYPE_CHECKING:
    from mcp_app.protocol.revisions import Revision

REFUSED_QUESTION: Final = "The client refused a question, or its answer does not fit."


async def call_tool(exchange: Exchange) -> bytes:
    """Run a tool; errors for the model are results with `isError`."""
    entry = _visible_entry(exchange)
    if entry is None:
        return _encode_error(exchange, calls.switched_off(exchange, "tool"))
    is_run = exchange.task_run is not None
    if not is_run and (sentence := _too_often(exchange, entry)) is not None:
        return _encode_error(exchange, sentence)
    try:
        arguments, bound = await _bind_arguments(exchange, entry)
    except ArgumentsRefused as error:
        return _refuse_arguments(exchange, entry, error.violations)
    if not await exchange.allows_arguments(entry.definition, arguments):
        return _encode_error(exchange, calls.forbidden_text(exchange, entry))
    output: ToolOutput | bytes
    try:
        output = await _run_function(exchange, entry, arguments, bound)
    except (Exception, asyncio.CancelledError) as error:
        output = _failure_output(exchange, entry, error)
    if isinstance(output, bytes):
        return output
    return check_and_encode(exchange, entry, output)


async def _run_function(
    exchange: Exchange,
    entry: ToolEntry,
    arguments: JsonObject,
    bound: dict[str, object],
) -> ToolOutput | bytes:
    """Return the output of the function, or the answer if the call is a task."""
    task = await call_as_task(exchange, entry, arguments)
    if task is not None:
        return task
    if waits_for_task(exchange, entry):
        return await call_and_wait(exchange, entry, arguments)
    if entry.runnable.ours and entry.identity == GET_TASK_RESULT:
        return await get_task_result(exchange, arguments)
    try:
        return await calls.run_user_code(exchange, entry, entry.runnable, bound)
    except TaskStarted as started:
        record = await create_task(exchange, entry, arguments, started.state)
        return await answer_with_task(exchange, record)


async def finish_tool_call(
    exchange: Exchange, entry: ToolEntry, outputs: list[ToolOutput | BaseException]
) -> bytes:
    """Return the result of a tool whose function has returned, or raised.

    The output is taken out of its list: an error has the frames that it went through,
    and none of them must hold it.
    """
    output = outputs.pop()
    try:
        if isinstance(output, BaseException):
            calls.conclude_call(exchange, output)
            raise output
        calls.conclude_call(exchange)
        result = output
    except (Exception, asyncio.CancelledError) as error:
        result = _failure_output(exchange, entry, error)
    finally:
        del output
    return check_and_encode(exchange, entry, result)


async def refuse_tool_call(
    exchange: Exchange, entry: ToolEntry, errors: list[BaseException]
) -> bytes:
    """Return the result of a call whose arguments do not fit, or raise the error.

    It is taken out of its list, as in `finish_tool_call`.
    """
    try:
        raise errors.pop()
    except ArgumentsRefused as error:
        return _refuse_arguments(exchange, entry, error.violations)


async def _bind_arguments(
    exchange: Exchange, entry: ToolEntry
) -> tuple[JsonObject, dict[str, object]]:
    """Return what `_bind` returns; a thread does it if the arguments are many."""
    if exchange.wide:
        return await large_work.run(exchange.owner, _bind, exchange, entry)
    return _bind(exchange, entry)


def _bind(exchange: Exchange, entry: ToolEntry) -> tuple[JsonObject, dict[str, object]]:
    """Return arguments that fit, as they came and as the function takes them.

    Raise `ArgumentsRefused` with every violation.
    """
    arguments = coercion.object_member(exchange.params, "arguments")
    headers = None if exchange.renamed else exchange.headers
    mirrored = entry.header_parameters
    if mirrored and headers is not None and exchange.revision.routing_headers:
        check_mirrored(mirrored, headers, arguments)
    accepted, violations = coercion.accepted_arguments(
        entry, arguments, coerce=exchange.adapters.coerce
    )
    if violations:
        raise ArgumentsRefused(violations)
    return accepted, entry.runnable.bind(accepted)


def _too_often(exchange: Exchange, entry: ToolEntry) -> str | None:
    """Charge the caller for the call; return what a model reads if it must wait."""
    rates = exchange.adapters.rates
    wait = rates.wait_for_tool(exchange.payer, entry)
    if not wait:
        return None
    sentence = rates.sentence(entry, wait)
    exchange.record_outcome(Outcome.LIMITED, sentence)
    return sentence


def _visible_entry(exchange: Exchange) -> ToolEntry | None:
    """Return the called tool, None if the caller may see it but it is stopped."""
    name = coercion.string_member(exchange.params, "name")
    exchange.entry = entry = exchange.catalog.tools.get(name)
    if entry is not None and exchange.sees(entry.definition):
        return entry
    if entry is None:
        exchange.entry = off = exchange.catalog.switched_off("tools", name)
        if off is not None and exchange.sees(off.definition):
            return None
    elif exchange.lacks_scope(entry.definition):
        raise calls.beyond_scope(exchange, entry)
    raise calls.unknown_error(exchange, f"Unknown tool: {name:.200}")


def _refuse_arguments(
    exchange: Exchange, entry: ToolEntry, violations: list[Violation]
) -> bytes:
    lines = [f"- {each.path} ({each.rule}): {each.message}" for each in violations]
    heading = f"Invalid arguments for {entry.identity}:"
    exchange.record_outcome(Outcome.ARGUMENTS, "\n".join([heading, *lines]))
    if exchange.revision.argument_errors_as_results:
        return _encode_error(exchange, exchange.error_text)
    details = [asdict(each) for each in violations]
    # The message of an error is one line; this client reads the rest in `data`.
    raise InvalidParams(f"{heading} {' '.join(lines)}", {"violations": details})


def _error_output(message: str) -> ToolOutput:
    return ToolOutput([Text(message)], is_error=True)


def _encode_error(exchange: Exchange, message: str) -> bytes:
    return _encode_output(exchange, _error_output(message))


def _failure_output(
    exchange: Exchange, entry: ToolEntry, failure: BaseException
) -> ToolOutput:
    """Return the output of a failed call; raise protocol errors and other ends."""
    try:
        raise failure
    except ToolError as error:
        return _tool_error_output(exchange, error)
    except ClientCannot as error:
        refusal = calls.incapable(exchange, error)
        if isinstance(refusal, MissingClientCapability):
            raise refusal from error
        return _error_output(error.message)
    except UnserializableValue as error:
        return _error_output(_unsendable_text(exchange, entry, error))
    except asyncio.CancelledError:
        return _error_output(calls.time_out_text(exchange, entry))
    except ProtocolError as error:
        raise calls.error_of_run(exchange, error) from error.__cause__
    except Exception:
        return _error_output(calls.crash_text(exchange, entry))
    finally:
        # The failure has this frame: it must not hold the failure.
        del failure


def _tool_error_output(exchange: Exchange, error: ToolError) -> ToolOutput:
    if isinstance(error, ExternalError):
        exchange.record_outcome(error.outcome, error.detail)
    elif isinstance(error, ClientRefused):
        # Its message may quote what a person or a model has answered.
        exchange.record_outcome(Outcome.TOOL_ERROR, REFUSED_QUESTION)
    elif isinstance(error, TooManyQuestions):
        exchange.record_outcome(Outcome.UNAVAILABLE, error.message)
    return ToolOutput(error.content or [Text(error.message)], is_error=True)


def _unsendable_text(
    exchange: Exchange, entry: ToolEntry, error: UnserializableValue
) -> str:
    message = f"The result of {entry.identity}: {error}"
    exchange.record_outcome(Outcome.SHAPE, message)
    return message


def check_and_encode(exchange: Exchange, entry: ToolEntry, output: ToolOutput) -> bytes:
    """Encode an output, or an error if it breaks its schema or the size limit."""
    try:
        if not _surely_fits(entry, output):
            _check_structured(entry, output)
        encoded = _encode_output(exchange, output)
    except UnserializableValue as error:
        return _encode_error(exchange, _unsendable_text(exchange, entry, error))
    except ToolError as error:
        exchange.record_outcome(Outcome.SHAPE, error.message)
        return _encode_error(exchange, error.message)
    size, limit = len(encoded), exchange.adapters.limits.tool_result
    if size > limit and output.structured and exchange.revision.structured_content:
        # It is there once more, as text.
        size -= len(jsonrpc.write(output.structured))
    if size > limit:
        message = (
            f"The result of {entry.identity} is too large: it has {size:,} bytes, and"
            f' MCP["LIMITS"]["TOOL_RESULT"] allows {limit:,}.'
        )
        exchange.record_outcome(Outcome.TOO_LARGE, message)
        return _encode_error(exchange, message)
    return encoded


def _surely_fits(entry: ToolEntry, output: ToolOutput) -> bool:
    if type(output) is ScalarOutput and type(output.value) is entry.scalar:
        return True
    return output.is_error or entry.definition.output_schema is None


def _check_structured(entry: ToolEntry, output: ToolOutput) -> None:
    structured, validator = output.structured, entry.output_validator
    if validator is None:
        return
    if structured is None:
        raise ToolError(
            f"{entry.identity} returned no structured content, but its output schema"
            " requires it."
        )
    if not validator.is_valid(structured):
        calls.logger.error(
            "A result does not match its output schema.",
            extra={"definition": entry.identity},
        )
        broken = validator.violations(structured)[0]
        raise ToolError(
            f"The result of {entry.identity} does not match its output schema at"
            f" {broken.path}: {broken.message}"
        )


def _encode_output(exchange: Exchange, output: ToolOutput) -> bytes:
    revision = exchange.revision
    if type(output) is ScalarOutput and revision.structured_content:
        return output.encoded_members() + exchange.catalog.result_end(revision)
    wire = block_to_wire if type(output.content) is CleanBlocks else _clean_block
    result: JsonObject = {
        "content": [wire(block, revision) for block in output.content]
    }
    if output.structured is not None:
        _add_structured(result, output.structured, revision)
    if output.is_error:
        result["isError"] = True
        texts = (each["text"] for each in result["content"] if each["type"] == "text")
        exchange.record_outcome(Outcome.TOOL_ERROR, next(texts, ""))
    if output.meta is None:
        # The rest is the same for every call: it was encoded once.
        return jsonrpc.write(result)[:-1] + exchange.catalog.result_end(revision)
    result["_meta"] = dict(output.meta)
    return jsonrpc.write(exchange.complete_result(result))


def _clean_block(block: Block, revision: Revision) -> JsonObject:
    """Return a block of a tool as a revision has it; its text is a plain one."""
    wire = block_to_wire(block, revision)
    if wire["type"] == "text":
        text = wire["text"]
        # It may be lazy, such as a translation.
        wire["text"] = clean_text(text if type(text) is str else str(text))
    return wire


def _add_structured(
    result: JsonObject, structured: Mapping[str, object], revision: Revision
) -> None:
    """Add structured content, also as text if there is no other block."""
    if revision.structured_content:
        result["structuredContent"] = structured
    if not result["content"]:
        result["content"] = [{"type": "text", "text": json_text(structured)}]
