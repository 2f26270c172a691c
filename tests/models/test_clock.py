from __future__ import annotations

import time

import pytest
from django.db import connection

from mcp_app.models import Change


@pytest.mark.django_db
def test_the_clock_counts_milliseconds_in_utc() -> None:
    if connection.vendor == "mysql":
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+05:30'")
    before = int(time.time() * 1000)
    Change.objects.record("tool")
    after = int(time.time() * 1000)
    assert before - 50 <= Change.objects.get().created_ms <= after + 50


@pytest.mark.django_db
def test_the_clock_is_finer_than_seconds() -> None:
    seen = set()
    for number in range(3):
        Change.objects.record("tool", str(number))
        seen.add(Change.objects.latest("id").created_ms % 1000)
        time.sleep(0.005)
    assert len(seen) > 1
