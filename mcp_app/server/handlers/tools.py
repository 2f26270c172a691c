"""tools/call: arguments against the schema, the call, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from mcp_app.catalog.runnable import ArgumentsRefused
from mcp_app.catalog.snapshot import ToolEntry
from mcp_app.catalog.type_hints import ScalarOutput
from mcp_app.interface.call_record import ANSWERED, Ending, Outcome
from mcp_app.interface.questions import ToolOutput
from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Block, Text, block_to_wire
from mcp_app.protocol.errors import InvalidParams, ProtocolError
from mcp_app.protocol.headers import check_mirrored
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import UnserializableValue
from mcp_app.protocol.results import complete_result
from mcp_app.protocol.schemas import Violation
from mcp_app.protocol.texts import CleanBlocks, clean_text, json_text
from mcp_app.server import call as calls
from mcp_app.server import coercion
from mcp_app.server.approving import find_decision
from mcp_app.server.finding import find_entry
from mcp_app.server.outcome import (
    Encoded,
    Failed,
    error_of_run,
    failure_of,
    first_text,
    forbidden_text,
    logger,
    with_outcome,
)
from mcp_app.server.request import Request
from mcp_app.server.round_trip import TaskStarted
from mcp_app.server.run import Run
from mcp_app.server.tasks import Mode, mode_of, start_task
from mcp_app.server.waiting import call_and_wait, get_task_result

if TYPE_CHECKING:
    from mcp_app.catalog.snapshot import Catalog
    from mcp_app.protocol.revisions import Revision

_TASK_MODES: Final[Mapping[Mode, Callable[..., Awaitable[Encoded]]]] = {
    Mode.TASK: start_task,
    Mode.WAIT: call_and_wait,
    Mode.FETCH: get_task_result,
}
"""The function that answers a call instead of the tool's function."""


async def call_tool(run: Run) -> Encoded:
    """Run a tool; errors for the model are results with `isError`."""
    request = run.request
    try:
        name = coercion.string_member(request.params, "name")
        entry: ToolEntry = find_entry(run, "tools", name)
        rates = request.adapters.rates
        if request.task is None and (wait := rates.wait_for_tool(request.payer, entry)):
            raise Failed(rates.sentence(entry, wait), Outcome.LIMITED)
        arguments, bound = await _bind_arguments(run, entry)
        if not await request.allows_arguments(entry.definition, arguments):
            raise Failed(forbidden_text(entry), Outcome.FORBIDDEN)
        try:
            if (mode := mode_of(run, entry)) is Mode.DECIDE:
                run.decision = await find_decision(run, entry, arguments)
                mode = mode_of(run, entry)
            if mode is Mode.CALL:
                return await _call_function(run, entry, arguments, bound)
            return await _TASK_MODES[mode](run, entry, arguments)
        except ProtocolError as error:
            raise error_of_run(run, error) from error.__cause__
    except ArgumentsRefused as error:
        return _refuse_arguments(run, error.violations)
    except Failed as failed:
        return _encode_failure(run, failed)


async def _call_function(
    run: Run,
    entry: ToolEntry,
    arguments: JsonObject,
    bound: dict[str, object],
) -> Encoded:
    try:
        output = await calls.run_user_code(run, entry, entry.runnable, bound)
    except TaskStarted as started:
        return await start_task(run, entry, arguments, started.state)
    return _encode_for_request(run.request, entry, output)


async def finish_tool_call(
    run: Run, entry: ToolEntry, outputs: list[ToolOutput | BaseException]
) -> Encoded:
    """Return the result of a plain call whose function has returned, or raised.

    The output comes in a list and is taken out of it: if it is an exception, the frames
    in its traceback must not refer to it.
    """
    output = outputs.pop()
    try:
        try:
            if isinstance(output, BaseException):
                calls.conclude_call(run, output)
                raise output
            calls.conclude_call(run)
        except ProtocolError as error:
            raise error_of_run(run, error) from error.__cause__
        except (Exception, asyncio.CancelledError) as error:
            raise failure_of(run, entry, error) from error
        return _encode_for_request(run.request, entry, output)
    except Failed as failed:
        return _encode_failure(run, failed)
    finally:
        del output


async def refuse_tool_call(run: Run, errors: list[BaseException]) -> Encoded:
    """Return the result of a call whose arguments do not fit, or raise the error.

    The error is taken out of its list, as in `finish_tool_call`.
    """
    try:
        raise errors.pop()
    except ArgumentsRefused as error:
        return _refuse_arguments(run, error.violations)


async def _bind_arguments(
    run: Run, entry: ToolEntry
) -> tuple[JsonObject, dict[str, object]]:
    """Return what `_bind` returns; a thread does it if the arguments are many."""
    if run.request.is_large:
        return await large_work.run(run.request.owner, _bind, run, entry)
    return _bind(run, entry)


def _bind(run: Run, entry: ToolEntry) -> tuple[JsonObject, dict[str, object]]:
    """Return valid arguments: as they came, and as the function takes them.

    Raise `ArgumentsRefused` with every violation.
    """
    request = run.request
    arguments = coercion.object_member(request.params, "arguments")
    headers = request.headers if request.mirrors_headers else None
    mirrored = entry.header_parameters
    if mirrored and headers is not None and request.revision.routing_headers:
        check_mirrored(mirrored, headers, arguments)
    accepted, violations = coercion.accepted_arguments(
        entry, arguments, coerce=request.adapters.coerce
    )
    if violations:
        raise ArgumentsRefused(violations)
    return accepted, entry.runnable.bind(accepted)


def _refuse_arguments(run: Run, violations: list[Violation]) -> Encoded:
    lines = [f"- {each.path} ({each.rule}): {each.message}" for each in violations]
    heading = f"Invalid arguments for {_called_entry(run).identity}:"
    text = "\n".join([heading, *lines])
    if run.request.revision.argument_errors_as_results:
        # A model needs the whole text to mend the arguments, whatever its size.
        output = ToolOutput([Text(text)], is_error=True)
        encoded = _encode_output(run.request.catalog, run.request.revision, output)
        return encoded, Ending(Outcome.ARGUMENTS, text)
    details = [asdict(violation) for violation in violations]
    # The message of an error is one line; this client reads the rest in `data`.
    error = InvalidParams(f"{heading} {' '.join(lines)}", {"violations": details})
    raise with_outcome(error, Outcome.ARGUMENTS, text)


def _called_entry(run: Run) -> ToolEntry:
    assert isinstance(run.entry, ToolEntry)  # noqa: S101 - `find_entry` noted it
    return run.entry


def _encode_failure(run: Run, failed: Failed) -> Encoded:
    output = ToolOutput(failed.content, is_error=True)
    return _encode_for_request(run.request, _called_entry(run), output, failed.ending)


def _encode_for_request(
    request: Request,
    entry: ToolEntry,
    output: ToolOutput,
    ending: Ending = ANSWERED,
) -> Encoded:
    limit = request.adapters.limits.tool_result
    return check_and_encode(
        request.catalog, request.revision, limit, entry, output, ending
    )


def check_and_encode(
    catalog: Catalog,
    revision: Revision,
    limit: int,
    entry: ToolEntry,
    output: ToolOutput,
    ending: Ending = ANSWERED,
) -> Encoded:
    """Encode an output, or an error if it breaks its schema or exceeds `limit` bytes.

    The first ending counts: `ending` if the call failed, else that of an error output.
    """
    encoded, failed = b"", _shape_failure(entry, output)
    if failed is None:
        try:
            encoded = _encode_output(catalog, revision, output)
        except UnserializableValue as error:
            failed = Failed(f"The result of {entry.identity}: {error}", Outcome.SHAPE)
        else:
            if output.is_error and ending is ANSWERED:
                content = output.content or [Text(json_text(output.structured or {}))]
                ending = Ending(Outcome.TOOL_ERROR, first_text(content))
            if len(encoded) > limit:
                failed = _size_failure(revision, limit, entry, output, len(encoded))
    if failed is None:
        return encoded, ending
    refusal = ToolOutput(failed.content, is_error=True)
    encoded = _encode_output(catalog, revision, refusal)
    return encoded, failed.ending if ending is ANSWERED else ending


def _size_failure(
    revision: Revision, limit: int, entry: ToolEntry, output: ToolOutput, size: int
) -> Failed | None:
    if output.structured and revision.structured_content:
        # Structured content stands in the result a second time, as text.
        size -= len(jsonrpc.write(output.structured))
    if size <= limit:
        return None
    return Failed(
        f"The result of {entry.identity} is too large: it has {size:,} bytes, and"
        f' MCP["LIMITS"]["TOOL_RESULT"] allows {limit:,}.',
        Outcome.TOO_LARGE,
    )


def _shape_failure(entry: ToolEntry, output: ToolOutput) -> Failed | None:
    if type(output) is ScalarOutput and type(output.value) is entry.scalar:
        return None
    if output.is_error or (validator := entry.output_validator) is None:
        return None
    structured = output.structured
    if structured is None:
        return Failed(
            f"{entry.identity} returned no structured content, but its output schema"
            " requires it.",
            Outcome.SHAPE,
        )
    if validator.is_valid(structured):
        return None
    logger.error(
        "A result does not match its output schema.",
        extra={"definition": entry.identity},
    )
    violation = validator.violations(structured)[0]
    return Failed(
        f"The result of {entry.identity} does not match its output schema at"
        f" {violation.path}: {violation.message}",
        Outcome.SHAPE,
    )


def _encode_output(catalog: Catalog, revision: Revision, output: ToolOutput) -> bytes:
    if type(output) is ScalarOutput and revision.structured_content:
        return output.encoded_members() + catalog.result_end(revision)
    wire = block_to_wire if type(output.content) is CleanBlocks else _clean_block
    result: JsonObject = {
        "content": [wire(block, revision) for block in output.content]
    }
    if output.structured is not None:
        _add_structured(result, output.structured, revision)
    if output.is_error:
        result["isError"] = True
    if output.meta is None:
        # The end, with the last brace, is the same for every call: it was encoded once.
        return jsonrpc.write(result)[:-1] + catalog.result_end(revision)
    result["_meta"] = dict(output.meta)
    info = catalog.server_info(revision)
    return jsonrpc.write(complete_result(result, revision, info))


def _clean_block(block: Block, revision: Revision) -> JsonObject:
    """Return a tool's block in the form of a revision, with cleaned text."""
    wire = block_to_wire(block, revision)
    if wire["type"] == "text":
        text = wire["text"]
        # The text may be lazy, such as a translation.
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
