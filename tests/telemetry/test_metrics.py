"""`/mcp/metrics`: who may read it, and what it tells."""

from __future__ import annotations

import json
import re
import time
from itertools import chain, product
from typing import Any, Final

import pytest
import yaml
from django.db import ProgrammingError, connection
from prometheus_client import CollectorRegistry, Metric
from prometheus_client import parser as text
from prometheus_client.openmetrics import parser as open_metrics

from mcp_app.audit.tallies import Tallies
from mcp_app.conf import MIB
from mcp_app.interface.call_record import FAILED
from mcp_app.interface.server import VERSION
from mcp_app.invalidation.workers import database_ms
from mcp_app.metrics import Collector
from mcp_app.models import CallStatistic, Occurrence, Question, Stop, Task
from mcp_app.models.stops import By, Running, Scope
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.pools.database import writer
from mcp_app.process.runtime import Process
from mcp_app.telemetry import collector
from mcp_app.transports.http import metrics
from tests.admin.operations.test_live import call, session, worker
from tests.admin.tasks.test_subscription_admin import subscription
from tests.asgi_client import Client, Visit
from tests.drill.running import ROOT
from tests.process.outages import away
from tests.scripting import STATELESS
from tests.serving import until
from tests.tasks.test_rows import task
from tests.wire.middleware import WireCheck

TOKEN: Final = "of-the-scraper-01"
BEARER: Final = {"authorization": f"Bearer {TOKEN}"}
BY_TOKEN: Final = {"token": TOKEN}
NETWORK: Final = {"networks": ["10.0.0.0/8"]}
OPEN: Final = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
TIMES: Final = collector.TIMES


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {"METRICS": {**BY_TOKEN, "names": 3}}


def asked(
    application: WireCheck,
    peer: str = "127.0.0.1",
    method: str = "GET",
    path: str = "/mcp/metrics",
    **headers: str,
) -> Visit:
    named = {"host": "localhost", **headers}
    pairs = [(name.replace("_", "-"), value) for name, value in named.items()]
    visit = Visit(application, method, path, pairs)
    visit.scope["client"] = (peer, 5000)
    return visit


def parsed(body: bytes, parser: Any = text) -> dict[str, Metric]:
    found = parser.text_string_to_metric_families(body.decode())
    return {each.name: each for each in found}


def values(found: dict[str, Metric], family: str, *labels: str) -> dict[Any, float]:
    """Return the values of a metric by these labels, without when they began."""
    return {
        tuple(each.labels.get(one, "") for one in labels): each.value
        for each in found[family].samples
        if "_created" not in each.name
    }


async def scraped(application: WireCheck, process: Process) -> dict[str, Metric]:
    """Return the metrics as they are now, with what was called before."""
    log = process.audit
    assert log is not None

    def is_written() -> bool:
        # Calls that are only counted, too: no row waits for them.
        log.write_pending()
        return not log.has_pending

    await until(is_written)
    metrics._results.clear()
    return parsed(await asked(application, **BEARER).body())


BOTH: Final = {**BY_TOKEN, **NETWORK}
INSIDE, OUTSIDE = {"peer": "10.0.0.1"}, {"peer": "11.0.0.1"}


@pytest.mark.parametrize(
    ("options", "request_", "status"),
    [
        (None, BEARER, 404),
        ({"token": "short"}, {"authorization": "Bearer short"}, 404),
        (BY_TOKEN, {**BEARER, "host": "10.1.2.3:8000"}, 200),
        (BY_TOKEN, INSIDE, 404),
        (BY_TOKEN, {"authorization": f"Bearer {TOKEN}x"}, 404),
        (BY_TOKEN, {"authorization": f"Basic {TOKEN}"}, 404),
        (BY_TOKEN, {**BEARER, "method": "POST"}, 404),
        (NETWORK, INSIDE, 200),
        (NETWORK, OUTSIDE, 404),
        (NETWORK, {"peer": ""}, 404),
        # A page elsewhere has rebound its name; a proxy that nobody has named.
        (NETWORK, {**INSIDE, "host": "evil.example"}, 421),
        (NETWORK, {**INSIDE, "x_forwarded_for": "10.0.0.2"}, 404),
        (BOTH, INSIDE, 404),
        (BOTH, {**OUTSIDE, **BEARER}, 404),
        (BOTH, {**INSIDE, **BEARER}, 200),
    ],
)
async def test_who_may_read(
    application: WireCheck, settings: Any, options: Any, request_: Any, status: int
) -> None:
    settings.MCP = {**settings.MCP, "METRICS": options}
    visit, elsewhere = (
        asked(application, path=f"/mcp/{slug}", **request_)
        for slug in ("metrics", "nowhere")
    )
    body = (await visit.body()).replace(b"metrics", b"nowhere")
    # To others it is as a server that does not exist.
    assert (body == await elsewhere.body()) is (status != 200)
    assert visit.status == status


async def test_a_trusted_proxy_tells_who_asks(
    application: WireCheck, settings: Any
) -> None:
    settings.MCP = {**settings.MCP, "METRICS": NETWORK, "TRUSTED_PROXIES": 1}
    for address, status in (("10.0.0.9", 200), ("12.0.0.9", 404)):
        visit = await asked(application, x_forwarded_for=address).begun()
        assert visit.status == status


async def test_two_formats_one_result(application: WireCheck) -> None:
    plain, again = asked(application, **BEARER), asked(application, **BEARER)
    short = asked(application, method="HEAD", **BEARER)
    body = await plain.body()
    assert body == await again.body()
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert (await short.body(), short.headers) == (b"", plain.headers)
    second = asked(application, **BEARER, **OPEN)
    assert parsed(await second.body(), open_metrics).keys() == {
        each.removesuffix("_total").removesuffix("_info") for each in collector.TEXTS
    }
    assert "openmetrics-text; version=1.0.0" in second.headers["content-type"]


@pytest.mark.parametrize("count", [100, pytest.param(100_000, marks=pytest.mark.long)])
async def test_calls(application: WireCheck, process: Process, count: int) -> None:
    client = Client(application, STATELESS)
    for number in range(count):
        await client.call(f"made_up_{number}")
    before = await scraped(application, process)
    for arguments in ({"a": 1, "b": 2}, {"a": 1}, {"a": 1, "b": 2}):
        await client.call("drill_add", **arguments)
    after = await scraped(application, process)
    ends = ("gen_ai_tool_name", "error_type")
    assert values(before, "mcp_calls", *ends) == {("", "unknown"): count}
    assert values(after, "mcp_calls", *ends) == {
        ("", "unknown"): count,
        ("drill_add", ""): 2,
        ("drill_add", "arguments"): 1,
    }
    times = values(after, TIMES, "gen_ai_tool_name", "le")
    assert (times["drill_add", "+Inf"], times["", "+Inf"]) == (3, count)
    # Few such calls of strangers get rows.
    assert 0 < values(after, "mcp_calls_without_row", "error_type")["unknown",] < count


async def test_what_a_process_reports(application: WireCheck, process: Process) -> None:
    await Client(application, STATELESS).call("drill_add", a=1, b=2)
    process._look_for_hanging(process.loop.time() - 2)
    report = process.build_report()
    assert (report.release, report.waiting) == (VERSION, 1)
    assert report.memory > 10 * MIB
    assert 2 <= report.delay < 60


async def test_while_everything_is_stopped(
    application: WireCheck, process: Process
) -> None:
    stop = await writer.run(
        lambda: Stop.objects.make(
            Scope.EVERYTHING, by=By("lee"), running=Running.FINISH
        )
    )
    found = await scraped(application, process)
    assert values(found, "mcp_stops", "scope")["everything",] == 1
    await writer.run(lambda: Stop.objects.end([stop.pk], by=By("lee")))


async def test_while_the_database_is_away(application: WireCheck) -> None:
    with away():
        visit = asked(application, **BEARER)
        assert await visit.body() == metrics.AWAY
    assert (visit.status, visit.headers["retry-after"]) == (503, "2")


async def test_before_the_tables_are_there(
    application: WireCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> bytes:
        raise ProgrammingError("column of the next release")

    monkeypatch.setattr(collector, "read_text", fail)
    metrics._results.clear()
    visit = asked(application, **BEARER)
    assert (await visit.body(), visit.status) == (metrics.AWAY, 503)
    metrics._results.clear()


# -- without a process -----------------------------------------------------------------

MIDNIGHT_MS: Final = 1_795_824_000_000
HOUR_MS: Final = 3_600_000


def at(monkeypatch: pytest.MonkeyPatch, now_ms: int) -> dict[str, Metric]:
    monkeypatch.setattr(collector, "database_ms", lambda: now_ms)
    return {each.name: each for each in Collector(3).collect()}


def call_tools(start_ms: int, *names: str) -> None:
    tallies = Tallies()
    for name in names:
        tallies.add_calls(start_ms, ("default", "tool", name, "answered"), [900])
    CallStatistic.objects.raise_by(tallies.sorted_rows())


@pytest.mark.django_db
def test_counters_grow_for_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    call_tools(MIDNIGHT_MS - HOUR_MS, "old")
    call_tools(MIDNIGHT_MS, "d", "c")
    first = at(monkeypatch, MIDNIGHT_MS + 1)
    call_tools(MIDNIGHT_MS + HOUR_MS, "d", "e")
    call_tools(MIDNIGHT_MS + 2 * HOUR_MS, "a", "b")
    last = at(monkeypatch, MIDNIGHT_MS + 24 * HOUR_MS - 1)
    name = "gen_ai_tool_name"
    assert values(first, "mcp_calls", name) == {("c",): 1, ("d",): 1}
    assert values(last, "mcp_calls", name) == {
        **{("c",): 1, ("d",): 2, ("e",): 1},
        # Whoever came when there were three names.
        (collector.OTHERS,): 2,
    }
    for family in (last["mcp_calls"], last[TIMES]):
        began = {each.value for each in family.samples if "_created" in each.name}
        assert began == {MIDNIGHT_MS / 1_000}
    assert values(at(monkeypatch, MIDNIGHT_MS + 24 * HOUR_MS), "mcp_calls") == {}


@pytest.fixture
def told(db: None) -> dict[str, Metric]:
    """What is told of a site that has some of everything."""
    an_hour_ago: Any = NowMilliseconds() - HOUR_MS
    about = {"lost": 1, "waiting": 7, "memory": 2**27, "delay": 0.25, "release": "9.9"}
    counts = {"calls": {"default": 2}, "streams": {"default": 3}}
    refused = ((0, "host", "", 9), (database_ms(), "host", "x", 4))
    broken = (("tool", "1", 0, "why"),)
    worker("a" * 32, 1_000, **about, **counts, refused=refused, broken=broken)
    worker("b" * 32, 20_000)
    worker("c" * 32, HOUR_MS)
    call(of := session(), owner="a" * 32)
    Question.objects.ask(of.pk, "q")
    Stop.objects.make(Scope.CHANGES, by=By("lee"))
    ended, waiting, _runs = task(), task(), task("a")
    Task.objects.filter(pk=ended.pk).update(status="completed")
    Task.objects.filter(pk=waiting.pk).update(updated_ms=an_hour_ago)
    subscription("paid")
    subscription("paid", person="2", principal="2", active=False)
    # Its receiver fails: all is posted once, and the first one is posted again.
    again: dict[str, Any] = {
        "position": 2,
        "retries": "[[2,1,0],[1,3,0]]",
        "failed_since_ms": 1,
    }
    subscription("paid", person="3", principal="3", server="team", **again)
    for number, when_ms in ((1, an_hour_ago), (2, database_ms())):
        occurred = {"topic": "paid", "event_id": f"e{number}", "data": "{}"}
        Occurrence.objects.create(number=number, created_ms=when_ms, **occurred)
    call_tools(database_ms(), "a")
    return parsed(collector.read_text(is_open=False))


def test_processes(told: dict[str, Metric]) -> None:
    ages = values(told, "mcp_worker_heartbeat_age_seconds", "worker")
    # The third one has been dead for too long.
    assert ages.keys() == {("aaaaaaaa",), ("bbbbbbbb",)}
    assert ages["bbbbbbbb",] == pytest.approx(20, abs=10)
    who = {("aaaaaaaa", f"host-{'a' * 32}", "9.9"): 1}
    assert values(told, "mcp_worker_info", "worker", "host", "release") == who
    for name, value in (
        *(("workers", 1), ("lost_threads", 1), ("call_log_waiting", 7)),
        *(("resident_memory_bytes", 2**27), ("event_loop_delay_seconds", 0.25)),
        *(("running_calls", 3), ("streams", 3), ("rejected_requests", 4)),
        *(("broken_definitions", 1), ("sessions", 1), ("open_questions", 1)),
    ):
        assert [*values(told, f"mcp_{name}").values()] == [value], name


def test_what_waits(told: dict[str, Metric]) -> None:
    tasks = dict.fromkeys([("waiting",), ("running",), ("completed",)], 1)
    assert values(told, "mcp_tasks", "state") == tasks
    states = values(told, "mcp_event_subscriptions", "state")
    assert states == {("active",): 1, ("paused",): 1, ("retrying",): 1}
    assert values(told, "mcp_stops", "scope") == {("changes",): 1}
    for name, servers in (("task", 1), ("event", 2)):
        ages = values(told, f"mcp_oldest_waiting_{name}_seconds", "mcp_server")
        assert [*ages.values()] == [pytest.approx(3_600, abs=60)] * servers


def test_what_deploy_names_is_there(told: dict[str, Metric]) -> None:
    folder, samples = ROOT / "deploy", chain(*(each.samples for each in told.values()))
    board = json.loads((folder / "grafana.json").read_text("utf-8"))
    [group] = yaml.safe_load((folder / "alerts.yaml").read_text("utf-8"))["groups"]
    targets = [one for each in board["panels"] for one in each["targets"]]
    queries = " ".join(each["expr"] for each in (*targets, *group["rules"]))
    there = {name for each in samples for name in (each.name, *each.labels)}
    named = {*re.findall(r"\bmcp_\w+|\bgen_ai_\w+|\w+_type\b", queries)}
    assert len(named) > 20
    assert named <= there
    assert f'error_type=~"{"|".join(FAILED)}"' in queries
    assert len({each["id"] for each in board["panels"]}) == len(board["panels"])


def test_a_registry_of_the_site_takes_them() -> None:
    # Nothing is read for that: this test may not.
    CollectorRegistry(auto_describe=True).register(Collector())


# -- large -----------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.databases
@pytest.mark.django_db
def test_a_thousand_tools_for_a_day(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = ("answered", "arguments", "crashed")
    for hour_ms in range(MIDNIGHT_MS, MIDNIGHT_MS + 24 * HOUR_MS, HOUR_MS):
        tallies = Tallies()
        for name, outcome in product(map(str, range(1_000)), outcomes):
            subject = ("default", "tool", name, outcome)
            tallies.add_calls(hour_ms, subject, [1_000, 20_000])
        CallStatistic.objects.raise_by(tallies.sorted_rows())
    monkeypatch.setattr(collector, "database_ms", lambda: MIDNIGHT_MS + 1)
    settings.MCP = {"METRICS": {**BY_TOKEN, "names": 1_000}}
    began = time.perf_counter()
    body = collector.read_text(is_open=True)
    took_s = time.perf_counter() - began
    lines = body.count(b"\n")
    print(f"{connection.vendor}: {lines} lines in {took_s:.2f} s")  # noqa: T201
    assert lines > 20_000
    assert took_s < metrics.PATIENCE_S
