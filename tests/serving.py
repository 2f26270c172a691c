"""A pytest plugin: the endpoint, served in this process from real rows.

`application` is the ASGI application with a process of its own for each test; the
rows are written once for each module.  A test that leaves a task, a running call or
an open stream behind has failed, and so has one to which a wrong message was sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

if TYPE_CHECKING:
    from django.db.models import Model
    from pytest_django import DjangoDbBlocker, Settings

    from mcp_app.interface.principal import AuthenticationRequest, Principal
    from mcp_app.process.runtime import Process
    from mcp_app.streams.request_log import RequestLog
    from tests.asgi_client import Client
    from tests.behaviours import Stage
    from tests.row_copies import RowCopy
    from tests.wire.middleware import WireCheck

Counts: TypeAlias = dict[str, int]

PATIENCE_S: Final = 60.0


def _tagged(tag: str) -> dict[str, str]:
    return {"selection": "tags", "tags": tag}


SERVERS: Final[list[dict[str, Any]]] = [
    {"slug": "pages", "access": "public", "page_size": 2, **_tagged("paged")},
    {"slug": "private", "access": "header", "page_size": 2, **_tagged("private")},
    {"slug": "ruled", "access": "header", **_tagged("ruled")},
    {"slug": "guarded", "access": "header", "groups": "guards", **_tagged("shown")},
    {"slug": "closed", "access": ""},
    {"slug": "off", "access": "public"},
    {
        "slug": "tagged",
        "access": "public",
        "title": "Tagged",
        "version": "7",
        "instructions": "Ask for what is tagged.",
        "description": "Offers what is tagged.",
        "website_url": "https://example.org/",
        "icons": '[{"src":"https://example.org/s.png"}]',
        **_tagged("shown"),
    },
]


def by_header(request: AuthenticationRequest) -> Principal | None:
    """Authenticate whom the headers name: user, client, permissions and scope."""
    from mcp_app.interface.principal import AuthenticationFailed, Principal, Scope  # noqa: PLC0415 - the registry is ready

    user = request.headers.get(b"x-user")
    if user is None:
        return None
    if user == "nobody":
        raise AuthenticationFailed("There is no such user.")
    scope = Scope(
        read_only=request.headers.get(b"x-may") == "read",
        tags=frozenset((request.headers.get(b"x-tags") or "").split()),
    )
    return Principal(
        kind="user",
        user_id=user,
        user_name=user,
        client=request.headers.get(b"x-client") or "",
        permissions=frozenset((request.headers.get(b"x-permissions") or "").split()),
        scope=scope if scope != Scope() else None,
    )


@pytest.fixture(scope="module")
def _patient() -> Iterator[None]:
    """A machine that stands still for a moment changes no answer of a module's tests.

    After a second of silence an answer becomes a stream, and a check of the database
    that takes two is given up: tests that want that set it, or wait for it.
    """
    from mcp_app.process import freshness  # noqa: PLC0415
    from mcp_app.transports.http import replies  # noqa: PLC0415

    # A function's own would be taken back before those that tests set after it.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(replies, "PROMOTE_AFTER", PATIENCE_S / 2)
        patched.setattr(freshness, "TIMEOUT", PATIENCE_S)
        yield


@pytest.fixture
def after_a_second(_patient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_app.transports.http import replies  # noqa: PLC0415

    monkeypatch.setattr(replies, "PROMOTE_AFTER", 1.0)


@pytest.fixture(scope="session")
def served_database(django_db_setup: None) -> None:
    """The test database, also where no test is marked `django_db`.

    That mark would wrap a test in a transaction, which the threads of the endpoint
    cannot see, or flush all tables after it.
    """


@pytest.fixture(autouse=True)
def _guard(
    request: pytest.FixtureRequest, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Keep the database from a test that asks for none, beside served ones, too."""
    asks = request.node.get_closest_marker("django_db") is not None
    if asks or {"db", "served_rows", "transactional_db"} & {*request.fixturenames}:
        yield
        return
    with django_db_blocker.block():
        yield


@pytest.fixture(scope="module")
def served_rows(
    served_database: None, _patient: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    from django.db import connection  # noqa: PLC0415
    from django.db.backends.signals import connection_created  # noqa: PLC0415

    from mcp_app.pools.database import call_writer, log_writer, reader, writer  # noqa: PLC0415
    from tests.drill.databases import empty  # noqa: PLC0415

    connection_created.connect(_without_waiting_for_the_disk)
    with django_db_blocker.unblock():
        _write_rows()
        _warmth.clear()
        yield
        for each in (reader, writer, log_writer, call_writer):
            each.close()
        connection_created.disconnect(_without_waiting_for_the_disk)
        # It does not wait for the disk, which a test may look at.
        connection.close()
        empty()


def _without_waiting_for_the_disk(connection: Any, **_: object) -> None:
    """No test pulls the plug."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=OFF")


_copies: list[RowCopy] = []


def _write_rows() -> None:
    """Write the rows.

    The first time they are made as anybody makes them, which takes most of a second;
    then they are copied.
    """
    from mcp_app.models import Change, Server, Topic  # noqa: PLC0415
    from tests.drill.fixtures import write_fixtures  # noqa: PLC0415
    from tests.published import published, stopped  # noqa: PLC0415
    from tests.row_copies import RowCopy  # noqa: PLC0415

    if _copies:
        _copies[0].write()
    else:
        write_fixtures()
        for columns in SERVERS:
            published(Server(**columns))
        stopped(Server.objects.get(slug="off"))
        _copies.append(RowCopy(_written()))
        _erase([Change, Topic])


def _written() -> list[type[Model]]:
    from mcp_app import models  # noqa: PLC0415

    return [
        *(getattr(models.Server, choice).through for choice in models.Server.CHOICES),
        *(models.Tool, models.Resource, models.ResourceTemplate, models.Prompt),
        models.EventType,
        *(models.Server, models.Stop, models.DefinitionVersion),
    ]


def _traces() -> list[type[Model]]:
    """What requests leave behind."""
    from mcp_app import models  # noqa: PLC0415
    from tests.drill.models import Ledger  # noqa: PLC0415

    return [
        *(models.Subscription, models.LoggedMessage, models.Question, models.Event),
        *(models.Stream, models.Session, models.Once, models.Task, Ledger),
    ]


RATES: Final = {
    **{"tool_rate": 10**8, "tool_burst": 10**7},
    **{"request_rate": 10**8, "request_burst": 10**7},
}
"""A test calls more often than a person: all is counted, and nothing refused."""


@pytest.fixture
def mcp() -> dict[str, Any]:
    """`settings.MCP` of a test; tests replace it by a parameter of this name."""
    return {}


@pytest.fixture
async def process(
    mcp: dict[str, Any], settings: Settings, served_rows: None
) -> AsyncIterator[Process]:
    from mcp_app.pools.database import writer  # noqa: PLC0415
    from mcp_app.process import current as current_process  # noqa: PLC0415
    from mcp_app.process import runtime  # noqa: PLC0415
    from mcp_app.transports.http.request_handler import policy  # noqa: PLC0415
    from tests.behaviours import new_stage, registry  # noqa: PLC0415

    scene = new_stage()
    settings.MCP = {
        "AUTHENTICATION": {"header": "tests.serving.by_header"},
        "LIMITS": {**RATES},
        **mcp,
    }
    policy.clear_cache()
    current_process._current = current = runtime.Process(registry)
    current.offer_places()
    # Whole pages are kept encoded, with cursors that are sealed with the keys.
    if "STATE_KEYS" not in mcp:
        _warm(current)
    yield current
    scene.released_thread.set()
    await _nothing_left(current)
    await _nothing_untold(current)
    if "STATE_KEYS" not in mcp:
        _cool(current)
    current_process._current = None
    current.stop_timers()
    current.threads.close()
    policy.clear_cache()
    await writer.run(_erase_traces)


_warmth: dict[str, Any] = {}


def _warm(current: Process) -> None:
    """Give a process what an earlier one has loaded.

    It looks for changes as always, and loads all anew where there were any.
    """
    # The object stays: others of the process have it already.
    vars(current.catalogs).update(_warmth.get("catalogs", {}))
    if "news" in _warmth:
        current.announcements._reader.advance_past(_warmth["news"])
    if _warmth.get("registry") is current.registry:
        current._code_fingerprint = _warmth["code"]


def _cool(current: Process) -> None:
    from mcp_app.invalidation.change_reader import ChangeSet  # noqa: PLC0415

    reader = current.announcements._reader
    if reader._number is not None:
        news = ChangeSet(number=reader._number, uncompacted_ids=reader._row_ids)
        _warmth.update(catalogs=vars(current.catalogs).copy(), news=news)
    if "_code_fingerprint" in vars(current):
        # To reckon it takes longer than most tests.
        _warmth.update(registry=current.registry, code=current._code_fingerprint)


async def _nothing_left(current: Process) -> None:
    """Wait until all that the requests began has ended; fail where it does not."""

    def left() -> list[object]:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        return [*tasks, *current.listeners, *current.running]

    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while left() and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.001)
    assert not left()


async def _nothing_untold(current: Process) -> None:
    """See the changes that the test left, so that the next one is not told of them."""
    from mcp_app.protocol.errors import Unavailable  # noqa: PLC0415

    with suppress(Unavailable):
        await current.gate.wait_for_check()
    await _nothing_left(current)


def _erase_traces() -> None:
    from mcp_app.models import Call, CallStatistic, CallWriter, Worker  # noqa: PLC0415

    _erase([*_traces(), Call, CallStatistic, CallWriter, Worker])


def _erase(models: list[type[Model]]) -> None:
    for model in models:
        rows: Any = model._default_manager.all()
        rows._raw_delete(rows.db)


@pytest.fixture
def stage(process: Process) -> Stage:
    from tests import behaviours  # noqa: PLC0415

    return behaviours.stage()


@pytest.fixture
def application(process: Process) -> Iterator[WireCheck]:
    yield from _checked_site()


@pytest.fixture
def outside(process: Process) -> Iterator[WireCheck]:
    """The same site for a stranger: this check knows nobody's session.

    What a stranger is told of a session does not follow its revision, because then
    it would say that there is one.
    """
    yield from _checked_site()


def _checked_site() -> Iterator[WireCheck]:
    from django.core.handlers.asgi import ASGIHandler  # noqa: PLC0415

    import mcp_app.asgi  # noqa: PLC0415
    from tests.wire.middleware import WireCheck  # noqa: PLC0415

    check = WireCheck(mcp_app.asgi.application(ASGIHandler()))
    yield check
    assert check.violations == []


Connect: TypeAlias = "Callable[..., Awaitable[Client]]"


@pytest.fixture(params=["plain", pytest.param("otherwise", marks=pytest.mark.long)])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp_app.transports.http.plain_call import PlainCall  # noqa: PLC0415

    if request.param == "otherwise":
        monkeypatch.setattr(PlainCall, "is_admitted", lambda *_: False)


@pytest.fixture
def connect(application: WireCheck) -> Connect:
    from tests.asgi_client import Client  # noqa: PLC0415

    async def connected(version: str, **options: Any) -> Client:
        return await Client(application, version, **options).open()

    return connected


async def until(true: Callable[[], object]) -> None:
    """Wait for something to be true, and give up late."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(0.001)


async def all_logged(log: RequestLog) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while log.is_committing:
            await asyncio.sleep(0.001)


async def counted() -> Counts:
    """Return how many rows of each kind requests have left behind."""
    from mcp_app.pools.database import reader  # noqa: PLC0415

    return await reader.run(
        lambda: {model.__name__: model._default_manager.count() for model in _traces()}
    )
