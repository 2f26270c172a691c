"""Which calls, counters and writers are kept no longer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mcp_app.audit.expiry import MINUTES_KEPT_MS, WRITERS_KEPT_MS, expired_calls
from mcp_app.conf import Limits
from mcp_app.models import Call, CallStatistic, CallWriter
from mcp_app.models.calls import HOUR_S, MINUTE_S
from mcp_app.models.clock import NowMilliseconds
from tests.audit.rows import call, counter

pytestmark = pytest.mark.django_db

DAY_S: Final = 86_400
LIMITS: Final = replace(Limits(), calls_kept=2 * DAY_S, statistics_kept=3 * DAY_S)
MARGIN_MS: Final = 60_000


def expired() -> dict[str, int]:
    return {each.what: each.count() for each in expired_calls(LIMITS)}


def around(age_ms: int) -> tuple[int, int]:
    """Return an age that is kept, and one that is not."""
    return age_ms - MARGIN_MS, age_ms + MARGIN_MS


def test_nothing_expires_where_nothing_is() -> None:
    assert list(expired().values()) == [0, 0, 0, 0]


def test_each_kind_of_row_has_its_own_age() -> None:
    for age_ms in around(2 * DAY_S * 1_000):
        call(time_ms=NowMilliseconds() - age_ms)
    for age_ms in around(3 * DAY_S * 1_000):
        counter(HOUR_S, age_ms)
    for age_ms in around(MINUTES_KEPT_MS):
        counter(MINUTE_S, age_ms)
    for number, age_ms in enumerate(around(WRITERS_KEPT_MS)):
        written = NowMilliseconds() - age_ms
        CallWriter.objects.create(id=str(number), number=1, written_ms=written)
    assert list(expired().values()) == [1, 1, 1, 1]
    assert [each.remove() for each in expired_calls(LIMITS)] == [1, 1, 1, 1]
    assert [each.remove() for each in expired_calls(LIMITS)] == [None] * 4
    assert (Call.objects.count(), CallStatistic.objects.count()) == (1, 2)
    assert CallWriter.objects.get().pk == "0"
    assert expired() == dict.fromkeys(expired(), 0)
