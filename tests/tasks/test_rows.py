"""Rows of tasks: every change is one of the diagram, whoever makes it, and when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.account.call_decisions import CallDecided, approve_call, deny_call
from mcp_app.conf import Limits
from mcp_app.models import Change, Task, Worker
from mcp_app.models.tasks import LATE_MS, MAX_SIZE, TASK
from mcp_app.models.transactions import NowMilliseconds
from mcp_app.protocol.tasks import NewTask, TaskState
from mcp_app.server.task_states import state_members
from mcp_app.streams import tasks as rows

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]

Do: TypeAlias = Callable[[int], bool]

OWNERS: Final = ("a", "b")
QUESTIONS: Final = {
    "one": {"key": "one", "digest": "1", "request": {}},
    "two": {"key": "two", "digest": "2", "request": {}},
}
STATE: Final = state_members(TaskState(round_trip="r", questions=QUESTIONS))
RESULT: Final = {"status": "completed", "result": "{}"}
CALLER: Final = '{"principal":{"user_id":"ana"}}'
ASKED: Final = state_members(
    TaskState(
        approval={"permission": "", "refusal": {"status": "completed", "result": {}}}
    )
)

WAITS, RUNS_A, RUNS_B, PARKED = "waits", "runs at a", "runs at b", "parked"
ENDS: Final = {"completed", "failed", "cancelled"}
RUNS: Final = {RUNS_A, RUNS_B}
DIAGRAM: Final[dict[str, set[str]]] = {
    WAITS: {*RUNS, "cancelled"},
    RUNS_A: {WAITS, PARKED, *ENDS},
    RUNS_B: {WAITS, PARKED, *ENDS},
    PARKED: {WAITS, PARKED, "cancelled"},
    "approval": {WAITS, "completed", "cancelled"},
    **{each: set() for each in ENDS},
}


@pytest.fixture(autouse=True)
def _erase() -> Iterator[None]:
    yield
    Task.objects.all().delete()
    Worker.objects.all().delete()
    User.objects.all().delete()


def new_task(person: str = "", *, rerun: bool = False, **more: Any) -> NewTask:
    columns: dict[str, Any] = {"arguments": '{"year":2026}', **more}
    return NewTask(
        server="default",
        tool="export",
        holder="",
        person=person,
        caller=CALLER,
        revision="2026-07-28",
        state=json.dumps(ASKED),
        rerun=rerun,
        ttl_ms=60_000,
        **columns,
    )


def task(owner: str = "", *, limits: Limits | None = None, **more: Any) -> Task:
    record = rows.store_task(new_task(**more), owner, limits or Limits())
    assert not isinstance(record, str), record
    return Task.objects.get(pk=record.pk)


def place(pk: int) -> str:
    row = Task.objects.get(pk=pk)
    if row.status != "working":
        assert not row.owner
        return {"input_required": PARKED}.get(row.status, row.status)
    return f"runs at {row.owner}" if row.owner else WAITS


def died(owner: str) -> bool:
    return rows.release_tasks_of_dead({owner: None}) > 0


STEPS: Final[dict[str, Do]] = {
    "claim": lambda pk: bool(Task.objects.claim("a", 1)),
    "claim at b": lambda pk: bool(Task.objects.claim("b", 1)),
    **{
        f"{name} at {owner}": step
        for owner in OWNERS
        for name, step in {
            "release": lambda pk, o=owner: Task.objects.release(pk, o),
            "park": lambda pk, o=owner: Task.objects.park(pk, o, STATE),
            "end": lambda pk, o=owner: Task.objects.end(pk, o, RESULT),
            "die": lambda pk, o=owner: died(o),
        }.items()
    },
    "answer one": lambda pk: Task.objects.answer(pk, {"one": {}}),
    "answer two": lambda pk: Task.objects.answer(pk, {"two": {}, "three": {}}),
    "cancel": lambda pk: Task.objects.cancel(pk, "Enough."),
    "approve": lambda pk: Task.objects.approve(pk, "approval", None, 60),
    "deny": lambda pk: Task.objects.deny(pk, "approval", None, RESULT),
}


@given(st.booleans(), st.booleans(), st.lists(st.sampled_from(sorted(STEPS))))
@settings(max_examples=60)
def test_every_path_is_one_of_the_diagram(
    rerun: bool, asked: bool, steps: list[str]
) -> None:
    Task.objects.all().delete()
    more: Any = {"status": "approval", "call_digest": "d"} if asked else {}
    pk = task("" if asked else "a", rerun=rerun, **more).pk
    for step in steps:
        before, told = place(pk), Change.objects.filter(kind=TASK).count()
        moved = STEPS[step](pk)
        after, deaths = place(pk), Task.objects.get(pk=pk).deaths
        assert moved or after == before, step
        if moved:
            assert after in DIAGRAM[before], step
        told_now = Change.objects.filter(kind=TASK).count()
        assert moved is False or step.startswith("claim") or told_now > told
        assert deaths <= 3
    row = Task.objects.get(pk=pk)
    assert (row.ended_ms is not None) is (row.status in ENDS)
    if row.status in ENDS:
        assert (row.arguments, row.state, row.call_digest) == ("", "", None)


def at_once(*steps: Do, pk: int) -> list[bool]:
    """Do these steps in as many threads, as different processes would."""

    def do(step: Do) -> bool:
        try:
            return step(pk)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(steps)) as pool:
        return list(pool.map(do, steps))


RACES: Final[dict[str, tuple[str, list[str]]]] = {
    "claims": (WAITS, ["claim", "claim at b", "claim at b", "claim"]),
    "end and cancel": (RUNS_A, ["end at a", "cancel", "end at a", "cancel"]),
    "end and death": (RUNS_A, ["end at a", "die at a", "end at b"]),
    "park and cancel": (RUNS_A, ["park at a", "cancel", "release at a"]),
    "answers": (PARKED, ["answer one", "answer two", "answer one", "answer two"]),
    "answer and cancel": (PARKED, ["answer one", "cancel", "cancel"]),
}


@pytest.mark.parametrize("race", RACES)
def test_of_several_at_once_each_finds_the_state_that_it_names(race: str) -> None:
    before, steps = RACES[race]
    for _ in range(10):
        pk = task("" if before == WAITS else "a").pk
        if before == PARKED:
            Task.objects.park(pk, "a", STATE)
        moved = at_once(*(STEPS[each] for each in steps), pk=pk)
        after = place(pk)
        winners = {step for step, won in zip(steps, moved, strict=True) if won}
        if race == "answers":
            # Neither answer is lost, and the first of each counts.
            assert after == WAITS
            state = json.loads(Task.objects.get(pk=pk).state)
            assert all("reply" in each for each in state["questions"].values())
        elif race in ("claims", "end and cancel", "end and death"):
            assert moved.count(True) == 1, (winners, after)
        assert after in DIAGRAM[before] or after == "cancelled"
        Task.objects.all().delete()


def test_what_is_approved_runs_once_however_often_it_is_decided() -> None:
    """Each of fifty calls is decided four times at once, beside two workers."""
    kim = User.objects.create_superuser("kim")
    runs = Counter[int]()

    def decide(do: Callable[[User, Task], None]) -> Do:
        def move(pk: int) -> bool:
            try:
                do(kim, row)
            except CallDecided:
                return False
            return True

        return move

    def work(owner: str) -> Do:
        def claim(pk: int) -> bool:
            runs.update(each.pk for each in rows.claim_tasks(owner, 9))
            return True

        return claim

    for number in range(50):
        row = task(status="approval", call_digest=str(number))
        do = approve_call if number % 2 else deny_call
        decisions = map(decide, (approve_call, do, approve_call, do))
        moved = at_once(*decisions, work("a"), work("b"), pk=row.pk)
        assert moved[:4].count(True) == 1
        work("a")(row.pk)
        row.refresh_from_db()
        assert (row.approver_id, runs[row.pk]) == (kim.pk, row.status == "working")
        assert row.status in ("working", "completed" if do is deny_call else "working")


@pytest.mark.parametrize(("rerun", "deaths"), [(False, 1), (True, 3)])
def test_a_task_outlives_few_workers(rerun: bool, deaths: int) -> None:
    pk = task("a", rerun=rerun).pk
    for number in range(1, deaths + 1):
        assert rows.release_tasks_of_dead({"a": None}) == 1
        row = Task.objects.get(pk=pk)
        assert row.deaths == number
        if number < deaths:
            assert place(pk) == WAITS
            [claimed] = rows.claim_tasks("a", 5)
            assert claimed.pk == pk
    assert row.status == "failed"
    assert json.loads(row.error) == {
        "code": -32603,
        "message": rows.WORKER_DIED,
        "data": {"retryable": False},
    }


def test_only_of_the_dead_are_tasks_taken() -> None:
    """A worker that has said since that it lives keeps what it runs."""
    Worker.objects.create(pk="a", pid=1, started_ms=1, seen_ms=8)
    pk = task("a", rerun=True).pk
    assert rows.release_tasks_of_dead({"a": 7}) == 0
    assert rows.release_tasks_of_dead({"b": None}) == 0
    assert place(pk) == RUNS_A
    assert rows.release_tasks_of_dead({"a": 8}) == 1


def test_a_queue_is_told_again_ever_more_rarely() -> None:
    """`due` is how long after the last time, in seconds, a task waits to be sent."""
    pk = task().pk
    assert rows.claim_sending(5) == [pk]
    for waited, due in ((1, 30), (100, 100), (5_000, 600)):
        row = Task.objects.filter(pk=pk)
        row.update(send_ms=0, updated_ms=NowMilliseconds() - 1_000 * waited)
        assert rows.claim_sending(5) == [pk]
        assert rows.claim_sending(5) == []
        pause = NowMilliseconds() + 1_000 * due
        assert row.filter(send_ms__range=(pause - 5_000, pause + 5_000)).exists()
    # After it has run, it is due at once.
    assert rows.claim_task(pk, "a") is not None
    assert rows.claim_task(pk, "b") is None
    assert rows.claim_sending(5) == []
    Task.objects.release(pk, "a")
    assert rows.claim_sending(5) == [pk]


def test_the_oldest_is_claimed_first_and_one_that_has_expired_never() -> None:
    keys = [task().pk for _ in range(3)]
    Task.objects.filter(pk=keys[0]).update(expires_ms=1)
    assert [each.pk for each in rows.claim_tasks("a", 1)] == [keys[1]]
    assert [each.pk for each in rows.claim_tasks("a", 5)] == [keys[2]]
    _, expired = rows.expired_tasks(Limits())
    assert expired.count() == 1


def test_people_take_turns_and_strangers_come_last() -> None:
    for person in ("@1", "@1", "@2", "ann", "ann", "ann", "ben", "cat", "@"):
        task(person=person)

    def claimed(number: int, *full: str) -> list[str]:
        return [row.person for row in rows.claim_tasks("a", number, None, full)]

    assert claimed(2) == ["ann", "ben"]
    # Whoever runs fewest comes first; then it is one of each.
    assert claimed(1) == ["cat"]
    assert claimed(9, "ann") == ["@1"]
    assert claimed(9, "ann", "@") == []
    assert [*map(claimed, [9] * 6)] == [["ann"], ["ann"], ["@2"], ["@"], ["@1"], []]


def test_choosing_whose_turn_it_is_takes_few_steps_for_each_task() -> None:
    times = {"created_ms": 1, "updated_ms": 1, "expires_ms": 2**53}
    Task.objects.bulk_create([Task(public_id=str(n), **times) for n in range(400)])
    steps: list[None] = []
    # SQLite alone counts the steps of a statement.
    if connection.vendor == "sqlite":
        connection.connection.set_progress_handler(partial(steps.append, None), 100)
    assert len(rows.claim_tasks("a", 1)) == 1
    if connection.vendor == "sqlite":
        connection.connection.set_progress_handler(None, 0)
    assert len(steps) < 2 * 400


def test_of_one_person_no_more_are_stored_at_once_than_are_allowed() -> None:
    for person in ("ann", "@"):
        told: list[Any] = []

        def store(pk: int) -> bool:
            told.append(rows.store_task(new_task(person), "a", Limits()))  # noqa: B023
            return True

        at_once(*[store] * 12, pk=0)
        refused = rows.TOO_MANY_OPEN.format(count=8, most=8)
        assert [answer for answer in told if isinstance(answer, str)] == [refused] * 4
        assert Task.objects.filter(person=person).count() == 8


def test_what_a_task_is_called_with_has_a_limit() -> None:
    length = MAX_SIZE - len(CALLER + json.dumps(ASKED))
    assert len(task(arguments="x" * length).arguments) == length
    refused = rows.store_task(new_task(arguments="ä" * length), "", Limits(rates=False))
    assert refused == rows.TOO_LARGE.format(size=MAX_SIZE + length, most=MAX_SIZE)


def test_strangers_leave_half_of_the_room_to_others() -> None:
    limits = Limits(tasks_rows=4)
    told = [rows.store_task(new_task("@"), "", limits) for _ in range(3)]
    assert told[2] == rows.TOO_MANY_ROWS
    task(person="ann", limits=limits)


def test_a_site_has_room_for_so_many() -> None:
    limits = Limits(tasks_rows=2)
    for _ in range(2):
        task(limits=limits)
    with pytest.raises(AssertionError, match="This site has too many tasks"):
        task(limits=limits)
    # The first key and the last say that there are more.
    Task.objects.exclude(pk=task().pk).delete()
    task(limits=limits)


def test_tools_of_a_newer_release_are_left_to_it_for_a_while() -> None:
    pk = task().pk
    assert rows.claim_tasks("a", 1, ["import"]) == []
    Task.objects.update(updated_ms=NowMilliseconds() - 2 * LATE_MS)
    assert [each.pk for each in rows.claim_tasks("a", 1, ["import"])] == [pk]
    pk = task().pk
    assert [each.pk for each in rows.claim_tasks("a", 1, ["export"])] == [pk]


def test_what_a_worker_owns_and_does_not_know_is_given_up() -> None:
    keys = [task("a", rerun=rerun).pk for rerun in (True, False)]
    assert rows.owned_keys("a") == {*keys}
    assert [rows.release_unknown(pk, "b") for pk in keys] == [False, False]
    assert [rows.release_unknown(pk, "a") for pk in keys] == [True, True]
    assert [place(pk) for pk in keys] == [WAITS, "failed"]
