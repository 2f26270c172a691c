"""The metrics of all processes, for a registry of prometheus_client in any process.

Counters begin at midnight UTC: a sum over all hours that are kept would fall with each
that is deleted, and each fall would count all calls again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final, TypeAlias

from django.db.models import Case, Count, F, Min, OuterRef, Sum, Value, When
from prometheus_client import Metric, exposition, registry
from prometheus_client.openmetrics import exposition as openmetrics

from mcp_app import models
from mcp_app.interface.call_record import Outcome
from mcp_app.invalidation.workers import database_ms
from mcp_app.models import CallStatistic, Occurrence, Task, Worker
from mcp_app.models.calls import BOUNDS_MS, DURATIONS, HOUR_S
from mcp_app.models.fields import parse_json
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.models.workers import LIVE_MS
from mcp_app.telemetry.options import MetricsOptions, metrics_options

Labels: TypeAlias = dict[str, str]
DAY_MS: Final = 24 * HOUR_S * 1_000
TIMES: Final = "mcp_server_operation_duration_seconds"
TEXTS: Final = {
    TIMES: "How long calls took, since midnight UTC.",
    "mcp_calls_total": "Calls by how they ended, since midnight UTC.",
    "mcp_calls_without_row_total": "Calls that are only counted, since midnight UTC.",
    "mcp_workers": "Processes that live.",
    "mcp_worker_info": "A process: its host, its release, the digest of its code.",
    "mcp_worker_heartbeat_age_seconds": "Since a process was heard of, for 5 minutes.",
    "mcp_streams": "Streams that wait for changes.",
    "mcp_running_calls": "Requests that run.",
    "mcp_lost_threads": "Threads whose call is over, and which do not come back.",
    "mcp_broken_definitions": "Published rows that a process cannot serve.",
    "mcp_call_log_waiting": "Calls that wait to be written to the call log.",
    "mcp_resident_memory_bytes": "Memory of a process.",
    "mcp_event_loop_delay_seconds": "How late the event loop was, at most, of late.",
    "mcp_rejected_requests_total": "Requests that became no call, since midnight UTC.",
    "mcp_sessions": "Sessions that are open.",
    "mcp_stops": "Stops in force, by how far they reach.",
    "mcp_open_questions": "Questions of sessions that wait for an answer.",
    "mcp_tasks": "Tasks by their state.",
    "mcp_oldest_waiting_task_seconds": "How long the oldest task has waited to run.",
    "mcp_event_subscriptions": "Webhook subscriptions by their state.",
    "mcp_oldest_waiting_event_seconds": "Age of the oldest event not posted yet.",
}


class Collector(registry.Collector):
    """Reads the metrics of the whole site; `collect` blocks.

    `names` is how many names of tools, prompts and resources have series of their own;
    None stands for the number in the settings.
    """

    def __init__(self, names: int | None = None) -> None:
        options = metrics_options() or MetricsOptions.model_construct()
        self._names = names or options.names

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that a registry reads no database to know the names."""
        return ()

    def collect(self) -> Iterable[Metric]:
        figures = Figures(database_ms())
        _add_calls(figures, self._names)
        _add_workers(figures)
        _add_rows(figures)
        return figures.metrics.values()


def read_text(*, is_open: bool) -> bytes:
    """Return the metrics as OpenMetrics 1.0.0, else as Prometheus' text 0.0.4."""
    formats: Any = openmetrics if is_open else exposition
    text: bytes = formats.generate_latest(Collector())
    return text


class Figures:
    """The metrics of one moment, which is of the database's clock."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms, self.midnight_ms = now_ms, now_ms - now_ms % DAY_MS
        self.metrics = {name: _build_metric(name) for name in TEXTS}

    def add(self, name: str, value: float, labels: Labels, end: str = "") -> None:
        """Add a value, and after the last one of a counter when that began."""
        metric = self.metrics[name]
        metric.add_sample(f"{name}{end}", labels, value)
        if metric.type == "counter" or end == "_sum":
            began_s = self.midnight_ms / 1_000
            metric.add_sample(f"{metric.name}_created", labels, began_s)


def _build_metric(name: str) -> Metric:
    kinds = {"total": "counter", "info": "info"}
    kind = "histogram" if name == TIMES else kinds.get(name.rpartition("_")[2], "gauge")
    # The format has these ends for itself.
    return Metric(name.removesuffix("_total").removesuffix("_info"), TEXTS[name], kind)


# -- calls -----------------------------------------------------------------------------

METHODS: Final = {
    "tool": ("tools/call", "gen_ai_tool_name"),
    "prompt": ("prompts/get", "gen_ai_prompt_name"),
    "resource": ("resources/read", "mcp_resource"),
    "template": ("resources/read", "mcp_resource"),
    "completion": ("completion/complete", ""),
    "event": ("events/subscribe", ""),
}
"""The method of each kind of call, and the label of its name, if it has one."""
NO_ERROR: Final = (Outcome.ANSWERED, Outcome.ASKED, Outcome.TASK)
OTHERS: Final = "\N{HORIZONTAL ELLIPSIS}"
"""Stands for all names above the limit."""
BOUNDS: Final = [*(str(bound / 1_000) for bound in BOUNDS_MS), "+Inf"]


def _add_calls(figures: Figures, most_names: int) -> None:
    columns = ("calls", "dropped", "total_us", *DURATIONS)
    since = {"seconds": HOUR_S, "start_ms__gte": figures.midnight_ms}
    keys = ("server", "kind", "name", "outcome")
    rows = CallStatistic.objects.filter(**since).values_list(*keys)
    sums = {f"sum_{each}": Sum(each) for each in columns}
    today = rows.annotate(first=Min("start_ms"), **sums)
    names: set[tuple[str, str]] = set()
    ends, dropped = Counter[Any](), Counter[Any]()
    times: defaultdict[Any, list[int]] = defaultdict(lambda: [0] * len(columns))
    # Early names come first, so that nearly all series go on during the day.
    for server, kind, name, outcome, _first, *counts in today.order_by("first", *keys):
        method, label = METHODS.get(kind, (kind, ""))
        labels = [("mcp_server", server), ("mcp_method_name", method)]
        if label and name:
            if len(names) < most_names:
                names.add((label, name))
            labels.append((label, name if (label, name) in names else OTHERS))
        error = "" if outcome in NO_ERROR else outcome
        # The counts are in the order of `columns`.
        ends[*labels, ("error_type", error)] += int(counts[0])
        dropped[labels[0], ("error_type", error)] += int(counts[1])
        total = times[*labels]
        total[:] = (old + int(new) for old, new in zip(total, counts, strict=True))
    for name, counter in (("calls", ends), ("calls_without_row", dropped)):
        for pairs, count in counter.items():
            figures.add(f"mcp_{name}_total", count, dict(pairs))
    for pairs, (calls, _, total_us, *buckets) in times.items():
        for bound, count in zip(BOUNDS, accumulate(buckets), strict=True):
            figures.add(TIMES, count, {**dict(pairs), "le": bound}, "_bucket")
        figures.add(TIMES, calls, dict(pairs), "_count")
        figures.add(TIMES, total_us / 1_000_000, dict(pairs), "_sum")


# -- processes -------------------------------------------------------------------------

HEARD_MS: Final = 300_000
"""How long a silent process is reported; the rows of dead ones stay for hours."""
OF_REPORTS: Final = {
    "mcp_lost_threads": "lost",
    "mcp_call_log_waiting": "waiting",
    "mcp_resident_memory_bytes": "memory",
    "mcp_event_loop_delay_seconds": "delay",
}
"""The member of a process's report that each metric shows."""


def _add_workers(figures: Figures) -> None:
    rows = list(Worker.objects.filter(seen_ms__gte=figures.now_ms - HEARD_MS))
    live = [each for each in rows if each.seen_ms >= figures.now_ms - LIVE_MS]
    calls = models.Stream.objects.open().order_by()
    with_row = list(calls.values_list("owner", "session__server").annotate(Count("pk")))
    figures.add("mcp_workers", len(live), {})
    for row in rows:
        age_s = max(0, figures.now_ms - row.seen_ms) / 1_000
        figures.add("mcp_worker_heartbeat_age_seconds", age_s, {"worker": row.pk[:8]})
    for row in live:
        running = Counter[str]()
        for owner, server, count in with_row:
            running[server] += count if owner == row.pk else 0
        _add_report(figures, row, running)


def _add_report(figures: Figures, row: Worker, running: Counter[str]) -> None:
    """Add what a process says of itself; `running` are calls that have a row."""
    report, labels = row.report_of_process(), {"worker": row.pk[:8]}
    about = {"host": row.host, "release": report.release, "code": report.code[:8]}
    figures.add("mcp_worker_info", 1, {**labels, **about})
    figures.add("mcp_broken_definitions", len(report.broken), labels)
    for name, member in OF_REPORTS.items():
        figures.add(name, getattr(report, member), labels)
    for server, count in report.streams.items():
        figures.add("mcp_streams", count, {**labels, "mcp_server": server})
    for server, count in (running + Counter(report.calls)).items():
        figures.add("mcp_running_calls", count, {**labels, "mcp_server": server})
    reasons = Counter[str]()
    for start_ms, reason, _client, count in report.refused:
        reasons[reason] += count if start_ms >= figures.midnight_ms else 0
    for reason, count in reasons.items():
        figures.add("mcp_rejected_requests_total", count, {**labels, "reason": reason})


# -- rows ------------------------------------------------------------------------------

_WAITS: Final = {"status": "working", "owner": ""}
"""The condition of a task that no process runs yet."""
OF_TASK: Final = Case(
    When(**_WAITS, then=Value("waiting")),
    When(status="working", then=Value("running")),
    default=F("status"),
)
OF_SUBSCRIPTION: Final = Case(
    When(ending=True, then=Value("ending")),
    When(active=False, then=Value("paused")),
    When(failed_since_ms=None, then=Value("active")),
    default=Value("retrying"),
)


def _add_rows(figures: Figures) -> None:
    tasks: Any = Task.objects.filter(expires_ms__gt=NowMilliseconds())
    posts: Any = models.EventSubscription.objects.living()
    by_state = {"mcp_server": "server", "state": "phase"}
    counted: dict[str, tuple[Any, Labels]] = {
        "mcp_sessions": (models.Session.objects, {"mcp_server": "server"}),
        "mcp_stops": (models.Stop.objects.on(), {"scope": "scope"}),
        "mcp_open_questions": (
            models.Question.objects.waiting(),
            {"mcp_server": "session__server"},
        ),
        "mcp_tasks": (tasks.annotate(phase=OF_TASK), by_state),
        "mcp_event_subscriptions": (posts.annotate(phase=OF_SUBSCRIPTION), by_state),
    }
    for name, (rows, columns) in counted.items():
        grouped = rows.order_by().values_list(*columns.values())
        for *values, count in grouped.annotate(Count("pk")):
            figures.add(name, count, dict(zip(columns, values, strict=True)))
    later = Occurrence.objects.filter(
        topic=OuterRef("topic"), number__gt=OuterRef("position")
    )
    next_ms = later.order_by("number").values("created_ms")[:1]
    posts, now_ms = posts.filter(active=True, ending=False), figures.now_ms
    for name, rows, retried_ms in (
        ("task", tasks.annotate(since=Case(When(**_WAITS, then=F("updated_ms")))), {}),
        ("event", posts.annotate(since=next_ms), _retried_events(posts)),
    ):
        grouped = rows.order_by().values_list("server").annotate(Min("since"))
        for server, since_ms in grouped:
            begin_ms = min(since_ms or now_ms, retried_ms.get(server, now_ms))
            age_s = max(0, now_ms - begin_ms) / 1_000
            metric = f"mcp_oldest_waiting_{name}_seconds"
            figures.add(metric, age_s, {"mcp_server": server})


def _retried_events(posts: Any) -> dict[str, int]:
    """Return, by server, when the oldest event happened that is posted again."""
    oldest: dict[str, int] = {}
    rows = posts.exclude(retries="[]").values_list("server", "retries")
    for server, retries in rows.order_by():
        for number, *_times in parse_json(retries):
            oldest[server] = min(number, oldest.get(server, number))
    events = Occurrence.objects.filter(number__in=oldest.values())
    times = dict(events.values_list("number", "created_ms"))
    return {each: times[number] for each, number in oldest.items() if number in times}
