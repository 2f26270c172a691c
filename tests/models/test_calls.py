"""Writers of calls: a batch counts once, whatever became of its commit."""

from __future__ import annotations

import pytest

from mcp_app.models import CallStatistic, CallWriter
from mcp_app.models.calls import BOUNDS_MS, HOUR_S, MINUTE_S
from tests.audit.rows import counter

pytestmark = pytest.mark.django_db


def test_a_batch_is_claimed_once() -> None:
    claim = CallWriter.objects.claim
    assert claim("w", 3)
    assert not claim("w", 3)
    # A number that is less was written before, or never will be.
    assert not claim("w", 2)
    # Each writer has numbers of its own.
    assert claim("v", 3)
    assert claim("w", 4)
    numbers = dict(CallWriter.objects.values_list("pk", "number"))
    assert numbers == {"w": 4, "v": 3}


def test_a_claim_is_young() -> None:
    CallWriter.objects.create(id="w", number=1, written_ms=5)
    CallWriter.objects.create(id="v", number=1, written_ms=6)
    assert [each.pk for each in CallWriter.objects.older_than(6)] == ["w"]
    CallWriter.objects.claim("w", 2)
    assert not CallWriter.objects.older_than(6).exists()


def test_counters_are_old_by_their_length() -> None:
    counter(MINUTE_S, 5_000)
    counter(HOUR_S, 5_000)
    row = CallStatistic.objects.get(seconds=MINUTE_S)
    older = CallStatistic.objects.older_than
    assert not older(MINUTE_S, row.start_ms).exists()
    assert [each.pk for each in older(MINUTE_S, row.start_ms + 1)] == [row.pk]


def test_each_bound_has_its_column() -> None:
    columns = {each.name for each in CallStatistic._meta.concrete_fields}
    assert {*CallStatistic.KEYS, *CallStatistic.COUNTERS} <= columns
    assert columns == {*CallStatistic.KEYS, *CallStatistic.COUNTERS}
    assert [*BOUNDS_MS] == sorted(set(BOUNDS_MS))
