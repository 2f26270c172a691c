"""How the site does: what needs care, its processes and clients, the calls of a day.

Each function makes one statement, however many rows there are. Calls are read from
their counters alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias

from django.db.models import (
    Case,
    CharField,
    Count,
    F,
    IntegerField,
    Max,
    OrderBy,
    Q,
    QuerySet,
    Sum,
    Value,
    When,
    Window,
)
from django.db.models.functions import RowNumber
from django.utils import timezone

from mcp_app.account.call_decisions import calls_to_approve
from mcp_app.audit.tallies import period_start_ms
from mcp_app.auth.user_queries import active_condition, all_users
from mcp_app.egress.sites import upstream_sites
from mcp_app.interface.call_record import FAILED, REFUSED, Outcome
from mcp_app.interface.principal import CONSOLE
from mcp_app.interface.server import PUBLIC
from mcp_app.models import (
    AccessToken,
    Call,
    CallStatistic,
    DefinitionRow,
    EventSubscription,
    OpenApiDocument,
    PublishedRow,
    Server,
    Session,
    State,
    Task,
    Tool,
)
from mcp_app.models.call_rows import CallingClient, CallQuery
from mcp_app.models.calls import DURATIONS, HOUR_S, MINUTE_S
from mcp_app.models.definitions import Source
from mcp_app.models.sessions import RECENT_MS
from mcp_app.models.stops import is_stopped
from mcp_app.models.tokens import ends_soon
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.workbench.viewer import Viewer

MAX_FAILING: Final = 100
"""How many definitions that failed lately are read, those with most failures first."""
MAX_RANKED: Final = 5
"""How many of the most called definitions are shown."""
DAY_MS: Final = 24 * HOUR_S * 1_000
FEW_CALLS: Final = 5
"""With fewer calls nothing counts as failing."""
NEWEST_CALLS: Final = 5_000
"""How many calls are read to count their clients."""

RowsOf: TypeAlias = Callable[[type[PublishedRow]], Q]
"""Returns the condition for certain rows of a model."""
PLACES: Final = (State.BROKEN, State.CHANGED, State.UNPUBLISHED)
"""The states that are counted; a query returns their index (`place`)."""


@dataclass(slots=True)
class RowCounts:
    """How many rows of a model there are, and how many are not as clients see them.

    `begun` counts the rows of a site's first steps: definitions that staff made and
    published, or servers that are published for everybody.
    """

    total: int = 0
    states: dict[State, int] = field(default_factory=dict)
    begun: int = 0

    @property
    def published_count(self) -> int:
        return self.total - self.states.get(State.UNPUBLISHED, 0)


@dataclass(frozen=True, slots=True)
class Hour:
    """How many calls began in the hour from `start_ms`, by how they ended."""

    start_ms: int
    calls: int
    refused: int
    failed: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How often something was called and failed.

    `durations` count its calls by the columns `to_1` to `longer`; the longest call took
    `longest_us`; `outcome` is how most of the failed calls ended.
    """

    kind: str
    name: str
    calls: int
    failed: int
    durations: Sequence[int] = ()
    longest_us: int = 0
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Paces:
    """What fails now, and what was called most in a day."""

    failing: Sequence[Pace] = ()
    most_called: Sequence[Pace] = ()


@dataclass(frozen=True, slots=True)
class Clients:
    """How many sessions were used recently, and how many clients called without one.

    `others` is None if the viewer may not view calls.
    """

    sessions: int
    others: int | None

    @property
    def count(self) -> int:
        return self.sessions + (self.others or 0)


@dataclass(frozen=True, slots=True)
class Overview:
    """How the site does, as far as the viewer may know it.

    `rows` also counts tools and servers that the viewer may not view.
    `tokens` are the counts of `token_counts`.  The calls are those since `since_ms`;
    `connected` says whether a client ever connected.
    `undecided` says when each call began that waits for the viewer, the oldest first.
    `upstreams` are the other MCP servers whose tools differ from what was taken over.
    """

    rows: Mapping[type[PublishedRow], RowCounts]
    processes: int
    clients: Clients
    tokens: Mapping[str, int]
    since_ms: int
    hours: Sequence[Hour]
    paces: Paces
    connected: bool
    late_tasks: int = 0
    failing_receivers: int = 0
    undecided: Sequence[int] = ()
    upstreams: Sequence[OpenApiDocument] = ()

    @property
    def call_count(self) -> int:
        return sum(hour.calls for hour in self.hours)

    @property
    def refusal_count(self) -> int:
        return sum(hour.refused for hour in self.hours)

    @property
    def failure_count(self) -> int:
        return sum(hour.failed for hour in self.hours)


def read_overview(viewer: Viewer, processes: int, broken_here: RowsOf) -> Overview:
    """Return how the site does; at most ten statements.

    `processes` is the number of live processes, `broken_here` the condition for the
    rows of a model that these processes cannot serve.
    """
    rows = row_counts((*viewer.models, Tool, Server), broken_here)
    now = timezone.now()
    clients, was_connected = client_counts(viewer, _milliseconds(now))
    since_ms = period_start_ms(_milliseconds(now) - DAY_MS, HOUR_S)
    rows_of_hours = CallStatistic.objects.filter(seconds=HOUR_S, start_ms__gte=since_ms)
    counted = rows_of_hours.order_by("start_ms").values_list("start_ms")
    counted = counted.annotate(
        sum=Sum("calls"),
        refused=_sum_of_calls(outcome__in=REFUSED),
        failed=_sum_of_calls(outcome__in=FAILED),
    )
    hours = [Hour(*map(int, each)) for each in counted] if viewer.calls else []
    failing = EventSubscription.objects.failing().values("url_digest").distinct()
    upstreams: Sequence[OpenApiDocument] = ()
    if Tool in viewer.models and (sites := upstream_sites()):
        documents = OpenApiDocument.objects.defer("offers").filter(site__in=[*sites])
        upstreams = [*documents.filter(differing__gt=0)]
    return Overview(
        rows=rows,
        processes=processes,
        clients=clients,
        tokens=token_counts(viewer, now),
        since_ms=since_ms,
        hours=hours,
        paces=read_paces(now) if hours else Paces(),
        # Counters also show clients that never opened a session.
        connected=was_connected or bool(hours) or CallStatistic.objects.exists(),
        late_tasks=Task.objects.late().count() if viewer.tasks else 0,
        failing_receivers=failing.count() if viewer.subscriptions else 0,
        undecided=list(calls_to_approve(viewer.person).values()),
        upstreams=upstreams,
    )


# -- rows ---------------------------------------------------------------------------


def row_counts(
    models: Iterable[type[PublishedRow]], broken_here: RowsOf
) -> dict[type[PublishedRow], RowCounts]:
    """Count the rows of each model by their state."""
    by_name = {str(model._meta.model_name): model for model in models}
    first, *rest = (
        _rows_with_places(model, broken_here)
        .values("kind_name", "place", "begun")
        .annotate(count=Count("pk"))
        .values_list("kind_name", "place", "begun", "count")
        for model in by_name.values()
    )
    counts = {
        model: RowCounts(states=dict.fromkeys(PLACES, 0)) for model in by_name.values()
    }
    for name, index, begun, count in first.union(*rest, all=True):
        counted = counts[by_name[name]]
        counted.total += count
        counted.begun += count if begun else 0
        if index < len(PLACES):
            counted.states[PLACES[index]] += count
    return counts


def _rows_with_places(
    model: type[PublishedRow], broken_here: RowsOf
) -> QuerySet[Any, Any]:
    """Return all rows; `place` is their state's index in `PLACES`, or its length."""
    rows: Any = model.rows().with_states(is_stopped(model)).order_by()
    broken = Q(reckoned_state=State.BROKEN) | (
        broken_here(model) & ~Q(reckoned_state=State.STOPPED)
    )
    places = [
        When(broken, then=0),
        When(reckoned_state=State.CHANGED, then=1),
        When(reckoned_state=State.UNPUBLISHED, then=2),
    ]
    is_definition = issubclass(model, DefinitionRow)
    condition = Q(source=Source.HERE) if is_definition else Q(access=PUBLIC)
    begun = When(condition & Q(published__isnull=False), then=1)
    placed: QuerySet[Any, Any] = rows.annotate(
        place=Case(*places, default=len(places), output_field=IntegerField()),
        kind_name=Value(str(model._meta.model_name), output_field=CharField()),
        begun=Case(begun, default=0, output_field=IntegerField()),
    )
    return placed


# -- clients, tokens ----------------------------------------------------------------


def client_counts(viewer: Viewer, now_ms: int) -> tuple[Clients, bool]:
    """Count the clients of the last 15 minutes, with a session and without one.

    Also says whether there ever was a session.
    """
    recent = Q(seen_ms__gte=NowMilliseconds() - RECENT_MS)
    counted = Session.objects.aggregate(
        recent=Count("pk", filter=recent), newest=Max("pk")
    )
    clients = None
    if viewer.calls and viewer.sessions:
        clients = len([each for each in calling_clients(now_ms) if not each.session])
    return Clients(counted["recent"], clients), counted["newest"] is not None


def calling_clients(now_ms: int) -> list[CallingClient]:
    """Return who made the newest calls of the last 15 minutes, without *Try it*."""
    clients = Call.objects.clients(CallQuery(now_ms - RECENT_MS), NEWEST_CALLS)
    return [client for client in clients if client.principal != CONSOLE]


def token_counts(viewer: Viewer, now: datetime) -> dict[str, int]:
    """Count access tokens.

    `ending` counts those that end soon and that the viewer may see, without apps.
    `usable` counts all tokens and apps that let somebody in.
    """
    usable = Q(revoked=None) & (Q(expires=None) | Q(expires__gt=now))
    ending = usable & Q(
        ends_soon(now),
        connection=None,
        user__in=all_users().filter(active_condition()).values("pk"),
    )
    if not viewer.tokens:
        ending &= Q(user=viewer.key)
    return AccessToken.objects.aggregate(
        ending=Count("pk", filter=ending), usable=Count("pk", filter=usable)
    )


# -- calls ----------------------------------------------------------------------------


def read_paces(now: datetime) -> Paces:
    """Return what fails in these minutes, and what was called most in a day.

    It makes one statement, over counters of minutes and of hours.
    """
    paces: dict[int, list[Pace]] = {MINUTE_S: [], HOUR_S: []}
    for row in _ranked_counters(_milliseconds(now)):
        calls, failed, longest = (int(row[each]) for each in ("sum", "failed", "most"))
        durations = [int(row[f"sum_{each}"]) for each in DURATIONS]
        outcome = max(FAILED, key=lambda each, row=row: row[f"as_{each}"])  # type: ignore[misc]
        pace = Pace(
            row["kind"], row["name"], calls, failed, durations, longest, outcome
        )
        paces[row["seconds"]].append(pace)
    failing = [
        each
        for each in paces[MINUTE_S]
        if each.calls >= FEW_CALLS and each.failed * 2 >= each.calls
    ]
    return Paces(failing, paces[HOUR_S][:MAX_RANKED])


def _ranked_counters(now_ms: int) -> QuerySet[Any, dict[str, Any]]:
    recent = Q(
        seconds=MINUTE_S, start_ms__gte=period_start_ms(now_ms - RECENT_MS, MINUTE_S)
    )
    # A refused call does not count, because nothing ran; an error of a tool does.
    recent &= ~Q(outcome__in={*REFUSED} - {Outcome.TOOL_ERROR})
    day = Q(seconds=HOUR_S, start_ms__gte=period_start_ms(now_ms - DAY_MS, HOUR_S))
    rows: Any = CallStatistic.objects.filter(recent | day).exclude(name="").order_by()
    summed = rows.values("seconds", "kind", "name").annotate(
        sum=Sum("calls"),
        failed=_sum_of_calls(outcome__in=FAILED),
        most=Max("most_us"),
        **{f"sum_{each}": Sum(each) for each in DURATIONS},
        **{f"as_{each}": _sum_of_calls(outcome=each) for each in FAILED},
    )
    weight = Case(When(seconds=HOUR_S, then=F("sum")), default=F("failed"))
    order = [OrderBy(weight, descending=True), F("name").asc(), F("kind").asc()]
    rank = Window(RowNumber(), partition_by=[F("seconds")], order_by=order)
    ranked: QuerySet[Any, dict[str, Any]] = summed.annotate(rank=rank)
    return ranked.filter(rank__lte=MAX_FAILING).order_by("rank")


def _sum_of_calls(**condition: object) -> Sum:
    return Sum("calls", filter=Q(**condition), default=0)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000)
