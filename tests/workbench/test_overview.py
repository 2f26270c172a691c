"""How the site does, as values: what is counted, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Q
from pytest_django import DjangoAssertNumQueries

from mcp_app.models import Prompt, PublishedRow, Server, Session, State, Tool
from mcp_app.models.definitions import Source
from mcp_app.workbench.overview import Clients, read_overview, row_counts
from mcp_app.workbench.viewer import MODELS, Viewer
from tests.admin.calls.rows import HOUR, crash, now_ms, write
from tests.published import published, stopped
from tests.streams.logging_rows import own_session

pytestmark = [pytest.mark.databases, pytest.mark.django_db]


def nowhere(_model: type[PublishedRow]) -> Q:
    return Q(pk__in=[])


def named(*names: str) -> Callable[[type[PublishedRow]], Q]:
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


def test_public_servers_are_begun() -> None:
    Server.objects.all().delete()
    Server.objects.create(slug="draft", access="public")
    published(Server(slug="closed"))
    assert row_counts([Server], nowhere)[Server].begun == 0
    published(Server(slug="open", access="public"))
    assert row_counts([Server], nowhere)[Server].begun == 1


def test_clients_with_a_session_and_without() -> None:
    own_session()
    own_session()
    Session.objects.update(seen_ms=now_ms())
    own_session()
    write(
        *({"session": ""} for _ in range(3)),
        {"session": "", "client_name": "Cursor"},
        {"session": "", "user_name": "kim"},
        {"session": "", "user_name": "", "principal": "anonymous"},
        # One of the sessions, long ago, and staff who try a tool.
        {},
        {"session": "", "user_name": "old", "ago_ms": HOUR},
        {"session": "", "user_name": "staff", "principal": "console"},
    )
    sees = Viewer(key=0, sessions=True, calls=True)
    assert read_overview(sees, 0, nowhere).clients == Clients(2, 4)
    blind = Viewer(key=0, sessions=True)
    assert read_overview(blind, 0, nowhere).clients == Clients(2, None)


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
    assert read_overview(viewer, 0, nowhere).connected is connected


def test_what_may_not_be_viewed_is_not_read(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    Tool.objects.create(name="gone", broken="Gone.")
    write(crash())
    own_session()
    with django_assert_num_queries(3):
        found = read_overview(Viewer(key=0), 0, nowhere)
    assert found.hours == []
    assert found.paces.failing == ()
    every = Viewer(key=0, models=MODELS, calls=True, sessions=True, tokens=True)
    with django_assert_num_queries(6):
        found = read_overview(every, 0, nowhere)
    assert (found.call_count, found.failure_count) == (1, 1)
