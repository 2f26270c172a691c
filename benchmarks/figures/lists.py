"""What one full page of tools costs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import servers
from benchmarks.client import result_of, send
from benchmarks.measuring import AtLeast, Effort, Result, Subject, interleaved
from benchmarks.messages import has_tools, stateless

TOOLS = 100


def of_100_tools(effort: Effort) -> Iterator[Result]:
    """Compare `tools/list` with a floor that repeats the same bytes."""
    request = stateless("tools/list", {})
    with servers.drill(tools=TOOLS - _fixtures()) as server:
        ours = Subject.asked(server, request, has_tools(TOOLS))
        with servers.floor(ours.answer) as bare:
            floor = Subject(bare, request, ours.answer)
            own, least = interleaved(effort, [ours, floor])
    size = len(ours.answer.before) + len(ours.answer.after)
    yield Result(
        figure=f"tools/list of {TOOLS} / floor",
        measured=own.rate / least.rate,
        bound=AtLeast(0.7),
        raw=f"{own} : {least}, {size:,} bytes",
    )


def _fixtures() -> int:
    """Return how many tools the fixture set has of its own."""
    with servers.drill() as server:
        result = result_of(send(server.port, stateless("tools/list", {})))
    return len(result["tools"])
