"""What a tool call costs, beside the floors, the SDK and itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

from benchmarks import servers
from benchmarks.client import open_session
from benchmarks.measuring import (
    AtLeast,
    AtMost,
    Effort,
    Result,
    Subject,
    compare_cpu,
    compare_rates,
    interleaved,
)
from benchmarks.messages import JsonObject, call, is_sum
from benchmarks.postgres import cluster
from benchmarks.processes import Process

SESSION_RATIO: Final = 1.15 if sys.version_info >= (3, 12) else 1.2
"""Before Python 3.12 a task cannot begin at once."""


def on_uvicorn(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` of both eras and `drill_add_sync` with floor and SDK."""
    with servers.drill(audit="off") as ours, servers.sdk() as peer:
        one, in_session = _stateless(ours), _in_session(ours)
        sync = _stateless(ours, "drill_add_sync")
        with servers.floor(one.answer) as bare:
            floor = Subject(bare, one.request, one.answer)
            them = (_stateless(peer), _in_session(peer))
            subjects = [one, in_session, sync, floor, *them]
            found = interleaved(effort, subjects)
    mine, mine_in_session, in_thread, least, sdk, sdk_in_session = found
    yield compare_rates("drill_add / floor, uvicorn", mine, least, AtLeast(0.6))
    yield compare_rates("drill_add / SDK, stateless", mine, sdk, AtLeast(7))
    name = "drill_add / SDK, session"
    yield compare_rates(name, mine_in_session, sdk_in_session, AtLeast(7))
    bound = AtMost(SESSION_RATIO)
    yield compare_cpu("session / stateless", mine_in_session, mine, bound)
    yield compare_cpu("sync / async", in_thread, mine, AtMost(2.5))


def beside_django_mcpz(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` on uvicorn with the same tool of django-mcpz on granian."""
    with servers.drill(audit="off") as server, servers.mcpz("granian") as peer:
        ours = _stateless(server)
        theirs = Subject.asked(peer, ours.request, _is_structured_sum)
        own, other = interleaved(effort, [ours, theirs])
    name = "drill_add, uvicorn / django-mcpz, granian"
    yield compare_cpu(name, own, other, AtMost(0.36))
    yield compare_rates(name, own, other, AtLeast(2.5))


LOOPS: Final = 2_000
"""About as long as a call of ours takes."""


def control(effort: Effort) -> Iterator[Result]:
    """Compare the floor with itself after an empty loop: the kernel's part is alike.

    If it is not, the client sleeps while the slower server works, and each ratio of
    the other figures is too low.
    """
    with servers.drill() as ours:
        one = _stateless(ours)
        with (
            servers.floor(one.answer) as bare,
            servers.floor(one.answer, loops=LOOPS) as slow,
        ):
            subjects = [Subject(each, one.request, one.answer) for each in (bare, slow)]
            floor, looping = interleaved(effort, subjects)
    yield Result(
        "kernel: floor with a loop / floor",
        looping.kernel / floor.kernel,
        AtMost(1.2),
        raw=f"{looping} : {floor}",
    )


def on_daphne(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` with daphne's own floor."""
    with servers.drill("daphne") as server:
        ours = _stateless(server)
        with servers.floor(ours.answer, "daphne") as bare:
            floor = Subject(bare, ours.request, ours.answer)
            own, least = interleaved(effort, [ours, floor])
    yield compare_rates("drill_add / floor, daphne", own, least, AtLeast(0.75))


OTHERS: Final = ("daphne", "granian", "uvicorn-worker")
"""ASGI server programs, beside the one that the README recommends."""


def of_server_programs(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` on each ASGI server program with uvicorn."""
    with ExitStack() as stack:
        subjects = [
            _stateless(stack.enter_context(servers.drill(each, audit="off")))
            for each in ("uvicorn", *OTHERS)
        ]
        uvicorn, *others = interleaved(effort, subjects)
    for name, measured in zip(OTHERS, others, strict=True):
        yield compare_cpu(f"{name} / uvicorn", measured, uvicorn, AtLeast(0.9))


def by_wsgi(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` under gunicorn with an empty view, and with django-mcpz."""
    with servers.drill("gunicorn") as server, servers.mcpz() as peer:
        ours = _stateless(server)
        # Its text is the structured result.
        theirs = Subject.asked(peer, ours.request, _is_structured_sum)
        with servers.django_floor(ours.answer) as bare:
            floor = Subject(bare, ours.request, ours.answer)
            own, other, least = interleaved(effort, [ours, theirs, floor])
    yield compare_cpu("drill_add / empty view, gunicorn", own, least, AtMost(1.25))
    yield compare_cpu("django-mcpz / empty view, gunicorn", other, least, AtMost(9))


def by_wsgi_with_a_look_up(effort: Effort) -> Iterator[Result]:
    """Compare a sync tool with one query with a view that does the same."""
    request = call("look_up", {"pk": 1})
    with ExitStack() as stack:
        url = stack.enter_context(cluster()).url
        with servers.drill(database=url):
            """It prepares the database."""
        subjects = [
            Subject.asked(
                stack.enter_context(servers.looking_up(each, url)), request, _is_row
            )
            for each in ("view", "mcpz", "ours", "front")
        ]
        view, mcpz, ours, front = interleaved(effort, subjects)
    yield compare_cpu("look-up / view, gunicorn", ours, view, AtMost(1.2))
    name = "look-up with mcp_app.wsgi"
    yield compare_cpu(f"{name} / view, gunicorn", front, view, AtMost(1))
    yield compare_cpu("look-up / django-mcpz, gunicorn", ours, mcpz, AtMost(9))
    yield compare_cpu(f"{name} / django-mcpz, gunicorn", front, mcpz, AtMost(1))


def _is_row(result: JsonObject) -> bool:
    return bool(result.get("structuredContent", {}).get("result"))


def _is_structured_sum(result: JsonObject) -> bool:
    return bool(result.get("structuredContent") == {"result": 5})


def with_many_tools(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` of a catalog of 10,000 with that of a small one."""
    with servers.drill(tools=10_000) as large, servers.drill(tools=10) as small:
        many, few = interleaved(effort, [_stateless(large), _stateless(small)])
    yield compare_cpu("10,000 tools / 10 tools", many, few, AtMost(1.15))


def audited(effort: Effort) -> Iterator[Result]:
    """Compare `drill_add` with a row and a counter for each call, and without."""
    with ExitStack() as stack:
        given = stack.enter_context
        database = given(cluster())
        those = [
            given(servers.drill(audit="off")),
            given(servers.drill(database=database.url)),
            given(servers.drill()),
            given(servers.sdk()),
        ]
        stateless = interleaved(effort, [_stateless(each) for each in those])
        session = interleaved(effort, [_in_session(each) for each in those])
    for era, (off, written, embedded, sdk) in {
        "stateless": stateless,
        "session": session,
    }.items():
        what = "audited / not"
        yield compare_cpu(f"{what}, PostgreSQL, {era}", written, off, AtMost(1.25))
        yield compare_cpu(f"{what}, SQLite, {era}", embedded, off, AtMost(1.3))
        beside = f"audited drill_add / SDK, {era}"
        yield compare_rates(f"{beside}, PostgreSQL", written, sdk, AtLeast(5.5))
        yield compare_rates(f"{beside}, SQLite", embedded, sdk, AtLeast(5.5))


def _stateless(server: Process, tool: str = "drill_add") -> Subject:
    return Subject.asked(server, call(tool), is_sum)


def _in_session(server: Process) -> Subject:
    session = open_session(server.port)
    return Subject.asked(server, call("drill_add", session=session), is_sum)
