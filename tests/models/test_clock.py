from __future__ import annotations

import time

import pytest
from django.db import connection

from mcp_app.models import Counter
from mcp_app.models.transactions import NowMilliseconds


def now() -> int:
    """Return what a statement says of the time."""
    counters = Counter.objects.annotate(now=NowMilliseconds())
    return int(counters.values_list("now", flat=True).get(name="clock"))


@pytest.mark.django_db
def test_the_clock_counts_milliseconds_in_utc() -> None:
    Counter.objects.create(name="clock")
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+05:30'")
    before = int(time.time() * 1000)
    found = now()
    after = int(time.time() * 1000)
    assert before - 50 <= found <= after + 50


@pytest.mark.django_db
def test_the_clock_is_finer_than_seconds() -> None:
    Counter.objects.create(name="clock")
    seen = set()
    for _ in range(3):
        seen.add(now() % 1000)
        time.sleep(0.005)
    assert len(seen) > 1
