"""A person's rate at many processes: the real code, with set clocks and real rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Coroutine, Iterator
from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.models import Worker
from mcp_app.process.rates import Bucket, Rates
from mcp_app.process.shared_rates import MAX_HOT_KEYS, HotKeys, SharedRates, demand_of

pytestmark = pytest.mark.django_db

RATE: Final = 600
BURST: Final = 100
ENTRY: Final[Any] = SimpleNamespace(definition=ToolDefinition(name="find"))
STEP_S: Final = 0.05
STALE_S: Final = 3.0
Where = Callable[[float], int]
"""The process that a client calls at a time."""


class Loop:
    """A loop whose clock is set, and which does all work at once."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self._timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> Any:
        self._timers.append((self.now + delay, call))
        return SimpleNamespace(cancel=lambda: None)

    def call_soon_threadsafe(self, call: Callable[[], None]) -> None:
        call()

    def create_task(self, work: Coroutine[Any, Any, None]) -> Any:
        with pytest.raises(StopIteration):
            work.send(None)
        return SimpleNamespace(done=lambda: True)

    def run(self) -> None:
        due = [call for when, call in self._timers if when <= self.now]
        self._timers = [each for each in self._timers if each[0] > self.now]
        for call in due:
            call()

    @property
    def waits(self) -> bool:
        return bool(self._timers)


def worker(number: int, **columns: str) -> Worker:
    name = f"worker-{number}"
    return Worker.objects.create(id=name, pid=1, started_ms=0, seen_ms=0, **columns)


class Cluster:
    """Processes with rows, at a clock that `passes` moves."""

    def __init__(self, size: int) -> None:
        self.loops = [Loop() for _ in range(size)]
        self.written = [0.0] * size
        self.exchanges = 0
        self.away = False
        self.rates = [self._process(number, size) for number in range(size)]

    def _process(self, number: int, size: int) -> Rates:
        row = worker(number)
        loop: Any = self.loops[number]

        async def exchange(text: str) -> list[str]:
            self.exchanges += 1
            self.written[number] = loop.now
            if self.away:
                raise TimeoutError
            return Worker.objects.exchange_demand(row.pk, text)

        shared = SharedRates(loop, b"a secret", lambda: size, exchange)
        limits = Limits(tool_rate=RATE, tool_burst=BURST)
        return Rates(limits, shared.note_bucket_use, loop.time)

    def passes(self, seconds: float) -> None:
        for loop in random.sample(self.loops, len(self.loops)):
            loop.now += seconds
            loop.run()
        now = self.loops[0].now
        stale = [n for n, at in enumerate(self.written) if at and at < now - STALE_S]
        for number in stale:
            # The database's clock does not move here.
            Worker.objects.filter(pk=f"worker-{number}").update(demand_ms=0)
            self.written[number] = 0.0

    def calls(self, at: int, person: str = "u1") -> bool:
        return not self.rates[at].wait_for_tool(person, ENTRY)


def played(
    size: int, factor: float, where: Where, seconds: int
) -> tuple[list[float], int]:
    """Let a client offer `factor` budgets.

    Returns when calls were admitted, and how many were refused.
    """
    random.seed(size)
    cluster, owed, admitted, refused = Cluster(size), 0.0, [], 0
    for step in range(int(seconds / STEP_S)):
        now = step * STEP_S
        owed += factor * RATE / 60 * STEP_S
        while owed >= 1:
            owed -= 1
            if cluster.calls(where(now)):
                admitted.append(now)
            else:
                refused += 1
        cluster.passes(STEP_S)
    return admitted, refused


def evenly(size: int) -> Where:
    turn = iter(range(10**9))
    return lambda _: next(turn) % size


def mostly_one(size: int) -> Where:
    draw = random.Random(7)  # noqa: S311 - no secret
    return lambda _: 0 if draw.random() < 0.95 else draw.randrange(size)


def moving(size: int, seconds: float) -> Where:
    return lambda now: int(now / seconds) % size


@pytest.mark.parametrize("size", [2, 4, 16])
@pytest.mark.parametrize("how", ["pinned", "evenly", 2, 5, 10])
def test_who_stays_below_the_rate_is_never_refused(size: int, how: str | int) -> None:
    where = {"pinned": lambda _: 0, "evenly": evenly(size)}.get(
        str(how), moving(size, float(how) if isinstance(how, int) else 1.0)
    )
    admitted, refused = played(size, 0.9, where, 30)
    assert (len(admitted) > 260, refused) == (True, 0)


def worst_minute(times: list[float]) -> int:
    return max(sum(at <= each < at + 60 for each in times) for at in times[::25])


@pytest.mark.parametrize(
    ("size", "factor", "how", "seconds"),
    [
        (2, 10.0, evenly, 60),
        (4, 3.6, mostly_one, 60),
        (16, 1.5, evenly, 60),
        *(
            pytest.param(size, factor, how, 300, marks=pytest.mark.long)
            for size in (2, 4, 16)
            for factor in (1.5, 3.6, 10.0)
            for how in (evenly, mostly_one)
        ),
    ],
)
def test_t20_who_calls_too_often_gets_one_budget(
    size: int, factor: float, how: Callable[[int], Where], seconds: int
) -> None:
    admitted, _ = played(size, factor, how(size), seconds)
    budget = RATE * seconds / 60 + BURST
    assert 0.9 * RATE * seconds / 60 <= len(admitted) <= 1.3 * budget
    if seconds >= 300:
        assert len(admitted) <= 1.15 * budget
    assert worst_minute(admitted) <= 1.3 * (RATE + BURST)


def test_who_hops_with_bursts_gets_two_budgets_at_most() -> None:
    random.seed(3)
    cluster, admitted = Cluster(4), 0
    for step in range(60):
        for _ in range(150):
            admitted += cluster.calls(step % 4)
        for _ in range(20):
            cluster.passes(STEP_S)
    assert admitted <= 2 * (RATE + BURST)


def test_others_go_on_meanwhile() -> None:
    cluster = Cluster(2)
    for _ in range(200):
        for _ in range(20):
            cluster.calls(0, "u1")
        assert cluster.calls(1, "u2")
        assert cluster.calls(0, "u3")
        cluster.passes(0.2)


def test_a_database_that_is_away_changes_no_share() -> None:
    cluster = Cluster(2)
    for step in range(100):
        cluster.away = 40 <= step < 80
        done = sum(cluster.calls(at) for at in (0, 1) for _ in range(20))
        if step > 20:
            assert done <= 20
        cluster.passes(1.0)


def test_without_hot_keys_or_others_there_is_no_statement() -> None:
    alone = Cluster(1)
    for _ in range(100):
        for _ in range(30):
            alone.calls(0)
        alone.passes(0.25)
    assert alone.exchanges == 0
    Worker.objects.all().delete()
    two = Cluster(2)
    for _ in range(20):
        two.calls(0)
        two.passes(3.0)
    assert two.exchanges == 0
    for _ in range(20):
        two.calls(0)
    for _ in range(100):
        two.passes(0.25)
    # Ten seconds after the last call nothing is hot, and nobody ticks.
    assert 0 < two.exchanges <= 12
    two.passes(20)
    two.passes(1)
    assert not any(loop.waits for loop in two.loops)


@pytest.fixture
def keys() -> HotKeys:
    return HotKeys(b"a secret", 0.0)


def used(keys: HotKeys, key: object, count: int) -> Bucket:
    bucket = Bucket(key, 0.1, 10.0)
    bucket.count = count
    keys.note_bucket(bucket)
    return bucket


def test_a_row_names_the_hottest_keys_and_nobody_by_name(keys: HotKeys) -> None:
    buckets = [used(keys, ("u1", f"tool-{n}"), n + 20) for n in range(200)]
    keys.count_uses(1.0, 2)
    assert len(keys.hot) == 200
    text = keys.demand_text()
    assert "tool" not in text
    demand = demand_of(text)
    assert len(demand) == MAX_HOT_KEYS
    assert min(demand.values()) == 85
    keys.set_shares([text], 2)
    assert {round(each.cost, 3) for each in buckets[150:]} == {0.215}
    assert {each.cost for each in buckets[:150]} == {0.1}


@pytest.mark.parametrize(
    "text",
    [
        *("", "no JSON", "[]", "null", "7", "[" * 5_000),
        '{"version": 2, "demand": {"a": 1}}',
        '{"version": 1, "demand": [1]}',
        '{"version": 1}',
        '{"version": 1, "demand": {"a": "1", "b": null, "c": true, "d": [1]}}',
        '{"version": 1, "demand": {"a": -1, "b": 0, "c": 1e300, "d": NaN}}',
        '{"version": 1, "demand": {"a": Infinity, "b": 1e999}}',
    ],
)
def test_what_a_row_cannot_mean_charges_nobody(keys: HotKeys, text: str) -> None:
    bucket = used(keys, "u1", 100)
    keys.count_uses(1.0, 2)
    keys.set_shares([text], 2)
    assert bucket.cost == bucket.interval
    assert demand_of(text) == {}


def test_what_is_too_long_is_not_read() -> None:
    for number, demand in enumerate(["x" * 2**21, '{"version": 1}', ""]):
        worker(number, demand=demand)
    assert Worker.objects.exchange_demand("none", "") == []
    for number in range(3):
        demand = Worker.objects.get(pk=f"worker-{number}").demand
        Worker.objects.exchange_demand(f"worker-{number}", demand)
    assert Worker.objects.exchange_demand("none", "") == ['{"version": 1}']


def test_a_flood_of_addresses_makes_no_key_hot_and_is_forgotten(keys: HotKeys) -> None:
    for second in range(20):
        for number in range(200):
            used(keys, ("@", second, number), 1)
        person = used(keys, "u1", 5)
        keys.count_uses(second + 1.0, 16)
        assert {each.key for each in keys.hot} == {"u1"}
        assert person.cost == person.interval
    keys.count_uses(31.0, 16)
    assert keys.is_window_empty
    assert not keys.hot


def test_two_calls_are_enough_where_many_processes_live(keys: HotKeys) -> None:
    bucket = used(keys, "u1", 1)
    keys.count_uses(1.0, 16)
    assert not keys.hot
    bucket.count = 1
    keys.note_bucket(bucket)
    keys.count_uses(2.0, 16)
    assert keys.hot == {bucket}
    keys.count_uses(11.0, 16)
    assert not keys.hot


def test_a_key_that_was_hot_has_its_whole_rate_again(keys: HotKeys) -> None:
    bucket = used(keys, "u1", 100)
    keys.count_uses(1.0, 2)
    other = json.loads(keys.demand_text())["demand"]
    text = json.dumps({"version": 1, "demand": dict.fromkeys(other, 450)})
    keys.set_shares([text], 2)
    assert bucket.cost == pytest.approx(1 / 0.93)
    keys.count_uses(12.0, 2)
    assert (keys.hot, bucket.cost) == (set(), bucket.interval)
    assert keys.is_window_empty


@pytest.fixture(autouse=True)
def no_rows() -> Iterator[None]:
    yield
    Worker.objects.all().delete()
