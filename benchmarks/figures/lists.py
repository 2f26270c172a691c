"""What one full page of tools costs."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import servers
from benchmarks.client import result_of, send
from benchmarks.measuring import (
    AtLeast,
    Effort,
    Result,
    Subject,
    compare_rates,
    interleaved,
)
from benchmarks.messages import JsonObject, stateless

TOOLS = 100


def of_100_tools(effort: Effort) -> Iterator[Result]:
    """Compare `tools/list` with a floor that repeats the same bytes."""
    request = stateless("tools/list", {})
    with servers.drill(tools=TOOLS - _fixtures()) as server:
        ours = Subject.asked(server, request, _is_whole)
        with servers.floor(ours.answer) as bare:
            floor = Subject(bare, request, ours.answer)
            own, least = interleaved(effort, [ours, floor])
    yield compare_rates(f"tools/list of {TOOLS} / floor", own, least, AtLeast(0.7))


def _is_whole(result: JsonObject) -> bool:
    return len(result.get("tools", ())) == TOOLS and "nextCursor" not in result


def _fixtures() -> int:
    """Return how many tools the fixture set has of its own."""
    with servers.drill() as server:
        result = result_of(send(server.port, stateless("tools/list", {})))
    return len(result["tools"])
