"""How the site does, as values: what is counted, and what is not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils.timezone import now

from mcp_app.audit.tallies import period_start_ms
from mcp_app.models import (
    AccessToken,
    Prompt,
    PublishedRow,
    Server,
    Session,
    State,
    Tool,
)
from mcp_app.models.calls import HOUR_S
from mcp_app.models.definitions import Source
from mcp_app.models.workers import Report
from mcp_app.workbench.overview import (
    Hour,
    Pace,
    Processes,
    TokenCounts,
    broken_rows,
    calls_by_hour,
    client_count,
    processes,
    read_overview,
    read_paces,
    row_counts,
    token_counts,
)
from mcp_app.workbench.viewer import MODELS, Viewer
from tests.admin.calls.rows import HOUR, MINUTE, crash, now_ms, write
from tests.published import published, stopped
from tests.streams.logging_rows import own_session

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

Queries = Callable[[int], AbstractContextManager[Any]]


def nowhere(_model: type[PublishedRow]) -> Q:
    return Q(pk__in=[])


def named(*names: str) -> Callable[[type[PublishedRow]], Q]:
    """Return the condition that processes cannot serve the tools of these names."""
    return lambda model: Q(name__in=names) if model is Tool else Q(pk__in=[])


def test_rows_by_state() -> None:
    published(Tool(name="fine"))
    published(Tool(name="from_code", source=Source.CODE, kind="function"))
    Tool.objects.create(name="draft")
    Tool.objects.create(name="overlay", source=Source.CODE)
    stopped(published(Tool(name="off", broken="Gone.")))
    published(Tool(name="gone"))
    Tool.objects.filter(name="gone").update(broken="Gone.")
    published(Tool(name="here"))
    row = published(Tool(name="changed"))
    row.title = "New"
    row.save()
    found = row_counts([Tool, Prompt], named("here", "off"))
    states = {State.BROKEN: 2, State.CHANGED: 1, State.UNPUBLISHED: 1}
    tools = found[Tool]
    assert (tools.total, tools.states, tools.begun) == (8, states, 5)
    assert tools.published_count == 7
    assert (found[Prompt].total, found[Prompt].states[State.BROKEN]) == (0, 0)
    names = [(each.name, each.reason) for each in broken_rows([Tool], named("here"))]
    assert names == [("gone", "Gone."), ("here", "")]


def test_public_servers_are_begun() -> None:
    Server.objects.all().delete()
    Server.objects.create(slug="draft", access="public")
    published(Server(slug="closed"))
    assert row_counts([Server], nowhere)[Server].begun == 0
    published(Server(slug="open", access="public"))
    assert row_counts([Server], nowhere)[Server].begun == 1


def report(code: str = "c0de", **said: Any) -> Report:
    return Report(code=code, **said)


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([], Processes(0, 0, {})),
        ([report(), report()], Processes(2, 0, {})),
        ([report(), report("01d"), report()], Processes(3, 1, {})),
        # One of an older release says nothing.
        ([report(), report("")], Processes(2, 0, {})),
        (
            [report(lists={"a": 41}), report(lists={"a": 50, "b": 40})],
            Processes(2, 0, {"a": 50}),
        ),
        ([report(lists=[7]), report(lists={"a": "many"})], Processes(2, 0, {})),
    ],
)
def test_processes(reports: Sequence[Report], expected: Processes) -> None:
    assert processes(reports) == expected


def test_clients() -> None:
    assert client_count([]) == (0, False)
    own_session()
    Session.objects.update(seen_ms=int(time.time() * 1_000) - 20 * MINUTE)
    assert client_count([]) == (0, True)
    own_session()
    Session.objects.filter(pk=Session.objects.latest("pk").pk).update(seen_ms=now_ms())
    listening = [
        report(streams={"a": 2, "b": 1}, sessions=(1, 2)),
        report(streams={}, sessions=(3,)),
    ]
    assert client_count(listening) == (2, True)


def test_tokens() -> None:
    lee, max_ = (User.objects.create_user(name) for name in ("lee", "max"))
    at = now()

    def make(user: User, days: float | None, **columns: Any) -> None:
        ends = None if days is None else at + timedelta(days=days)
        row, _secret = AccessToken.objects.make(user=user, name="x", expires=ends)
        AccessToken.objects.filter(pk=row.pk).update(**columns)

    make(lee, 6)
    make(lee, 8)
    make(lee, None)
    make(lee, 6, revoked=at)
    make(lee, -1)
    make(max_, 1)
    everyone = Viewer(key=0, tokens=True)
    assert token_counts(everyone, at) == TokenCounts(ending=2, usable=4)
    assert token_counts(Viewer(key=max_.pk), at) == TokenCounts(ending=1, usable=4)
    User.objects.filter(pk=max_.pk).update(is_active=False)
    assert token_counts(everyone, at).ending == 1


def test_calls_by_hour() -> None:
    write({}, crash(), {"outcome": "cancelled"}, {"ago_ms": 5 * HOUR}, {"name": ""})
    write({"ago_ms": 30 * HOUR})
    at = now_ms()
    since = period_start_ms(at - 24 * HOUR, HOUR_S)
    hours = calls_by_hour(since)
    assert sum(each.calls for each in hours) == 5
    assert Hour(period_start_ms(at - 5 * HOUR, HOUR_S), 1, 0) in hours
    assert sum(each.failed for each in hours) == 1


def test_paces() -> None:
    write(*(crash(kind="prompt", took_us=2_000) for _ in range(20)))
    write(*({"took_us": 4_000} for _ in range(20)))
    write(*(crash(name="") for _ in range(50)))
    write(*(crash(name="old", ago_ms=30 * HOUR) for _ in range(50)))
    found = read_paces(now())
    prompt = Pace("prompt", "book_table", 20, 20, 2)
    tool = Pace("tool", "book_table", 20, 0, 4)
    assert found.slowest == [tool, prompt]
    assert found.most_failing == [prompt]
    assert found.failing == [prompt]


def test_a_failure_leaves_after_15_minutes() -> None:
    write(*(crash(ago_ms=10 * MINUTE) for _ in range(5)))
    assert [each.name for each in read_paces(now()).failing] == ["book_table"]
    assert read_paces(now() + timedelta(minutes=7)).failing == []
    assert read_paces(now() + timedelta(minutes=7)).most_failing


@pytest.mark.parametrize(
    ("columns", "connected"),
    [({}, True), ({"ago_ms": 90 * 24 * HOUR}, True), (None, False)],
)
@pytest.mark.parametrize("calls", [True, False])
def test_a_counter_tells_of_a_client(
    columns: dict[str, Any] | None, connected: bool, calls: bool
) -> None:
    if columns is not None:
        write(columns)
    viewer = Viewer(key=0, calls=calls)
    assert read_overview(viewer, [], nowhere).connected is connected


def test_what_may_not_be_viewed_is_not_read(
    django_assert_num_queries: Queries,
) -> None:
    Tool.objects.create(name="gone", broken="Gone.")
    write(crash())
    own_session()
    with django_assert_num_queries(3):
        found = read_overview(Viewer(key=0), [], nowhere)
    assert found.broken == []
    assert found.hours == []
    assert found.paces.failing == ()
    every = Viewer(key=0, models=MODELS, calls=True, sessions=True, tokens=True)
    with django_assert_num_queries(6):
        found = read_overview(every, [], nowhere)
    assert (len(found.broken), found.call_count, found.failure_count) == (1, 1, 1)
