"""The log has the beginning and the end of an outage, and nothing in between."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from uuid import uuid4

import pytest
from django.db import InterfaceError, OperationalError, connections, transaction

from mcp_app import Context, SyncContext
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.jsonrpc import UnserializableValue
from mcp_app.streams.claims import Trouble
from mcp_app.streams.steps import StoredSteps
from tests.drill.models import Ledger
from tests.drill.running import THERE, running
from tests.process.streaming import Stateless
from tests.scripting import STATEFUL, Play
from tests.serving import Connect

logger = logging.getLogger("mcp_app.streams")


@pytest.fixture
def trouble(caplog: pytest.LogCaptureFixture) -> Trouble:
    caplog.set_level(logging.DEBUG, "mcp_app.streams")
    return Trouble(logger, "Nothing could be read")


def test_an_outage_has_a_beginning_and_an_end(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.report_success()
    for error in (OperationalError("away"), Unavailable("late"), InterfaceError("x")):
        trouble.report_failure(error)
    trouble.report_success()
    trouble.report_success()
    began, over = caplog.records
    assert began.getMessage() == "Nothing could be read: OperationalError('away')"
    assert over.getMessage() == "Nothing could be read for 0.0 s. It works again."
    assert began.levelno == over.levelno == logging.WARNING
    # The next one is another.
    trouble.report_failure(OperationalError("away"))
    trouble.report_success()
    assert len(caplog.records) == 4


def test_why_somebody_is_told_of_an_outage(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    error = Unavailable("The database cannot be reached.")
    error.__cause__ = OperationalError("no route")
    trouble.report_failure(error)
    assert caplog.records[0].getMessage().endswith("OperationalError('no route')")


def test_each_kind_of_fault_is_logged_once(
    trouble: Trouble, caplog: pytest.LogCaptureFixture
) -> None:
    faults = [KeyError("a"), KeyError("b"), ValueError("c"), OperationalError("d")]
    for error in faults * 2:
        trouble.report_failure(error)
    assert [each.levelname for each in caplog.records] == ["ERROR", "ERROR", "WARNING"]
    assert "KeyError: 'a'" in caplog.text
    trouble.report_success()
    assert len(caplog.records) == 4


JsonObject = dict[str, Any]

MANY: Final = 24
steps = StoredSteps()


@pytest.fixture
def line() -> str:
    """A key in the ledger that no other test uses."""
    return uuid4().hex


def entering(line: str) -> Callable[[], int]:
    """Return a step that leaves a line."""

    def enter() -> int:
        Ledger.objects.create(key=line, worker="a test")
        return Ledger.objects.filter(key=line).count()

    return enter


def lines(line: str) -> int:
    return Ledger.objects.filter(key=line).count()


def together(function: Callable[[int], Any], count: int = MANY) -> list[Any]:
    """Call a function in many threads at the same time; errors are results."""
    barrier = threading.Barrier(count)

    def call(index: int) -> Any:
        barrier.wait(60)
        try:
            return function(index)
        except ValueError as error:
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as executor:
        return list(executor.map(call, range(count)))


@pytest.mark.databases
@pytest.mark.usefixtures("served_rows")
class TestStored:
    def test_the_first_runs_and_the_second_reads(self, line: str) -> None:
        trip = uuid4().hex
        assert [
            steps.run_step_once(trip, "enter", entering(line)) for _ in range(3)
        ] == [1] * 3
        assert lines(line) == 1

    def test_another_key_and_another_round_trip_are_other_steps(
        self, line: str
    ) -> None:
        trip = uuid4().hex
        assert steps.run_step_once(trip, "a", entering(line)) == 1
        assert steps.run_step_once(trip, "b", entering(line)) == 2
        assert steps.run_step_once(uuid4().hex, "a", entering(line)) == 3

    @pytest.mark.parametrize(
        ("result", "read"),
        [
            (None, None),
            ("text", "text"),
            ({"a": [1, 2.5, True]}, {"a": [1, 2.5, True]}),
            ((1, 2), [1, 2]),
            (2**70, 2**70),
        ],
    )
    def test_all_get_the_same(self, result: object, read: object) -> None:
        trip = uuid4().hex
        found = [steps.run_step_once(trip, "give", lambda: result) for _ in range(2)]
        assert found == [read, read]
        assert [type(each) for each in found] == [type(read)] * 2

    def test_a_step_that_raises_leaves_nothing_and_may_run_again(
        self, line: str
    ) -> None:
        trip = uuid4().hex

        def fails() -> None:
            entering(line)()
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            steps.run_step_once(trip, "enter", fails)
        assert lines(line) == 0
        assert steps.run_step_once(trip, "enter", entering(line)) == 1

    def test_a_result_that_is_not_json_is_an_error_of_the_step(self, line: str) -> None:
        trip = uuid4().hex

        def enter() -> object:
            entering(line)()
            return object()

        with pytest.raises(UnserializableValue):
            steps.run_step_once(trip, "enter", enter)
        assert lines(line) == 0
        assert steps.run_step_once(trip, "enter", entering(line)) == 1

    def test_a_step_in_a_transaction_is_lost_with_it(self, line: str) -> None:
        trip = uuid4().hex
        with transaction.atomic():
            assert steps.run_step_once(trip, "enter", entering(line)) == 1
            assert steps.run_step_once(trip, "enter", entering(line)) == 1
            transaction.set_rollback(True)
        assert lines(line) == 0
        assert steps.run_step_once(trip, "enter", entering(line)) == 1

    def test_many_at_the_same_time_run_it_once(self, line: str) -> None:
        trip = uuid4().hex
        found = together(lambda _: steps.run_step_once(trip, "enter", entering(line)))
        assert found == [1] * MANY
        assert lines(line) == 1

    def test_many_at_the_same_time_after_some_that_raise(self, line: str) -> None:
        trip = uuid4().hex
        failing = iter(range(5))

        def enter() -> int:
            entered = entering(line)()
            if next(failing, None) is not None:
                raise ValueError("no")
            return entered

        found = together(lambda _: steps.run_step_once(trip, "enter", enter))
        assert sum(isinstance(each, ValueError) for each in found) == 5
        assert [each for each in found if not isinstance(each, ValueError)] == [1] * (
            MANY - 5
        )
        assert lines(line) == 1

    def test_different_steps_at_the_same_time(self, line: str) -> None:
        trip = uuid4().hex
        found = together(
            lambda i: steps.run_step_once(trip, str(i % 4), entering(line))
        )
        assert lines(line) == 4
        assert all(found[i] == found[i % 4] for i in range(MANY))


@pytest.mark.usefixtures("scripted")
async def test_a_request_of_a_session_is_one_round_trip(
    play: Play, connect: Connect, line: str
) -> None:
    async def script(ctx: Context) -> int:
        return await ctx.once("enter", entering(line))

    client, other = await connect(STATEFUL), await connect(STATEFUL)
    message = client.message("tools/call", play.params("async", script), id="pay-1")
    again = {**message, "id": "pay-2"}
    results = [
        (await each.sent(sent)).result["structuredContent"]["result"]
        for each, sent in [
            (client, message),
            (client, message),
            (client, again),
            (other, message),
        ]
    ]
    assert results == [1, 1, 2, 3]


@pytest.mark.usefixtures("scripted")
async def test_a_question_inside_of_a_step_is_refused(play: Play) -> None:
    def script(ctx: SyncContext) -> None:
        ctx.once("ask", ctx.list_roots)

    outcome = await play("sync", script)
    assert outcome.result["isError"] is True


def test_fifty_retries_of_one_state_at_two_processes(
    prepared_url: str, line: str
) -> None:
    env = {"DATABASE_URL": prepared_url, **THERE}
    with running("uvicorn", env) as first, running("uvicorn", env) as second:
        clients = [Stateless(first), Stateless(second)]
        asked = clients[0].call("drill_ask_twice", question=line)
        (key,) = asked["inputRequests"]
        answer = {"action": "accept", "content": {"answer": "yes"}}

        def retry(index: int) -> JsonObject:
            message = clients[index % 2].messages(
                "drill_ask_twice",
                {"question": line},
                {},
                inputResponses={key: answer},
                requestState=asked["requestState"],
            )[-1]
            result: JsonObject = message["result"]
            return result

        results = together(retry, 50)
        counted = clients[1].call("drill_ledger", key=line, seconds=0)
    assert {each["resultType"] for each in results} == {"input_required"}
    # The line of the step, and the one that counting entered.
    assert counted["structuredContent"] == {"result": 2}
