"""Which calls, counters and writers are kept no longer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcp_app.audit import expiry
from mcp_app.audit.expiry import (
    MINUTE_RETENTION_MS,
    RETAINED_OUTCOMES,
    WRITER_RETENTION_MS,
    expired_calls,
)
from mcp_app.audit.writing import write
from mcp_app.conf import Limits
from mcp_app.interface.call_record import FINE, Outcome
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S, VALUES_RETENTION_MS
from mcp_app.models.expiry import ExpiredRows
from mcp_app.models.transactions import NowMilliseconds
from tests.admin.calls.rows import plan
from tests.audit.records import batch, record
from tests.audit.rows import call, counter

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

DAY_S: Final = 86_400
LIMITS: Final = replace(Limits(), calls_kept=2 * DAY_S, statistics_kept=3 * DAY_S)
MARGIN_MS: Final = 60_000


def expired() -> dict[str, int]:
    return {each.what: each.count() for each in expired_calls(LIMITS)}


def around(age_ms: int) -> tuple[int, int]:
    return age_ms - MARGIN_MS, age_ms + MARGIN_MS


def test_each_kind_of_row_has_its_own_age() -> None:
    for age_ms in around(2 * DAY_S * 1_000):
        call(time_ms=NowMilliseconds() - age_ms)
    for age_ms in around(3 * DAY_S * 1_000):
        counter(HOUR_S, age_ms)
    for age_ms in around(MINUTE_RETENTION_MS):
        counter(MINUTE_S, age_ms)
    for number, age_ms in enumerate(around(WRITER_RETENTION_MS)):
        written = NowMilliseconds() - age_ms
        CallWriter.objects.create(id=str(number), number=1, written_ms=written)
    assert list(expired().values()) == [0, 1, 0, 1, 1, 1]
    assert [each.remove() for each in expired_calls(LIMITS)] == [None, 1, None, 1, 1, 1]
    assert [each.remove() for each in expired_calls(LIMITS)] == [None] * 6
    assert (Call.objects.count(), CallStatistic.objects.count()) == (1, 2)
    assert CallWriter.objects.get().pk == "0"
    assert expired() == dict.fromkeys(expired(), 0)


def test_values_go_before_their_calls() -> None:
    kept = replace(LIMITS, calls_kept=30 * DAY_S)
    kept_values = {"arguments": '{"a": 1}'}
    young, old = (
        call(time_ms=NowMilliseconds() - age_ms, **kept_values).pk
        for age_ms in around(VALUES_RETENTION_MS)
    )
    values = expired_calls(kept)[0]
    with CaptureQueriesContext(connection) as captured:
        assert (values.count(), values.remove(), values.remove()) == (1, 1, None)
    if connection.vendor == "sqlite":
        plans = [
            plan(each["sql"], None) for each in captured if "SELECT" in each["sql"]
        ]
        assert all("mcp_call_arguments" in each for each in plans)
    assert [*Call.objects.order_by("pk").values_list("pk", "arguments")] == [
        (young, '{"a": 1}'),
        (old, ""),
    ]


# -- calls above their number -------------------------------------------------------


def calls(*outcomes: str) -> list[int]:
    newest = max(left(), default=0)
    write(batch(*(record(outcome=each) for each in outcomes)))
    return [
        *Call.objects.filter(pk__gt=newest).order_by("pk").values_list("pk", flat=True)
    ]


def surplus(most: int) -> ExpiredRows:
    (found,) = [
        each
        for each in expired_calls(replace(LIMITS, calls_rows=most))
        if each.what == "calls above their number"
    ]
    return found


def remove(most: int) -> int:
    rows, removed = surplus(most), 0
    while (portion := rows.remove()) is not None:
        removed += portion
    return removed


def left() -> list[int]:
    return [*Call.objects.order_by("pk").values_list("pk", flat=True)]


def counters() -> dict[tuple[str, ...], int]:
    rows = CallStatistic.objects.values_list("seconds", "outcome", "calls", "dropped")
    return Counter({tuple(map(str, row[:2])): row[2] for row in rows})


def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "PORTION", 7)
    keys, counted = calls(*["answered"] * 50), counters()
    for most in (51, 50):
        assert surplus(most).count() == 0
        assert remove(most) == 0
    assert surplus(20).count() == 30
    assert remove(20) == 30
    assert left() == keys[30:]
    # Whoever counts calls sees no difference.
    assert counters() == counted
    assert remove(20) == 0
    more = calls(*["answered"] * 5)
    assert remove(20) == 5
    assert left() == [*keys[35:], *more]


def test_the_newest_of_each_failed_outcome_go_last() -> None:
    most = 2 * len(RETAINED_OUTCOMES) * 3
    old = {each: calls(*[each] * 4) for each in (*FINE, *RETAINED_OUTCOMES)}
    new = calls(*["answered"] * (most * 2))
    removed = remove(most)
    assert removed == len(old) * 4 + len(new) - most
    kept = [key for each in RETAINED_OUTCOMES for key in old[each][1:]]
    assert left() == sorted([*kept, *new[-(most - len(kept)) :]])
    assert remove(most) == 0
    # Further calls do not move them, and the next failures take their place.
    more = calls(*["answered"] * most)
    assert remove(most) == most
    assert left() == sorted([*kept, *more[-(most - len(kept)) :]])
    crashed = calls(*["crashed"] * 3)
    assert remove(most) == 3
    assert set(left()) >= {*crashed} | {*kept} - {*old[Outcome.CRASHED]}
    assert not set(left()) & {*old[Outcome.CRASHED]}


def test_many_failures_are_no_more_than_all_calls_may_be() -> None:
    keys = calls(*["unknown"] * 60)
    assert remove(10) == 50
    assert left() == keys[50:]
    assert remove(1) == 9
    assert left() == keys[59:]


def test_calls_that_are_too_old_are_not_counted_twice() -> None:
    for age_ms in (*around(2 * DAY_S * 1_000), 0, 0):
        call(time_ms=NowMilliseconds() - age_ms)
    assert surplus(1).count() == 2
    assert expired()["calls"] == 1


def statements(rows: ExpiredRows) -> Sequence[str]:
    with CaptureQueriesContext(connection) as captured:
        rows.remove()
    return [each["sql"] for each in captured]


def test_where_few_are_kept_nothing_is_counted() -> None:
    calls(*["answered"] * 20, "crashed")
    few = [each for each in statements(surplus(21)) if "SELECT" in each]
    assert len(few) == 3
    rows = surplus(10)
    first, second = statements(rows), statements(rows)
    assert not any("COUNT" in each for each in (*first, *second))
    assert sum("outcome" in each for each in first) == len(RETAINED_OUTCOMES)
    assert not any("outcome" in each for each in second)
